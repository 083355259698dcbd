// The nearest of C centres by a screen of coarse numbers.
#pragma once
#include <algorithm>
#include <cmath>

#include "coarse.h"
#include "screen.h"

namespace cprime::CPRIME_ISA {

#if defined(CPRIME_HALVES)
// Behind the coordinates, so that a product is a bound: |m|^2/2 in three halves, |m|, and what rounding has taken from
// m.
constexpr int BOUND_COLUMNS = 5;
#else
constexpr int BOUND_COLUMNS = 0;
#endif

// Bytes of a panel, 0 where coarse numbers are not used.
template <class T> inline std::size_t panel_bytes([[maybe_unused]] int D) {
#if CPRIME_COARSE
    if (sizeof(T) == sizeof(float) && D >= LEAST_D_OF_PANELS && D <= MOST_COARSE)
        return static_cast<std::size_t>(TILE_LANES<T>) * coarse_depth(D + BOUND_COLUMNS) * sizeof(coarse);
#endif
    return 0;
}

// The same, and 0 where they would not help to find the H nearest of C centres.
template <class T>
inline std::size_t coarse_panel_size([[maybe_unused]] std::size_t C, [[maybe_unused]] int H, int D) {
#if CPRIME_COARSE
    if (!worth_rounding(C, H, D))
        return 0;
#endif
    return panel_bytes<T>(D);
}

#if CPRIME_COARSE

constexpr int COARSE_BLOCK = 2 * COARSE_ROWS; // rows that a panel is multiplied with at a time
static_assert(TILE_LANES<float> == COARSE_BLOCK);

#if defined(CPRIME_HALVES)

// Columns from D on of a row that `round_rows` has written; zeros behind them.
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

// The bounds are the products.
inline void bound_scores(float (*)[COARSE_BLOCK], int, const CoarseRows *, const RowBound<float> *,
                         const Panel<float> &) {}

#else

inline void bound_center(coarse *, int, int, float, float, float) {}
inline void bound_row(coarse *, int, int, RowBound<float>) {}

// From products to lower bounds of the scores of n rows.
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

// The centres of panel p.
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

// The rows `which` (n of them) and centres [first, end). Those that would have to measure too many are left: their
// number, and `which` names them.
inline int nearest_coarsely(const NearestTask<float> &task, std::size_t *which, int n, int first_center,
                            int end_center) {
    const CoarseUnit unit;
    const int D = task.X.D, K = D + BOUND_COLUMNS, depth = coarse_depth(K);
    const int n_padded = (n + COARSE_BLOCK - 1) / COARSE_BLOCK * COARSE_BLOCK;
    const float error = score_error<float>(D);
    const float *shift = task.panels.shift;
    const bool precise = task.hint || task.lows || task.improve; // what a row's square is needed for

    Screen<float> screen(task, n_padded);
    Scratch<coarse> packed(static_cast<std::size_t>(n_padded) * depth);
    Scratch<CoarseRows> rounded(n_padded / COARSE_ROWS);
    Scratch<RowBound<float>> bounds(n_padded);
    for (int first = 0; first < n_padded; first += COARSE_ROWS) {
        coarse *tiles = packed + static_cast<std::size_t>(first) * depth;
        CoarseRows &rows = rounded[first / COARSE_ROWS];
        const int n_rows = std::clamp(n - first, 0, COARSE_ROWS);
        const std::size_t *row = which + first;
        const auto next = [&](int i) {
            return first + COARSE_ROWS + i < n ? stored_row(task.X, row[COARSE_ROWS + i]) : Ahead{};
        };
        round_rows([&](int i) { return task.X[row[i]]; }, n_rows, next, D, shift, 1, tiles, rows);
        for (int i = 0; i < n_rows; ++i) {
            const float norm = std::sqrt(rows.square[i]) * UP, lost = std::sqrt(rows.lost[i]); // of what underflows too
            const RowBound<float> bound{(lost + error * norm) * UP, norm + lost, rows.square[i] * UP};
            bound_row(tiles, i, D, bound);
            bounds[first + i] = bound;
            screen.open(first + i, row[i], precise ? row_square(task.X[row[i]], shift, D) : 0,
                        {bound.error * UP * UP, bound.norm * UP * UP, bound.square});
        }
    }
    alignas(64) float low[COARSE_BLOCK][COARSE_BLOCK];
    const int end_panel = (end_center + COARSE_BLOCK - 1) / COARSE_BLOCK;
    for (int p = first_center / COARSE_BLOCK; p < end_panel; ++p) {
        if (p % 32 == 0)
            answer_signals();
        const Panel<float> panel = panel_of(task.panels, p, D);
        const std::uint32_t lanes = lanes_within<float>(p, first_center, end_center);
        const auto *b = reinterpret_cast<const coarse *>(task.panels.coarse + p * panel_bytes<float>(D));
        if (p + 1 < end_panel)
            prefetch(b + COARSE_BLOCK * depth, COARSE_BLOCK * depth);
        for (int first = 0; first < n; first += COARSE_BLOCK) {
            const int n_rows = std::min(COARSE_BLOCK, n - first);
            const CoarseRows *rows = rounded + first / COARSE_ROWS;
            multiply<2, 2>(packed + static_cast<std::size_t>(first) * depth, rows, b, K, low[0], COARSE_BLOCK);
            bound_scores(low, n_rows, rows, bounds + first, panel);
            offer_tile(screen, first, n_rows, low, panel, p, lanes);
        }
    }
    return close_rows(screen, task, which, n);
}

#endif

} // namespace cprime::CPRIME_ISA
