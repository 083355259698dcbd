// The H nearest of C centres, by a screen and a proof.
//
// Screen: the products of a tile give score(n, c) = |m_c|^2/2 - x_n m_c, both relative to a common shift, so the score
// is half the squared distance less a constant of the row. Its rounding error is at most gamma (|x_n||m_c| +
// |m_c|^2/2); that bound is one more dimension of the product, so a tile yields *lower* bounds of the scores, and upper
// ones where needed. Proof: a component whose lower bound exceeds the H-th smallest upper bound cannot be among the H
// nearest. The few that remain are measured from differences, which is accurate wherever the origin is. The result is
// therefore that of a search by differences over all C, ties going to the lower id.
//
// Where the nearest of few centres is wanted, rows are lanes first, and the two least scores of a row mostly settle it
// (`best_two.h`). Where the processor has a matrix unit, a first screen is of bfloat16 halves, whose bounds are wider;
// rows for which it leaves too many go through the second. Where that leaves too many, the shift is too far from a row
// for centres that lie close together: such rows are screened again relative to a centre near them.
//
// Finite numbers may give scores that are none (infinity less infinity) or bounds that overflow: what is unordered is
// measured.
#pragma once
#include <algorithm>
#include <cmath>

#include "best_two.h"
#include "halves.h"
#include "kernels.h"
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
#if CPRIME_HALVES
        if constexpr (sizeof(T) == sizeof(float)) {
            if (!panel.halves)
                continue;
            const int D = centers.D, n = lanes_used<T>(centers.n, p), depth = half_depth(D + HALF_EXTRA);
            const auto center = [&](int i) { return centers[static_cast<std::size_t>(p) * TILE_LANES<T> + i]; };
            for (int g = 0; g < TILE_LANES<T>; g += HALF_ROWS) {
                half *tiles = panel.halves + static_cast<std::size_t>(g) * depth;
                float square[HALF_ROWS];
                round_rows([&](int i) { return center(g + i); }, std::min(HALF_ROWS, n - g), FETCH_NOTHING, D, depth,
                           panels.shift, -1, tiles, square, panel.lost + g);
                for (int i = 0; i < HALF_ROWS; ++i) {
                    panel.lost[g + i] = std::sqrt(panel.lost[g + i]) * UP;
                    float rest = panel.half_norm[g + i];
                    for (int part = 0; part < 3; ++part) {
                        const half h = round_half(rest);
                        set_half(tiles, i, D + part, h);
                        rest = std::isinf(rest) ? 0 : rest - widen(h);
                    }
                    set_half(tiles, i, D + 3, round_half(panel.norm[g + i] * UP));
                    set_half(tiles, i, D + 4, round_half(panel.lost[g + i]));
                }
                transpose_tiles(tiles, depth);
            }
        }
#endif
    }
}

template <class T> inline std::size_t nearest_rows(int H, int D) {
    const std::size_t bytes = candidate_capacity(H) * sizeof(Candidate<T>) + D * sizeof(T);
    const std::size_t fitting = (std::size_t(1) << 20) / bytes / TILE_ROWS * TILE_ROWS;
    if (const std::size_t size = half_panel_size<T>(D)) { // rows of halves that stay in the first cache
        const std::size_t rows = (std::size_t(60) << 10) / (size / TILE_LANES<T> * 2) / 32 * 32;
        return std::clamp<std::size_t>(std::min(fitting, rows), 32, 384);
    }
    return std::clamp<std::size_t>(fitting, TILE_ROWS, 192 / TILE_ROWS * TILE_ROWS);
}

template <class T> inline double row_square(const T *x, const T *shift, int D) {
    double part[8] = {}; // sums that do not wait for each other
    int k = 0;
    for (; k + 8 <= D; k += 8)
        for (int i = 0; i < 8; ++i) {
            const double v = x[k + i] - shift[k + i];
            part[i] += v * v;
        }
    for (; k < D; ++k) {
        const double v = x[k] - shift[k];
        part[k % 8] += v * v;
    }
    return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}

// Offers to the screen, row by row, what may be among the nearest of panel p.
template <class T>
inline void offer_tile(Screen<T> &screen, int first, int rows, const T (*low)[TILE_LANES<T>], const Panel<T> &panel,
                       int p, std::uint32_t lanes) {
    for (int i = 0; i < rows; ++i) {
        const std::uint32_t mask = not_above(low[i], screen.threshold(first + i)) & lanes;
        if (__builtin_expect(mask != 0, 0))
            screen.offer(first + i, mask, low[i], panel, p);
    }
}

// Candidates of a row that are measured without looking for narrower bounds first.
template <class T> inline int most_measured(const NearestTask<T> &task) {
    return std::max(task.H + 4, task.H + static_cast<int>(task.centers.n) / 8);
}

template <class T> inline const std::int32_t *hint_of(const NearestTask<T> &task, std::size_t row) {
    return task.hint ? task.hint + row * task.H : nullptr;
}

