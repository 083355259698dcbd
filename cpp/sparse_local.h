// Partial searches of sparse rows: reassignment of a component's points, and rows with candidates of their own.
#pragma once
#include <algorithm>
#include <vector>

#include "list_search.h"
#include "reassign.h"
#include "signals.h"
#include "sparse_nearest.h"

namespace cprime::CPRIME_ISA {

constexpr int LIST_VECTORS = 2;
template <class T> constexpr int LIST_LANES = LIST_VECTORS * simd<T>::width;
constexpr std::size_t LIST_BYTES = std::size_t(768) << 10; // a panel of candidates this large stays in the cache

// The columns in which some sparse rows have entries, numbered in ascending order. A thread can have one instance at a
// time.
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
    void add(std::int32_t column) {
        if (!place_[column]) {
            columns_[n_++] = column;
            place_[column] = 1;
        }
    }
    void number() {
        std::sort(columns_.get(), columns_ + n_); // so that centers are read in memory order
        for (int j = 0; j < n_; ++j)
            place_[columns_[j]] = j + 1;
    }
    std::int32_t place_of(std::int32_t column) const { return place_[column] - 1; }
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

// Candidates [first, first + LIST_LANES) of a neighbor list, of which only the columns in use are packed.
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

// Some points of a component, so few that a panel of the columns in which they have entries stays in the cache.
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

