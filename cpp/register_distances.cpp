#include <vector>

#include "arrays.h"
#include "thread_pool.h"

namespace cprime {
namespace {

template <class T>
void distances(Matrix<T> X, Matrix<T> candidates, std::optional<Vector<T>> current, OutTable<T> out, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Rows<T> x = rows(X), m = rows(candidates);
    require(x.D == m.D, "X and candidates differ in their columns");
    require(out.shape(0) == m.n && out.shape(1) == x.n, "out");
    require(!current || current->shape(0) == x.n, "current");

    const nb::gil_scoped_release release;
    const std::size_t n_tiles = (m.n + kernel.tile_rows - 1) / kernel.tile_rows;
    std::vector<T> packed(n_tiles * kernel.tile_rows * m.D + kernel.lanes); // packing writes a little behind the end
    kernel.pack_tiles(m, packed.data());
    const std::size_t step = static_cast<std::size_t>(kernel.lanes) * 16;
    const T *least = data_or_null(current);
    parallel_for((x.n + step - 1) / step, n_threads, [&](std::size_t i) {
        kernel.distances(x, m, packed.data(), least, out.data(), i * step, std::min(x.n, (i + 1) * step));
    });
}

} // namespace

void register_distances(nb::module_ &m) {
    m.def("distances", &distances<float>);
    m.def("distances", &distances<double>);
}

} // namespace cprime
