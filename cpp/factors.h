// Factor analyzers (low-rank covariance matrices): costs offset + sum_d y_d^2 / psi_d - |U y|^2 with y = x - m, and the
// moments of M-steps. U y is computed from the loadings L, as R^T (L^T y / psi). All computations are in double
// precision, because the noise can be far smaller than the variance that the factors explain. A few rows are processed
// together, so that a component's parameters are read once for all of them.
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

// One number for each row of a block.
typedef double OfRows __attribute__((vector_size(FACTOR_ROWS * sizeof(double)), aligned(sizeof(double)), may_alias));

inline OfRows *of_rows(double *p) { return reinterpret_cast<OfRows *>(p); }

// Parameters of one component in double precision, with rows padded by zeros to whole vectors, and the products of
// points with them.
template <class T> class Projection {
  public:
    Projection(const FactorAnalysers<T> &factors, std::size_t c)
        : D_(factors.means.D), H_(factors.H), step_((static_cast<std::size_t>(D_) + W - 1) / W * W), mean_(step_),
          directions_(H_ * step_), differences_(H_ > MOST_DIRECTIONS ? R * step_ : 0), products_((1 + H_) * R + W),
          turned_(std::max(H_, 1) * R), precisions_(factors.precisions ? factors.precisions + c * D_ : nullptr),
          root_(factors.precisions ? factors.roots + c * H_ * H_ : nullptr) {
        const T *m = factors.means[c], *loadings = factors.loading(c);
        for_each_vector(D_, [&](int k, auto wide, auto plain) {
            V::store(mean_ + k, wide(m));
            const auto precision = precisions_ ? plain(precisions_) : V::fill(1);
            for (int h = 0; h < H_; ++h)
                V::store(directions_ + h * step_ + k, wide(loadings + static_cast<std::size_t>(h) * D_) * precision);
        });
    }

    // For every block of the n rows, y = x - m, call see(first row, square, own) with square = sum_d y_d^2 / psi_d and
    // own (H,) = U y. If there are no precisions, U are the loadings, and squares are 0. Rows after the last one of the
    // last block are copies of it.
    template <class See> void for_each_block(const T *const *rows, int n, See see) {
        for (int first = 0; first < n; first += R) {
            const T *x[R];
            for (int r = 0; r < R; ++r)
                x[r] = rows[std::min(first + r, n - 1)];
            add_products<MOST_DIRECTIONS, true>(std::min(H_, MOST_DIRECTIONS), 0, x);
            for (int b = MOST_DIRECTIONS; b < H_; b += MOST_DIRECTIONS)
                add_products<MOST_DIRECTIONS, false>(std::min(H_ - b, MOST_DIRECTIONS), b, x);
            const OfRows *product = of_rows(products_ + R);
            see(first, *of_rows(products_.get()), root_ ? turned(product) : product);
        }
    }

  private:
    using V = simd<double>;
    static constexpr int R = FACTOR_ROWS, W = V::width;

    // Write the products of y with B directions, from number b on, to products_ + (1 + b) R, and, if `first`, the
    // squares before them. Up to a vector of numbers after the products is overwritten.
    template <int B, bool first> void add_products(int n, int b, const T *const (&x)[R]) {
        if constexpr (B > 0)
            if (n < B)
                return add_products<B - 1, first>(n, b, x);
        constexpr int N = (B + first) * R;
        const double *directions = directions_ + b * step_;
        typename V::vec all[(N + W - 1) / W * W] = {}; // the squares, then the products of each direction
        for_each_vector(D_, [&](int k, auto wide, auto plain) {
            typename V::vec y[R];
#pragma GCC unroll 4
            for (int r = 0; r < R; ++r) {
                if constexpr (first) {
                    y[r] = wide(x[r]) - V::load(mean_ + k);
                    if (H_ > MOST_DIRECTIONS)
                        V::store(differences_ + r * step_ + k, y[r]);
                } else {
                    y[r] = V::load(differences_ + r * step_ + k);
                }
            }
            if constexpr (first)
                if (precisions_) {
                    const auto precision = plain(precisions_);
#pragma GCC unroll 4
                    for (int r = 0; r < R; ++r)
                        all[r] += y[r] * y[r] * precision;
                }
#pragma GCC unroll 8
            for (int i = 0; i < B; ++i) {
                const auto direction = V::load(directions + i * step_ + k);
#pragma GCC unroll 4
                for (int r = 0; r < R; ++r)
                    all[(i + first) * R + r] += y[r] * direction;
            }
        });
        double *out = products_ + (first ? 0 : (1 + b) * R);
#pragma GCC unroll 8
        for (int i = 0; i < N; i += W) {
            typename V::vec some[W];
            std::copy_n(all + i, W, some);
            V::store(out + i, V::sums(some));
        }
    }

    // Multiply H numbers for each row by the transpose of the root R.
    const OfRows *turned(const OfRows *product) {
        OfRows *own = of_rows(turned_.get());
        for (int h = 0; h < H_; ++h) {
            OfRows sum{};
            for (int k = 0; k <= h; ++k)
                sum += root_[k * H_ + h] * product[k];
            own[h] = sum;
        }
        return own;
    }

    int D_, H_;
    std::size_t step_;
    Scratch<double> mean_, directions_; // directions (H, D): loadings times precisions
    Scratch<double> differences_;       // y of a block, if they are needed more than once
    Scratch<double> products_, turned_;
    const double *precisions_, *root_;
};

