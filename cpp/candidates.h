// Common code of the cluster-major searches, which process all points of one component together. The points, and the
// component's neighbors, which are the candidates of these points, are packed relative to the component's own center.
// Then the scores of all pairs are computed by matrix products. A score determines the order of a point's candidates,
// like the distance. If the processor has fast products of coarse (low-precision) numbers, these only exclude
// candidates: bounds of the errors decide to which candidates distances have to be computed.
#pragma once
#include <algorithm>
#include <cmath>

#include "coarse.h"
#include "kernels.h"
#include "points.h"
#include "screen.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

template <class T> inline void column_squares(const T *packed, int D, T *square) {
    using V = simd<T>;
    constexpr int blocks = (TILE_ROWS + V::width - 1) / V::width; // the last block may read and write beyond TILE_ROWS
    typename V::vec sum[blocks][4] = {};
    for (int k = 0; k < D; ++k)
        for (int b = 0; b < blocks; ++b) {
            const auto v = V::load(packed + k * TILE_ROWS + b * V::width);
            sum[b][k % 4] += v * v;
        }
    for (int b = 0; b < blocks; ++b)
        V::store(square + b * V::width, (sum[b][0] + sum[b][1]) + (sum[b][2] + sum[b][3]));
}

// Some points x of a component, packed for matrix products; |x|^2 is an additional dimension. An entry is the row of
// a point in the list `entries` of the task, in which points are grouped by component.
template <class T> struct ProductPoints {
    explicit ProductPoints(const Points<T> &X)
        : packed(static_cast<std::size_t>(X.D + 1) * TILE_ROWS + PACK_SLACK<T>), gathered_(X, TILE_ROWS) {}

    // Read entries [first, end), or as many as fit. The entries after these, perhaps of another component, are
    // prefetched.
    template <class Task> void read(const Task &task, const T *origin, std::size_t first, std::size_t end) {
        const int D = task.X.D;
        n = static_cast<int>(std::min<std::size_t>(TILE_ROWS, end - first));
        for (std::size_t e = first + n; e < std::min(task.X.n, first + n + TILE_ROWS); ++e)
            fetch<2>(task.X, task.entries[e]);
        gathered_.read(task.X, [&](int i) { return task.entries[first + i]; }, n, rows);
        pack<TILE_ROWS>([&](int i) { return rows[i]; }, n, D, origin, packed.get());
        column_squares(packed.get(), D, square);
        std::copy_n(square, TILE_ROWS, packed + D * TILE_ROWS);
    }

    int n = 0;
    const T *rows[TILE_ROWS]; // addresses of the points that are packed
    Scratch<T> packed;
    alignas(64) T square[TILE_ROWS + simd<T>::width];

  private:
    Gathered<T> gathered_;
};

// Candidates m, packed for matrix products with points x. The score is outside (|m|^2 - 2 x m + |x|^2), the squared
// distance times a factor `outside` of the candidate.
template <class T> class ProductCandidates {
  public:
    ProductCandidates(const Rows<T> &centers, const std::int32_t *list, int n_candidates, const T *origin,
                      const T *outside)
        : n_panels((n_candidates + L - 1) / L), D_(centers.D), columns_(panel_size() * n_panels),
          start_(static_cast<std::size_t>(L) * n_panels) {
        for (int p = 0; p < n_panels; ++p) {
            T *column = columns_ + panel_size() * p, *start = start_ + p * L;
            const int n = std::min(L, n_candidates - p * L);
            const T *rows[L];
            alignas(64) T factor[L];
            for (int i = 0; i < L; ++i) {
                rows[i] = i < n ? centers[list[p * L + i]] : nullptr;
                factor[i] = i >= n ? T(0) : outside ? outside[list[p * L + i]] : T(1);
            }
            for (int v = 0; v < L; v += V::width) {
                typename V::vec square{};
                const auto f = V::load(factor + v);
                each_column(rows + v, D_, origin, [&](int k, typename V::vec m) {
                    square += m * m;
                    V::store(column + k * L + v, m * (f * T(-2)));
                });
                V::store(column + D_ * L + v, f);
                V::store(start + v, f * square);
                for (int i = 0; i < V::width && v + i < n; ++i)
                    longest = std::max(longest, square[i]);
            }
            for (int i = n; i < L; ++i)
                start[i] = std::numeric_limits<T>::infinity();
        }
    }

    void score(const ProductPoints<T> &points, int panel, T (*out)[TILE_LANES<T>]) const {
        tile<T, Form::product>(points.packed, columns_ + panel_size() * panel, D_ + 1, start_ + panel * L, out);
    }

    int n_panels;
    T longest = 0; // the greatest |m|^2

    // Return whether all scores of a point with this |x|^2 are finite.
    bool fit(T square) const {
        constexpr T most = std::numeric_limits<T>::max() / 64; // leaves room for factors and sums
        return square < most && longest < most;
    }

  private:
    using V = simd<T>;
    static constexpr int L = TILE_LANES<T>;
    std::size_t panel_size() const { return static_cast<std::size_t>(D_ + 1) * L; }

    int D_;
    Scratch<T> columns_, start_;
};