// The rows `which` (n of them) by the register tile, relative to the panels' shift, or to `origin` unless it is null.
// Those that would have to measure too many are left: their number, and `which` names them.
template <class T> inline int nearest_by_products(const NearestTask<T> &task, const T *origin, std::size_t *which,
                                                  int n) {
    constexpr int L = TILE_LANES<T>;
    const int D = task.X.D, C = static_cast<int>(task.centers.n);
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
            screen.open(t * TILE_ROWS + i, task.X[row[i]], hint_of(task, row[i]), square, {*bound, 0});
        }
    }

    alignas(64) T low[TILE_ROWS][L];
    for (int p = 0; p < task.panels.n_panels; ++p) {
        if (p % 32 == 0)
            answer_signals();
        Panel<T> panel = panel_of(task.panels, p, D);
        if (origin) {
            T *numbers = own + (D + std::size_t(1)) * L;
            panel = {own, numbers, numbers + L, nullptr, numbers + 2 * L};
            std::fill_n(panel.lost, L, T(0));
            pack_panel(task.centers, task.panels.surplus, p, origin, panel);
        }
        const std::uint32_t lanes = first_lanes(lanes_used<T>(C, p));
        for (int t = 0; t < n_tiles; ++t) {
            tile<T, Form::product>(packed + tile_size * t, panel.columns, D + 1, panel.half_norm, low);
            offer_tile(screen, t * TILE_ROWS, std::min(TILE_ROWS, n - t * TILE_ROWS), low, panel, p, lanes);
        }
    }
    const int most = most_measured(task);
    int n_left = 0;
    for (int i = 0; i < n; ++i)
        if (!screen.close(i, which[i], most))
            which[n_left++] = which[i];
    return n_left;
}

// The rows `which`, one by one from differences.
template <class T> inline void nearest_by_differences(const NearestTask<T> &task, const std::size_t *which, int n) {
    Screen<T> screen(task, 1);
    for (int i = 0; i < n; ++i)
        screen.close_by_all(0, which[i]);
}

#if CPRIME_HALVES

// Rows [begin, end) by halves. Those that would have to measure too many are left: their number, and `left` names them.
inline int nearest_by_halves(const NearestTask<float> &task, std::size_t begin, std::size_t end, std::size_t *left) {
    constexpr int L = TILE_LANES<float>, BLOCK = 2 * HALF_ROWS;
    static_assert(L == 2 * HALF_ROWS);
    const MatrixUnit unit;
    const int D = task.X.D, depth = half_depth(D + HALF_EXTRA);
    const int n = static_cast<int>(end - begin);
    const int n_padded = (n + BLOCK - 1) / BLOCK * BLOCK;
    const float error = score_error<float>(D);
    const float *shift = task.panels.shift;

    Screen<float> screen(task, n_padded);
    Scratch<half> packed(static_cast<std::size_t>(n_padded) * depth);
    for (int first = 0; first < n_padded; first += HALF_ROWS) {
        half *tiles = packed + static_cast<std::size_t>(first) * depth;
        float square[HALF_ROWS], lost[HALF_ROWS];
        const int rows = std::clamp(n - first, 0, HALF_ROWS);
        round_rows([&](int i) { return task.X[begin + first + i]; }, rows, FETCH_NOTHING, D, depth, shift, 1, tiles,
                   square, lost);
        for (int i = 0; i < rows; ++i) {
            const std::size_t row = begin + first + i;
            const double exact = row_square(task.X[row], shift, D);
            const float norm = static_cast<float>(std::sqrt(exact)) * UP;
            const RowBound<float> bound{(std::sqrt(lost[i]) + error * norm) * UP, norm};
            for (int k = 0; k < 3; ++k)
                set_half(tiles, i, D + k, round_half(1));
            set_half(tiles, i, D + 3, round_half(-bound.error));
            set_half(tiles, i, D + 4, round_half(-norm));
            screen.open(first + i, task.X[row], hint_of(task, row), exact, {bound.error * UP * UP, norm * UP * UP});
        }
    }
    alignas(64) float low[BLOCK][L];
    for (int p = 0; p < task.panels.n_panels; ++p) {
        const Panel<float> panel = panel_of(task.panels, p, D);
        const std::uint32_t lanes = first_lanes(lanes_used<float>(task.centers.n, p));
        const half *b = panel.halves;
        if (p + 1 < task.panels.n_panels)
            prefetch(b + L * depth, L * depth);
        for (int first = 0; first < n; first += BLOCK) {
            multiply<2, 2>(packed + static_cast<std::size_t>(first) * depth, b, depth, low[0], L);
            offer_tile(screen, first, std::min(BLOCK, n - first), low, panel, p, lanes);
        }
    }
    const int most = most_measured(task);
    int n_left = 0;
    for (int i = 0; i < n; ++i)
        if (!screen.close(i, begin + i, most))
            left[n_left++] = begin + i;
    return n_left;
}

#endif

template <class T> inline void nearest(const NearestTask<T> &task, std::size_t begin, std::size_t end) {
    Scratch<std::size_t> which(end - begin);
    int n = static_cast<int>(end - begin);
    for (int i = 0; i < n; ++i)
        which[i] = begin + i;
#if CPRIME_HALVES
    if constexpr (sizeof(T) == sizeof(float))
        if (task.panels.halves)
            n = nearest_by_halves(task, begin, end, which);
#endif
    constexpr std::size_t FEW = 256; // centres, beyond which the screen takes no more time
    if (task.H == 1 && !task.lows && !task.panels.halves && task.centers.n <= FEW && n)
        n = nearest_by_two(task, which, n);
    if (n)
        n = nearest_by_products(task, static_cast<const T *>(nullptr), which.get(), n);
    // Rows that are left, again relative to what is nearest to one of them, while that settles a good part.
    for (bool pays = true; n && pays;) {
        nearest_by_differences(task, which + --n, 1);
        const T *origin = task.centers[task.kept[which[n] * task.H]];
        const int left = n ? nearest_by_products(task, origin, which.get(), n) : 0;
        pays = 8 * (n - left) > n;
        n = left;
    }
    if (n)
        nearest_by_differences(task, which.get(), n);
}

} // namespace cprime::CPRIME_ISA
