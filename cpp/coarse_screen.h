// Search for the nearest of C centers with a screen in coarse (low-precision) numbers: products of such numbers give
// bounds of scores, which exclude most centers. A score is half a squared distance minus a constant of the row.
#pragma once
#include <algorithm>
#include <cmath>

#include "coarse.h"
#include "screen.h"
#include "signals.h"

namespace cprime::CPRIME_ISA {

#if defined(CPRIME_HALVES)
// Number of columns after the coordinates of a center m, by which a product becomes a lower bound of the score:
// |m|^2/2 as a sum of three bfloat16, |m|, and the rounding error of m.
constexpr int BOUND_COLUMNS = 5;
#else
constexpr int BOUND_COLUMNS = 0;
#endif

// Return the number of bytes of a panel (some packed centers) of coarse numbers, 0 if these are not used.
template <class T> inline std::size_t panel_bytes([[maybe_unused]] int D) {
#if CPRIME_COARSE
    if (sizeof(T) == sizeof(float) && D >= LEAST_D_OF_PANELS && D <= MOST_COARSE)
        return static_cast<std::size_t>(TILE_LANES<T>) * coarse_depth(D + BOUND_COLUMNS) * sizeof(coarse);
#endif
    return 0;
}

// Return the number of bytes of a panel of coarse numbers, or 0 if these would not help to find the H nearest of C
// centers.
template <class T>
inline std::size_t coarse_panel_size([[maybe_unused]] std::size_t C, [[maybe_unused]] int H, int D) {
#if CPRIME_COARSE
    if (!worth_rounding(C, H, D))
        return 0;
#endif
    return panel_bytes<T>(D);
}

#if CPRIME_COARSE

constexpr int COARSE_BLOCK = 2 * COARSE_ROWS; // rows multiplied with a panel at a time
static_assert(TILE_LANES<float> == COARSE_BLOCK);

#if defined(CPRIME_HALVES)

// Set the columns from D on of a row that `round_rows` has written, and zeros after them.
inline void set_columns(coarse *tiles, int i, int D, const coarse (&values)[BOUND_COLUMNS]) {
    for (int k = coarse_depth(D); k < coarse_depth(D + BOUND_COLUMNS); k += COARSE_COLUMNS)
        std::memset(tiles + k / COARSE_COLUMNS * COARSE_TILE + i * COARSE_COLUMNS, 0, COARSE_COLUMNS * sizeof(coarse));
    for (int k = D; k < D + BOUND_COLUMNS; ++k)
        tiles[k / COARSE_COLUMNS * COARSE_TILE + i * COARSE_COLUMNS + k % COARSE_COLUMNS] = values[k - D];
}

inline void bound_center(coarse *tiles, int i, int D, float half_norm, float norm, float lost) {
    coarse values[BOUND_COLUMNS] = {0, 0, 0, round_half(norm * UP), round_half(lost)};
    for (int part = 0; part < 3; ++part) {
        values[part] = round_half(half_norm);
        half_norm = std::isinf(half_norm) ? 0 : half_norm - widen(values[part]);
    }
    set_columns(tiles, i, D, values);
}

inline void bound_row(coarse *tiles, int i, int D, RowBound<float> bound) {
    const coarse one = round_half(1);
    set_columns(tiles, i, D, {one, one, one, round_half(-bound.error), round_half(-bound.norm)});
}

// Do nothing, because the products already are the lower bounds of scores.
inline void bound_scores(float (*)[COARSE_BLOCK], int, const CoarseRows *, const RowBound<float> *,
                         const Panel<float> &) {}

#else

inline void bound_center(coarse *, int, int, float, float, float) {}
inline void bound_row(coarse *, int, int, RowBound<float>) {}

// Convert products to lower bounds of the scores of n rows.
inline void bound_scores(float (*low)[COARSE_BLOCK], int n, const CoarseRows *rows, const RowBound<float> *bounds,
                         const Panel<float> &panel) {
    using V = simd<float>;
    for (int v = 0; v < COARSE_BLOCK; v += V::width) {
        const auto scale = V::load(panel.scale + v), half_norm = V::load(panel.half_norm + v),
                   norm = V::load(panel.norm + v), lost = V::load(panel.lost + v);
        for (int i = 0; i < n; ++i) {
            const float row_scale = rows[i / COARSE_ROWS].scale[i % COARSE_ROWS];
            const auto score = half_norm + V::load(low[i] + v) * (scale * row_scale);
            V::store(low[i] + v, score - norm * bounds[i].error - lost * bounds[i].norm);
        }
    }
}

#endif

// Pack the centers of panel p in coarse numbers.
inline void pack_coarse(const Rows<float> &centers, const Panels<float> &panels, int p, const Panel<float> &panel) {
    const int D = centers.D, n = lanes_used<float>(centers.n, p), depth = coarse_depth(D + BOUND_COLUMNS);
    const auto center = [&](int i) { return centers[static_cast<std::size_t>(p) * COARSE_BLOCK + i]; };
    auto *tiles = reinterpret_cast<coarse *>(panels.coarse + p * panel_bytes<float>(D));
    for (int g = 0; g < COARSE_BLOCK; g += COARSE_ROWS, tiles += static_cast<std::size_t>(COARSE_ROWS) * depth) {
        CoarseRows rows;
        round_rows([&](int i) { return center(g + i); }, std::min(COARSE_ROWS, n - g), FETCH_NOTHING, D, panels.shift,
                   -1, tiles, rows);
        for (int i = 0; i < COARSE_ROWS; ++i) {
            panel.scale[g + i] = rows.scale[i];
            panel.lost[g + i] = std::sqrt(rows.lost[i]) * UP;
            bound_center(tiles, i, D, panel.half_norm[g + i], panel.norm[g + i], panel.lost[g + i]);
        }
        make_columns(tiles, D + BOUND_COLUMNS);
    }
}

// Rows in coarse numbers, rounded once, and bounds of the errors of their scores.
class RoundedRows {
  public:
    // Allocate room for n rows. `precise`: whether square() will be called.
    RoundedRows(int n, int D, bool precise)
        : n_(n), D_(D), depth_(coarse_depth(D + BOUND_COLUMNS)), packed_(static_cast<std::size_t>(padded(n)) * depth_),
          rounded_(padded(n) / COARSE_ROWS), bounds_(padded(n)), numbers_(precise ? n : 0),
          squares_(precise ? numbers_.get() : nullptr) {}