#if CPRIME_COARSE

constexpr int COARSE_POINTS = 2 * COARSE_ROWS; // points that are screened at a time

// Some points of a component, packed as the right factor of a product of coarse numbers.
struct CoarsePoints {
    explicit CoarsePoints(const Points<float> &X)
        : columns(static_cast<std::size_t>(COARSE_POINTS) * coarse_depth(X.D)), gathered_(X, COARSE_POINTS) {}

    // Read entries [first, end), or as many as fit. The entries after these, perhaps of another component, are
    // prefetched.
    template <class Task> void read(const Task &task, const float *origin, std::size_t first, std::size_t end) {
        const int depth = coarse_depth(task.X.D);
        n = static_cast<int>(std::min<std::size_t>(COARSE_POINTS, end - first));
        const auto next = [&](int i) {
            const std::size_t e = first + n + i;
            return e < task.X.n ? stored_row(task.X, task.entries[e]) : Ahead{};
        };
        for (int j = 0; j < n; j += COARSE_ROWS) {
            coarse *tiles = columns + static_cast<std::size_t>(j) * depth;
            const int some = std::min(COARSE_ROWS, n - j);
            gathered_.read(task.X, [&](int i) { return task.entries[first + j + i]; }, some, row + j, j);
            round_rows([&](int i) { return row[j + i]; }, some, [&](int i) { return next(j + i); }, task.X.D, origin, 1,
                       tiles, rows[j / COARSE_ROWS]);
            make_columns(tiles, task.X.D);
        }
        for (int i = (n + COARSE_ROWS - 1) / COARSE_ROWS * COARSE_ROWS; i < COARSE_POINTS; ++i)
            fetch(next(i));
    }

    float square(int i) const { return rows[i / COARSE_ROWS].square[i % COARSE_ROWS]; }

    int n = 0;
    const float *row[COARSE_POINTS]; // addresses of the points that are rounded
    Scratch<coarse> columns;
    CoarseRows rows[COARSE_POINTS / COARSE_ROWS];

  private:
    Gathered<float> gathered_;
};

// Candidates in coarse numbers. Scores are outside (|m|^2 - 2 x m + |x|^2), as in ProductCandidates, with |error| <=
// outside (e |m| + g (|x|^2 + |m|^2)): e bounds the error of rounding to coarse numbers, g that of the arithmetic.
class CoarseCandidates {
  public:
    CoarseCandidates(const Rows<float> &centers, const std::int32_t *list, int n_candidates, const float *origin,
                     const float *outside)
        : n_(n_candidates), D_(centers.D),
          n_padded_((n_candidates + COARSE_POINTS - 1) / COARSE_POINTS * COARSE_POINTS),
          depth_(coarse_depth(centers.D)), g_(score_error<float>(centers.D)), lost_below_(underflow<float>(centers.D)),
          left_(static_cast<std::size_t>(n_padded_) * depth_), rows_(n_padded_ / COARSE_ROWS), terms_(n_padded_),
          low_(static_cast<std::size_t>(n_padded_) * COARSE_POINTS) {
        for (int p = 0; p < n_padded_; p += COARSE_ROWS) {
            const auto row = [&](int i) { return centers[list[p + i]]; };
            const auto next = [&](int i) {
                return p + COARSE_ROWS + i < n_ ? stored_row(Points<float>(centers), list[p + COARSE_ROWS + i])
                                                : Ahead{};
            };
            CoarseRows &rows = rows_[p / COARSE_ROWS];
            round_rows(row, std::min(COARSE_ROWS, n_ - p), next, D_, origin, 1,
                       left_ + static_cast<std::size_t>(p) * depth_, rows);
            for (int i = 0; i < COARSE_ROWS && p + i < n_; ++i) {
                const float factor = outside ? outside[list[p + i]] : 1, square = rows.square[i],
                            norm = std::sqrt(square + lost_below_);
                terms_[p + i] = {factor, -2 * factor * rows.scale[i], factor * square, factor * norm};
                longest_ = std::max(longest_, norm);
                if (square > 0)
                    worst_ = std::max(worst_, rows.lost[i] / square);
            }
        }
        worst_ = std::sqrt(worst_);
    }

