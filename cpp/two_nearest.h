// Nearest and second nearest of few centers for each row, from differences, and the best cut of a cluster of dense or
// sparse rows into two.
#pragma once
#include <algorithm>
#include <cmath>

#include "best_two.h"
#include "kernels.h"
#include "points.h"
#include "sparse.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

// Find the nearest and the second nearest center of rows [begin, end) of the task.
template <class T> inline void two_nearest(const TwoNearestTask<T> &task, std::size_t begin, std::size_t end) {
    constexpr int L = TILE_LANES<T>;
    const int D = task.X.D, C = static_cast<int>(task.centers.n);
    Scratch<T> rows(static_cast<std::size_t>(D) * L + PACK_SLACK<T>);
    const Wide<T> wide(task.X, L);
    alignas(64) T squares[TILE_ROWS][L];
    BestTwo<T> best;
    for (std::size_t first = begin; first < end; first += L) {
        const int n = static_cast<int>(std::min<std::size_t>(L, end - first));
        const Rows<T> x = rows_of(task.X, first, first + n, wide);
        pack<L>([&](int i) { return x[i]; }, n, D, static_cast<const T *>(nullptr), rows.get());
        best.clear();
        for (int c = 0; c < C; c += TILE_ROWS) {
            tile<T, Form::difference>(task.packed + static_cast<std::size_t>(c) * D, rows.get(), D, nullptr, squares);
            best.follow(squares, c, std::min(TILE_ROWS, C - c));
        }
        constexpr int W = simd<T>::width;
        for (int i = 0; i < n; ++i) {
            task.labels[first + i] = static_cast<std::int32_t>(best.id[i / W][i % W]);
            task.least[first + i] = best.least[i / W][i % W];
            task.second[first + i] = best.second[i / W][i % W];
        }
    }
}

// Return row i of dense rows; that of sparse rows is in sparse.h.
template <class T> inline const T *row_of(const Points<T> &X, std::size_t i) { return X[i]; }

template <class T> inline void add_row(double *sum, const T *x, double weight, int D) {
    using V = simd<double>;
    int k = 0;
    for (; k + V::width <= D; k += V::width)
        V::store(sum + k, V::load(sum + k) + load_wide(x + k) * weight);
    for (; k < D; ++k)
        sum[k] += weight * static_cast<double>(x[k]);
}

template <class T> inline void add_row(double *sum, const SparseRow<T> &x, double weight, int) {
    for (std::int64_t k = 0; k < x.length; ++k)
        sum[x.columns[k]] += weight * static_cast<double>(x.values[k]);
}

// A direction v from a point m (D,), for projections of rows x: dot products (x - m) v.
struct Direction {
    const double *m, *v;
    int D;
    double along; // m v, which projections of sparse rows use
    Direction(const double *m, const double *v, int D) : m(m), v(v), D(D), along(0) {
        for (int k = 0; k < D; ++k)
            along += m[k] * v[k];
    }
};

template <class T> inline double projection(const T *x, const Direction &line) {
    const auto [m, v, D, along] = line;
    using V = simd<double>;
    typename V::vec sum{};
    int k = 0;
    for (; k + V::width <= D; k += V::width)
        sum += (load_wide(x + k) - V::load(m + k)) * V::load(v + k);
    double rest = 0;
    for (; k < D; ++k)
        rest += (static_cast<double>(x[k]) - m[k]) * v[k];
    return V::sum(sum) + rest;
}

template <class T> inline double projection(const SparseRow<T> &x, const Direction &line) {
    double sum = 0;
    for (std::int64_t k = 0; k < x.length; ++k)
        sum += static_cast<double>(x.values[k]) * line.v[x.columns[k]];
    return sum - line.along;
}

// Scale a vector to length 1; return false if it is zero or not finite.
inline bool normalise(double *v, int D) {
    double most = 0, square = 0;
    for (int k = 0; k < D; ++k)
        most = std::max(most, std::abs(v[k]));
    if (!(most > 0 && most <= std::numeric_limits<double>::max()))
        return false;
    for (int k = 0; k < D; ++k) {
        v[k] /= most;
        square += v[k] * v[k];
    }
    for (int k = 0; k < D; ++k)
        v[k] /= std::sqrt(square);
    return true;
}