    // Read the rows `which` of X, minus a shift; call open(i) as soon as row i is ready.
    template <class Open> void read(const Points<float> &X, const std::size_t *which, const float *shift, Open open) {
        const int n = n_;
        const float error = score_error<float>(D_);
        for (int first = 0; first < padded(n); first += COARSE_ROWS) {
            coarse *tiles = packed_ + static_cast<std::size_t>(first) * depth_;
            CoarseRows &rows = rounded_[first / COARSE_ROWS];
            const int n_rows = std::clamp(n - first, 0, COARSE_ROWS);
            const std::size_t *row = which + first;
            const auto next = [&](int i) {
                return first + COARSE_ROWS + i < n ? stored_row(X, row[COARSE_ROWS + i]) : Ahead{};
            };
            round_rows([&](int i) { return X[row[i]]; }, n_rows, next, D_, shift, 1, tiles, rows);
            for (int i = 0; i < n_rows; ++i) {
                // rows.square and rows.lost already include the error by underflow.
                const float norm = std::sqrt(rows.square[i]) * UP, lost = std::sqrt(rows.lost[i]);
                const RowBound<float> bound{(lost + error * norm) * UP, norm + lost, rows.square[i] * UP};
                bound_row(tiles, i, D_, bound);
                bounds_[first + i] = bound;
                if (squares_)
                    squares_[first + i] = row_square(X[row[i]], shift, D_);
                open(first + i);
            }
        }
    }

