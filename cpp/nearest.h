// The H nearest of C centres, by a screen and a proof.
//
// Screen: the products of a tile give score(n, c) = |m_c|^2/2 - x_n m_c, both relative to a common shift, so the score
// is half the squared distance less a constant of the row. Its rounding error is at most gamma (|x_n||m_c| +
// |m_c|^2/2); that bound is one more dimension of the product, so a tile yields *lower* bounds of the scores, and upper
// ones where needed. Proof: a component whose lower bound exceeds the H-th smallest upper bound cannot be among the H
// nearest. The few that remain are measured from differences, which is accurate wherever the origin is. The result is
// therefore that of a search by differences over all C, ties going to the lower id.
//
// Where the processor has a matrix unit, a first screen is of bfloat16 halves, whose bounds are wider; rows for which
// it leaves too many go through the second.
#pragma once
#include <algorithm>
#include <cmath>

#include "halves.h"
#include "kernels.h"
#include "screen.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

// Behind the coordinates: |m|^2/2 in three halves, |m|, and what rounding has taken from m.
constexpr int HALF_EXTRA = 5;
constexpr int LEAST_D_OF_HALVES = 8; // below, the register tile is as fast

// Numbers in a panel of halves, 0 where they are not used.
template <class T> inline std::size_t half_panel_size(int D) {
    if (!HAS_HALVES || sizeof(T) != sizeof(float) || D < LEAST_D_OF_HALVES)
        return 0;
    return static_cast<std::size_t>(TILE_LANES<T>) * half_depth(D + HALF_EXTRA);
}

