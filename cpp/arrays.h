// Conversion of NumPy arrays to the kernels' views. Shapes are checked in Python (kernels/arguments.py); the checks
// here only prevent reads and writes out of bounds.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "kernel_call.h"
#include "kernels.h"

namespace cprime {

namespace nb = nanobind;

template <class T> using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>; // each row is contiguous
template <class T> using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Table = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T> using OutVector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using OutTable = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

inline void require(bool holds, const char *what) {
    if (!holds)
        throw std::invalid_argument(std::string("array has the wrong shape: ") + what);
}

// Largest numbers of columns and of components: kernels count these as int, with the padding of packed arrays.
constexpr std::size_t MOST_COLUMNS = std::size_t(1) << 24, MOST_COMPONENTS = std::size_t(1) << 29;

template <class T> Rows<T> rows(const Matrix<T> &m) {
    require(m.shape(1) <= 1 || m.stride(1) == 1, "rows must be contiguous");
    require(m.shape(1) <= MOST_COLUMNS, "more than 2^24 columns");
    return {m.data(), static_cast<std::ptrdiff_t>(m.stride(0)), m.shape(0), static_cast<int>(m.shape(1))};
}

// Rows stored in a type narrower than T, which kernels convert when they read them. If `order` is given, row i is
// stored row order[i]. If `lengths` is given, each stored row is divided by its length.
template <class T> class StoredRows {
  public:
    using Array = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;

    StoredRows(const Array &array, int stored, const std::optional<Vector<std::int64_t>> &order,
               const std::optional<Vector<T>> &lengths)
        : array_(array), order_(order), lengths_(lengths) {
        require(stored >= static_cast<int>(Stored::uint8) && stored <= static_cast<int>(Stored::bhalf), "stored");
        points_.stored = static_cast<Stored>(stored);
        const std::size_t size = points_.number_bytes(), n = array_.shape(0);
        require(!n || array_.shape(1) <= 1 || array_.stride(1) == 1, "rows must be contiguous");
        require(array_.shape(1) <= MOST_COLUMNS, "more than 2^24 columns");
        require(array_.itemsize() == size, "numbers are of another size");
        require(reinterpret_cast<std::uintptr_t>(array_.data()) % size == 0, "numbers lie at odd addresses");
        points_.data = static_cast<const char *>(array_.data());
        points_.stride = static_cast<std::ptrdiff_t>(array_.stride(0)) * static_cast<std::ptrdiff_t>(size);
        points_.n = order ? order->shape(0) : n;
        points_.D = static_cast<int>(array_.shape(1));
        require(!lengths || lengths->shape(0) == n, "lengths");
        points_.order = order ? order->data() : nullptr;
        points_.lengths = lengths ? lengths->data() : nullptr;
        bool inside = true;
        for (std::size_t i = 0; order && i < points_.n; ++i)
            inside &= points_.order[i] >= 0 && static_cast<std::size_t>(points_.order[i]) < n;
        require(inside, "order: outside the rows");
    }

    const Points<T> &points() const { return points_; }

  private:
    Array array_; // this and the next two members keep the arrays' memory from being freed
    std::optional<Vector<std::int64_t>> order_;
    std::optional<Vector<T>> lengths_;
    Points<T> points_;
};

// Rows of type T, or rows stored in a narrower type.
template <class T> struct AnyRows {
    Matrix<T> array;
    const StoredRows<T> *stored = nullptr;
};

template <class T> Points<T> points(const AnyRows<T> &X) { return X.stored ? X.stored->points() : rows(X.array); }

// Return the centers of components as rows, after a check of their number.
template <class T> Rows<T> components(const Matrix<T> &m) {
    require(m.shape(0) <= MOST_COMPONENTS, "more than 2^29 components");
    return rows(m);
}

// Return the number of columns of an array of ids or lists as an int, after a check of its size.
template <class Array> int columns(const Array &table) {
    require(table.shape(1) <= MOST_COMPONENTS, "more than 2^29 columns of ids");
    return static_cast<int>(table.shape(1));
}

// Throw std::invalid_argument if an id is outside [least, n_components); `name` is the argument's name.
template <class Ids>
void require_components(const Ids &ids, std::size_t n_components, std::int64_t least, const char *name) {
    const std::int32_t *id = ids.data();
    const auto first = static_cast<std::int32_t>(least);
    const auto behind = static_cast<std::int32_t>(std::min<std::size_t>(n_components, INT32_MAX));
    const std::size_t size = ids.size();
    std::int32_t outside = 0; // same type as the ids, so that a vector has many lanes
    for (std::size_t i = 0; i < size; ++i)
        outside |= (id[i] < first) | (id[i] >= behind);
    if (outside)
        throw std::invalid_argument(std::string(name) + " has a component outside its range");
}

template <class T> constexpr bool MAY_BE_NONE = false;
template <class T> constexpr bool MAY_BE_NONE<std::optional<T>> = true;

template <class T> auto argument() {
    if constexpr (std::is_arithmetic_v<T>)
        return nb::arg();
    else if constexpr (MAY_BE_NONE<T>)
        return nb::arg().noconvert().none();
    else
        return nb::arg().noconvert();
}

// Register a function whose array arguments are not converted: results written to a converted copy would be lost.
template <class... T, class Result> void define(nb::module_ &m, const char *name, Result (*function)(T...)) {
    m.def(name, function, argument<T>()...);
}

template <class A> auto data_or_null(const std::optional<A> &array) -> decltype(array->data()) {
    return array ? array->data() : nullptr;
}

// Factors A in the costs of Gaussian components: diagonals (C, D) or lower triangles (C, D, D).
template <class T> using Factors = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;

template <class T> Gaussians<T> gaussians_of(const Matrix<T> &means, const Factors<T> &factors,
                                             const Vector<T> &offsets, const std::optional<Vector<T>> &dof) {
    const Rows<T> m = components(means);
    const auto D = static_cast<std::size_t>(m.D);
    const bool full = factors.ndim() == 3;
    require(full || factors.ndim() == 2, "factors");
    require(factors.shape(0) == m.n && factors.shape(1) == D && (!full || factors.shape(2) == D), "factors");
    require(offsets.shape(0) == m.n && (!dof || dof->shape(0) == m.n), "offsets, dof");
    return {m, factors.data(), offsets.data(), dof ? dof->data() : nullptr, full};
}

void register_nearest(nb::module_ &m);
void register_bounds(nb::module_ &m);
void register_distances(nb::module_ &m);
void register_statistics(nb::module_ &m);
void register_expect(nb::module_ &m);
void register_local(nb::module_ &m);
void register_line(nb::module_ &m);
void register_transport(nb::module_ &m);
void register_gaussians(nb::module_ &m);
void register_factors(nb::module_ &m);
void register_sparse(nb::module_ &m);
void register_cells(nb::module_ &m);
void register_jumps(nb::module_ &m);
void register_many(nb::module_ &m);
void register_stored(nb::module_ &m);

} // namespace cprime

namespace nanobind::detail {

template <class T> struct type_caster<cprime::AnyRows<T>> {
    NB_TYPE_CASTER(cprime::AnyRows<T>, make_caster<cprime::Matrix<T>>::Name)

    bool from_python(handle src, std::uint8_t flags, cleanup_list *cleanup) noexcept {
        if (isinstance<cprime::StoredRows<T>>(src)) {
            value.stored = inst_ptr<cprime::StoredRows<T>>(src);
            return true;
        }
        make_caster<cprime::Matrix<T>> array;
        if (!array.from_python(src, flags, cleanup))
            return false;
        value.array = array.value;
        return true;
    }
};

} // namespace nanobind::detail
