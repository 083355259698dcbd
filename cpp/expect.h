// Exact E-step of the isotropic mixture over a block of rows, and the sums for the M-step, both by dense tiles.
#pragma once
#include <algorithm>
#include <cmath>

#include "kernels.h"
#include "points.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

template <class T> inline void pack_columns(const Rows<T> &centers, T *columns) {
    constexpr int L = TILE_LANES<T>;
    for (std::size_t first = 0; first < centers.n; first += L, columns += static_cast<std::size_t>(centers.D) * L)
        pack<L>([&](int i) { return centers[first + i]; },
                static_cast<int>(std::min<std::size_t>(L, centers.n - first)), centers.D,
                static_cast<const T *>(nullptr), columns);
}

// Return -1 / (2 variance), finite and negative, so that infinitely distant centers add nothing for any variance.
template <class T> inline T exponent(double variance) {
    using limits = std::numeric_limits<T>;
    return static_cast<T>(
        std::clamp(-0.5 / variance, static_cast<double>(limits::lowest()), -static_cast<double>(limits::min())));
}

// Compute the E-step of rows [begin, end) of the block, where `begin` is a multiple of TILE_ROWS: exponentials relative
// to each row's nearest center, and the values of ExpectTask that the M-step and the log-likelihood need.
template <class T> inline void expect(const ExpectTask<T> &task, std::size_t begin, std::size_t end) {
    using V = simd<T>;
    using vec = typename V::vec;
    constexpr int L = TILE_LANES<T>;
    const int D = task.X.D;
    const T factor = exponent<T>(task.variance);
    const std::size_t panel_size = static_cast<std::size_t>(D) * L;
    Scratch<T> packed(static_cast<std::size_t>(D) * TILE_ROWS + PACK_SLACK<T>);
    const Wide<T> wide(task.X, TILE_ROWS);
    const std::size_t stride = task.n_padded * L;
    for (std::size_t first = begin; first < end; first += TILE_ROWS) {
        const int rows = static_cast<int>(std::min<std::size_t>(TILE_ROWS, end - first));
        const Rows<T> x = rows_of(task.X, first, first + rows, wide);
        pack<TILE_ROWS>([&](int i) { return x[i]; }, rows, D, static_cast<const T *>(nullptr), packed.get());
        T *squares = task.exponentials + first * L;
        for (int p = 0; p < task.n_panels; ++p)
            tile<T, Form::difference>(packed, task.columns + panel_size * p, D, nullptr,
                                      reinterpret_cast<T(*)[L]>(squares + stride * p));
        const int padding = task.n_panels * L - task.C;
        for (int i = 0; i < rows; ++i) {
            T *row = squares + static_cast<std::size_t>(i) * L;
            T *last = row + stride * (task.n_panels - 1);
            for (int lane = L - padding; lane < L; ++lane)
                last[lane] = std::numeric_limits<T>::infinity();
            vec lowest = V::load(row);
            for (int p = 0; p < task.n_panels; ++p)
                for (int v = 0; v < L; v += V::width)
                    lowest = V::min(lowest, V::load(row + stride * p + v));
            T nearest = lowest[0];
            for (int v = 1; v < V::width; ++v)
                nearest = std::min<T>(nearest, lowest[v]);
            vec total{}, excess{};
            for (int p = 0; p < task.n_panels; ++p)
                for (int v = 0; v < L; v += V::width) {
                    T *place = row + stride * p + v;
                    const vec over = V::load(place) - nearest;
                    const vec e = V::exp(over * factor);
                    const vec finite =
                        V::min(over, V::fill(std::numeric_limits<T>::max())); // avoids NaN from 0 times infinity
                    total += e;
                    excess += e * finite;
                    V::store(place, e);
                }
            const double Z = V::sum(total);
            const std::size_t n = first + i;
            task.least[n] = nearest;
            task.log_sum[n] = std::log(Z);
            task.excess[n] = V::sum(excess) / Z;
            const T scale = static_cast<T>((task.sample_weight ? task.sample_weight[n] : 1.0) / Z);
            for (int k = 0; k <= D; ++k) {
                const std::size_t t = k / TILE_ROWS;
                task.scaled[(t * task.n_padded + n) * TILE_ROWS + k % TILE_ROWS] =
                    scale * (k < D ? packed[static_cast<std::size_t>(k) * TILE_ROWS + i] : T(1));
            }
        }
    }
}

