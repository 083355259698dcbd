// Costs of active sets, computed anew for rows that have no other candidates.
#pragma once
#include <algorithm>
#include <cstring>

#include "gaussians.h"
#include "lane_best.h"
#include "points.h"

namespace cprime::CPRIME_ISA {

// Return whether each of n rows has `width` components, all of them distinct.
inline bool distinct(const std::int32_t *ids, int n, int width) {
    bool missing = false;
    for (int i = 0; i < n; ++i, ids += width)
        for (int h = 0; h < width; ++h) {
            missing |= ids[h] < 0;
            for (int k = 0; k < h; ++k)
                missing |= ids[k] == ids[h];
        }
    return !missing;
}

// Active sets of some rows that have no other candidates: their costs are computed anew and their components sorted.
// Results are bit-identical to those of search_among. Squares are summed with one coordinate per vector lane. In all
// later steps each lane is a row.
template <class T> class KeptCosts {
  public:
    explicit KeptCosts(const ListSearchTask<T> &task) : task_(task), gathered_(task.X, W), found_(task.H) {}

    void measure(std::size_t begin, std::size_t end) {
        for (std::size_t first = begin; first < end; first += W) {
            const int n = static_cast<int>(std::min<std::size_t>(W, end - first)), H = task_.n_previous;
            const std::int32_t *previous = task_.previous + first * H;
            gathered_.read(task_.X, [&](int i) { return first + i; }, n, rows_);
            found_.clear();
            std::fill_n(task_.counts + first, n, H);
            const bool all = n == W && distinct(previous, n, H);
            for (int h = 0; h < H; ++h) {
                for (std::size_t i = first + W + h * W / H; i < std::min(end, first + W + (h + 1) * W / H); ++i)
                    fetch(task_.X, i);
                if (all)
                    offer_all(previous, h);
                else
                    offer_some(previous, h, n, task_.counts + first);
            }
            for (int i = 0; i < n; ++i)
                found_.store(i, task_.kept + (first + i) * task_.H, task_.distances + (first + i) * task_.H);
        }
    }

  private:
    using V = simd<T>;
    using vec = typename V::vec;
    using Id = typename LaneBest<T>::Id;
    static constexpr int W = V::width;

    // Offer component h of every row's active set to the row's list of best components.
    void offer_all(const std::int32_t *previous, int h) {
        const int H = task_.n_previous, D = task_.X.D;
        const Rows<T> means = task_.centers;
        const Gaussians<T> *gaussians = task_.gaussians;
        const T *factors = gaussians ? gaussians->factors : nullptr;
        vec parts[W];
        previous += h;
        for (int i = 0; i < W; ++i) {
            const std::int32_t c = previous[i * H];
            ids_[i] = static_cast<Id>(c);
            parts[i] = factors ? scaled_square_parts(rows_[i], means[c], factors + static_cast<std::size_t>(c) * D, D)
                               : square_parts(rows_[i], means[c], D);
        }
        auto cost = V::sums(parts);
        if (gaussians)
            cost = costs_at(*gaussians, [&](int i) { return previous[i * H]; }, W, cost);
        offer(cost);
    }

    // Offer component h of the active sets in which it exists and does not repeat an earlier one; lower the counts of
    // evaluated components of all other rows.
    void offer_some(const std::int32_t *previous, int h, int n, std::int32_t *counts) {
        const int H = task_.n_previous, D = task_.X.D;
        alignas(64) T cost[W];
        for (int i = 0; i < W; ++i) {
            const std::int32_t *kept = previous + i * H;
            ids_[i] = LaneBest<T>::NONE;
            cost[i] = std::numeric_limits<T>::infinity();
            if (i < n && kept[h] >= 0 && std::find(kept, kept + h, kept[h]) == kept + h) {
                ids_[i] = static_cast<Id>(kept[h]);
                cost[i] = task_.gaussians ? gaussian_cost(*task_.gaussians, kept[h], rows_[i])
                                          : squared_distance(rows_[i], task_.centers[kept[h]], D);
            } else if (i < n) {
                --counts[i];
            }
        }
        offer(V::load(cost));
    }

    void offer(vec cost) {
        typename V::ints ids;
        std::memcpy(&ids, ids_, sizeof ids);
        found_.offer(0, ids, cost);
    }

    const ListSearchTask<T> &task_;
    const Gathered<T> gathered_;
    LaneBest<T> found_;
    const T *rows_[W];
    alignas(64) Id ids_[W];
};

} // namespace cprime::CPRIME_ISA