    // Number the columns of entries [begin, ...); return the end of the entries that fit.
    std::size_t read(std::size_t begin, std::size_t end, ColumnsInUse &used) {
        used.clear();
        places_.clear();
        std::size_t e = begin;
        for (; e < end; ++e) {
            const SparseRow<T> x = row_of(task_.sparse, task_.entries[e]);
            if (e > begin && used.size() + static_cast<std::size_t>(x.length) > most_columns)
                break;
            for (std::int64_t k = 0; k < x.length; ++k)
                used.add(x.columns[k]);
        }
        used.number();
        for (std::size_t i = begin; i < e; ++i) {
            const SparseRow<T> x = row_of(task_.sparse, task_.entries[i]);
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

// Candidates packed in vector lanes for scores with a point: their columns, initial scores, norms, factors, and numbers
// added to the scores, infinite for lanes without a candidate.
template <class T> struct Offered {
    const T *columns, *half_norm, *norm, *outside, *none;
};

// Add those of N vectors of candidates to a point's screen that its bar (upper limit of scores) does not exclude, and
// lower the bar by their scores. id_of(lane) returns a candidate's id, or -1.
template <int N, class T, class IdOf>
inline void offer(const SparseRow<T> &x, const std::int32_t *places, const SparseRowBound<T> &bound,
                  const Offered<T> &offered, SparseScreen<T> &screen, IdOf id_of) {
    using V = simd<T>;
    constexpr int W = V::width;
    typename V::vec low[N], high[N];
    sparse_scores<N>(x.values, places, x.length, offered.columns, offered.half_norm, low);
    const auto share = V::fill(bound.share), along = V::fill(bound.share * bound.norm), least = V::fill(bound.least),
               square = V::fill(bound.square);
    for (int v = 0; v < N; ++v) {
        const auto error = along * V::load(offered.norm + v * W) + (share * V::load(offered.half_norm + v * W) + least);
        const auto outside = V::load(offered.outside + v * W), none = V::load(offered.none + v * W), score = low[v];
        low[v] = outside * (square + T(2) * (score - error)) + none;
        high[v] = outside * (square + T(2) * (score + error)) + none;
    }
    auto lowest = low[0], highest = high[0];
    for (int v = 1; v < N; ++v) {
        lowest = V::min(lowest, low[v]);
        highest = V::min(highest, high[v]);
    }
    if (!V::mask_not_above(lowest, V::fill(screen.bar())))
        return;
    screen.narrow(V::lowest(highest));
    const auto bar = V::fill(screen.bar());
    for (int v = 0; v < N; ++v)
        for (auto mask = V::mask_not_above(low[v], bar); mask; mask &= mask - 1) {
            const int lane = __builtin_ctz(mask);
            const std::int32_t id = id_of(v * W + lane);
            if (id >= 0)
                screen.add(low[v][lane], id);
        }
}

// Offer the candidates of a list to points [begin, end). Only the columns in which the points have entries are packed.
template <class T>
inline void offer_listed(const SparseReassignTask<T> &task, const std::int32_t *list, int n_candidates,
                         std::size_t begin, std::size_t end, const SparseRowBound<T> *bounds,
                         SparseScreen<T> *screens) {
    constexpr int L = LIST_LANES<T>;
    SparsePiece<T> piece(task, begin, end);
    ColumnsInUse used(task.sparse.D, piece.most_columns);
    ListPanel<T> panel(piece.most_columns);
    const T none[L] = {};
    for (std::size_t first = begin, last; first < end; first = last) {
        last = piece.read(first, end, used);
        for (int p = 0; p < n_candidates; p += L) {
            answer_signals();
            panel.pack(task, list + p, std::min(L, n_candidates - p), used);
            const Offered<T> offered{panel.columns(), panel.half_norm, panel.norm, panel.outside, none};
            const std::int32_t *places = piece.places();
            for (std::size_t e = first; e < last; ++e) {
                const SparseRow<T> x = row_of(task.sparse, task.entries[e]);
                offer<LIST_VECTORS>(x, places, bounds[e - begin], offered, screens[e - begin],
                                    [&](int i) { return p + i < n_candidates ? list[p + i] : -1; });
                places += x.length;
            }
        }
    }
}

// Offer the candidates of a list to points [begin, end), from the packed columns of all components. This is faster if
// the list contains a large share of all components.
template <class T>
inline void offer_among_all(const SparseReassignTask<T> &task, const std::int32_t *list, int n_candidates,
                            std::size_t begin, std::size_t end, const SparseRowBound<T> *bounds,
                            SparseScreen<T> *screens) {
    constexpr int L = SPARSE_LANES<T>;
    const SparsePanels<T> &panels = *task.panels;
    const std::size_t n_padded = static_cast<std::size_t>(panels.n_panels) * L;
    Scratch<T> none(n_padded), outside(n_padded);
    std::fill_n(none.get(), n_padded, std::numeric_limits<T>::infinity());
    for (int i = 0; i < n_candidates; ++i)
        none[list[i]] = 0;
    for (std::size_t c = 0; c < n_padded; ++c)
        outside[c] = task.outside && c < task.centers.n ? task.outside[c] : T(1);
    for (int p = 0; p < panels.n_panels; ++p) {
        const std::size_t first = static_cast<std::size_t>(p) * L;
        if (std::find(none + first, none + first + L, T(0)) == none + first + L)
            continue;
        answer_signals();
        const Offered<T> offered{panels.columns + first * task.sparse.D, panels.half_norm + first, panels.norm + first,
                                 outside + first, none + first};
        for (std::size_t e = begin; e < end; ++e) {
            const SparseRow<T> x = row_of(task.sparse, task.entries[e]);
            offer<SPARSE_VECTORS>(x, x.columns, bounds[e - begin], offered, screens[e - begin], [&](int i) {
                return none[first + i] == 0 ? static_cast<std::int32_t>(first) + i : -1;
            });
        }
    }
}

// Reassign points [begin, end) of `entries`, all of component c; see `Moves`.
template <class T>
inline void sparse_reassign(const SparseReassignTask<T> &task, int c, std::size_t begin, std::size_t end) {
    const std::int32_t *list = task.lists + static_cast<std::size_t>(c) * task.G;
    const int n_candidates = static_cast<int>(std::find(list, list + task.G, -1) - list);
    const auto squared = [&task](std::size_t n, std::int32_t b) {
        return measured(row_of(task.sparse, n), task.centers[b], task.square[b]);
    };
    Moves<T> moves(task, c, end - begin);
    const std::size_t n_points = end - begin;
    Scratch<T> stay(n_points);
    Scratch<SparseScreen<T>> screens(n_points);
    Scratch<SparseRowBound<T>> bounds(n_points);
    for (std::size_t i = 0; i < n_points; ++i) {
        const std::size_t n = task.entries[begin + i];
        stay[i] = squared(n, c);
        screens[i].open(moves.inside() * stay[i]);
        bounds[i] = SparseRowBound<T>(row_of(task.sparse, n));
    }
    if (n_candidates)
        (task.panels ? offer_among_all<T> : offer_listed<T>)(task, list, n_candidates, begin, end, bounds, screens);
    // Candidates are compared in the order of the list; of equal ones the first is chosen.
    Scratch<std::int32_t> place(task.panels ? task.centers.n : 0);
    for (int i = 0; task.panels && i < n_candidates; ++i)
        place[list[i]] = i;
    for (std::size_t i = 0; i < n_points; ++i) {
        SparseScreen<T> &screen = screens[i];
        std::int32_t near[SparseScreen<T>::CAPACITY];
        const bool few = screen.close();
        const int n_near = few ? screen.size() : n_candidates;
        for (int j = 0; few && j < n_near; ++j)
            near[j] = screen[j];
        if (few && task.panels)
            std::sort(near, near + n_near, [&](std::int32_t a, std::int32_t b) { return place[a] < place[b]; });
        const std::size_t n = task.entries[begin + i];
        moves.settle(n, stay[i], few ? near : list, n_near, [&](std::int32_t b) { return squared(n, b); });
    }
    moves.limit();
}

template <class T>
inline void sparse_best_in_lists(const SparseListSearchTask<T> &task, std::size_t begin, std::size_t end) {
    search_among(
        task, begin, end, [](std::int32_t) {},
        [&](std::size_t n) {
            return [&task, n](std::int32_t c) {
                return measured(row_of(task.sparse, n), task.centers[c], task.square[c]);
            };
        },
        nothing_shared<T>);
}

} // namespace cprime::CPRIME_ISA