template <class T> inline void pack_panels(const Rows<T> &centers, Panels<T> panels, int begin, int end) {
    constexpr int L = TILE_LANES<T>;
    const int D = centers.D;
    const T error = score_error<T>(D);
    for (int p = begin; p < end; ++p) {
        const int n = std::min(L, static_cast<int>(centers.n) - p * L);
        const auto center = [&](int i) { return centers[static_cast<std::size_t>(p) * L + i]; };
        T *columns = panels.columns + static_cast<std::size_t>(p) * (D + 1) * L;
        T *half_norm = panels.half_norm + static_cast<std::size_t>(p) * L;
        T *norm = panels.norm + static_cast<std::size_t>(p) * L;
        pack<L>(center, n, D, panels.shift, columns);
        for (int i = 0; i < L; ++i) {
            double square = 0;
            for (int k = 0; k < D; ++k) {
                T &m = columns[static_cast<std::size_t>(k) * L + i];
                square += static_cast<double>(m) * static_cast<double>(m);
                m = -m;
            }
            norm[i] = static_cast<T>(std::sqrt(square) * (1 + 1e-6));
            columns[static_cast<std::size_t>(D) * L + i] = -norm[i];
            half_norm[i] = i < n ? static_cast<T>(square / 2) * (1 - error) : std::numeric_limits<T>::infinity();
        }
#if defined(__AMX_BF16__)
        if constexpr (sizeof(T) == sizeof(float)) {
            if (!panels.halves)
                continue;
            const int depth = half_depth(D + HALF_EXTRA);
            float *lost = panels.lost + static_cast<std::size_t>(p) * L;
            for (int g = 0; g < L; g += HALF_ROWS) {
                half *tiles = panels.halves + (static_cast<std::size_t>(p) * L + g) * depth;
                float square[HALF_ROWS];
                round_rows([&](int i) { return center(g + i); }, std::min(HALF_ROWS, n - g), FETCH_NOTHING, D, depth,
                           panels.shift, -1, tiles, square, lost + g);
                for (int i = 0; i < HALF_ROWS; ++i) {
                    lost[g + i] = std::sqrt(lost[g + i]) * UP;
                    float rest = half_norm[g + i];
                    for (int part = 0; part < 3; ++part) {
                        const half h = round_half(rest);
                        set_half(tiles, i, D + part, h);
                        rest = g + i < n ? rest - widen(h) : 0;
                    }
                    set_half(tiles, i, D + 3, round_half(norm[g + i] * UP));
                    set_half(tiles, i, D + 4, round_half(lost[g + i]));
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

// Offers to the screen, row by row, what may be among the nearest of a panel's lanes.
template <class T> inline void offer_tile(Screen<T> &screen, int first, int rows, const T (*low)[TILE_LANES<T>],
                                          int p) {
    using V = simd<T>;
    for (int i = 0; i < rows; ++i) {
        const auto limit = V::fill(screen.threshold(first + i));
        const std::uint32_t mask =
            V::mask_le(V::load(&low[i][0]), limit) | V::mask_le(V::load(&low[i][V::width]), limit) << V::width;
        if (__builtin_expect(mask != 0, 0))
            screen.offer(first + i, mask, low[i], p);
    }
}

template <class T> inline const std::int32_t *hint_of(const NearestTask<T> &task, std::size_t row) {
    return task.hint ? task.hint + row * task.H : nullptr;
}

// The rows `which` (n of them) by the register tile.
template <class T> inline void nearest_by_products(const NearestTask<T> &task, const std::size_t *which, int n) {
    constexpr int L = TILE_LANES<T>;
    const int D = task.X.D;
    const int n_tiles = (n + TILE_ROWS - 1) / TILE_ROWS;
    const T error = score_error<T>(D);
    const std::size_t tile_size = static_cast<std::size_t>(D + 1) * TILE_ROWS;

    Screen<T> screen(task, static_cast<std::size_t>(n_tiles) * TILE_ROWS);
    Scratch<T> packed(tile_size * n_tiles + PACK_SLACK<T>);
    for (int t = 0; t < n_tiles; ++t) {
        T *a = packed + tile_size * t;
        const std::size_t *row = which + t * TILE_ROWS;
        const int rows = std::min(TILE_ROWS, n - t * TILE_ROWS);
        pack<TILE_ROWS>([&](int i) { return task.X[row[i]]; }, rows, D, task.panels.shift, a);
        for (int i = 0; i < TILE_ROWS; ++i) {
            T *bound = a + static_cast<std::size_t>(D) * TILE_ROWS + i;
            *bound = 0;
            if (i >= rows)
                continue;
            const double square = row_square(task.X[row[i]], task.panels.shift, D);
            *bound = error * static_cast<T>(std::sqrt(square) * (1 + 1e-6));
            screen.open(t * TILE_ROWS + i, task.X[row[i]], hint_of(task, row[i]), square, {*bound, 0});
        }
    }

    alignas(64) T low[TILE_ROWS][L];
    for (int p = 0; p < task.panels.n_panels; ++p) {
        const T *b = task.panels.columns + static_cast<std::size_t>(p) * (D + 1) * L;
        const T *start = task.panels.half_norm + static_cast<std::size_t>(p) * L;
        for (int t = 0; t < n_tiles; ++t) {
            tile<T, Form::product>(packed + tile_size * t, b, D + 1, start, low);
            offer_tile(screen, t * TILE_ROWS, std::min(TILE_ROWS, n - t * TILE_ROWS), low, p);
        }
    }
    for (int i = 0; task.lows && i < n; ++i)
        screen.close_nearest(i, which[i]);
    for (int i = 0; !task.lows && i < n; ++i)
        screen.close(i, task.X[which[i]], task.kept + which[i] * task.H, task.distances + which[i] * task.H);
}

#if defined(__AMX_BF16__)

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
        const half *b = task.panels.halves + static_cast<std::size_t>(p) * L * depth;
        const char *next = reinterpret_cast<const char *>(b + L * depth);
        for (int byte = 0; p + 1 < task.panels.n_panels && byte < 2 * L * depth; byte += 64)
            __builtin_prefetch(next + byte, 0, 3);
        for (int first = 0; first < n; first += BLOCK) {
            multiply<2, 2>(packed + static_cast<std::size_t>(first) * depth, b, depth, low[0], L);
            offer_tile(screen, first, std::min(BLOCK, n - first), low, p);
        }
    }
    const int limit = std::max(task.H + 4, task.H + task.panels.C / 8);
    int n_left = 0;
    for (int i = 0; i < n; ++i) {
        const std::size_t row = begin + i;
        if ((task.lows ? screen.settle_nearest(i) : screen.settle(i)) > limit)
            left[n_left++] = row;
        else if (task.lows)
            screen.close_nearest(i, row);
        else
            screen.close(i, task.X[row], task.kept + row * task.H, task.distances + row * task.H);
    }
    return n_left;
}

#endif

template <class T> inline void nearest(const NearestTask<T> &task, std::size_t begin, std::size_t end) {
    Scratch<std::size_t> which(end - begin);
#if defined(__AMX_BF16__)
    if constexpr (sizeof(T) == sizeof(float)) {
        if (task.panels.halves) {
            if (const int n = nearest_by_halves(task, begin, end, which))
                nearest_by_products(task, which.get(), n);
            return;
        }
    }
#endif
    for (std::size_t i = 0; i < end - begin; ++i)
        which[i] = begin + i;
    nearest_by_products(task, which.get(), static_cast<int>(end - begin));
}

} // namespace cprime::CPRIME_ISA
