// Sums of evaluated distances for pairs of components: the best component of a point, and the component to which the
// distance was evaluated. The estimated distances in equation (8) of Forster & Luecke (2018) are means from these sums,
// which are stored as rows of a sparse matrix (C, C).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels.h"
#include "signals.h"
#include "thread_pool.h"

namespace cprime {

// Sums over the points with one best component (`winner`): for each evaluated component, of distances and of weights.
struct EvidenceRow {
    std::int32_t winner;
    std::vector<std::int32_t> ids;
    std::vector<double> sums, weights;
};

// Dense accumulator of C numbers for one EvidenceRow; it is cleared and reused for the next row.
class OpenEvidence {
  public:
    explicit OpenEvidence(std::size_t C) : sums_(C), weights_(C), seen_(C) {}

    void add(std::int32_t id, double sum, double weight) {
        if (!seen_[id]) {
            seen_[id] = 1;
            ids_.push_back(id);
        }
        sums_[id] += sum;
        weights_[id] += weight;
    }

    void add(const EvidenceRow &row) {
        for (std::size_t i = 0; i < row.ids.size(); ++i)
            add(row.ids[i], row.sums[i], row.weights[i]);
    }

    EvidenceRow close(std::int32_t winner, bool in_order) {
        EvidenceRow out{winner, {}, {}, {}};
        if (in_order)
            std::sort(ids_.begin(), ids_.end());
        out.ids = ids_;
        out.sums.reserve(ids_.size());
        out.weights.reserve(ids_.size());
        for (const std::int32_t id : ids_) {
            out.sums.push_back(std::exchange(sums_[id], 0.0));
            out.weights.push_back(std::exchange(weights_[id], 0.0));
            seen_[id] = 0;
        }
        ids_.clear();
        return out;
    }

  private:
    std::vector<double> sums_, weights_;
    std::vector<char> seen_;
    std::vector<std::int32_t> ids_;
};

// Return the sums over entries (points) [begin, end), which `task` has searched. If costs are squared distances, their
// square roots are summed. Points of weight 0 and points without a component are ignored.
template <class T>
std::vector<EvidenceRow> evidence_of(const ListSearchTask<T> &task, const double *sample_weight, std::size_t begin,
                                     std::size_t end) {
    const std::size_t capacity = task.capacity();
    std::vector<std::pair<std::int32_t, std::int32_t>> order; // best component and index of each entry
    order.reserve(end - begin);
    for (std::size_t e = begin; e < end; ++e) {
        const std::size_t n = task.row(e);
        const std::int32_t winner = task.kept[n * task.H];
        if (winner >= 0 && (!sample_weight || sample_weight[n] > 0))
            order.emplace_back(winner, static_cast<std::int32_t>(e - begin));
    }
    std::sort(order.begin(), order.end());
    std::vector<EvidenceRow> out;
    OpenEvidence open(task.centers.n);
    for (std::size_t k = 0; k < order.size(); ++k) {
        const auto [winner, i] = order[k];
        const std::size_t n = task.row(begin + i), first = i * capacity;
        const double w = sample_weight ? sample_weight[n] : 1.0;
        for (std::size_t j = first; j < first + task.counts[n]; ++j) {
            const auto value = static_cast<double>(task.evaluations[j]);
            open.add(task.evaluated[j], w * (task.gaussians ? value : std::sqrt(value)), w);
        }
        if (k + 1 == order.size() || order[k + 1].first != winner)
            out.push_back(open.close(winner, false));
    }
    return out;
}

// Merged matrix rows of several pieces of the data: rows of the same component are summed in the order of the pieces.
struct Evidence {
    Evidence(const std::vector<std::vector<EvidenceRow>> &pieces, std::size_t C, int n_threads) : begins(C + 1) {
        std::vector<std::vector<const EvidenceRow *>> parts(C);
        for (const auto &piece : pieces)
            for (const EvidenceRow &row : piece)
                parts[row.winner].push_back(&row);
        std::vector<EvidenceRow> rows(C);
        const std::size_t step = std::max<std::size_t>(1, C / 64); // each task allocates dense sums
        parallel_for((C + step - 1) / step, n_threads, [&](std::size_t task) {
            OpenEvidence open(C);
            for (std::size_t c = task * step; c < std::min(C, (task + 1) * step); ++c) {
                answer_signals();
                for (const EvidenceRow *part : parts[c])
                    open.add(*part);
                rows[c] = open.close(static_cast<std::int32_t>(c), true);
            }
        });
        for (std::size_t c = 0; c < C; ++c)
            begins[c + 1] = begins[c] + static_cast<std::int64_t>(rows[c].ids.size());
        ids.reserve(begins[C]);
        sums.reserve(begins[C]);
        weights.reserve(begins[C]);
        for (EvidenceRow &row : rows) {
            ids.insert(ids.end(), row.ids.begin(), row.ids.end());
            sums.insert(sums.end(), row.sums.begin(), row.sums.end());
            weights.insert(weights.end(), row.weights.begin(), row.weights.end());
            row = {};
        }
    }

    std::vector<std::int64_t> begins;
    std::vector<std::int32_t> ids;
    std::vector<double> sums, weights;
};

} // namespace cprime