    // Copy n rows of another instance: row i is its row places[i].
    RoundedRows(const RoundedRows &others, const std::int32_t *places, int n)
        : RoundedRows(n, others.D_, others.squares_ != nullptr) {
        const std::size_t tiles = static_cast<std::size_t>(COARSE_ROWS) * depth_;
        for (int i = 0; i < padded(n); ++i) {
            const int place = places[std::min(i, n - 1)], to = i % COARSE_ROWS, from = place % COARSE_ROWS;
            const CoarseRows &rows = others.rounded_[place / COARSE_ROWS];
            rounded_[i / COARSE_ROWS].scale[to] = rows.scale[from];
            rounded_[i / COARSE_ROWS].start[to] = rows.start[from];
            const coarse *row = others.packed_ + place / COARSE_ROWS * tiles + from * COARSE_COLUMNS;
            coarse *out = packed_ + i / COARSE_ROWS * tiles + to * COARSE_COLUMNS;
            for (std::size_t k = 0; k < tiles; k += COARSE_TILE)
                std::memcpy(out + k, row + k, COARSE_COLUMNS * sizeof(coarse));
            if (i < n) {
                bounds_[i] = others.bounds_[place];
                if (squares_)
                    squares_[i] = others.squares_[place];
            }
        }
    }

    int size() const { return n_; }
    double square(int i) const { return squares_ ? squares_[i] : 0; } // |row - shift|^2
    RowBound<float> bound(int i) const {
        const RowBound<float> of = bounds_[i];
        return {of.error * UP * UP, of.norm * UP * UP, of.square};
    }

    // Call see(first, n_rows, low, panel, p, lanes) with lower bounds of the scores of n_rows rows and the lanes of
    // panel p, for all panels of centers [first_center, end_center).
    template <class See> void scan(const Panels<float> &panels, int first_center, int end_center, See see) const {
        const CoarseUnit unit;
        alignas(64) float low[COARSE_BLOCK][COARSE_BLOCK];
        const int K = D_ + BOUND_COLUMNS, end_panel = (end_center + COARSE_BLOCK - 1) / COARSE_BLOCK;
        for (int p = first_center / COARSE_BLOCK; p < end_panel; ++p) {
            if (p % 32 == 0)
                answer_signals();
            const Panel<float> panel = panel_of(panels, p, D_);
            const std::uint32_t lanes = lanes_within<float>(p, first_center, end_center);
            const auto *b = reinterpret_cast<const coarse *>(panels.coarse + p * panel_bytes<float>(D_));
            if (p + 1 < end_panel)
                prefetch(b + COARSE_BLOCK * depth_, COARSE_BLOCK * depth_);
            for (int first = 0; first < n_; first += COARSE_BLOCK) {
                const int n_rows = std::min(COARSE_BLOCK, n_ - first);
                const CoarseRows *rows = rounded_ + first / COARSE_ROWS;
                multiply<2, 2>(packed_ + static_cast<std::size_t>(first) * depth_, rows, b, K, low[0], COARSE_BLOCK);
                bound_scores(low, n_rows, rows, bounds_ + first, panel);
                see(first, n_rows, low, panel, p, lanes);
            }
        }
    }

  private:
    static int padded(int n) { return (n + COARSE_BLOCK - 1) / COARSE_BLOCK * COARSE_BLOCK; }

    int n_, D_, depth_;
    Scratch<coarse> packed_;
    Scratch<CoarseRows> rounded_;
    Scratch<RowBound<float>> bounds_; // bounds of the errors of each row's scores
    Scratch<double> numbers_;
    double *squares_; // |row - shift|^2 of each row, or null
};

// Find the nearest of centers [first_center, end_center) for the n rows with the indices `which`. Returns the number of
// rows without a result, because too many distances would have to be computed. Their indices are then the first in
// `which`.
inline int nearest_coarsely(const NearestTask<float> &task, std::size_t *which, int n, int first_center,
                            int end_center) {
    const bool precise = task.hint || task.lows || task.improve; // cases that need the rows' squares
    Screen<float> screen(task, n);
    RoundedRows rows(n, task.X.D, precise);
    rows.read(task.X, which, task.panels.shift,
              [&](int i) { screen.open(i, which[i], rows.square(i), rows.bound(i)); });
    rows.scan(task.panels, first_center, end_center, offered_to(screen));
    return close_rows(screen, task, which, n);
}

#endif

} // namespace cprime::CPRIME_ISA
