// Exact E-steps of general Gaussian mixtures over a block of rows, and the sums of their M-steps about the means.
#pragma once
#include <cmath>

#include "gaussians.h"
#include "weighted_sums.h"

namespace cprime::CPRIME_ISA {

// Rows [begin, end) of the block, `begin` a multiple of TILE_LANES: responsibilities times weights into the columns of
// `table`, and of each row the component of least cost, log sum_c exp(-cost_c / 2), and the mean cost.
template <class T> inline void respond(const RespondTask<T> &task, std::size_t begin, std::size_t end) {
    using V = simd<T>;
    constexpr int L = TILE_LANES<T>;
    const int D = task.X.D;
    const std::size_t C = task.gaussians.means.n;
    LanePoints<T> points(D);
    for (std::size_t first = begin; first < end; first += L) {
        const int n = static_cast<int>(std::min<std::size_t>(L, end - first));
        points.read([&](int i) { return task.X[first + i]; }, n, task.origin);
        T *columns = task.table + first;
        alignas(64) T least[L];
        alignas(64) typename integer_of<T>::type label[L] = {};
        for (std::size_t c = 0; c < C; ++c)
            points.cost(task.gaussians, c, task.starts + c * D, columns + c * task.n_padded);
        std::copy_n(columns, L, least);
        for (std::size_t c = 1; c < C; ++c)
            for (int i = 0; i < L; ++i) {
                const T cost = columns[c * task.n_padded + i];
                label[i] = cost < least[i] ? static_cast<typename integer_of<T>::type>(c) : label[i];
                least[i] = cost < least[i] ? cost : least[i];
            }
        alignas(64) double total[L] = {}, excess[L] = {};
        for (std::size_t c = 0; c < C; ++c) {
            T *column = columns + c * task.n_padded;
            alignas(64) T over[L];
            for (int v = 0; v < L; v += V::width) {
                const auto difference = V::load(column + v) - V::load(least + v);
                const auto e = V::exp(difference * T(-0.5));
                V::store(column + v, e);
                V::store(over + v, e * V::min(difference, V::fill(std::numeric_limits<T>::max()))); // 0 where infinite
            }
            for (int i = 0; i < L; ++i) {
                total[i] += column[i];
                excess[i] += over[i];
            }
        }
        alignas(64) T scale[L] = {};
        for (int i = 0; i < n; ++i) {
            task.labels[first + i] = static_cast<std::int32_t>(label[i]);
            task.log_sum[first + i] = std::log(total[i]) - 0.5 * static_cast<double>(least[i]);
            task.mean[first + i] = least[i] + excess[i] / total[i];
            scale[i] = static_cast<T>((task.sample_weight ? task.sample_weight[first + i] : 1.0) / total[i]);
        }
        for (std::size_t c = 0; c < C; ++c)
            for (int v = 0; v < L; v += V::width) {
                T *place = columns + c * task.n_padded + v;
                V::store(place, V::load(place) * V::load(scale + v));
            }
    }
}

// A responsibility that adds nothing to sums in double precision.
constexpr double NEGLIGIBLE = 1e-18;

// Sums over points of a component: weight(e) w, row(e) x for e in [begin, end)
//     count += w    first += w (x - m)    second += w (x - m)^2, (D,), or w (x - m)(x - m)^T, the lower triangle of (D,
//     D). Of a matrix a part has some rows, and these coordinates of `first`; the count belongs to the first part.
template <class T, class Weight, class Row>
inline void add_moments(Weight weight, Row row, std::size_t begin, std::size_t end, const T *m, int D, bool full,
                        Part part, double *count, double *__restrict first, double *__restrict second) {
    if (!full)
        return add_moments_of_rows(weight, row, begin, end, m, D, count, first, second);
    constexpr std::size_t AHEAD = 6; // rows may lie anywhere in memory: ask for them early
    const auto fetch = [&](std::size_t e) {
        if (e + AHEAD < end && weight(e + AHEAD) != 0)
            prefetch(row(e + AHEAD), D);
    };
    // Products of tiles: the points, TILE_ROWS coordinates at a time and with their weights, against the points; in
    // double precision, because a covariance may be nearly singular.
    constexpr int L = TILE_LANES<double>, STEP = 64;
    const int tiles = (D + TILE_ROWS - 1) / TILE_ROWS;
    const int first_tile = static_cast<int>(part.i * tiles / part.n);
    const int last_tile = static_cast<int>((part.i + 1) * tiles / part.n);
    const int top = first_tile * TILE_ROWS, bottom = std::min(D, last_tile * TILE_ROWS); // rows of this part
    const int panels = (bottom + L - 1) / L;
    const std::size_t left_size = static_cast<std::size_t>(last_tile - first_tile) * STEP * TILE_ROWS;
    const std::size_t right_size = static_cast<std::size_t>(panels) * STEP * L;
    Scratch<double> left(left_size), right(right_size);
    std::fill_n(left.get(), left_size, 0.0);
    std::fill_n(right.get(), right_size, 0.0);
    alignas(64) double product[TILE_ROWS][L];
    const auto spread = [STEP]<int width>(const double *from, int size, double scale, double *to, int n) {
        for (int k = 0; k < size; k += width) {
            double *block = to + (static_cast<std::size_t>(k) * STEP + static_cast<std::size_t>(n) * width);
            for (int i = 0; i < std::min(width, size - k); ++i)
                block[i] = scale * from[k + i];
        }
    };
    Scratch<double> difference(bottom);
    std::size_t e = begin;
    while (e < end) {
        answer_signals();
        int n = 0;
        for (; e < end && n < STEP; ++e) {
            fetch(e);
            const double w = weight(e);
            if (w == 0)
                continue;
            const T *__restrict x = row(e);
            double *__restrict d = difference;
            for (int k = 0; k < top; ++k)
                d[k] = static_cast<double>(x[k]) - static_cast<double>(m[k]);
            for (int k = top; k < bottom; ++k) {
                d[k] = static_cast<double>(x[k]) - static_cast<double>(m[k]);
                first[k] += w * d[k];
            }
            if (part.i == 0) // the other parts run at the same time
                *count += w;
            spread.template operator()<TILE_ROWS>(d + top, bottom - top, w, left, n);
            spread.template operator()<L>(d, bottom, 1.0, right, n);
            ++n;
        }
        for (int r = first_tile; r < last_tile; ++r)
            for (int p = 0; p < panels && p * L < (r + 1) * TILE_ROWS; ++p) {
                tile<double, Form::product>(left + static_cast<std::size_t>(r - first_tile) * STEP * TILE_ROWS,
                                            right + static_cast<std::size_t>(p) * STEP * L, n, nullptr, product);
                for (int i = 0; i < TILE_ROWS && r * TILE_ROWS + i < D; ++i) {
                    const int j = r * TILE_ROWS + i;
                    double *to = second + static_cast<std::size_t>(j) * D + p * L;
                    for (int k = 0; k < L && p * L + k <= j; ++k)
                        to[k] += product[i][k];
                }
            }
    }
}

// Entries [begin, end) of the kept components, all of component c.
template <class T>
inline void moments(const MomentsTask<T> &task, int c, std::size_t begin, std::size_t end, Part part, double *count,
                    double *first, double *second) {
    const auto point = [&](std::size_t e) { return static_cast<std::size_t>(task.entries[e] / task.H); };
    add_moments<T>(
        [&](std::size_t e) {
            return (task.responsibilities ? task.responsibilities[task.entries[e]] : 1.0) *
                   (task.sample_weight ? task.sample_weight[point(e)] : 1.0);
        },
        [&](std::size_t e) { return task.X[point(e)]; }, begin, end, task.means[c], task.X.D, task.full, part, count,
        first, second);
}

// Rows [begin, end) of the block, by the column of component c.
template <class T>
inline void column_moments(const RespondTask<T> &task, int c, std::size_t begin, std::size_t end, Part part,
                           double *count, double *first, double *second) {
    const T *column = task.table + static_cast<std::size_t>(c) * task.n_padded;
    const double *weight = task.sample_weight;
    add_moments<T>(
        [&](std::size_t n) {
            const double w = column[n];
            return w < NEGLIGIBLE * (weight ? weight[n] : 1.0) ? 0.0 : w;
        },
        [&](std::size_t n) { return task.X[n]; }, begin, end, task.gaussians.means[c], task.X.D, task.gaussians.full,
        part, count, first, second);
}

} // namespace cprime::CPRIME_ISA
