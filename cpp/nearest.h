// The H nearest of C centres, by a screen and a proof.
//
// Screen: the products of a tile give score(n, c) = |m_c|^2/2 - x_n m_c, both relative to a common shift, so the score
// is half the squared distance less a constant of the row. Its rounding error is at most gamma (|x_n||m_c| +
// |m_c|^2/2); that bound is one more dimension of the product, so a tile yields *lower* bounds of the scores, and upper
// ones where needed. Proof: a component whose lower bound exceeds the H-th smallest upper bound by more than rounding
// takes from a difference cannot be measured to be among the H nearest. The few that remain are measured from
// differences, which is accurate wherever the origin is. The result is therefore that of a search by differences over
// all C, ties going to the lower id.
//
// Where the nearest of few centres is wanted, rows are lanes first, and the two least scores of a row mostly settle it
// (`best_two.h`); in few dimensions all are measured at once (`direct.h`). Where the processor has coarse numbers, a
// first screen is of these, whose bounds are wider
// (`coarse_screen.h`); rows for which it leaves too many go through the second. Where that leaves too many, the shift
// is too far from a row for centres that lie close together: such rows are screened again relative to a centre near
// them.
//
// Finite numbers may give scores that are none (infinity less infinity) or bounds that overflow: what is unordered is
// measured.
#pragma once
#include <algorithm>
#include <cmath>

#include "best_two.h"
#include "coarse_screen.h"
#include "direct.h"
#include "kernels.h"
#include "points.h"
#include "screen.h"
#include "signals.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

// Centres of panel p relative to a shift.
template <class T>
inline void pack_panel(const Rows<T> &centers, const std::uint8_t *surplus, int p, const T *shift,
                       const Panel<T> &panel) {
    constexpr int L = TILE_LANES<T>;
    constexpr T infinity = std::numeric_limits<T>::infinity();
    const int D = centers.D, n = lanes_used<T>(centers.n, p);
    const T error = score_error<T>(D), lost = 2 * underflow<T>(D);
    pack<L>([&](int i) { return centers[static_cast<std::size_t>(p) * L + i]; }, n, D, shift, panel.columns);
    double squares[L] = {};
    for (int k = 0; k < D; ++k) {
        T *m = panel.columns + static_cast<std::size_t>(k) * L;
        for (int i = 0; i < L; ++i) {
            squares[i] += static_cast<double>(m[i]) * static_cast<double>(m[i]);
            m[i] = -m[i];
        }
    }
    for (int i = 0; i < L; ++i) {
        const bool fits = squares[i] < std::numeric_limits<T>::max();
        panel.norm[i] = fits ? static_cast<T>(std::sqrt(squares[i]) * (1 + 1e-6)) : infinity;
        panel.columns[static_cast<std::size_t>(D) * L + i] = -panel.norm[i];
        panel.half_norm[i] = fits ? static_cast<T>(squares[i] / 2) * (1 - error) - lost : -infinity;
        if (i >= n || (surplus && surplus[static_cast<std::size_t>(p) * L + i]))
            panel.half_norm[i] = infinity;
    }
}

template <class T> inline void pack_panels(const Rows<T> &centers, const Panels<T> &panels, int begin, int end) {
    for (int p = begin; p < end; ++p) {
        const Panel<T> panel = panel_of(panels, p, centers.D);
        pack_panel(centers, panels.surplus, p, panels.shift, panel);
#if CPRIME_COARSE
        if constexpr (sizeof(T) == sizeof(float))
            if (panels.coarse)
                pack_coarse(centers, panels, p, panel);
#endif
    }
}

template <class T> inline std::size_t nearest_rows(int H, int D, bool coarse) {
    const std::size_t bytes = candidate_capacity(H) * (2 * sizeof(T) + sizeof(std::int32_t)) + D * sizeof(T);
    const std::size_t fitting = (std::size_t(1) << 20) / bytes / TILE_ROWS * TILE_ROWS;
    if (coarse) { // rows that stay in the first cache
        const std::size_t rows = (std::size_t(60) << 10) / (panel_bytes<T>(D) / TILE_LANES<T>) / 32 * 32;
        return std::clamp<std::size_t>(std::min(fitting, rows), 32, 384);
    }
    return std::clamp<std::size_t>(fitting, TILE_ROWS, 192 / TILE_ROWS * TILE_ROWS);
}

