// Costs of Gaussian components, (31) of Luecke & Forster: offset_c + |A_c (x - m_c)|^2, A_c a diagonal or a lower
// triangle. Points lie in the lanes of vectors, so that a component is read once for many of them.
#pragma once
#include <algorithm>

#include "kernels.h"
#include "signals.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

template <class T> inline T dot(const T *a, const T *b, int n) {
    using V = simd<T>;
    typename V::vec sum{};
    int k = 0;
    for (; k + V::width <= n; k += V::width)
        sum += V::load(a + k) * V::load(b + k);
    if (k < n)
        sum += V::load_first(a + k, n - k) * V::load_first(b + k, n - k);
    return V::sum(sum);
}

// A_c (origin - m_c) of component c: (D,). What is A_c (x - m_c) less this is A_c (x - origin).
template <class T> inline void gaussian_start(const Gaussians<T> &gaussians, std::size_t c, const T *origin, T *out) {
    const int D = gaussians.means.D;
    const T *A = gaussians.factor(c), *m = gaussians.means[c];
    if (!gaussians.full) {
        for (int k = 0; k < D; ++k)
            out[k] = A[k] * (origin[k] - m[k]);
        return;
    }
    Scratch<T> shift(D);
    for (int k = 0; k < D; ++k)
        shift[k] = origin[k] - m[k];
    for (int j = 0; j < D; ++j)
        out[j] = dot(A + static_cast<std::size_t>(j) * D, shift.get(), j + 1);
}

// Some points relative to an origin, packed one coordinate after the other, and what a component costs each of them.
template <class T> class LanePoints {
  public:
    static constexpr int L = TILE_LANES<T>;

    explicit LanePoints(int D) : D_(D), packed_(static_cast<std::size_t>(D) * L + PACK_SLACK<T>) {}

    // row(i): the address of the i-th of n <= L points.
    template <class Row> void read(Row row, int n, const T *origin) { pack<L>(row, n, D_, origin, packed_.get()); }

    // The cost of component c for every lane, `start` being its gaussian_start for the points' origin; in lanes
    // without a point it means nothing.
    void cost(const Gaussians<T> &gaussians, std::size_t c, const T *start, T *out) const {
        const T *A = gaussians.factor(c);
        vec sum[TILE_VECTORS];
        if (gaussians.full)
            triangle(A, start, sum);
        else
            diagonal(A, start, sum);
        for (int v = 0; v < TILE_VECTORS; ++v)
            V::store(out + v * W, sum[v] + gaussians.offsets[c]);
    }

  private:
    using V = simd<T>;
    using vec = typename V::vec;
    static constexpr int W = V::width;

    void diagonal(const T *A, const T *start, vec (&out)[TILE_VECTORS]) const {
        vec sum[4][TILE_VECTORS] = {};
        const auto add = [&](int k, vec(&to)[TILE_VECTORS]) {
            for (int v = 0; v < TILE_VECTORS; ++v) {
                const vec t = V::load(packed_ + k * L + v * W) * A[k] + start[k];
                to[v] += t * t;
            }
        };
        int k = 0;
        for (; k + 4 <= D_; k += 4) {
            add(k, sum[0]);
            add(k + 1, sum[1]);
            add(k + 2, sum[2]);
            add(k + 3, sum[3]);
        }
        for (; k < D_; ++k)
            add(k, sum[0]);
        for (int v = 0; v < TILE_VECTORS; ++v)
            out[v] = (sum[0][v] + sum[1][v]) + (sum[2][v] + sum[3][v]);
    }

    void triangle(const T *A, const T *start, vec (&out)[TILE_VECTORS]) const {
        if (D_ >= 64)
            answer_signals();
        for (auto &sum : out)
            sum = vec{};
        int j = 0;
        for (; j + 4 <= D_; j += 4)
            rows_of_triangle<4>(A + static_cast<std::size_t>(j) * D_, start + j, j + 4, out);
        for (; j < D_; ++j)
            rows_of_triangle<1>(A + static_cast<std::size_t>(j) * D_, start + j, j + 1, out);
    }

    // A few rows of the factor, which have zeros behind their diagonals.
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

    int D_;
    Scratch<T> packed_;
};

// The cost of component c for one point.
template <class T> inline T gaussian_cost(const Gaussians<T> &gaussians, std::size_t c, const T *x) {
    using V = simd<T>;
    const int D = gaussians.means.D;
    const T *A = gaussians.factor(c), *m = gaussians.means[c];
    T total = 0;
    if (gaussians.full) {
        if (D >= 256)
            answer_signals();
        Scratch<T> d(D);
        for (int k = 0; k < D; ++k)
            d[k] = x[k] - m[k];
        for (int j = 0; j < D; ++j) {
            const T y = dot(A + static_cast<std::size_t>(j) * D, d.get(), j + 1);
            total += y * y;
        }
    } else {
        typename V::vec sum{};
        for (int k = 0; k < D; k += V::width) {
            const int n = std::min(V::width, D - k);
            const auto read = [&](const T *p) { return n == V::width ? V::load(p + k) : V::load_first(p + k, n); };
            const auto t = (read(x) - read(m)) * read(A);
            sum += t * t;
        }
        total = V::sum(sum);
    }
    return total + gaussians.offsets[c];
}

