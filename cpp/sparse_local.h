// The partial searches of sparse rows: where the points of a component go, and rows with candidates of their own.
#pragma once
#include <algorithm>
#include <vector>

#include "among.h"
#include "reassign.h"
#include "signals.h"
#include "sparse_rows.h"

namespace cprime::CPRIME_ISA {

constexpr int LIST_VECTORS = 2;
template <class T> constexpr int LIST_LANES = LIST_VECTORS * simd<T>::width;
constexpr std::size_t LIST_BYTES = std::size_t(768) << 10; // of a panel of candidates, which is to stay in the cache

// The columns that some rows have entries in, numbered as they come. One at a time in a thread.
class ColumnsInUse {
  public:
    ColumnsInUse(int D, std::size_t most) : columns_(most) {
        if (places().size() < static_cast<std::size_t>(D))
            places().resize(D);
        place_ = places().data();
    }
    ~ColumnsInUse() { clear(); }
    ColumnsInUse(const ColumnsInUse &) = delete;
    ColumnsInUse &operator=(const ColumnsInUse &) = delete;

    void clear() {
        for (int j = 0; j < n_; ++j)
            place_[columns_[j]] = 0;
        n_ = 0;
    }
    std::int32_t place_of(std::int32_t column) {
        if (!place_[column]) {
            columns_[n_] = column;
            place_[column] = ++n_;
        }
        return place_[column] - 1;
    }
    int size() const { return n_; }
    std::int32_t operator[](int j) const { return columns_[j]; }

