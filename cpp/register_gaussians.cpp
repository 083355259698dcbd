#include <vector>

#include "arrays.h"
#include "grouping.h"
#include "thread_pool.h"

namespace cprime {
namespace {

// Rows relative to an origin, and each component's start for it.
template <class T> std::vector<T> starts(const Gaussians<T> &gaussians, const T *origin, int n_threads) {
    const std::size_t C = gaussians.means.n, D = gaussians.means.D;
    std::vector<T> out(C * D);
    for_each(C, n_threads, [&](std::size_t c) { kernels<T>().gaussian_start(gaussians, c, origin, &out[c * D]); });
    return out;
}

template <class T> using OutFactors = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

template <class T>
void products(Matrix<T> X, Matrix<T> B, std::optional<Vector<T>> shift, OutTable<T> out, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Rows<T> x = rows(X), b = rows(B);
    require(x.D == b.D, "X and B differ in their columns");
    require(out.shape(0) == x.n && out.shape(1) == b.n && (!shift || shift->shape(0) == X.shape(1)), "out, shift");
    const nb::gil_scoped_release release;
    const std::size_t panels = (b.n + kernel.lanes - 1) / kernel.lanes;
    std::vector<T> columns(panels * kernel.lanes * b.D);
    kernel.pack_columns(b, columns.data());
    const std::size_t step = static_cast<std::size_t>(kernel.tile_rows) * 16;
    parallel_for((x.n + step - 1) / step, n_threads, [&](std::size_t i) {
        kernel.products(x, data_or_null(shift), columns.data(), b.n, out.data(), i * step,
                        std::min(x.n, (i + 1) * step));
    });
}

template <class T>
void best(Matrix<T> X, Matrix<T> means, Factors<T> factors, Vector<T> offsets, Vector<T> origin,
          OutTable<std::int32_t> kept, OutTable<T> costs, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Rows<T> x = rows(X);
    const Gaussians<T> gaussians = gaussians_of(means, factors, offsets);
    require(x.D == gaussians.means.D && origin.shape(0) == X.shape(1), "X, means, origin");
    require(kept.shape(0) == x.n && costs.shape(0) == x.n && costs.shape(1) == kept.shape(1), "kept, costs");
    require(kept.shape(1) >= 1 && kept.shape(1) <= gaussians.means.n, "kept");
    const nb::gil_scoped_release release;
    const std::vector<T> start = starts(gaussians, origin.data(), n_threads);
    const BestTask<T> task{x,           gaussians,   origin.data(), start.data(), static_cast<int>(kept.shape(1)),
                           kept.data(), costs.data()};
    const std::size_t step = static_cast<std::size_t>(kernel.lanes) * 4;
    parallel_for((x.n + step - 1) / step, n_threads,
                 [&](std::size_t i) { kernel.best(task, i * step, std::min(x.n, (i + 1) * step)); });
}

template <class T>
void keep_best(Matrix<T> X, Matrix<T> means, Factors<T> factors, Vector<T> offsets, Table<std::int32_t> lists,
               Table<std::int32_t> previous, OutTable<std::int32_t> kept, OutTable<T> costs, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Rows<T> x = rows(X);
    const Gaussians<T> gaussians = gaussians_of(means, factors, offsets);
    const std::size_t C = gaussians.means.n;
    require(x.D == gaussians.means.D, "X and means differ in their columns");
    require(lists.shape(0) == C && previous.shape(0) == x.n && previous.shape(1) >= 1, "lists, previous");
    require(kept.shape(0) == x.n && costs.shape(0) == x.n && costs.shape(1) == kept.shape(1), "kept, costs");
    require(kept.shape(1) >= 1, "kept");
    const nb::gil_scoped_release release;
    for (const auto &ids : {lists, previous})
        require_components(ids, C, -1);
    const std::size_t width = previous.shape(1);
    std::vector<std::int64_t> entries;
    const std::vector<std::size_t> begin = group_by_first(previous.data(), x.n, width, C, n_threads, entries);
    const KeepBestTask<T> task{x,
                               gaussians,
                               lists.data(),
                               static_cast<int>(lists.shape(1)),
                               previous.data(),
                               static_cast<int>(width),
                               entries.data(),
                               static_cast<int>(kept.shape(1)),
                               kept.data(),
                               costs.data()};
    for_each(segments(begin, SHARED), n_threads,
             [&](int c, std::size_t b, std::size_t e) { kernel.keep_best(task, c, b, e); });
}

// Sums go to counts, first and second unless these are none; labels, log_sum and mean of every row are written.
template <class T>
void respond(Matrix<T> X, Matrix<T> means, Factors<T> factors, Vector<T> offsets, Vector<T> origin,
             std::optional<Vector<double>> sample_weight, OutVector<std::int32_t> labels, OutVector<double> log_sum,
             OutVector<double> mean, std::optional<OutVector<double>> counts, std::optional<OutTable<double>> first,
             std::optional<OutFactors<double>> second, std::optional<OutTable<double>> responsibilities,
             int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Rows<T> x = rows(X);
    const Gaussians<T> gaussians = gaussians_of(means, factors, offsets);
    const std::size_t C = gaussians.means.n, D = x.D;
    require(x.D == gaussians.means.D && origin.shape(0) == D, "X, means, origin");
    require(!sample_weight || sample_weight->shape(0) == x.n, "sample_weight");
    require(labels.shape(0) == x.n && log_sum.shape(0) == x.n && mean.shape(0) == x.n, "labels, log_sum, mean");
    require(!counts || (counts->shape(0) == C && first && first->shape(0) == C && first->shape(1) == D && second &&
                        second->size() == factors.size()),
            "counts, first, second");
    require(!responsibilities || (responsibilities->shape(0) == x.n && responsibilities->shape(1) == C),
            "responsibilities");

    const nb::gil_scoped_release release;
    const std::vector<T> start = starts(gaussians, origin.data(), n_threads);
    // Rows that are worked on at once: few enough to stay near the processor while every component reads them, enough
    // to be worth sharing and to fill the vectors.
    constexpr std::size_t NEAR = std::size_t(1) << 19, WORTH = std::size_t(1) << 20, BUDGET = std::size_t(48) << 20;
    const std::size_t lanes = kernel.lanes;
    const std::size_t wanted = std::max(NEAR / (std::max<std::size_t>(D, 1) * sizeof(T)), WORTH / C);
    const std::size_t fitting = std::clamp<std::size_t>(std::min(wanted, BUDGET / (C * sizeof(T))), 8 * lanes, 32768);
    const std::size_t block = (std::min(x.n, fitting) + lanes - 1) / lanes * lanes;
    std::vector<T> table(C * block);
    // A component's rows are summed in one piece where components are many, in a few where there is else little to
    // share.
    const std::size_t piece = (block + (64 + C - 1) / C - 1) / ((64 + C - 1) / C);
    for (std::size_t begin = 0; begin < x.n; begin += block) {
        const std::size_t n = std::min(block, x.n - begin);
        const RespondTask<T> task{{x[begin], x.stride, n, x.D},
                                  gaussians,
                                  origin.data(),
                                  start.data(),
                                  sample_weight ? sample_weight->data() + begin : nullptr,
                                  block,
                                  table.data(),
                                  labels.data() + begin,
                                  log_sum.data() + begin,
                                  mean.data() + begin};
        const std::size_t step = lanes * 4;
        parallel_for((n + step - 1) / step, n_threads,
                     [&](std::size_t i) { kernel.respond(task, i * step, std::min(n, (i + 1) * step)); });
        if (counts) {
            std::vector<Segment> pieces;
            for (std::size_t c = 0; c < C; ++c)
                for (std::size_t b = 0; b < n; b += piece)
                    pieces.push_back({static_cast<int>(c), b, std::min(n, b + piece)});
            sum_segments(pieces, {counts->data(), first->data(), second->data(), D, factors.size() / C}, n_threads,
                         [&](const Segment &s, const Sums &to) {
                             kernel.column_moments(task, s.component, s.begin, s.end, to.count, to.first, to.second);
                         });
        }
        if (responsibilities)
            parallel_for((n + step - 1) / step, n_threads, [&](std::size_t i) {
                for (std::size_t r = i * step; r < std::min(n, (i + 1) * step); ++r)
                    for (std::size_t c = 0; c < C; ++c)
                        responsibilities->data()[(begin + r) * C + c] = table[c * block + r];
            });
    }
}

template <class T>
void moments(Matrix<T> X, Matrix<T> means, Table<std::int32_t> kept, std::optional<Table<double>> responsibilities,
             std::optional<Vector<double>> sample_weight, OutVector<double> counts, OutTable<double> first,
             OutFactors<double> second, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Rows<T> x = rows(X), m = rows(means);
    const std::size_t C = m.n, D = m.D, H = kept.shape(1);
    const bool full = second.ndim() == 3;
    // What a segment adds to is as large as a matrix: long ones where D is large.
    const std::size_t length = std::max<std::size_t>(16384, full ? D * D / 2 : 0);
    require(C > 0, "means");
    require(x.D == m.D, "X and means differ in their columns");
    require(kept.shape(0) == x.n, "kept");
    require(!responsibilities || (responsibilities->shape(0) == x.n && responsibilities->shape(1) == H),
            "responsibilities");
    require(!sample_weight || sample_weight->shape(0) == x.n, "sample_weight");
    require(counts.shape(0) == C && first.shape(0) == C && first.shape(1) == D, "counts, first");
    require((full || second.ndim() == 2) && second.size() == C * D * (full ? D : 1), "second");

    const nb::gil_scoped_release release;
    std::vector<std::int64_t> entries;
    const std::vector<std::size_t> begin = group(kept.data(), x.n * H, C, n_threads, entries);
    const MomentsTask<T> task{
        x, m, full, entries.data(), data_or_null(responsibilities), data_or_null(sample_weight), static_cast<int>(H)};
    sum_segments(segments(begin, length), {counts.data(), first.data(), second.data(), D, second.size() / C}, n_threads,
                 [&](const Segment &s, const Sums &to) {
                     kernel.moments(task, s.component, s.begin, s.end, to.count, to.first, to.second);
                 });
}

} // namespace

void register_gaussians(nb::module_ &m) {
    m.def("products", &products<float>);
    m.def("products", &products<double>);
    m.def("best", &best<float>);
    m.def("best", &best<double>);
    m.def("keep_best", &keep_best<float>);
    m.def("keep_best", &keep_best<double>);
    m.def("respond", &respond<float>);
    m.def("respond", &respond<double>);
    m.def("moments", &moments<float>);
    m.def("moments", &moments<double>);
}

} // namespace cprime