    // Compute lower bounds of all scores. If `narrow`, also lower bar[i], the limit of the scores of point i, to the
    // least of their upper bounds.
    void bound(const CoarsePoints &points, float *bar, bool narrow) {
        for (std::size_t p = 0; p < static_cast<std::size_t>(n_padded_); p += 2 * COARSE_ROWS)
            if (points.n > COARSE_ROWS)
                multiply<2, 2>(left_ + p * depth_, rows_ + p / COARSE_ROWS, points.columns, D_,
                               low_ + p * COARSE_POINTS, COARSE_POINTS);
            else
                multiply<2, 1>(left_ + p * depth_, rows_ + p / COARSE_ROWS, points.columns, D_,
                               low_ + p * COARSE_POINTS, COARSE_POINTS);
        for (int j = 0; j < points.n; j += V::width) {
            const CoarseRows &rows = points.rows[j / COARSE_ROWS];
            alignas(64) float e[V::width];
            for (int i = 0; i < V::width; ++i)
                e[i] = 2.05f * (std::sqrt(rows.lost[i]) * (1 + worst_) +
                                (worst_ + g_) * std::sqrt(rows.square[i] + lost_below_)) +
                       2 * g_ * longest_;
            for (int i = points.n; i < j + V::width; ++i)
                bar[i] = -std::numeric_limits<float>::infinity();
            const auto x2 = V::load(rows.square), scale = V::load(rows.scale), error = V::load(e),
                       arithmetic = x2 * (2 * g_);
            auto highest = V::load(bar + j);
            for (int b = 0; b < n_; ++b) {
                const Terms t = terms_[b];
                float *column = low_ + static_cast<std::size_t>(b) * COARSE_POINTS + j;
                const auto width = error * t.width + arithmetic * t.factor;
                const auto score = V::load(column) * scale * t.slope + (x2 * t.factor + t.start);
                highest = V::min(highest, score + width);
                V::store(column, score - width);
            }
            if (narrow)
                V::store(bar + j, highest);
        }
    }

    // Call near(point, candidate, lower bound) for all scores whose lower bound is not above the limit bar[point].
    template <class Near> void for_each_below(const CoarsePoints &points, const float *bar, Near near) const {
        for (int j = 0; j < points.n; j += V::width) {
            const auto limit = V::load(bar + j);
            for (int b = 0; b < n_; ++b) {
                const float *low = low_ + static_cast<std::size_t>(b) * COARSE_POINTS;
                for (auto mask = V::mask_not_above(V::load(low + j), limit) & first_lanes(points.n - j); mask;
                     mask &= mask - 1) {
                    const int i = j + __builtin_ctz(mask);
                    near(i, b, low[i]);
                }
            }
        }
    }

  private:
    using V = simd<float>;
    struct alignas(16) Terms { // score = factor |x|^2 + slope x m + start
        float factor, slope, start, width;
    };
    int n_, D_, n_padded_, depth_;
    float g_, lost_below_, worst_ = 0, longest_ = 0; // worst_: greatest relative rounding error, longest_: greatest |m|
    Scratch<coarse> left_;
    Scratch<CoarseRows> rows_;
    Scratch<Terms> terms_;
    Scratch<float> low_;
};

#endif

} // namespace cprime::CPRIME_ISA
