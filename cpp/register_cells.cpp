#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "arrays.h"
#include "origin.h"
#include "panels.h"
#include "thread_pool.h"

namespace cprime {
namespace {

// Centers in the order of the cells that contain them, after the centers of the cells, packed once for many searches.
template <class T> class CenterCells {
  public:
    CenterCells(Matrix<T> centers, Vector<std::int64_t> begins, Table<T> between, int n_threads)
        : centers_(centers), between_(between), begins_(begins.data(), begins.data() + begins.size()) {
        const Rows<T> m = components(centers);
        require(begins_.size() > 1 && begins_.front() == static_cast<std::int64_t>(begins_.size() - 1), "begins");
        require(std::is_sorted(begins_.begin(), begins_.end()), "begins");
        require(begins_.back() == static_cast<std::int64_t>(m.n) && begins_.back() > begins_.front(), "begins");
        require(between.shape(0) == begins_.size() - 1 && between.shape(1) == between.shape(0), "between");
        const KernelCall call;
        shift_ = median_of(m);
        packed_ = std::make_unique<PackedCenters<T>>(m, shift_.data(), 0, n_threads);
    }

    // Find the nearest of the centers in at most `most` cells near each row. Ids are positions in the packed order, -1
    // if fewer centers were found. Returns the number of evaluated distances.
    std::int64_t find(AnyRows<T> X, int most, OutTable<std::int32_t> kept, OutTable<T> squares, int n_threads) const {
        const Kernels<T> &kernel = kernels<T>();
        const Points<T> x = points(X);
        const Rows<T> m = components(centers_);
        require(x.D == m.D, "X and centers differ in their columns");
        const int H = columns(kept), n_cells = static_cast<int>(begins_.size() - 1);
        require(H > 0 && kept.shape(0) == x.n, "kept");
        require(squares.shape(0) == x.n && squares.shape(1) == kept.shape(1), "squares");
        require(most > 0, "most");
        const KernelCall call;
        std::fill_n(kept.data(), x.n * H, -1);
        std::fill_n(squares.data(), x.n * H, std::numeric_limits<T>::infinity());
        NearestTask<T> nearest{x, m, packed_->panels(), nullptr, H, kept.data(), squares.data(), nullptr};
        nearest.improve = true;
        const CellsTask<T> task{nearest, begins_.data(), between_.data(), n_cells, std::min(most, n_cells)};
        // The rows of a piece fit into the cache, and each thread processes the same number of pieces.
        constexpr std::size_t NEAR = std::size_t(1) << 20, FEW = 1024, MANY = 16384;
        const std::size_t step = std::clamp<std::size_t>(NEAR / std::max(x.D, 1), FEW, MANY);
        n_threads = worth(static_cast<double>(x.n) * x.D * (n_cells + task.most * (m.n / n_cells)), n_threads);
        const auto threads = static_cast<std::size_t>(n_threads);
        const std::size_t n_pieces =
            std::min<std::size_t>(x.n, ((x.n + step - 1) / step + threads - 1) / threads * threads);
        std::vector<std::int64_t> counts(n_pieces);
        parallel_for(n_pieces, n_threads, [&](std::size_t i) {
            counts[i] = kernel.find_in_cells(task, i * x.n / n_pieces, (i + 1) * x.n / n_pieces);
        });
        return std::accumulate(counts.begin(), counts.end(), std::int64_t(0));
    }

  private:
    Matrix<T> centers_; // keeps the memory of the centers from being freed
    Table<T> between_;
    std::vector<std::int64_t> begins_;
    std::vector<T> shift_;
    std::unique_ptr<PackedCenters<T>> packed_;
};

template <class T> void define_cells(nb::module_ &m, const char *name) {
    nb::class_<CenterCells<T>>(m, name)
        .def(nb::init<Matrix<T>, Vector<std::int64_t>, Table<T>, int>(), argument<Matrix<T>>(),
             argument<Vector<std::int64_t>>(), argument<Table<T>>(), nb::arg())
        .def("find", &CenterCells<T>::find, argument<AnyRows<T>>(), nb::arg(), argument<OutTable<std::int32_t>>(),
             argument<OutTable<T>>(), nb::arg());
}

} // namespace

void register_cells(nb::module_ &m) {
    define_cells<float>(m, "CenterCells32");
    define_cells<double>(m, "CenterCells64");
}

} // namespace cprime
