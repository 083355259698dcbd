#include <numeric>
#include <vector>

#include "arrays.h"
#include "thread_pool.h"

namespace cprime {
namespace {

template <class T>
void posterior(Table<T> log_joint, OutTable<double> responsibilities, OutVector<double> log_sum, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const std::size_t n = log_joint.shape(0);
    const int H = static_cast<int>(log_joint.shape(1));
    require(responsibilities.shape(0) == n && responsibilities.shape(1) == log_joint.shape(1), "responsibilities");
    require(log_sum.shape(0) == n, "log_sum");
    const nb::gil_scoped_release release;
    const std::size_t step = 4096;
    parallel_for((n + step - 1) / step, n_threads, [&](std::size_t i) {
        kernel.posterior(log_joint.data(), H, responsibilities.data(), log_sum.data(), i * step,
                         std::min(n, (i + 1) * step));
    });
}

// The entries n * H + h of `kept`, grouped by component and in rising order within each: a counting sort over a fixed
// number of chunks, so that the order does not depend on the threads. Returns where each component begins.
std::vector<std::size_t> group(const std::int32_t *kept, std::size_t n_entries, std::size_t n_components, int n_threads,
                               std::vector<std::int64_t> &entries) {
    const std::size_t n_chunks = n_entries < 65536 ? 1 : 8;
    const std::size_t step = (n_entries + n_chunks - 1) / n_chunks;
    std::vector<std::vector<std::size_t>> places(n_chunks, std::vector<std::size_t>(n_components));
    parallel_for(n_chunks, n_threads, [&](std::size_t i) {
        for (std::size_t e = i * step; e < std::min(n_entries, (i + 1) * step); ++e) {
            const auto c = static_cast<std::uint32_t>(kept[e]);
            if (c >= n_components)
                throw std::invalid_argument("kept has a component outside [0, n_components)");
            ++places[i][c];
        }
    });
    std::vector<std::size_t> begin(n_components + 1);
    std::size_t place = 0;
    for (std::size_t c = 0; c < n_components; ++c) {
        begin[c] = place;
        for (auto &chunk : places)
            place += std::exchange(chunk[c], place);
    }
    begin[n_components] = place;
    entries.resize(n_entries);
    parallel_for(n_chunks, n_threads, [&](std::size_t i) {
        for (std::size_t e = i * step; e < std::min(n_entries, (i + 1) * step); ++e)
            entries[places[i][kept[e]]++] = static_cast<std::int64_t>(e);
    });
    return begin;
}

// A component of many points is summed in segments, merged in their order: the same sums for any number of threads.
template <class T>
void accumulate(Matrix<T> X, Table<std::int32_t> kept, std::optional<Table<double>> responsibilities,
                std::optional<Vector<double>> sample_weight, OutVector<double> counts, OutTable<double> sums,
                int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Rows<T> x = rows(X);
    const int H = static_cast<int>(kept.shape(1));
    const std::size_t C = counts.shape(0), D = x.D;
    require(kept.shape(0) == x.n, "kept");
    require(sums.shape(0) == C && sums.shape(1) == D, "sums");
    require(!responsibilities || (responsibilities->shape(0) == x.n && responsibilities->shape(1) == kept.shape(1)),
            "responsibilities");
    require(!sample_weight || sample_weight->shape(0) == x.n, "sample_weight");

    const nb::gil_scoped_release release;
    std::vector<std::int64_t> entries;
    const std::vector<std::size_t> begin = group(kept.data(), x.n * H, C, n_threads, entries);
    const AccumulateTask<T> task{x, entries.data(), data_or_null(responsibilities), data_or_null(sample_weight), H};

    constexpr std::size_t SEGMENT = 8192;
    struct Segment {
        std::size_t begin, end;
        double *count, *sum;
    };
    std::vector<Segment> segments; // the first of each component goes straight to the result
    std::size_t n_extra = 0;
    for (std::size_t c = 0; c < C; ++c)
        n_extra += begin[c + 1] > begin[c] ? (begin[c + 1] - begin[c] - 1) / SEGMENT : 0;
    std::vector<double> extra(n_extra * (D + 1));
    std::fill_n(counts.data(), C, 0.0);
    std::fill_n(sums.data(), C * D, 0.0);
    double *spare = extra.data();
    std::vector<std::pair<std::size_t, double *>> merges;
    for (std::size_t c = 0; c < C; ++c)
        for (std::size_t b = begin[c]; b < begin[c + 1]; b += SEGMENT) {
            const std::size_t e = std::min(b + SEGMENT, begin[c + 1]);
            if (b == begin[c]) {
                segments.push_back({b, e, counts.data() + c, sums.data() + c * D});
            } else {
                segments.push_back({b, e, spare, spare + 1});
                merges.emplace_back(c, spare);
                spare += D + 1;
            }
        }
    constexpr std::size_t SEGMENTS_A_TASK = 4;
    parallel_for((segments.size() + SEGMENTS_A_TASK - 1) / SEGMENTS_A_TASK, n_threads, [&](std::size_t i) {
        for (std::size_t s = i * SEGMENTS_A_TASK; s < std::min(segments.size(), (i + 1) * SEGMENTS_A_TASK); ++s)
            kernel.accumulate(task, segments[s].begin, segments[s].end, segments[s].count, segments[s].sum);
    });
    for (const auto &[c, part] : merges) {
        counts.data()[c] += part[0];
        for (std::size_t k = 0; k < D; ++k)
            sums.data()[c * D + k] += part[k + 1];
    }
}

} // namespace

void register_statistics(nb::module_ &m) {
    m.def("posterior", &posterior<float>);
    m.def("posterior", &posterior<double>);
    m.def("accumulate", &accumulate<float>);
    m.def("accumulate", &accumulate<double>);
}

} // namespace cprime
