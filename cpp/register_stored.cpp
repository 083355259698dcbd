#include <algorithm>

#include "arrays.h"
#include "thread_pool.h"

namespace cprime {
namespace {

// Write all rows, converted to type T.
template <class T> void widen(const StoredRows<T> &rows, OutTable<T> out, int n_threads) {
    const Points<T> x = rows.points();
    require(out.shape(0) == x.n && out.shape(1) == static_cast<std::size_t>(x.D), "out");
    const KernelCall call;
    constexpr std::size_t STEP = 4096;
    parallel_for((x.n + STEP - 1) / STEP, n_threads, [&](std::size_t i) {
        kernels<T>().widen(x, i * STEP, std::min(x.n, (i + 1) * STEP), out.data() + i * STEP * x.D);
    });
}

template <class T> void define_stored(nb::module_ &m, const char *name) {
    using Rows = StoredRows<T>;
    nb::class_<Rows>(m, name)
        .def(nb::init<const typename Rows::Array &, int, const std::optional<Vector<std::int64_t>> &,
                      const std::optional<Vector<T>> &>(),
             nb::arg().noconvert(), nb::arg(), nb::arg().noconvert().none(), nb::arg().noconvert().none())
        .def("widen", &widen<T>, argument<OutTable<T>>(), nb::arg());
}

} // namespace

void register_stored(nb::module_ &m) {
    define_stored<float>(m, "StoredRows32");
    define_stored<double>(m, "StoredRows64");
}

} // namespace cprime