// Find the best cut of numbers p into two, between two of 64 bins of equal width. Returns the last bin of the lower
// side; bins: the bin of each number.
template <class Weight>
inline int best_threshold(const double *p, std::size_t n, Weight weight, std::uint8_t *bins) {
    constexpr int BINS = 64;
    const auto [least, most] = std::minmax_element(p, p + n);
    const double low = *least, scale = BINS / (*most - *least);
    if (!(scale <= std::numeric_limits<double>::max())) {
        std::fill_n(bins, n, std::uint8_t(0));
        return 0;
    }
    double counts[BINS] = {}, sums[BINS] = {}, total = 0, mass = 0;
    for (std::size_t i = 0; i < n; ++i) {
        bins[i] = static_cast<std::uint8_t>(std::min((p[i] - low) * scale, BINS - 1.0));
        counts[bins[i]] += weight(i);
        sums[bins[i]] += weight(i) * p[i];
        total += weight(i);
        mass += weight(i) * p[i];
    }
    int best = 0;
    double most_apart = 0, count = 0, sum = 0;
    for (int b = 0; b + 1 < BINS; ++b) {
        count += counts[b];
        sum += sums[b];
        const double rest = total - count;
        if (!(count > 0 && rest > 0))
            continue;
        const double step = sum / count - (mass - sum) / rest, apart = step * step / (1 / count + 1 / rest);
        if (apart > most_apart) {
            most_apart = apart;
            best = b;
        }
    }
    return best;
}

// Cut a cluster of n rows into two: first by a plane across its direction of greatest variance, then by a few
// iterations of 2-means. Two steps of the power iteration, from the cluster's row `far`, approximate the direction.
// Returns by how much J falls, 0 if there is no cut; means (2, D): those of the halves.
template <class T, class X_>
inline double halve(const X_ &X, const double *sample_weight, const std::int64_t *rows, std::size_t n, std::int64_t far,
                    const double *mean, double *means) {
    constexpr int TURNS = 2, ITERATIONS = 6;
    const int D = X.D;
    const auto row = [&](std::size_t i) { return row_of(X, static_cast<std::size_t>(rows[i])); };
    const auto weight = [&](std::size_t i) { return sample_weight ? sample_weight[rows[i]] : 1.0; };
    Scratch<double> direction(D), origin(D), sums(2 * static_cast<std::size_t>(D)), along(n);
    Scratch<std::uint8_t> side(n), before(n);
    for (int k = 0; k < D; ++k) {
        direction[k] = -mean[k];
        origin[k] = mean[k];
    }
    add_row(direction.get(), row_of(X, static_cast<std::size_t>(far)), 1.0, D);
    for (int turn = 0; turn <= TURNS; ++turn) {
        if (!normalise(direction.get(), D))
            return 0;
        const Direction line(mean, direction.get(), D);
        for (std::size_t i = 0; i < n; ++i)
            along[i] = projection(row(i), line);
        if (turn == TURNS)
            break;
        std::fill_n(sums.get(), D, 0.0);
        double total = 0;
        for (std::size_t i = 0; i < n; ++i) {
            add_row(sums.get(), row(i), weight(i) * along[i], D);
            total += weight(i) * along[i];
        }
        for (int k = 0; k < D; ++k)
            direction[k] = sums[k] - total * mean[k];
    }
    const int bins = best_threshold(along.get(), n, weight, side.get());
    for (std::size_t i = 0; i < n; ++i)
        side[i] = side[i] > bins;
    double gain = 0;
    for (int iteration = 0; iteration <= ITERATIONS; ++iteration) {
        if (iteration) {
            if (!normalise(direction.get(), D))
                return gain;
            const Direction line(origin.get(), direction.get(), D);
            for (std::size_t i = 0; i < n; ++i)
                side[i] = projection(row(i), line) > 0;
            if (std::equal(side.get(), side + n, before.get()))
                break;
        }
        std::fill_n(sums.get(), 2 * D, 0.0);
        double counts[2] = {};
        for (std::size_t i = 0; i < n; ++i) {
            counts[side[i]] += weight(i);
            add_row(sums + side[i] * D, row(i), weight(i), D);
        }
        if (!(counts[0] > 0 && counts[1] > 0))
            return gain;
        double square = 0;
        for (int k = 0; k < D; ++k) {
            const double low = sums[k] / counts[0], high = sums[D + k] / counts[1];
            means[k] = low;
            means[D + k] = high;
            origin[k] = (low + high) / 2;
            direction[k] = high - low;
            square += direction[k] * direction[k];
        }
        gain = square / (1 / counts[0] + 1 / counts[1]);
        std::swap_ranges(side.get(), side + n, before.get());
    }
    return gain <= std::numeric_limits<double>::max() ? gain : 0;
}

} // namespace cprime::CPRIME_ISA
