// Costs of Gaussian components, (31) of Luecke & Forster: offset_c + |A_c (x - m_c)|^2, A_c a diagonal or a lower
// triangle. Points lie in the lanes of vectors, so that a component is read once for many of them.
#pragma once
#include <algorithm>

#include "id_set.h"
#include "kernels.h"
#include "law.h"
#include "points.h"
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
    // without a point it means nothing. Where all of a vector are above the bar of their lane they may be infinite.
    void cost(const Gaussians<T> &gaussians, std::size_t c, const T *start, T *out, const T *bar = nullptr) const {
        const T *A = gaussians.factor(c);
        vec sum[TILE_VECTORS];
        if (gaussians.full)
            triangle(A, start, sum);
        else
            diagonal(A, start, sum);
        for (int v = 0; v < TILE_VECTORS; ++v)
            V::store(out + v * W, bar && gaussians.dof && !may_cost(gaussians, c, sum[v], bar + v * W)
                                      ? V::fill(std::numeric_limits<T>::infinity())
                                      : cost_at(gaussians, c, sum[v]));
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

// Parts of |A (x - m)|^2, A a diagonal.
template <class T> inline typename simd<T>::vec scaled_square_parts(const T *x, const T *m, const T *A, int D) {
    using V = simd<T>;
    constexpr int W = V::width;
    typename V::vec sum{};
    int k = 0;
    for (; k + W <= D; k += W) {
        const auto t = (V::load(x + k) - V::load(m + k)) * V::load(A + k);
        sum += t * t;
    }
    if (k < D) {
        const int n = D - k;
        const auto t = (V::load_first(x + k, n) - V::load_first(m + k, n)) * V::load_first(A + k, n);
        sum += t * t;
    }
    return sum;
}

// |A (x - m)|^2 of component c for one point.
template <class T> inline T gaussian_square(const Gaussians<T> &gaussians, std::size_t c, const T *x) {
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
        total = V::sum(scaled_square_parts(x, m, A, D));
    }
    return total;
}

// The cost of component c for one point.
template <class T> inline T gaussian_cost(const Gaussians<T> &gaussians, std::size_t c, const T *x) {
    return cost_at(gaussians, c, simd<T>::fill(gaussian_square(gaussians, c, x)))[0];
}

// The H components of least (cost, id) of each of some points, in that order; the points lie in the lanes of vectors.
template <class T> class LaneBest {
  public:
    static constexpr int L = TILE_LANES<T>;

    explicit LaneBest(int H) : H_(H), costs_(static_cast<std::size_t>(L) * H), ids_(static_cast<std::size_t>(L) * H) {}

    void clear() {
        std::fill_n(costs_.get(), L * H_, std::numeric_limits<T>::infinity());
        std::fill_n(ids_.get(), L * H_, NONE);
    }

    // What another one has to cost at most, of every lane.
    const T *bar() const { return at(costs_, H_ - 1); }

    // Component c, once, at a cost for every lane.
    void offer(std::int32_t c, const T *cost) {
        const ints id = static_cast<Id>(c) - ints{};
        for (int v = 0; v < L; v += W) {
            vec x = V::load(cost + v);
            if (!V::mask_not_above(x, V::load(at(costs_, H_ - 1) + v)))
                continue;
            x = x == x ? x : std::numeric_limits<T>::infinity() - vec{};
            Entry entry{x, id}, kept = read(H_ - 1, v);
            const auto first = before(entry, kept);
            entry = {first ? x : kept.cost, first ? id : kept.id};
            int h = H_ - 1;
            for (; h > 0; --h) { // up to where no lane's is before the one above it
                kept = read(h - 1, v);
                const auto rises = before(entry, kept);
                if (!V::any(rises))
                    break;
                write(h, v, {rises ? kept.cost : entry.cost, rises ? kept.id : entry.id});
                entry = {rises ? entry.cost : kept.cost, rises ? entry.id : kept.id};
            }
            write(h, v, entry);
        }
    }

    // The same for one lane.
    void offer_to(int i, std::int32_t c, T cost) {
        cost = comparable(cost);
        const auto id = static_cast<Id>(c);
        int h = H_ - 1;
        const auto behind = [&](int k) {
            const T other = at(costs_, k)[i];
            return cost < other || (cost == other && id < at(ids_, k)[i]);
        };
        if (!behind(h))
            return;
        for (; h > 0 && behind(h - 1); --h) {
            at(costs_, h)[i] = at(costs_, h - 1)[i];
            at(ids_, h)[i] = at(ids_, h - 1)[i];
        }
        at(costs_, h)[i] = cost;
        at(ids_, h)[i] = id;
    }

    // Those of a lane: -1 at an infinite cost where there are fewer.
    void store(int i, std::int32_t *ids, T *costs) const {
        for (int h = 0; h < H_; ++h) {
            ids[h] = static_cast<std::int32_t>(at(ids_, h)[i]);
            costs[h] = at(costs_, h)[i];
        }
    }

  private:
    using V = simd<T>;
    using vec = typename V::vec;
    using ints = typename V::ints;
    using Id = typename integer_of<T>::type;
    static constexpr int W = V::width;
    static constexpr Id NONE = ~Id(0); // behind every component
    struct Entry {
        vec cost;
        ints id;
    };

    static auto before(const Entry &a, const Entry &b) {
        return (a.cost < b.cost) | ((a.cost == b.cost) & (a.id < b.id));
    }
    template <class U> U *at(const Scratch<U> &rows, int h) const {
        return rows.get() + static_cast<std::size_t>(h) * L;
    }
    Entry read(int h, int v) const {
        Entry out{V::load(at(costs_, h) + v), {}};
        std::memcpy(&out.id, at(ids_, h) + v, sizeof(ints));
        return out;
    }
    void write(int h, int v, const Entry &entry) {
        V::store(at(costs_, h) + v, entry.cost);
        std::memcpy(at(ids_, h) + v, &entry.id, sizeof(ints));
    }

    int H_;
    Scratch<T> costs_;
    Scratch<Id> ids_;
};