  private:
    static std::vector<std::int32_t> &places() { // zeros between calls
        thread_local std::vector<std::int32_t> places;
        return places;
    }
    std::int32_t *place_;
    Scratch<std::int32_t> columns_;
    int n_ = 0;
};

// Candidates [first, first + LIST_LANES) of a list, the columns in use packed.
template <class T> class ListPanel {
  public:
    explicit ListPanel(std::size_t most_columns) : columns_(most_columns * LIST_LANES<T>) {}

    void pack(const SparseReassignTask<T> &task, const std::int32_t *list, int n, const ColumnsInUse &used) {
        constexpr int L = LIST_LANES<T>;
        const T *center[L];
        for (int i = 0; i < L; ++i) {
            center[i] = task.centers[list[i < n ? i : 0]];
            const double square = i < n ? task.square[list[i]].high : 0;
            half_norm[i] = i < n ? static_cast<T>(square / 2) : std::numeric_limits<T>::max() / 8;
            norm[i] = static_cast<T>(std::sqrt(square)) * (1 + 4 * std::numeric_limits<T>::epsilon());
            outside[i] = i < n && task.outside ? task.outside[list[i]] : T(1);
        }
        for (int j = 0; j < used.size(); ++j) {
            const std::int32_t column = used[j];
            for (int i = 0; i < L; ++i)
                columns_[static_cast<std::size_t>(j) * L + i] = center[i][column];
        }
    }
    const T *columns() const { return columns_; }

    alignas(64) T half_norm[LIST_LANES<T>], norm[LIST_LANES<T>], outside[LIST_LANES<T>];

  private:
    Scratch<T> columns_;
};

// Some points of a component, as many as share so few columns that a panel of these stays in the cache.
template <class T> class SparsePiece {
  public:
    SparsePiece(const SparseReassignTask<T> &task, std::size_t begin, std::size_t end) : task_(task) {
        std::int64_t longest = 1, all = 0;
        for (std::size_t e = begin; e < end; ++e) {
            const std::int64_t length = row_of(task.sparse, task.entries[e]).length;
            longest = std::max(longest, length);
            all += length;
        }
        most_columns = std::max<std::size_t>(LIST_BYTES / (LIST_LANES<T> * sizeof(T)), longest);
        most_columns = std::min<std::size_t>(most_columns, std::max<std::int64_t>(all, 1));
        places_.reserve(std::min<std::int64_t>(all, 1 << 20));
    }

    // Numbers the columns of entries [begin, ...), and returns the entry behind the last one that fits.
    std::size_t read(std::size_t begin, std::size_t end, ColumnsInUse &used) {
        used.clear();
        places_.clear();
        std::size_t e = begin;
        for (; e < end; ++e) {
            const SparseRow<T> x = row_of(task_.sparse, task_.entries[e]);
            if (e > begin && used.size() + static_cast<std::size_t>(x.length) > most_columns)
                break;
            for (std::int64_t k = 0; k < x.length; ++k)
                places_.push_back(used.place_of(x.columns[k]));
        }
        return e;
    }
    const std::int32_t *places() const { return places_.data(); }

    std::size_t most_columns;

  private:
    const SparseReassignTask<T> &task_;
    std::vector<std::int32_t> places_;
};

// Points [begin, end) of `entries`, all of them of component c; see `Moves`.
template <class T>
inline void sparse_reassign(const SparseReassignTask<T> &task, int c, std::size_t begin, std::size_t end) {
    using V = simd<T>;
    constexpr int W = V::width, L = LIST_LANES<T>, N = LIST_VECTORS;
    const std::int32_t *list = task.lists + static_cast<std::size_t>(c) * task.G;
    const int n_candidates = static_cast<int>(std::find(list, list + task.G, -1) - list);
    const auto squared = [&task](std::size_t n, std::int32_t b) {
        return measured(row_of(task.sparse, n), task.centers[b], task.square[b]);
    };
    Moves<T, decltype(squared)> moves(task, squared, c, end - begin);
    const std::size_t n_points = end - begin;
    Scratch<T> stay(n_points);
    for (std::size_t i = 0; i < n_points; ++i)
        stay[i] = squared(task.entries[begin + i], c);
    if (!n_candidates) {
        for (std::size_t i = 0; i < n_points; ++i)
            moves.settle(task.entries[begin + i], stay[i], list, 0);
        return;
    }
    SparsePiece<T> piece(task, begin, end);
    ColumnsInUse used(task.sparse.D, piece.most_columns);
    ListPanel<T> panel(piece.most_columns);
    Scratch<SparseScreen<T>> screens(n_points);
    Scratch<SparseRowBound<T>> bounds(n_points);
    for (std::size_t first = begin, last; first < end; first = last) {
        last = piece.read(first, end, used);
        for (std::size_t e = first; e < last; ++e) {
            screens[e - begin].open(moves.inside() * stay[e - begin]);
            bounds[e - begin] = SparseRowBound<T>(row_of(task.sparse, task.entries[e]));
        }
        for (int p = 0; p < n_candidates; p += L) {
            answer_signals();
            panel.pack(task, list + p, std::min(L, n_candidates - p), used);
            const std::int32_t *places = piece.places();
            for (std::size_t e = first; e < last; ++e) {
                const SparseRow<T> x = row_of(task.sparse, task.entries[e]);
                const SparseRowBound<T> &bound = bounds[e - begin];
                typename V::vec low[N], high[N];
                sparse_scores<N>(x.values, places, x.length, panel.columns(), panel.half_norm, low);
                places += x.length;
                const auto share = V::fill(bound.share), along = V::fill(bound.share * bound.norm),
                           least = V::fill(bound.least), square = V::fill(bound.square);
                for (int v = 0; v < N; ++v) {
                    const auto error =
                        along * V::load(panel.norm + v * W) + (share * V::load(panel.half_norm + v * W) + least);
                    const auto outside = V::load(panel.outside + v * W), score = low[v];
                    low[v] = outside * (square + T(2) * (score - error));
                    high[v] = outside * (square + T(2) * (score + error));
                }
                SparseScreen<T> &screen = screens[e - begin];
                if (!V::mask_not_above(V::min(low[0], low[1]), V::fill(screen.bar())))
                    continue;
                screen.narrow(V::lowest(V::min(high[0], high[1])));
                const auto bar = V::fill(screen.bar());
                for (int v = 0; v < N; ++v)
                    for (auto mask = V::mask_not_above(low[v], bar); mask; mask &= mask - 1) {
                        const int lane = __builtin_ctz(mask), i = p + v * W + lane;
                        if (i < n_candidates)
                            screen.add(low[v][lane], list[i]);
                    }
            }
        }
        for (std::size_t e = first; e < last; ++e) {
            SparseScreen<T> &screen = screens[e - begin];
            std::int32_t near[SparseScreen<T>::CAPACITY];
            const bool few = screen.close();
            for (int i = 0; few && i < screen.size(); ++i)
                near[i] = screen[i];
            moves.settle(task.entries[e], stay[e - begin], few ? near : list, few ? screen.size() : n_candidates);
        }
    }
    moves.limit();
}

template <class T>
inline void sparse_nearest_among(const SparseAmongTask<T> &task, std::size_t begin, std::size_t end) {
    search_among(
        task, begin, end, [](std::int32_t) {},
        [&](std::size_t n, std::int32_t c) {
            return measured(row_of(task.sparse, n), task.centers[c], task.square[c]);
        });
}

} // namespace cprime::CPRIME_ISA
