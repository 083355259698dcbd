#include <vector>

#include "arrays.h"
#include "thread_pool.h"

namespace cprime {
namespace {

template <class T>
void nearest(Matrix<T> X, Matrix<T> centers, Vector<T> shift, std::optional<Table<std::int32_t>> hint,
             OutTable<std::int32_t> kept, OutTable<T> distances, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Rows<T> x = rows(X), m = rows(centers);
    const int H = static_cast<int>(kept.shape(1));
    require(x.D == m.D && shift.shape(0) == centers.shape(1), "X, centers and shift differ in their columns");
    require(kept.shape(0) == x.n && distances.shape(0) == x.n && distances.shape(1) == kept.shape(1),
            "kept, distances");
    require(!hint || (hint->shape(0) == x.n && hint->shape(1) == kept.shape(1)), "hint");
    require(H >= 1 && static_cast<std::size_t>(H) <= m.n, "n_kept");

    const nb::gil_scoped_release release;
    for (std::size_t i = 0; hint && i < hint->size(); ++i)
        require(hint->data()[i] >= 0 && static_cast<std::size_t>(hint->data()[i]) < m.n, "hint: outside [0, C)");
    const int lanes = kernel.lanes;
    const int n_panels = static_cast<int>((m.n + lanes - 1) / lanes);
    std::vector<T> columns(static_cast<std::size_t>(n_panels) * (m.D + 1) * lanes);
    std::vector<T> half_norm(static_cast<std::size_t>(n_panels) * lanes), norm(half_norm.size()), lost(norm.size());
    std::vector<std::uint16_t> halves(kernel.half_panel_size(m.D) * n_panels);
    const Panels<T> panels{columns.data(), half_norm.data(), norm.data(), halves.empty() ? nullptr : halves.data(),
                           lost.data(),    shift.data(),     n_panels,    static_cast<int>(m.n)};
    constexpr int PANELS_A_TASK = 16;
    parallel_for((n_panels + PANELS_A_TASK - 1) / PANELS_A_TASK, n_threads, [&](std::size_t i) {
        const int begin = static_cast<int>(i) * PANELS_A_TASK;
        kernel.pack_panels(m, panels, begin, std::min(n_panels, begin + PANELS_A_TASK));
    });
    const NearestTask<T> task{x, m, panels, data_or_null(hint), H, kept.data(), distances.data()};
    const std::size_t step = kernel.nearest_rows(H, x.D);
    parallel_for((x.n + step - 1) / step, n_threads,
                 [&](std::size_t i) { kernel.nearest(task, i * step, std::min(x.n, (i + 1) * step)); });
}

} // namespace

void register_nearest(nb::module_ &m) {
    m.def("nearest", &nearest<float>);
    m.def("nearest", &nearest<double>);
}

} // namespace cprime
