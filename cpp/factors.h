// Factor analyzers (low-rank covariance matrices): costs offset + sum_d y_d^2 / psi_d - |U y|^2 with y = x - m, and the
// moments of M-steps. All computations are in double precision, because the noise can be far smaller than the variance
// that the factors explain. A few rows are processed together, so that a component's parameters are read once for all
// of them.
#pragma once
#include <algorithm>
#include <cmath>

#include "kernels.h"
#include "signals.h"
#include "smallest.h"
#include "weighted_sums.h"

namespace cprime::CPRIME_ISA {

constexpr int MOST_DIRECTIONS = 5; // directions whose products are computed together
constexpr int FACTOR_ROWS = VECTOR_BYTES == 64 ? 4 : 2;

// Return the first `left` numbers at p as a vector of doubles, with zeros after these numbers.
template <class T> inline simd<double>::vec load_wide_first(const T *p, int left) {
    alignas(64) T part[simd<T>::width];
    simd<T>::store(part, simd<T>::load_first(p, left));
    return load_wide(part);
}

// Call use(k, wide, plain) for every vector of D numbers, which begins at number k: wide(row of T) and plain(row of
// doubles) load it.
template <class Use> [[gnu::always_inline]] inline void for_each_vector(int D, Use use) {
    constexpr int W = simd<double>::width;
    int k = 0;
    for (; k + W <= D; k += W)
        use(
            k, [k](const auto *p) { return load_wide(p + k); },
            [k](const double *p) { return simd<double>::load(p + k); });
    if (k < D)
        use(
            k, [k, D](const auto *p) { return load_wide_first(p + k, D - k); },
            [k, D](const double *p) { return simd<double>::load_first(p + k, D - k); });
}

// For some rows y = x - m, write products U y with B directions U to `along`, those of a row `width` after those of the
// previous one, and, if `squares`, sum_d y_d^2 p_d (p: precisions 1 / psi) to `square`.
template <int B, bool squares, class T>
inline void add_products(const T *const (&x)[FACTOR_ROWS], const T *m, const double *p, const double *U, int D,
                         double *square, double *along, int width) {
    using V = simd<double>;
    constexpr int R = FACTOR_ROWS;
    typename V::vec sum[R] = {}, product[R][B ? B : 1] = {};
    for_each_vector(D, [&](int, auto wide, auto plain) {
        typename V::vec y[R];
        const auto mean = wide(m);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r)
            y[r] = wide(x[r]) - mean;
        if constexpr (squares) {
            const auto precision = plain(p);
#pragma GCC unroll 4
            for (int r = 0; r < R; ++r)
                sum[r] += y[r] * y[r] * precision;
        }
#pragma GCC unroll 8
        for (int b = 0; b < B; ++b) {
            const auto u = plain(U + static_cast<std::size_t>(b) * D);
#pragma GCC unroll 4
            for (int r = 0; r < R; ++r)
                product[r][b] += y[r] * u;
        }
    });
    for (int r = 0; r < R; ++r) {
        if constexpr (squares)
            square[r] = V::sum(sum[r]);
        for (int b = 0; b < B; ++b)
            along[r * width + b] = V::sum(product[r][b]);
    }
}

template <int B, bool squares, class T>
inline void add_products(int n, const T *const (&x)[FACTOR_ROWS], const T *m, const double *p, const double *U, int D,
                         double *square, double *along, int width) {
    if constexpr (B > 0)
        if (n < B)
            return add_products<B - 1, squares>(n, x, m, p, U, D, square, along, width);
    add_products<B, squares>(x, m, p, U, D, square, along, width);
}

// Compute along (n, H) = U y and, if not null, square (n,) = sum_d y_d^2 / psi_d for n rows, y = x - m, and component
// c: U are its directions, psi its noise variances.
template <class T>
inline void products_of(const FactorAnalysers<T> &factors, std::size_t c, const T *const *rows, int n, double *square,
                        double *along) {
    constexpr int R = FACTOR_ROWS;
    const int D = factors.means.D, H = factors.H;
    const T *m = factors.means[c];
    const double *U = factors.direction(c), *p = square ? factors.precisions + c * D : nullptr;
    Scratch<double> part(static_cast<std::size_t>(R) * std::max(H, 1));
    for (int first = 0; first < n; first += R) {
        const T *x[R];
        double squares[R];
        for (int r = 0; r < R; ++r)
            x[r] = rows[std::min(first + r, n - 1)];
        int b = std::min(H, MOST_DIRECTIONS);
        if (square)
            add_products<MOST_DIRECTIONS, true>(b, x, m, p, U, D, squares, part, H);
        else
            b = 0;
        for (; b < H; b += std::min(H - b, MOST_DIRECTIONS))
            add_products<MOST_DIRECTIONS, false>(std::min(H - b, MOST_DIRECTIONS), x, m, p,
                                                 U + static_cast<std::size_t>(b) * D, D, nullptr, part + b, H);
        for (int r = 0; r < R && first + r < n; ++r) {
            if (square)
                square[first + r] = squares[r];
            std::copy_n(part + r * H, H, along + static_cast<std::size_t>(first + r) * H);
        }
    }
}

