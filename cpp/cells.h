// Search for near centers of rows, in those cells (groups of centers) that may contain a nearer center than found so
// far. Each row is converted once to the form in which bounds of its distances are computed. Then it is searched in
// each of its cells together with many other rows.
#pragma once
#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels.h"
#include "nearest.h"

namespace cprime::CPRIME_ISA {

// The rows of one search, from row `begin` on, at full precision. Subsets of them are packed into tiles when needed.
template <class T> class RowsOfCall {
  public:
    static constexpr bool coarse = false;

    RowsOfCall(const NearestTask<T> &task, std::size_t begin, int) : task_(task), begin_(begin) {}

    class Some {
      public:
        // Pack n of the rows: those with the indices begin + places[i].
        Some(const RowsOfCall &call, const std::int32_t *places, int n)
            : panels_(call.task_.panels), D_(call.task_.X.D), rows_(n, D_) {
            const Scratch<std::size_t> which(n);
            for (int i = 0; i < n; ++i)
                which[i] = call.begin_ + places[i];
            rows_.read(call.task_.X, which, panels_.shift, [](int) {});
        }
        double square(int i) const { return rows_.square(i); }
        RowBound<T> bound(int i) const { return rows_.bound(i); }
        template <class See> void scan(int first_center, int end_center, See see) const {
            rows_.scan([&](int p) { return panel_of(panels_, p, D_); }, first_center, end_center, see);
        }

      private:
        const Panels<T> &panels_;
        int D_;
        TiledRows<T> rows_;
    };

  private:
    const NearestTask<T> &task_;
    std::size_t begin_;
};

#if CPRIME_COARSE
// The n rows of one search, from row `begin` on, in coarse (low-precision) numbers. All rows are rounded once, at
// construction; subsets of them are copied.
class RoundedRowsOfCall {
  public:
    static constexpr bool coarse = true;

    RoundedRowsOfCall(const NearestTask<float> &task, std::size_t begin, int n)
        : panels_(task.panels), rows_(n, task.X.D, true) {
        const Scratch<std::size_t> which(n);
        std::iota(which.get(), which + n, begin);
        rows_.read(task.X, which, panels_.shift, [](int) {});
    }

    class Some {
      public:
        Some(const RoundedRowsOfCall &call, const std::int32_t *places, int n)
            : panels_(call.panels_), rows_(call.rows_, places, n) {}
        double square(int i) const { return rows_.square(i); }
        RowBound<float> bound(int i) const { return rows_.bound(i); }
        template <class See> void scan(int first_center, int end_center, See see) const {
            rows_.scan(panels_, first_center, end_center, see);
        }

      private:
        const Panels<float> &panels_;
        RoundedRows rows_;
    };

