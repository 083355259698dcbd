#include <memory>
#include <vector>

#include "arrays.h"
#include "grouping.h"
#include "origin.h"
#include "panels.h"
#include "thread_pool.h"

namespace cprime {
namespace {

// Centres in the order of the cells that they lie in, packed once for many searches.
template <class T> class CenterCells {
  public:
    CenterCells(Matrix<T> centers, Vector<std::int64_t> begins, int n_threads)
        : centers_(centers), begins_(begins.data(), begins.data() + begins.size()) {
        const Rows<T> m = components(centers);
        require(m.n > 0, "centers");
        require(!begins_.empty() && begins_.front() == 0 && begins_.back() == static_cast<std::int64_t>(m.n), "begins");
        require(std::is_sorted(begins_.begin(), begins_.end()), "begins");
        const KernelCall call;
        shift_ = median_of(m);
        packed_ = std::make_unique<PackedCenters<T>>(m, shift_.data(), 0, n_threads);
    }

    // For each row the nearest centers of its cell, where they are nearer than what it keeps; nothing where the cell is
    // -1, or `least` is greater than the last distance so far.
    void improve(AnyRows<T> X, Vector<std::int32_t> cells, Vector<T> least, OutTable<std::int32_t> kept,
                 OutTable<T> squares, int n_threads) const {
        const Kernels<T> &kernel = kernels<T>();
        const Points<T> x = points(X);
        const Rows<T> m = components(centers_);
        const std::size_t n_cells = begins_.size() - 1;
        require(x.D == m.D, "X and centers differ in their columns");
        require(cells.shape(0) == x.n && least.shape(0) == x.n, "cells, least");
        const int H = columns(kept);
        require(H > 0 && kept.shape(0) == x.n, "kept");
        require(squares.shape(0) == x.n && squares.shape(1) == kept.shape(1), "squares");
        const KernelCall call;
        require_components(cells, n_cells, -1, "cells");
        require_components(kept, m.n, -1, "kept");
        std::vector<std::int32_t> reached(x.n); // the cell, or the number behind them all
        for (std::size_t n = 0; n < x.n; ++n) {
            const bool left_out = cells.data()[n] < 0 || least.data()[n] > std::sqrt(squares.data()[n * H + H - 1]);
            reached[n] = static_cast<std::int32_t>(left_out ? n_cells : cells.data()[n]);
        }
        std::vector<std::int64_t> entries;
        std::vector<std::size_t> begin = group(reached.data(), x.n, n_cells + 1, n_threads, entries);
        begin.pop_back(); // of those that are left out
        NearestTask<T> task{x, m, packed_->panels(), nullptr, H, kept.data(), squares.data(), nullptr};
        task.improve = true;
        for_each(segments(begin, kernel.nearest_rows(H, m.D, packed_->panels().coarse)), n_threads,
                 [&](int c, std::size_t b, std::size_t e) {
                     kernel.improve(task, entries.data() + b, static_cast<int>(e - b), static_cast<int>(begins_[c]),
                                    static_cast<int>(begins_[c + 1]));
                 });
    }

  private:
    Matrix<T> centers_; // which it keeps alive
    std::vector<std::int64_t> begins_;
    std::vector<T> shift_;
    std::unique_ptr<PackedCenters<T>> packed_;
};

template <class T> void define_cells(nb::module_ &m, const char *name) {
    nb::class_<CenterCells<T>>(m, name)
        .def(nb::init<Matrix<T>, Vector<std::int64_t>, int>(), argument<Matrix<T>>(), argument<Vector<std::int64_t>>(),
             nb::arg())
        .def("improve", &CenterCells<T>::improve, argument<AnyRows<T>>(), argument<Vector<std::int32_t>>(),
             argument<Vector<T>>(), argument<OutTable<std::int32_t>>(), argument<OutTable<T>>(), nb::arg());
}

} // namespace

void register_cells(nb::module_ &m) {
    define_cells<float>(m, "CenterCells32");
    define_cells<double>(m, "CenterCells64");
}

} // namespace cprime