// Compute the posterior mean of the factors, z = E[z | x], of one row from along = U y (directions U, y = x - m).
template <class T>
inline void latent(const FactorAnalysers<T> &factors, std::size_t c, const double *along, double *z) {
    const int H = factors.H;
    const double *root = factors.roots ? factors.roots + c * H * H : nullptr;
    for (int h = 0; h < H; ++h) {
        z[h] = root ? 0.0 : along[h];
        for (int k = 0; root && k < H; ++k)
            z[h] += root[h * H + k] * along[k];
    }
}

// Return the squared Mahalanobis distance of one row, y = x - m, as |psi^(-1/2) (y - L z)|^2 + |z|^2, in which nothing
// cancels (L: loadings, z = E[z | x]).
template <class T>
inline double square_of_residual(const FactorAnalysers<T> &factors, std::size_t c, const T *x, const double *along) {
    const int D = factors.means.D, H = factors.H;
    const T *m = factors.means[c];
    const double *p = factors.precisions + c * D, *loading = factors.loadings + c * D * H;
    Scratch<double> z(std::max(H, 1));
    latent(factors, c, along, z.get());
    double sum = 0;
    for (int d = 0; d < D; ++d) {
        double rest = static_cast<double>(x[d]) - static_cast<double>(m[d]);
        for (int h = 0; h < H; ++h)
            rest -= loading[static_cast<std::size_t>(d) * H + h] * z[h];
        sum += rest * rest * p[d];
    }
    for (int h = 0; h < H; ++h)
        sum += z[h] * z[h];
    return sum;
}

// Compute the costs of component c for n rows.
template <class T>
inline void costs_of(const FactorAnalysers<T> &factors, std::size_t c, const T *const *rows, int n, T *out) {
    constexpr double TAKEN = 0x1p-27; // accepted rounding error, relative to 1 + cost
    const int H = factors.H;
    Scratch<double> square(n), along(static_cast<std::size_t>(n) * std::max(H, 1));
    products_of(factors, c, rows, n, square.get(), along.get());
    for (int i = 0; i < n; ++i) {
        const double *own = along + static_cast<std::size_t>(i) * H;
        double cost = square[i];
        for (int h = 0; h < H; ++h)
            cost -= own[h] * own[h];
        if (!(4 * std::numeric_limits<double>::epsilon() * square[i] <= TAKEN * (1 + cost)))
            cost = square_of_residual(factors, c, rows[i], own);
        cost = std::max(cost, 0.0) + factors.offsets[c];
        out[i] = static_cast<T>(std::min(cost, static_cast<double>(std::numeric_limits<T>::max())));
    }
}

// Compute the costs of component c for the rows of entries [begin, end).
template <class T>
inline void factor_costs(const FactorCostsTask<T> &task, int c, std::size_t begin, std::size_t end) {
    const Gathered<T> gathered(task.X, RUN);
    const T *rows[RUN];
    alignas(64) T cost[RUN];
    for (std::size_t first = begin; first < end; first += RUN) {
        const int n = static_cast<int>(std::min<std::size_t>(RUN, end - first));
        gathered.read(
            task.X, [&](int i) { return static_cast<std::size_t>(task.entries[first + i]) / task.width; }, n, rows);
        answer_signals();
        costs_of(task.factors, c, rows, n, cost);
        for (int i = 0; i < n; ++i)
            task.costs[task.entries[first + i]] = cost[i];
    }
}

// Find the H best components of each of the points [begin, end) of `entries`, whose previous best component is c, among
// the point's active set and the neighbors of c.
template <class T>
inline void top_k_factors(const TopKFactorsTask<T> &task, int c, std::size_t begin, std::size_t end) {
    const std::int32_t *list = task.lists + static_cast<std::size_t>(c) * task.G;
    const int G = static_cast<int>(std::find(list, list + task.G, -1) - list), width = task.n_previous;
    const auto candidate = [&](int g) { return g ? list[g - 1] : c; };
    const Gathered<T> gathered(task.X, RUN);
    const T *rows[RUN];
    Scratch<T> costs(static_cast<std::size_t>(G + 1) * RUN);
    Scratch<Candidate<T>> found(G + 1 + width);
    for (std::size_t first = begin; first < end; first += RUN) {
        const int n = static_cast<int>(std::min<std::size_t>(RUN, end - first));
        gathered.read(task.X, [&](int i) { return task.entries[first + i]; }, n, rows);
        for (int g = 0; g <= G; ++g) {
            answer_signals();
            costs_of(task.factors, candidate(g), rows, n, costs + static_cast<std::size_t>(g) * RUN);
        }
        for (int i = 0; i < n; ++i) {
            const std::int64_t row = task.entries[first + i];
            const std::int32_t *previous = task.previous + row * width;
            int count = 0;
            for (int g = 0; g <= G; ++g)
                found[count++] = {costs[static_cast<std::size_t>(g) * RUN + i], candidate(g)};
            for (int h = 0; h < width; ++h)
                if (const std::int32_t p = previous[h]; p >= 0 && p != c && std::find(list, list + G, p) == list + G &&
                                                        std::find(previous, previous + h, p) == previous + h) {
                    costs_of(task.factors, p, rows + i, 1, &found[count].square);
                    found[count++].id = p;
                }
            const int kept = std::min(task.H, count);
            sort_nearest(found.get(), kept, count);
            for (int h = 0; h < task.H; ++h) {
                task.kept[row * task.H + h] = h < kept ? found[h].id : -1;
                task.costs[row * task.H + h] = h < kept ? found[h].square : std::numeric_limits<T>::infinity();
            }
        }
    }
}

