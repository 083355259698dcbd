#include <vector>

#include "arrays.h"
#include "thread_pool.h"

namespace cprime {
namespace {

template <class T>
void distances(AnyRows<T> X, Matrix<T> candidates, std::optional<Vector<T>> current, OutTable<T> out, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Points<T> x = points(X);
    const Rows<T> m = components(candidates);
    require(x.D == m.D, "X and candidates differ in their columns");
    require(out.shape(0) == m.n && out.shape(1) == x.n, "out");
    require(!current || current->shape(0) == x.n, "current");

    const KernelCall call;
    const std::size_t n_tiles = (m.n + kernel.tile_rows - 1) / kernel.tile_rows;
    std::vector<T> packed(n_tiles * kernel.tile_rows * m.D + kernel.lanes); // packing writes a little beyond the end
    kernel.pack_tiles(m, packed.data());
    n_threads = worth(static_cast<double>(x.n) * m.n * x.D, n_threads);
    const std::size_t step = static_cast<std::size_t>(kernel.lanes) * 16;
    const T *least = data_or_null(current);
    parallel_for((x.n + step - 1) / step, n_threads, [&](std::size_t i) {
        kernel.distances(x, m, packed.data(), least, out.data(), i * step, std::min(x.n, (i + 1) * step));
    });
}

template <class T>
void potentials(Table<T> squares, std::optional<Vector<std::int64_t>> candidates, Vector<T> closest,
                std::optional<Vector<double>> sample_weight, OutVector<double> out, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const std::size_t n = squares.shape(1), L = out.shape(0);
    require(closest.shape(0) == n && (!sample_weight || sample_weight->shape(0) == n), "closest, sample_weight");
    require(L == (candidates ? candidates->shape(0) : squares.shape(0)), "out");
    for (std::size_t l = 0; candidates && l < L; ++l)
        require(candidates->data()[l] >= 0 && static_cast<std::size_t>(candidates->data()[l]) < squares.shape(0),
                "candidates");
    const KernelCall call;
    constexpr std::size_t PIECE = 8192; // independent of the number of threads, so sums are too
    const std::size_t n_pieces = (n + PIECE - 1) / PIECE;
    std::vector<double> parts(n_pieces * L);
    const double *weights = data_or_null(sample_weight);
    parallel_for(n_pieces, worth(static_cast<double>(n) * L * 8, n_threads), [&](std::size_t i) {
        for (std::size_t l = 0; l < L; ++l) {
            const std::size_t row = candidates ? static_cast<std::size_t>(candidates->data()[l]) : l;
            parts[i * L + l] = kernel.potential(squares.data() + row * n, closest.data(), weights, i * PIECE,
                                                std::min(n, (i + 1) * PIECE));
        }
    });
    std::fill_n(out.data(), L, 0.0);
    for (std::size_t i = 0; i < n_pieces; ++i)
        for (std::size_t l = 0; l < L; ++l)
            out.data()[l] += parts[i * L + l];
}

template <class T>
void spread_out(AnyRows<T> candidates, Vector<std::int64_t> offsets, Vector<double> weights,
                Vector<std::int64_t> n_chosen, Table<double> uniform, OutVector<std::int64_t> chosen, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Points<T> x = points(candidates);
    const std::size_t n_groups = n_chosen.shape(0);
    require(offsets.shape(0) == n_groups + 1 && weights.shape(0) == x.n, "offsets, weights");
    std::vector<std::size_t> begin(n_groups + 1, 0);
    for (std::size_t g = 0; g < n_groups; ++g)
        begin[g + 1] = begin[g] + static_cast<std::size_t>(n_chosen.data()[g]);
    require(uniform.shape(0) == begin[n_groups] && chosen.shape(0) == begin[n_groups], "uniform, chosen");
    const KernelCall call;
    const int n_trials = columns(uniform);
    parallel_for(n_groups, n_threads, [&](std::size_t g) {
        const std::int64_t first = offsets.data()[g];
        const Points<T> group =
            x.from(static_cast<std::size_t>(first), static_cast<std::size_t>(offsets.data()[g + 1] - first));
        kernel.spread_out(group, weights.data() + first, uniform.data() + begin[g] * n_trials, n_trials,
                          begin[g + 1] - begin[g], chosen.data() + begin[g]);
    });
}

} // namespace

void register_distances(nb::module_ &m) {
    define(m, "distances", &distances<float>);
    define(m, "distances", &distances<double>);
    define(m, "potentials", &potentials<float>);
    define(m, "potentials", &potentials<double>);
    define(m, "spread_out", &spread_out<float>);
    define(m, "spread_out", &spread_out<double>);
}

} // namespace cprime
