#include "arrays.h"

namespace cprime {
namespace {

template <class T> void define_stored(nb::module_ &m, const char *name) {
    using Rows = StoredRows<T>;
    nb::class_<Rows>(m, name).def(
        nb::init<const typename Rows::Array &, int, const std::optional<Vector<std::int64_t>> &,
                 const std::optional<Vector<T>> &>(),
        nb::arg().noconvert(), nb::arg(), nb::arg().noconvert().none(), nb::arg().noconvert().none());
}

} // namespace

void register_stored(nb::module_ &m) {
    define_stored<float>(m, "StoredRows32");
    define_stored<double>(m, "StoredRows64");
}

} // namespace cprime