// For n rows with weights w, factors z and y = x - m, add B sums of w z_b y and, if `plain`, the sums of w y and w y^2.
template <int B, bool plain, class T>
inline void add_cross(const T *const *rows, const double *weights, const double *wz, int width, int n, const T *m,
                      int D, double *sums, double *squares, double *cross) {
    using V = simd<double>;
    for_each_vector(D, [&](int k, auto wide, auto) {
        typename V::vec sum{}, square{}, product[B ? B : 1] = {};
        const auto mean = wide(m);
        for (int i = 0; i < n; ++i) {
            const auto y = wide(rows[i]) - mean;
            if constexpr (plain) {
                const auto weighted = y * weights[i];
                sum += weighted;
                square += weighted * y;
            }
#pragma GCC unroll 8
            for (int b = 0; b < B; ++b)
                product[b] += y * wz[i * width + b];
        }
        const int some = std::min(V::width, D - k);
        const auto add = [&](double *to, typename V::vec v) {
            for (int j = 0; j < some; ++j)
                to[k + j] += v[j];
        };
        if constexpr (plain) {
            add(sums, sum);
            add(squares, square);
        }
        for (int b = 0; b < B; ++b)
            add(cross + static_cast<std::size_t>(b) * D, product[b]);
    });
}

template <int B, bool plain, class T>
inline void add_cross(int some, const T *const *rows, const double *weights, const double *wz, int width, int n,
                      const T *m, int D, double *sums, double *squares, double *cross) {
    if constexpr (B > 0)
        if (some < B)
            return add_cross<B - 1, plain>(some, rows, weights, wz, width, n, m, D, sums, squares, cross);
    add_cross<B, plain>(rows, weights, wz, width, n, m, D, sums, squares, cross);
}

// Add the moments of entries [begin, end), all of component c: count; first (2, D), the sums of w y and w y^2; and
// second, the sums of w z y^T (H, D), w z (H,) and w z z^T (H, H). w: weights, y = x - m, z = E[z | x] (H factors).
template <class T>
inline void factor_moments(const FactorMomentsTask<T> &task, int c, std::size_t begin, std::size_t end, double *count,
                           double *first, double *second) {
    const FactorAnalysers<T> &factors = task.factors;
    const int D = factors.means.D, H = factors.H;
    const T *m = factors.means[c];
    double *means = second + static_cast<std::size_t>(H) * D, *outer = means + H;
    const std::size_t some = static_cast<std::size_t>(RUN) * std::max(H, 1);
    Scratch<double> along(some), z(some), weighted(some);
    const auto point = [&](std::size_t e) { return static_cast<std::size_t>(task.entries[e]) / task.width; };
    *count += for_each_run<T>(
        [&](std::size_t e) {
            return (task.responsibilities ? task.responsibilities[task.entries[e]] : 1.0) *
                   (task.sample_weight ? task.sample_weight[point(e)] : 1.0);
        },
        [&](std::size_t e) { return task.X[point(e)]; }, begin, end, D, RUN,
        [&](const T *const *rows, const double *weights, int n) {
            answer_signals();
            products_of(factors, c, rows, n, nullptr, along.get());
            for (int i = 0; i < n; ++i) {
                double *own = z + i * H;
                latent(factors, c, along + i * H, own);
                for (int h = 0; h < H; ++h) {
                    const double w = weighted[i * H + h] = weights[i] * own[h];
                    means[h] += w;
                    for (int k = 0; k < H; ++k)
                        outer[h * H + k] += w * own[k];
                }
            }
            int b = std::min(H, MOST_DIRECTIONS);
            add_cross<MOST_DIRECTIONS, true>(b, rows, weights, weighted.get(), H, n, m, D, first, first + D, second);
            for (; b < H; b += std::min(H - b, MOST_DIRECTIONS))
                add_cross<MOST_DIRECTIONS, false>(std::min(H - b, MOST_DIRECTIONS), rows, weights, weighted + b, H, n,
                                                  m, D, nullptr, nullptr, second + static_cast<std::size_t>(b) * D);
        });
}

} // namespace cprime::CPRIME_ISA
