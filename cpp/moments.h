// Exact E-steps of general Gaussian mixtures over a block of rows, and the sums of their M-steps, about the means.
#pragma once
#include <bit>
#include <cmath>

#include "gaussians.h"
#include "weighted_sums.h"

namespace cprime::CPRIME_ISA {

// A responsibility times max(1, d2 / D) below this value adds nothing to sums in double precision, where d2 is the
// squared distance in units of the component's covariance: the squares of a far row are large.
constexpr double NEGLIGIBLE = 1e-18;

// A responsibility below this value is negligible for t distributions, whose tails are heavy: in single precision, the
// error of a responsibility is larger.
template <class T> constexpr T NEGLIGIBLE_TAIL = sizeof(T) == 4 ? T(1e-12) : T(NEGLIGIBLE);

// For t distributions and some lanes (points), replace e = exp(-cost / 2) in `columns` by e u times the lane's scale,
// and add e and e log u, times this scale, to tails (2, C). u = (nu + D) / (nu + d2) = (1 + D / nu) / (1 + d2 / nu)
// follows from the costs `own` (C, lanes). Negligible values become 0.
template <class T>
inline void pull_columns(const Gaussians<T> &gaussians, const T *own, const T *scale, T *columns, std::size_t stride,
                         double *tails) {
    using V = simd<T>;
    using W = simd<double>;
    constexpr int L = TILE_LANES<T>;
    const std::size_t C = gaussians.means.n;
    const int D = gaussians.means.D;
    for (std::size_t c = 0; c < C; ++c) {
        const T inverse = 1 / (gaussians.dof[c] + D), ratio = T(D) / gaussians.dof[c], offset = gaussians.offsets[c];
        const T most = 1 + ratio, log_most = std::log1p(ratio);
        typename W::vec shares{}, logs{};
        for (int v = 0; v < L; v += V::width) {
            T *place = columns + c * stride + v;
            const auto e = V::load(place);
            const auto counts = e > V::fill(NEGLIGIBLE_TAIL<T>);
            if (!V::any(counts)) {
                V::store(place, typename V::vec{});
                continue;
            }
            const auto q = counts ? e * V::load(scale + v) : typename V::vec{};
            const auto log = V::max((V::load(own + c * L + v) - offset) * inverse, typename V::vec{});
            V::store(place, q * V::exp(-log) * most);
            alignas(64) T share[V::width], part[V::width];
            V::store(share, q);
            V::store(part, q * (log_most - log));
            for (int i = 0; i < V::width; i += W::width) {
                shares += load_wide(share + i);
                logs += load_wide(part + i);
            }
        }
        tails[c] += W::sum(shares);
        tails[C + c] += W::sum(logs);
    }
}

template <class T> inline double largest_offset(const Gaussians<T> &gaussians) {
    double largest = 0;
    for (std::size_t c = 0; c < gaussians.means.n; ++c)
        largest = std::max(largest, std::abs(double(gaussians.offsets[c])));
    return largest;
}

// Compute the E-step of rows [begin, end) of the block, where `begin` is a multiple of TILE_LANES. Writes
// responsibilities times weights, 0 where negligible, to the columns of `table`, and for each row the component of
// least cost, log sum_c exp(-cost_c / 2), and the mean cost.
template <class T> inline void respond(const RespondTask<T> &task, std::size_t begin, std::size_t end) {
    using V = simd<T>;
    constexpr int L = TILE_LANES<T>;
    const int D = task.X.D;
    const std::size_t C = task.gaussians.means.n;
    LanePoints<T> points(D);
    Scratch<T> own(task.tails ? C * L : 0); // costs, needed for u
    double *tails = task.tails ? task.tails + begin / task.step * 2 * C : nullptr;
    const double offset = largest_offset(task.gaussians);
    const Wide<T> wide(task.X, L);
    for (std::size_t first = begin; first < end; first += L) {
        const int n = static_cast<int>(std::min<std::size_t>(L, end - first));
        const Rows<T> x = rows_of(task.X, first, first + n, wide);
        points.read([&](int i) { return x[i]; }, n, task.origin);
        T *columns = task.table + first, *costs = tails ? own.get() : columns;
        const std::size_t stride = tails ? L : task.n_padded;
        alignas(64) T least[L];
        alignas(64) typename integer_of<T>::type label[L] = {};
        for (std::size_t c = 0; c < C; ++c)
            points.cost(task.gaussians, c, task.starts.of(c, D), costs + c * stride);
        std::copy_n(costs, L, least);
        for (std::size_t c = 1; c < C; ++c)
            for (int i = 0; i < L; ++i) {
                const T cost = costs[c * stride + i];
                label[i] = cost < least[i] ? static_cast<typename integer_of<T>::type>(c) : label[i];
                least[i] = cost < least[i] ? cost : least[i];
            }
        alignas(64) double total[L] = {}, excess[L] = {};
        for (std::size_t c = 0; c < C; ++c) {
            T *column = columns + c * task.n_padded;
            alignas(64) T over[L];
            for (int v = 0; v < L; v += V::width) {
                const auto difference = V::load(costs + c * stride + v) - V::load(least + v);
                const auto e = V::exp(difference * T(-0.5));
                V::store(column + v, e);
                // If the difference is infinite, e is 0; without the limit, the product would be NaN.
                V::store(over + v, e * V::min(difference, V::fill(std::numeric_limits<T>::max())));
            }
            for (int i = 0; i < L; ++i) {
                total[i] += column[i];
                excess[i] += over[i];
            }
        }
        alignas(64) T scale[L] = {}, low[L] = {}; // of exp(-(cost - least) / 2)
        for (int i = 0; i < n; ++i) {
            task.labels[first + i] = static_cast<std::int32_t>(label[i]);
            task.log_sum[first + i] = std::log(total[i]) - 0.5 * static_cast<double>(least[i]);
            task.mean[first + i] = least[i] + excess[i] / total[i];
            scale[i] = static_cast<T>((task.sample_weight ? task.sample_weight[first + i] : 1.0) / total[i]);
            low[i] = static_cast<T>(NEGLIGIBLE * total[i] / std::max(1.0, (std::abs(double(least[i])) + offset) / D));
        }
        if (tails)
            pull_columns<T>(task.gaussians, costs, scale, columns, task.n_padded, tails);
        else
            for (std::size_t c = 0; c < C; ++c)
                for (int v = 0; v < L; v += V::width) {
                    T *place = columns + c * task.n_padded + v;
                    const auto e = V::load(place);
                    V::store(place, e < V::load(low + v) ? typename V::vec{} : e * V::load(scale + v));
                }
    }
}

// Some rows of the matrix of second moments of a component's points about its mean: those of one `Part`. Differences
// are multiplied by weighted differences in double precision, because a covariance matrix may be nearly singular.
template <class T> class Products {
  public:
    Products(const T *m, int D, Part part)
        : D_(D), first_tile_(part.i * tiles(D) / part.n), last_tile_((part.i + 1) * tiles(D) / part.n),
          top_(first_tile_ * TILE_ROWS), bottom_(std::min(D, last_tile_ * TILE_ROWS)), panels_((bottom_ + L - 1) / L),
          step_(((std::max(panels_ * L, last_tile_ * TILE_ROWS) + W - 1) / W | 1) * W), mean_(step_), sum_(step_),
          plain_(RUN * step_), weighted_(RUN * step_) {
        std::fill_n(mean_.get(), step_, 0.0);
        std::copy_n(m, bottom_, mean_.get());
        std::fill_n(sum_.get(), step_, 0.0);
    }

    void add(const T *const *rows, const double *weights, int n, double *second) {
        for (int i = 0; i < n; ++i)
            read(rows[i], weights[i], plain_ + i * step_, weighted_ + i * step_);
        alignas(64) double product[TILE_ROWS][L];
        for (int r = first_tile_; r < last_tile_; ++r)
            for (int p = 0; p < panels_ && p * L < (r + 1) * TILE_ROWS; ++p) {
                tile<double, Form::product>(plain_ + r * TILE_ROWS, weighted_ + p * L, n, nullptr, product, step_,
                                            step_);
                for (int i = 0; i < TILE_ROWS && r * TILE_ROWS + i < D_; ++i) {
                    const int j = r * TILE_ROWS + i;
                    double *to = second + static_cast<std::size_t>(j) * D_ + p * L;
                    const int some = std::min(L, j + 1 - p * L);
                    int k = 0;
                    for (; k + W <= some; k += W)
                        V::store(to + k, V::load(to + k) + V::load(product[i] + k));
                    for (; k < some; ++k)
                        to[k] += product[i][k];
                }
            }
    }

    void add_sums(double *first) const {
        for (int k = top_; k < bottom_; ++k)
            first[k] += sum_[k];
    }

  private:
    using V = simd<double>;
    static constexpr int L = TILE_LANES<double>, W = V::width;
    static int tiles(int D) { return (D + TILE_ROWS - 1) / TILE_ROWS; }

    void read(const T *x, double weight, double *plain, double *weighted) {
        const auto w = V::fill(weight);
        int k = 0;
        for (; k < bottom_; k += W) {
            alignas(64) T part[simd<T>::width];
            if (D_ - k < W)
                simd<T>::store(part, simd<T>::load_first(x + k, D_ - k));
            const auto d = load_wide(D_ - k < W ? part : x + k) - V::load(mean_ + k);
            const auto wd = w * d;
            V::store(plain + k, d);
            V::store(weighted + k, wd);
            V::store(sum_ + k, V::load(sum_ + k) + wd);
        }
        for (; k < static_cast<int>(step_); k += W) {
            V::store(plain + k, typename V::vec{});
            V::store(weighted + k, typename V::vec{});
        }
    }

    int D_, first_tile_, last_tile_, top_, bottom_, panels_; // the part's tiles, coordinates and column panels
    std::size_t step_; // between differences: an odd number of vectors, to avoid cache conflicts
    Scratch<double> mean_, sum_, plain_, weighted_;
};

// Add sums over points of a component, with weights w = weight(e) and points x = row(e) for e in [begin, end):
//     count += w    first += w (x - m)    second += w (x - m)^2, (D,), or w (x - m)(x - m)^T, (D, D), lower triangle
// If second is a matrix, a part adds some of its rows and the same coordinates of `first`; the first part adds the
// count.
template <class T, class Weight, class Row>
inline void add_moments(Weight weight, Row row, std::size_t begin, std::size_t end, const T *m, int D, bool full,
                        Part part, double *count, double *first, double *second) {
    if (!full) {
        constexpr std::size_t NEAR = 12 << 10; // bytes of a run
        const int length = std::clamp<int>(static_cast<int>(NEAR / (D * sizeof(T))), 4, RUN);
        *count += for_each_run<T>(weight, row, begin, end, D, length,
                                  [&](const T *const *rows, const double *weights, int n) {
                                      add_run<true>(Run<T>{rows, weights, n, D, m}, first, second);
                                  });
        return;
    }
    Products<T> products(m, D, part);
    const double total =
        for_each_run<T>(weight, row, begin, end, D, RUN, [&](const T *const *rows, const double *weights, int n) {
            answer_signals();
            products.add(rows, weights, n, second);
        });
    products.add_sums(first);
    if (part.i == 0) // once, because the other parts run at the same time
        *count += total;
}

// Add the moments of entries [begin, end), all of component c.
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

// List the rows of [begin, end) of the block whose responsibility for component c is not 0; return their number.
template <class T>
inline std::size_t sharing(const RespondTask<T> &task, int c, std::size_t begin, std::size_t end, std::uint32_t *rows) {
    using V = simd<double>;
    const T *column = task.table + static_cast<std::size_t>(c) * task.n_padded;
    const auto some = V::fill(std::numeric_limits<double>::denorm_min());
    std::size_t n = 0, i = begin;
    for (; i + V::width <= end; i += V::width) { // branches per row were mispredicted
        std::uint32_t bits = V::mask_not_above(some, load_wide(column + i));
        if (bits == (1u << V::width) - 1) {
            for (int k = 0; k < V::width; ++k)
                rows[n++] = static_cast<std::uint32_t>(i) + k;
            continue;
        }
        for (; bits; bits &= bits - 1)
            rows[n++] = static_cast<std::uint32_t>(i) + static_cast<std::uint32_t>(std::countr_zero(bits));
    }
    for (; i < end; ++i)
        if (column[i] != 0)
            rows[n++] = static_cast<std::uint32_t>(i);
    return n;
}

// Add the moments of rows [begin, end) of the block, weighted by the column of component c.
template <class T>
inline void column_moments(const RespondTask<T> &task, int c, std::size_t begin, std::size_t end, Part part,
                           double *count, double *first, double *second) {
    const T *column = task.table + static_cast<std::size_t>(c) * task.n_padded;
    const Scratch<std::uint32_t> rows(end - begin);
    const std::size_t n = sharing(task, c, begin, end, rows.get());
    add_moments<T>([&](std::size_t i) { return static_cast<double>(column[rows[i]]); },
                   [&](std::size_t i) { return task.X[rows[i]]; }, 0, n, task.gaussians.means[c], task.X.D,
                   task.gaussians.full, part, count, first, second);
}

} // namespace cprime::CPRIME_ISA