// Return the squared Mahalanobis distance of one row, y = x - m, as |psi^(-1/2) (y - L z)|^2 + |z|^2, in which nothing
// cancels. L: loadings; z = E[z | x] (H,).
template <class T>
inline double square_of_residual(const FactorAnalysers<T> &factors, std::size_t c, const T *x, const double *z) {
    const int D = factors.means.D, H = factors.H;
    const T *m = factors.means[c], *loadings = factors.loading(c);
    const double *p = factors.precisions + c * D;
    Scratch<double> rest(D);
    for (int d = 0; d < D; ++d)
        rest[d] = static_cast<double>(x[d]) - static_cast<double>(m[d]);
    double sum = 0;
    for (int h = 0; h < H; ++h) {
        sum += z[h] * z[h];
        for (int d = 0; d < D; ++d)
            rest[d] -= static_cast<double>(loadings[static_cast<std::size_t>(h) * D + d]) * z[h];
    }
    for (int d = 0; d < D; ++d)
        sum += rest[d] * rest[d] * p[d];
    return sum;
}

// Compute the posterior mean of the factors, z = E[z | x] = R U y (H,), of row r of a block from own = U y, with the
// root R of component c. If there are no precisions, z is `own`.
template <class T>
inline void latent(const FactorAnalysers<T> &factors, std::size_t c, const OfRows *own, int r, double *z) {
    const int H = factors.H;
    const double *root = factors.precisions ? factors.roots + c * H * H : nullptr;
    for (int h = 0; h < H; ++h) {
        z[h] = root ? 0.0 : own[h][r];
        for (int k = h; root && k < H; ++k)
            z[h] += root[h * H + k] * own[k][r];
    }
}

// Compute the costs of component c for n rows.
template <class T>
inline void costs_of(const FactorAnalysers<T> &factors, std::size_t c, const T *const *rows, int n, T *out) {
    constexpr double TAKEN = 0x1p-27; // accepted rounding error, relative to 1 + cost
    constexpr double most = std::numeric_limits<T>::max();
    const int H = factors.H;
    Projection<T> projection(factors, c);
    projection.for_each_block(rows, n, [&](int first, const OfRows &square, const OfRows *own) {
        OfRows costs = square;
        for (int h = 0; h < H; ++h)
            costs -= own[h] * own[h];
        for (int r = 0; r < std::min(FACTOR_ROWS, n - first); ++r) {
            double cost = costs[r];
            if (!(4 * std::numeric_limits<double>::epsilon() * square[r] <= TAKEN * (1 + cost))) {
                Scratch<double> z(std::max(H, 1));
                latent(factors, c, own, r, z.get());
                cost = square_of_residual(factors, c, rows[first + r], z.get());
            }
            out[first + r] = static_cast<T>(std::min(std::max(cost, 0.0) + factors.offsets[c], most));
        }
    });
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

// Add the moments of entries [begin, end), all of component c: count; first, the sums of w y (D,), w y^2 (D,), w z (H,)
// and w z z^T (H, H); and second, the sum of w z y^T (H, D). w: weights, y = x - m, z = E[z | x] (H factors).
template <class T>
inline void factor_moments(const FactorMomentsTask<T> &task, int c, std::size_t begin, std::size_t end, double *count,
                           double *first, double *second) {
    const FactorAnalysers<T> &factors = task.factors;
    const int D = factors.means.D, H = factors.H;
    const T *m = factors.means[c];
    double *means = first + 2 * static_cast<std::size_t>(D), *outer = means + H;
    const std::size_t some = static_cast<std::size_t>(RUN) * std::max(H, 1);
    Scratch<double> z(some), weighted(some);
    Projection<T> projection(factors, c);
    const auto point = [&](std::size_t e) { return static_cast<std::size_t>(task.entries[e]) / task.width; };
    *count += for_each_run<T>(
        [&](std::size_t e) {
            return (task.responsibilities ? task.responsibilities[task.entries[e]] : 1.0) *
                   (task.sample_weight ? task.sample_weight[point(e)] : 1.0);
        },
        [&](std::size_t e) { return task.X[point(e)]; }, begin, end, D, RUN,
        [&](const T *const *rows, const double *weights, int n) {
            answer_signals();
            projection.for_each_block(rows, n, [&](int begin, const OfRows &, const OfRows *products) {
                for (int r = 0; r < std::min(FACTOR_ROWS, n - begin); ++r) {
                    const int i = begin + r;
                    double *own = z + i * H;
                    latent(factors, c, products, r, own);
                    for (int h = 0; h < H; ++h) {
                        const double w = weighted[i * H + h] = weights[i] * own[h];
                        means[h] += w;
                        for (int k = 0; k < H; ++k)
                            outer[h * H + k] += w * own[k];
                    }
                }
            });
            int b = std::min(H, MOST_DIRECTIONS);
            add_cross<MOST_DIRECTIONS, true>(b, rows, weights, weighted.get(), H, n, m, D, first, first + D, second);
            for (; b < H; b += std::min(H - b, MOST_DIRECTIONS))
                add_cross<MOST_DIRECTIONS, false>(std::min(H - b, MOST_DIRECTIONS), rows, weights, weighted + b, H, n,
                                                  m, D, nullptr, nullptr, second + static_cast<std::size_t>(b) * D);
        });
}

} // namespace cprime::CPRIME_ISA
