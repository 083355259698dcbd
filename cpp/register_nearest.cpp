#include "arrays.h"
#include "panels.h"
#include "thread_pool.h"

namespace cprime {
namespace {

template <class T>
void nearest(AnyRows<T> X, Matrix<T> centers, Vector<T> shift, std::optional<Table<std::int32_t>> hint,
             OutTable<std::int32_t> kept, OutTable<T> distances, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Points<T> x = points(X);
    const Rows<T> m = components(centers);
    const int H = columns(kept);
    require(x.D == m.D && shift.shape(0) == centers.shape(1), "X, centers and shift differ in their columns");
    require(kept.shape(0) == x.n && distances.shape(0) == x.n && distances.shape(1) == kept.shape(1),
            "kept, distances");
    require(!hint || (hint->shape(0) == x.n && hint->shape(1) == kept.shape(1)), "hint");
    require(H >= 1 && static_cast<std::size_t>(H) <= m.n, "n_kept");

    const KernelCall call;
    n_threads = worth(static_cast<double>(x.n) * m.n * x.D, n_threads);
    for (std::size_t i = 0; hint && i < hint->size(); ++i)
        require(hint->data()[i] >= 0 && static_cast<std::size_t>(hint->data()[i]) < m.n, "hint: outside [0, C)");
    // Rows, for which equal centres are looked for, and for which centres are packed.
    constexpr std::size_t WORTH = 256, WORTH_PACKING = 8, DIRECT_ROWS = 4096;
    std::optional<PackedCenters<T>> packed;
    const bool direct = is_direct(m.n, H, x.D);
    if (x.n >= WORTH_PACKING && !direct)
        packed.emplace(m, shift.data(), x.n < WORTH ? 0 : H, n_threads);
    const NearestTask<T> task{
        x, m, packed ? packed->panels() : Panels<T>{}, data_or_null(hint), H, kept.data(), distances.data(), nullptr};
    const std::size_t step = direct ? DIRECT_ROWS : packed ? kernel.nearest_rows(H, x.D, packed->panels().coarse) : 1;
    parallel_for((x.n + step - 1) / step, n_threads,
                 [&](std::size_t i) { kernel.nearest(task, i * step, std::min(x.n, (i + 1) * step)); });
}

} // namespace

void register_nearest(nb::module_ &m) {
    define(m, "nearest", &nearest<float>);
    define(m, "nearest", &nearest<double>);
}

} // namespace cprime