// The few components of least (cost, id), in that order; fresh ones are -1 at an infinite cost.
template <class T> inline void clear(std::int32_t *ids, T *costs, std::size_t H) {
    std::fill_n(ids, H, -1);
    std::fill_n(costs, H, std::numeric_limits<T>::infinity());
}

template <class T> inline void insert(std::int32_t *ids, T *costs, int H, std::int32_t id, T cost) {
    cost = comparable(cost);
    int h = H;
    while (h > 0 && (ids[h - 1] < 0 || cost < costs[h - 1] || (cost == costs[h - 1] && id < ids[h - 1])))
        --h;
    if (h == H)
        return;
    for (int i = H - 1; i > h; --i) {
        ids[i] = ids[i - 1];
        costs[i] = costs[i - 1];
    }
    ids[h] = id;
    costs[h] = cost;
}

// Rows [begin, end): the H best of all components.
template <class T> inline void best(const BestTask<T> &task, std::size_t begin, std::size_t end) {
    constexpr int L = TILE_LANES<T>;
    const int D = task.X.D;
    const std::size_t H = task.H;
    LanePoints<T> points(D);
    alignas(64) T cost[L];
    for (std::size_t first = begin; first < end; first += L) {
        const int n = static_cast<int>(std::min<std::size_t>(L, end - first));
        points.read([&](int i) { return task.X[first + i]; }, n, task.origin);
        std::int32_t *kept = task.kept + first * H;
        T *costs = task.costs + first * H;
        clear(kept, costs, n * H);
        for (std::size_t c = 0; c < task.gaussians.means.n; ++c) {
            points.cost(task.gaussians, c, task.starts + c * D, cost);
            for (int i = 0; i < n; ++i)
                if (!(cost[i] >= costs[i * H + H - 1]) || kept[i * H + H - 1] < 0)
                    insert(kept + i * H, costs + i * H, H, static_cast<std::int32_t>(c), cost[i]);
        }
    }
}

// Points [begin, end) of `entries`, all of them with component c best before: the H best of what they keep and of the
// neighbours of c.
template <class T> inline void keep_best(const KeepBestTask<T> &task, int c, std::size_t begin, std::size_t end) {
    constexpr int L = TILE_LANES<T>;
    const int D = task.X.D, H = task.H;
    const std::int32_t *list = task.lists + static_cast<std::size_t>(c) * task.G;
    const int G = static_cast<int>(std::find(list, list + task.G, -1) - list);
    const T *origin = task.gaussians.means[c];
    Scratch<T> starts(static_cast<std::size_t>(G + 1) * D);
    const auto candidate = [&](int g) { return g < G ? list[g] : c; };
    for (int g = 0; g <= G; ++g)
        gaussian_start(task.gaussians, candidate(g), origin, starts + static_cast<std::size_t>(g) * D);
    LanePoints<T> points(D);
    alignas(64) T cost[L];
    for (std::size_t first = begin; first < end; first += L) {
        const int n = static_cast<int>(std::min<std::size_t>(L, end - first));
        const std::int64_t *entries = task.entries + first;
        points.read([&](int i) { return task.X[entries[i]]; }, n, origin);
        for (int i = 0; i < n; ++i)
            clear(task.kept + entries[i] * H, task.costs + entries[i] * H, H);
        for (int g = 0; g <= G; ++g) {
            points.cost(task.gaussians, candidate(g), starts + static_cast<std::size_t>(g) * D, cost);
            for (int i = 0; i < n; ++i)
                insert(task.kept + entries[i] * H, task.costs + entries[i] * H, H, candidate(g), cost[i]);
        }
        for (int i = 0; i < n; ++i) {
            const std::int32_t *previous = task.previous + entries[i] * task.n_previous;
            for (int h = 0; h < task.n_previous; ++h)
                if (const std::int32_t p = previous[h]; p >= 0 && p != c && std::find(list, list + G, p) == list + G &&
                                                        std::find(previous, previous + h, p) == previous + h)
                    insert(task.kept + entries[i] * H, task.costs + entries[i] * H, H, p,
                           gaussian_cost(task.gaussians, p, task.X[entries[i]]));
        }
    }
}

} // namespace cprime::CPRIME_ISA