  private:
    const Panels<float> &panels_;
    RoundedRows rows_;
};
#endif

// Choose the cells near a row, the nearest first. cells[i] has to be searched only if the squared distance to the H-th
// nearest center found so far is at least least[i]. `scores` has the scores of all cells (half squared distances minus
// half of `square`, that is |row - shift|^2) and room for whole vectors. Returns the number of chosen cells.
template <class T>
inline int choose_cells(const CellsTask<T> &task, T *scores, double square, std::int32_t *cells, T *least) {
    using V = simd<T>;
    constexpr int WORD = 64;
    const int n_cells = task.n_cells;
    const auto bar = V::fill(above_smallest(scores, n_cells, task.most));
    Scratch<Candidate<T>> near(n_cells);
    int n = 0;
    for (int begin = 0; begin < n_cells; begin += WORD) {
        std::uint64_t lanes = 0;
        for (int first = begin; first < std::min(begin + WORD, n_cells); first += V::width)
            lanes |= std::uint64_t(V::mask_not_above(V::load(scores + first), bar)) << (first - begin);
        if (n_cells - begin < WORD)
            lanes &= (std::uint64_t(1) << (n_cells - begin)) - 1;
        for (; lanes; lanes &= lanes - 1) {
            const int c = begin + __builtin_ctzll(lanes);
            const T of_cell = 2 * scores[c] + static_cast<T>(square);
            near[n++] = {of_cell > 0 ? of_cell : T(0), c}; // NaN counts as near
        }
    }
    if (n > task.most) {
        std::nth_element(near.get(), near + (task.most - 1), near + n, nearer);
        n = task.most;
    }
    std::swap(near[0], *std::min_element(near.get(), near + n, nearer));
    const T *between = task.between + static_cast<std::size_t>(near[0].id) * n_cells;
    for (int i = 0; i < n; ++i) {
        cells[i] = near[i].id;
        least[i] = (near[i].square - near[0].square) / between[near[i].id];
    }
    return n;
}

// Search the centers of cell c for n rows begin + places[i], and replace the centers found for these rows by nearer
// ones.
template <class T, class Call>
inline void improve_in_cell(const CellsTask<T> &task, const Call &call, std::size_t begin, int c,
                            const std::int32_t *places, int n) {
    const NearestTask<T> &nearest = task.nearest;
    const int first = static_cast<int>(task.begins[c]), end = static_cast<int>(task.begins[c + 1]);
    if (first == end)
        return;
    Scratch<std::size_t> rows(n);
    int left;
    {
        Screen<T> screen(nearest, n);
        const typename Call::Some some(call, places, n);
        for (int i = 0; i < n; ++i) {
            rows[i] = begin + places[i];
            screen.open(i, rows[i], some.square(i), some.bound(i));
        }
        some.scan(first, end, offered_to(screen));
        left = close_rows(screen, nearest, rows, n);
    }
    if (left && Call::coarse)
        left = nearest_by_products(nearest, static_cast<const T *>(nullptr), rows, left, first, end);
    if (left)
        nearest_by_differences(nearest, rows, left, first, end);
}

// Find near centers of rows [begin, end) in the cells near each row. Returns the number of evaluated distances.
template <class T, class Call> inline std::int64_t find_in_cells_by(const CellsTask<T> &task, std::size_t begin,
                                                                    std::size_t end) {
    const NearestTask<T> &nearest = task.nearest;
    const int n = static_cast<int>(end - begin), n_cells = task.n_cells, most = task.most, H = nearest.H;
    const int step = static_cast<int>(nearest_rows<T>(H, nearest.X.D, Call::coarse));
    const Call call(nearest, begin, n);
    const Scratch<std::int32_t> cells(static_cast<std::size_t>(n) * most), counts(n);
    const Scratch<T> least(static_cast<std::size_t>(n) * most);
    const Scratch<std::int32_t> places(static_cast<std::size_t>(n) * most);
    {
        constexpr int L = TILE_LANES<T>;
        const int width = (n_cells + L - 1) / L * L;
        const Scratch<T> scores(static_cast<std::size_t>(std::min(n, step)) * width);
        for (int first = 0; first < n; first += step) {
            const int n_rows = std::min(step, n - first);
            for (int i = 0; i < n_rows; ++i)
                places[i] = first + i;
            const typename Call::Some some(call, places, n_rows);
            some.scan(0, n_cells, [&](int row, int rows, const T(*low)[L], const Panel<T> &, int p, std::uint32_t) {
                for (int i = 0; i < rows; ++i)
                    std::copy_n(low[i], L, scores + static_cast<std::size_t>(row + i) * width + p * L);
            });
            for (int i = 0; i < n_rows; ++i) {
                const std::size_t to = static_cast<std::size_t>(first + i) * most;
                counts[first + i] = choose_cells(task, scores + static_cast<std::size_t>(i) * width, some.square(i),
                                                 cells + to, least + to);
            }
        }
    }
    // Search each row in its cells number `from` to `to` - 1, one cell after the other, unless a cell cannot contain a
    // nearer center.
    struct Visit {
        std::int32_t row, cell;
    };
    const Scratch<Visit> visits(static_cast<std::size_t>(n) * most);
    const Scratch<std::int32_t> ends(n_cells + 1);
    std::int64_t n_distances = static_cast<std::int64_t>(n) * n_cells;
    const auto search = [&](int from, int to) {
        std::fill_n(ends.get(), n_cells + 1, 0);
        std::size_t n_visits = 0;
        for (int i = 0; i < n; ++i) {
            const T farthest = std::sqrt(nearest.distances[(begin + i) * H + H - 1]);
            const std::size_t row = static_cast<std::size_t>(i) * most;
            for (int j = from; j < std::min(to, counts[i]); ++j) {
                const bool looked_at = !(least[row + j] > farthest);
                visits[n_visits] = {i, cells[row + j]};
                n_visits += looked_at;
                ends[cells[row + j] + 1] += looked_at;
            }
        }
        for (int c = 0; c < n_cells; ++c)
            ends[c + 1] += ends[c];
        for (std::size_t v = 0; v < n_visits; ++v)
            places[ends[visits[v].cell]++] = visits[v].row;
        for (int c = 0, first = 0; c < n_cells; first = ends[c++]) {
            n_distances += (ends[c] - first) * (task.begins[c + 1] - task.begins[c]);
            for (int some = first; some < ends[c]; some += step)
                improve_in_cell(task, call, begin, c, places + some, std::min(step, ends[c] - some));
        }
    };
    search(0, 1);
    search(1, most);
    return n_distances;
}

template <class T> inline std::int64_t find_in_cells(const CellsTask<T> &task, std::size_t begin, std::size_t end) {
#if CPRIME_COARSE
    if constexpr (sizeof(T) == sizeof(float))
        if (task.nearest.panels.coarse)
            return find_in_cells_by<T, RoundedRowsOfCall>(task, begin, end);
#endif
    return find_in_cells_by<T, RowsOfCall<T>>(task, begin, end);
}

} // namespace cprime::CPRIME_ISA
