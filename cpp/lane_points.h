// Points in vector lanes, and the costs of components for all of them: each component is read once for many points.
#pragma once
#include <algorithm>
#include <type_traits>

#include "gaussian_cost.h"
#include "kernels.h"
#include "lane_best.h"
#include "law.h"
#include "signals.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

// Constant terms ("starts") A_c (origin - m_c) of some components c for one origin, see gaussian_start.
template <class T> class OwnStarts {
  public:
    OwnStarts(int most, int D) : D_(D), values_(static_cast<std::size_t>(most) * D), far_(most) {}

    // Compute the starts of components id(0) to id(n - 1).
    template <class Id> void compute(const Gaussians<T> &gaussians, int n, Id id, const T *origin) {
        for (int i = 0; i < n; ++i)
            far_[i] = gaussian_start(gaussians, id(i), origin, values_ + static_cast<std::size_t>(i) * D_);
    }

    Start<T> of(int i) const { return Starts<T>{values_.get(), far_.get()}.of(i, D_); }

  private:
    int D_;
    Scratch<T> values_;
    Scratch<bool> far_;
};

// Some points relative to an origin, packed coordinate by coordinate, and the costs of components for them. The rows
// that were read must outlive the use of this object, because components whose start is far are compared with the rows
// themselves.
template <class T> class LanePoints {
  public:
    static constexpr int L = TILE_LANES<T>;

    explicit LanePoints(int D) : D_(D), packed_(static_cast<std::size_t>(D) * L + PACK_SLACK<T>) {}

    // Read n <= L points; row(i) returns the address of the i-th.
    template <class Row> void read(Row row, int n, const T *origin) {
        pack<L>(row, n, D_, origin, packed_.get());
        n_ = n;
        for (int i = 0; i < n; ++i)
            rows_[i] = row(i);
    }

    // Compute the cost of component c for every lane; `start` is the component's gaussian_start for the points' origin.
    // The value has no meaning in lanes without a point.
    [[gnu::always_inline]] void cost(const Gaussians<T> &gaussians, std::size_t c, Start<T> start, T *out) const {
        if (start.far)
            return measure(gaussians, c, out);
        vec sum[TILE_VECTORS];
        add(gaussians, c, start.values, sum, Never());
        store(gaussians, c, sum, out);
    }

    // Compute the cost of component c for every lane (point), or return false if it is above the limit `bar` of every
    // lane. In that case the sum may end early, because partial sums only grow, rounded or not.
    bool cost_within(const Gaussians<T> &gaussians, std::size_t c, Start<T> start, const T *bar, T *out) const {
        if (start.far) {
            measure(gaussians, c, out);
            return true;
        }
        return gaussians.dof ? cost_within<true>(gaussians, c, start.values, bar, out)
                             : cost_within<false>(gaussians, c, start.values, bar, out);
    }

  private:
    using V = simd<T>;
    using vec = typename V::vec;
    static constexpr int W = V::width;
    struct Never {
        bool operator()(const vec (&)[TILE_VECTORS]) const { return false; }
    };
    // Compute the cost of component c for every lane, from x - m.
    [[gnu::noinline]] void measure(const Gaussians<T> &gaussians, std::size_t c, T *out) const {
        for (int i = 0; i < n_; ++i)
            out[i] = gaussian_cost(gaussians, c, rows_[i]);
        std::fill(out + n_, out + L, gaussians.offsets[c]);
    }

    // Number of coordinates that are summed between two comparisons of partial sums with the limits `bar`. A comparison
    // takes about as long as two coordinates.
    static constexpr int STRETCH = 32;

    template <bool tails>
    bool cost_within(const Gaussians<T> &gaussians, std::size_t c, const T *start, const T *bar, T *out) const {
        const T offset = gaussians.offsets[c];
        const auto above = [&](const vec(&sum)[TILE_VECTORS]) {
            for (int v = 0; v < TILE_VECTORS; ++v)
                if (V::mask_not_above(tails ? below_cost(gaussians, c, sum[v]) : sum[v] + offset, V::load(bar + v * W)))
                    return false;
            return true;
        };
        vec sum[TILE_VECTORS];
        if (!add(gaussians, c, start, sum, above) || above(sum))
            return false;
        store(gaussians, c, sum, out);
        return true;
    }

    static void store(const Gaussians<T> &gaussians, std::size_t c, const vec (&sum)[TILE_VECTORS], T *out) {
        for (int v = 0; v < TILE_VECTORS; ++v)
            V::store(out + v * W, cost_at(gaussians, c, sum[v]));
    }

    // Compute squared distances; return false as soon as above(partial sums) is true.
    template <class Above>
    [[gnu::always_inline]] bool add(const Gaussians<T> &gaussians, std::size_t c, const T *start,
                                    vec (&out)[TILE_VECTORS], Above above) const {
        const T *A = gaussians.factor(c);
        return gaussians.full ? triangle(A, start, out, above) : diagonal(A, start, out, above);
    }

    template <class Above>
    [[gnu::always_inline]] bool diagonal(const T *A, const T *start, vec (&out)[TILE_VECTORS], Above above) const {
        vec sum[4][TILE_VECTORS] = {};
        const auto add = [&](int k, vec(&to)[TILE_VECTORS]) {
            for (int v = 0; v < TILE_VECTORS; ++v) {
                const vec t = V::load(packed_ + k * L + v * W) * A[k] + start[k];
                to[v] += t * t;
            }
        };
        const auto join = [&] {
            for (int v = 0; v < TILE_VECTORS; ++v)
                out[v] = (sum[0][v] + sum[1][v]) + (sum[2][v] + sum[3][v]);
        };
        int k = 0;
        const bool whole = std::is_same_v<Above, Never> || D_ < 2 * STRETCH;
        for (int end = whole ? D_ : STRETCH;; end += STRETCH) {
            for (; k + 4 <= std::min(end, D_); k += 4) {
                add(k, sum[0]);
                add(k + 1, sum[1]);
                add(k + 2, sum[2]);
                add(k + 3, sum[3]);
            }
            if (end >= D_)
                break;
            join();
            if (above(out))
                return false;
        }
        for (; k < D_; ++k)
            add(k, sum[0]);
        join();
        return true;
    }

    template <class Above> bool triangle(const T *A, const T *start, vec (&out)[TILE_VECTORS], Above above) const {
        if (D_ >= 64)
            answer_signals();
        for (auto &sum : out)
            sum = vec{};
        int j = 0;
        for (; j + 4 <= D_; j += 4) {
            rows_of_triangle<4>(A + static_cast<std::size_t>(j) * D_, start + j, j + 4, out);
            if (j >= 8 && above(out))
                return false;
        }
        for (; j < D_; ++j)
            rows_of_triangle<1>(A + static_cast<std::size_t>(j) * D_, start + j, j + 1, out);
        return true;
    }

    // Add the squares of n rows of the factor, which has zeros above its diagonal.
    template <int n>
    void rows_of_triangle(const T *A, const T *start, int n_columns, vec (&out)[TILE_VECTORS]) const {
        vec y[n][TILE_VECTORS];
#pragma GCC unroll 4
        for (int r = 0; r < n; ++r)
            for (int v = 0; v < TILE_VECTORS; ++v)
                y[r][v] = V::fill(start[r]);
        for (int k = 0; k < n_columns; ++k)
#pragma GCC unroll 4
            for (int r = 0; r < n; ++r)
#pragma GCC unroll 2
                for (int v = 0; v < TILE_VECTORS; ++v)
                    y[r][v] += V::load(packed_ + k * L + v * W) * A[r * D_ + k];
#pragma GCC unroll 4
        for (int r = 0; r < n; ++r)
            for (int v = 0; v < TILE_VECTORS; ++v)
                out[v] += y[r][v] * y[r][v];
    }

    int D_, n_ = 0;
    Scratch<T> packed_;
    const T *rows_[L];
};

} // namespace cprime::CPRIME_ISA