// The rows `which` (n of them) and centres [first, end) by the register tile, relative to the panels' shift, or to
// `origin` unless it is null. Those that would have to measure too many are left: their number, and `which` names them.
template <class T>
inline int nearest_by_products(const NearestTask<T> &task, const T *origin, std::size_t *which, int n, int first_center,
                               int end_center) {
    constexpr int L = TILE_LANES<T>;
    const int D = task.X.D;
    const T *shift = origin ? origin : task.panels.shift;
    const int n_tiles = (n + TILE_ROWS - 1) / TILE_ROWS;
    const T error = score_error<T>(D);
    const std::size_t tile_size = static_cast<std::size_t>(D + 1) * TILE_ROWS;

    Screen<T> screen(task, static_cast<std::size_t>(n_tiles) * TILE_ROWS);
    Scratch<T> packed(tile_size * n_tiles + PACK_SLACK<T>), own(origin ? (D + std::size_t(4)) * L + PACK_SLACK<T> : 0);
    for (int t = 0; t < n_tiles; ++t) {
        T *a = packed + tile_size * t;
        const std::size_t *row = which + t * TILE_ROWS;
        const int rows = std::min(TILE_ROWS, n - t * TILE_ROWS);
        pack<TILE_ROWS>([&](int i) { return task.X[row[i]]; }, rows, D, shift, a);
        for (int i = 0; i < TILE_ROWS; ++i) {
            T *bound = a + static_cast<std::size_t>(D) * TILE_ROWS + i;
            *bound = 0;
            if (i >= rows)
                continue;
            const double square = row_square(task.X[row[i]], shift, D);
            *bound = error * static_cast<T>(std::sqrt(square) * (1 + 1e-6));
            screen.open(t * TILE_ROWS + i, row[i], square, {*bound, 0, rounded_up<T>(square)});
        }
    }

    alignas(64) T low[TILE_ROWS][L];
    const int end_panel = (end_center + TILE_LANES<T> - 1) / TILE_LANES<T>;
    for (int p = first_center / TILE_LANES<T>; p < end_panel; ++p) {
        if (p % 32 == 0)
            answer_signals();
        Panel<T> panel = panel_of(task.panels, p, D);
        if (origin) {
            T *numbers = own + (D + std::size_t(1)) * L;
            panel = {own, numbers, numbers + L, nullptr, numbers + 2 * L};
            std::fill_n(panel.lost, L, T(0));
            pack_panel(task.centers, task.panels.surplus, p, origin, panel);
        }
        const std::uint32_t lanes = lanes_within<T>(p, first_center, end_center);
        for (int t = 0; t < n_tiles; ++t) {
            tile<T, Form::product>(packed + tile_size * t, panel.columns, D + 1, panel.half_norm, low);
            offer_tile(screen, t * TILE_ROWS, std::min(TILE_ROWS, n - t * TILE_ROWS), low, panel, p, lanes);
        }
    }
    return close_rows(screen, task, which, n);
}

// The rows `which` and centres [first, end), one by one from differences.
template <class T>
inline void nearest_by_differences(const NearestTask<T> &task, const std::size_t *which, int n, int first_center,
                                   int end_center) {
    Screen<T> screen(task, 1);
    for (int i = 0; i < n; ++i)
        screen.close_by_all(0, which[i], first_center, end_center);
}

template <class T> inline void nearest(const NearestTask<T> &task, std::size_t begin, std::size_t end) {
    if (!task.lows && is_direct(task.centers.n, task.H, task.X.D))
        return nearest_directly_in(task, begin, end);
    Scratch<std::size_t> which(end - begin);
    int n = static_cast<int>(end - begin);
    const int C = static_cast<int>(task.centers.n);
    for (int i = 0; i < n; ++i)
        which[i] = begin + i;
    if (!task.panels.n_panels)
        return nearest_by_differences(task, which.get(), n, 0, C);
#if CPRIME_COARSE
    if constexpr (sizeof(T) == sizeof(float))
        if (task.panels.coarse)
            n = nearest_coarsely(task, which, n, 0, C);
#endif
    if (task.H == 1 && !task.lows && !task.panels.coarse && task.centers.n <= FEW_CENTERS && n)
        n = nearest_by_two(task, which, n);
    if (n)
        n = nearest_by_products(task, static_cast<const T *>(nullptr), which.get(), n, 0, C);
    // Rows that are left, again relative to what is nearest to one of them, while that settles a good part.
    for (bool pays = true; n && pays;) {
        nearest_by_differences(task, which + --n, 1, 0, C);
        const T *origin = task.centers[task.kept[which[n] * task.H]];
        const int left = n ? nearest_by_products(task, origin, which.get(), n, 0, C) : 0;
        pays = 8 * (n - left) > n;
        n = left;
    }
    if (n)
        nearest_by_differences(task, which.get(), n, 0, C);
}

// The same of rows that may have to be converted: of a piece of them at once.
template <class T> inline void nearest_of_piece(const NearestTask<T> &task, std::size_t begin, std::size_t end) {
    if (task.X.stored == Stored::own)
        return nearest(task, begin, end);
    const std::size_t n = end - begin;
    const Wide<T> wide(task.X, n);
    NearestTask<T> piece = task;
    piece.X = rows_of(task.X, begin, end, wide);
    piece.hint = task.hint ? task.hint + begin * task.H : nullptr;
    piece.kept += begin * task.H;
    piece.distances += begin * task.H;
    nearest(piece, 0, n);
}

template <class T>
inline void improve(const NearestTask<T> &task, const std::int64_t *rows, int n, int first_center, int end_center) {
    Scratch<std::size_t> which(n);
    std::copy_n(rows, n, which.get());
#if CPRIME_COARSE
    if constexpr (sizeof(T) == sizeof(float))
        if (task.panels.coarse)
            n = nearest_coarsely(task, which, n, first_center, end_center);
#endif
    if (n)
        n = nearest_by_products(task, static_cast<const T *>(nullptr), which.get(), n, first_center, end_center);
    if (n)
        nearest_by_differences(task, which.get(), n, first_center, end_center);
}

} // namespace cprime::CPRIME_ISA