// Compute only the results `least` and `log_sum` of ExpectTask for rows [begin, end), some panels of centers at a time,
// so that memory does not grow with the number of components.
template <class T> inline void log_sum_exp(const ExpectTask<T> &task, std::size_t begin, std::size_t end) {
    using V = simd<T>;
    using vec = typename V::vec;
    constexpr int L = TILE_LANES<T>, PANELS = 16;
    constexpr T INFINITE = std::numeric_limits<T>::infinity();
    const int D = task.X.D;
    const T factor = exponent<T>(task.variance);
    Scratch<T> packed(static_cast<std::size_t>(D) * TILE_ROWS + PACK_SLACK<T>);
    const Wide<T> wide(task.X, TILE_ROWS);
    Scratch<T> squares(static_cast<std::size_t>(PANELS) * TILE_ROWS * L);
    for (std::size_t first = begin; first < end; first += TILE_ROWS) {
        const int rows = static_cast<int>(std::min<std::size_t>(TILE_ROWS, end - first));
        const Rows<T> x = rows_of(task.X, first, first + rows, wide);
        pack<TILE_ROWS>([&](int i) { return x[i]; }, rows, D, static_cast<const T *>(nullptr), packed.get());
        T least[TILE_ROWS];
        std::fill_n(least, TILE_ROWS, INFINITE);
        vec total[TILE_ROWS] = {};
        for (int begin_panel = 0; begin_panel < task.n_panels; begin_panel += PANELS) {
            const int n = std::min(PANELS, task.n_panels - begin_panel);
            const int padding = std::max(0, (begin_panel + n) * L - task.C);
            for (int p = 0; p < n; ++p)
                tile<T, Form::difference>(
                    packed, task.columns + static_cast<std::size_t>(begin_panel + p) * D * L, D, nullptr,
                    reinterpret_cast<T(*)[L]>(squares + static_cast<std::size_t>(p) * TILE_ROWS * L));
            for (int i = 0; i < rows; ++i) {
                const auto place = [&](int p) { return squares + (static_cast<std::size_t>(p) * TILE_ROWS + i) * L; };
                std::fill_n(place(n - 1) + L - padding, padding, INFINITE);
                vec lowest = V::load(place(0));
                for (int p = 0; p < n; ++p)
                    for (int v = 0; v < L; v += V::width)
                        lowest = V::min(lowest, V::load(place(p) + v));
                const T nearest = V::lowest(lowest);
                if (nearest < least[i]) { // rescale the sum, which is relative to the previous nearest
                    if (least[i] < INFINITE)
                        total[i] *= V::exp(V::fill((least[i] - nearest) * factor));
                    least[i] = nearest;
                }
                for (int p = 0; p < n; ++p)
                    for (int v = 0; v < L; v += V::width)
                        total[i] += V::exp((V::load(place(p) + v) - least[i]) * factor);
            }
        }
        for (int i = 0; i < rows; ++i) {
            task.least[first + i] = least[i];
            task.log_sum[first + i] = std::log(static_cast<double>(V::sum(total[i])));
        }
    }
}

// Add the sums over the block of rows for the components of one panel (TILE_LANES components). Each tile of products
// has TILE_ROWS dimensions. Up to STEP rows are summed in the precision of the rows, and these sums in double
// precision.
template <class T> inline void maximise(const ExpectTask<T> &task, int panel, double *counts, double *sums) {
    constexpr int L = TILE_LANES<T>;
    constexpr std::size_t STEP = 64;
    const int D = task.X.D;
    const int C = std::min(L, task.C - panel * L);
    const T *exponentials = task.exponentials + static_cast<std::size_t>(panel) * task.n_padded * L;
    alignas(64) T part[TILE_ROWS][L];
    for (std::size_t first = 0; first < task.X.n; first += STEP) {
        const int n = static_cast<int>(std::min(STEP, task.X.n - first));
        for (int k = 0; k <= D; k += TILE_ROWS) {
            const T *a = task.scaled + (static_cast<std::size_t>(k / TILE_ROWS) * task.n_padded + first) * TILE_ROWS;
            tile<T, Form::product>(a, exponentials + first * L, n, nullptr, part);
            for (int r = 0; r < std::min(TILE_ROWS, D + 1 - k); ++r)
                for (int lane = 0; lane < C; ++lane) {
                    const std::size_t c = static_cast<std::size_t>(panel) * L + lane;
                    if (k + r < D)
                        sums[c * D + k + r] += part[r][lane];
                    else
                        counts[c] += part[r][lane];
                }
        }
    }
}

} // namespace cprime::CPRIME_ISA