// Rows [begin, end): the H best of all components.
template <class T> inline void best(const BestTask<T> &task, std::size_t begin, std::size_t end) {
    constexpr int L = TILE_LANES<T>;
    const int D = task.X.D;
    const std::size_t H = task.H;
    LanePoints<T> points(D);
    const Wide<T> wide(task.X, L);
    LaneBest<T> found(task.H);
    alignas(64) T cost[L];
    for (std::size_t first = begin; first < end; first += L) {
        const int n = static_cast<int>(std::min<std::size_t>(L, end - first));
        const Rows<T> x = rows_of(task.X, first, first + n, wide);
        points.read([&](int i) { return x[i]; }, n, task.origin);
        found.clear();
        for (std::size_t c = 0; c < task.gaussians.means.n; ++c) {
            points.cost(task.gaussians, c, task.starts + c * D, cost, found.bar());
            found.offer(static_cast<std::int32_t>(c), cost);
        }
        for (int i = 0; i < n; ++i)
            found.store(i, task.kept + (first + i) * H, task.costs + (first + i) * H);
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
    const auto candidate = [&](int g) { return g ? list[g - 1] : c; };
    for (int g = 0; g <= G; ++g)
        gaussian_start(task.gaussians, candidate(g), origin, starts + static_cast<std::size_t>(g) * D);
    const IdSet listed(list, G);
    const Gathered<T> gathered(task.X, L);
    LanePoints<T> points(D);
    LaneBest<T> found(H);
    alignas(64) T cost[L];
    for (std::size_t first = begin; first < end; first += L) {
        const int n = static_cast<int>(std::min<std::size_t>(L, end - first));
        const std::int64_t *entries = task.entries + first;
        const T *rows[L];
        gathered.read(task.X, [&](int i) { return entries[i]; }, n, rows);
        points.read([&](int i) { return rows[i]; }, n, origin);
        found.clear();
        for (int g = 0; g <= G; ++g) {
            points.cost(task.gaussians, candidate(g), starts + static_cast<std::size_t>(g) * D, cost, found.bar());
            found.offer(candidate(g), cost);
        }
        for (int i = 0; i < n; ++i) {
            const std::int32_t *previous = task.previous + entries[i] * task.n_previous;
            for (int h = 0; h < task.n_previous; ++h)
                if (const std::int32_t p = previous[h];
                    p >= 0 && p != c && !listed.has(p) && std::find(previous, previous + h, p) == previous + h)
                    found.offer_to(i, p, gaussian_cost(task.gaussians, p, rows[i]));
            found.store(i, task.kept + entries[i] * H, task.costs + entries[i] * H);
        }
    }
}

} // namespace cprime::CPRIME_ISA
