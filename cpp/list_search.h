// Point-major partial search, which processes one row after the other. Each row has its own candidates, the union of
// the neighbor lists of the components in its active set.
#pragma once
#include <algorithm>

#include "gaussians.h"
#include "kept.h"
#include "screen.h"

namespace cprime::CPRIME_ISA {

// Write the active set of row n: the task.H nearest of the `count` evaluated components in `found`.
template <class T> inline void keep_found(const ListSearchTask<T> &task, std::size_t n, Candidate<T> *found,
                                          int count) {
    const int H = std::min(task.H, count);
    task.counts[n] = count;
    sort_nearest(found, H, count);
    for (int h = 0; h < task.H; ++h) {
        task.kept[n * task.H + h] = h < H ? found[h].id : -1;
        task.distances[n * task.H + h] = h < H ? found[h].square : std::numeric_limits<T>::infinity();
    }
}

// Prefetch the parameters from which the cost of component c is computed.
template <class T> inline void fetch(const ListSearchTask<T> &task, std::int32_t c) {
    prefetch(task.centers[c], task.X.D);
    if (task.gaussians && !task.gaussians->full)
        prefetch(task.gaussians->factor(c), task.X.D);
}

// A component and the components of its neighbor list, one per vector lane. Computes the costs of all these components
// for several points at any addresses, from differences x - m.
template <class T> class LaneList {
  public:
    static constexpr int POINTS = 4; // points whose costs are computed at a time

    explicit LaneList(const ListSearchTask<T> &task)
        : task_(task), D_(task.X.D), width_(width(task)), means_(static_cast<std::size_t>(D_) * width_ + PACK_SLACK<T>),
          factors_(task.gaussians ? static_cast<std::size_t>(D_) * width_ + PACK_SLACK<T> : 0), offsets_(width_),
          inverses_(width_), powers_(width_) {}

    // Return how many numbers the costs of one point take: G + 1 (G neighbors), rounded up to whole vectors.
    static int width(const ListSearchTask<T> &task) { return (task.G + W) / W * W; }

    // Pack the components component(i), 0 <= i <= G.
    template <class Component> void read(Component component) {
        constexpr const T *none = nullptr;
        for (int v = 0; v < width_; v += W) {
            const int n = std::min(W, task_.G + 1 - v);
            pack<W>([&](int i) { return task_.centers[component(v + i)]; }, n, D_, none, at(means_, v));
            if (task_.gaussians)
                pack<W>([&](int i) { return task_.gaussians->factor(component(v + i)); }, n, D_, none, at(factors_, v));
            for (int i = 0; i < W; ++i) {
                const bool there = task_.gaussians && i < n;
                offsets_[v + i] = there ? task_.gaussians->offsets[component(v + i)] : T(0);
                const T dof = there && task_.gaussians->dof ? task_.gaussians->dof[component(v + i)] : T(1);
                inverses_[v + i] = 1 / dof;
                powers_[v + i] = dof + D_;
            }
        }
    }

    // Write G + 1 costs (of the component and its G neighbors) for each point. The numbers after these, up to the end
    // of a vector, have no meaning.
    void cost(const T *const (&x)[POINTS], T *const (&out)[POINTS]) const {
        if (task_.gaussians)
            costs<true>(x, out);
        else
            costs<false>(x, out);
    }

  private:
    using V = simd<T>;
    static constexpr int W = V::width;

    T *at(const Scratch<T> &packed, int v) const { return packed + static_cast<std::size_t>(v) * D_; }

    template <bool scaled> void costs(const T *const (&x)[POINTS], T *const (&out)[POINTS]) const {
        for (int v = 0; v < width_; v += W) {
            const T *means = at(means_, v), *factors = scaled ? at(factors_, v) : nullptr;
            typename V::vec even[POINTS] = {}, odd[POINTS] = {};
            const auto add = [&](int k, typename V::vec(&to)[POINTS]) {
                const auto m = V::load(means + k * W), a = scaled ? V::load(factors + k * W) : V::fill(T(1));
                for (int p = 0; p < POINTS; ++p) {
                    const auto t = scaled ? (x[p][k] - m) * a : x[p][k] - m;
                    to[p] += t * t;
                }
            };
            for (int k = 0; k + 1 < D_; k += 2) {
                add(k, even);
                add(k + 1, odd);
            }
            if (D_ % 2)
                add(D_ - 1, even);
            for (int p = 0; p < POINTS; ++p) {
                const auto square = even[p] + odd[p], offset = V::load(offsets_ + v);
                const auto sum = scaled && task_.gaussians->dof
                                     ? t_cost<T>(square, offset, {V::load(inverses_ + v), V::load(powers_ + v)})
                                     : square + offset;
                V::store(out[p] + v, sum == sum ? sum : V::fill(std::numeric_limits<T>::infinity()));
            }
        }
    }

    const ListSearchTask<T> &task_;
    int D_, width_;
    Scratch<T> means_, factors_, offsets_, inverses_, powers_;
};

// Costs that are computed before entries (rows) [begin, end) are searched. If several entries have the same component
// in their active sets, the costs of this component and of its neighbor list are computed for all these entries
// together.
template <class T> class SharedCosts {
  public:
    SharedCosts(const ListSearchTask<T> &task, std::size_t begin, std::size_t end)
        : n_previous_(task.n_previous), n_costs_(LaneList<T>::width(task)), known_((end - begin) * n_previous_),
          costs_((end - begin) * n_previous_ * n_costs_) {
        const std::size_t C = task.centers.n, n_pairs = (end - begin) * n_previous_;
        Scratch<std::int32_t> component(n_pairs);
        Scratch<std::uint32_t> last(C + 1), pairs(n_pairs); // pairs (entry, position) of each component
        std::fill_n(last.get(), C + 1, 0);
        for (std::size_t e = begin; e < end; ++e)
            for (int h = 0; h < n_previous_; ++h) {
                const std::int32_t c = task.previous[task.row(e) * n_previous_ + h];
                component[(e - begin) * n_previous_ + h] = c;
                ++last[c + 1];
            }
        last[0] = 0; // ids of -1 are not counted
        for (std::size_t c = 1; c <= C; ++c)
            last[c] += last[c - 1];
        std::fill_n(known_.get(), n_pairs, false);
        for (std::size_t pair = 0; pair < n_pairs; ++pair)
            if (component[pair] >= 0)
                pairs[last[component[pair]]++] = static_cast<std::uint32_t>(pair);
        const auto row = [&](std::uint32_t pair) { return task.row(begin + pair / n_previous_); };
        const auto each = [&](auto measure_them) { // calls measure_them(pairs, their number, candidates)
            for (std::size_t c = 0, first = 0; c < C; first = last[c++]) {
                if (last[c] - first < FEWEST)
                    continue;
                answer_signals();
                const std::int32_t own = static_cast<std::int32_t>(c), *list = task.lists + c * task.G;
                measure_them(pairs + first, static_cast<int>(last[c] - first),
                             [=](int g) { return g && list[g - 1] >= 0 ? list[g - 1] : own; });
                for (std::size_t p = first; p < last[c]; ++p)
                    known_[pairs[p]] = true;
            }
        };
        if (task.gaussians && task.gaussians->full) {
            LanePoints<T> points(task.X.D);
            const Gathered<T> gathered(task.X, TILE_LANES<T>);
            OwnStarts<T> starts(task.G + 1, task.X.D);
            each([&](const std::uint32_t *of, int n, auto component) {
                measure(task, of, n, row, component, gathered, points, starts);
            });
        } else {
            LaneList<T> components(task);
            const Gathered<T> gathered(task.X, LaneList<T>::POINTS);
            each([&](const std::uint32_t *of, int n, auto component) {
                measure(task, of, n, row, component, gathered, components);
            });
        }
    }

    // Return the cost of component h in the i-th entry's active set, followed by the costs of that component's neighbor
    // list; null if these costs were not computed.
    const T *operator()(std::size_t i, int h) const {
        const std::size_t pair = i * n_previous_ + h;
        return known_[pair] ? costs_ + pair * n_costs_ : nullptr;
    }

  private:
    static constexpr std::size_t FEWEST = 8; // for fewer entries, packing the components takes longer than it saves

    T *costs(std::uint32_t pair) { return costs_ + static_cast<std::size_t>(pair) * n_costs_; }

    // Compute the costs of n pairs; row(pair) returns a pair's row number.
    template <class Row, class Component>
    void measure(const ListSearchTask<T> &task, const std::uint32_t *pairs, int n, Row row, Component component,
                 const Gathered<T> &gathered, LaneList<T> &components) {
        constexpr int P = LaneList<T>::POINTS;
        components.read(component);
        for (int first = 0; first < n; first += P) {
            const T *x[P];
            T *out[P];
            const auto pair = [&](int p) { return pairs[std::min(first + p, n - 1)]; };
            gathered.read(task.X, [&](int p) { return row(pair(p)); }, P, x);
            for (int p = 0; p < P; ++p)
                out[p] = costs(pair(p));
            components.cost(x, out);
        }
    }

    template <class Row, class Component>
    void measure(const ListSearchTask<T> &task, const std::uint32_t *pairs, int n, Row row, Component component,
                 const Gathered<T> &gathered, LanePoints<T> &points, OwnStarts<T> &starts) {
        constexpr int L = TILE_LANES<T>;
        const T *origin = task.centers[component(0)];
        starts.compute(*task.gaussians, task.G + 1, component, origin);
        alignas(64) T cost[L];
        const T *x[L];
        for (int first = 0; first < n; first += L) {
            const int n_points = std::min(L, n - first);
            gathered.read(task.X, [&](int i) { return row(pairs[first + i]); }, n_points, x);
            points.read([&](int i) { return x[i]; }, n_points, origin);
            for (int g = 0; g <= task.G; ++g) {
                points.cost(*task.gaussians, component(g), starts.of(g), cost);
                for (int i = 0; i < n_points; ++i)
                    costs(pairs[first + i])[g] = comparable(cost[i]);
            }
        }
    }

    int n_previous_, n_costs_;
    Scratch<bool> known_;
    Scratch<T> costs_;
};

template <class T> constexpr auto nothing_shared = [](std::size_t, int) -> const T * { return nullptr; };

// Search entries (rows) [begin, end): find the H nearest components among a row's active set, the neighbor lists of
// these components, and the row's `extra` components. from(n) returns a function that computes the squared distance of
// row n to a component; fetch(c) prefetches component c beforehand. shared(i, h) returns the known costs of component h
// in the i-th entry's active set and of its neighbors, or null; see SharedCosts.
template <class T, class Fetch, class From, class Shared>
inline void search_among(const ListSearchTask<T> &task, std::size_t begin, std::size_t end, Fetch fetch, From from,
                         const Shared &shared) {
    using V = simd<T>;
    constexpr int AHEAD = 6;
    const std::size_t C = task.centers.n;
    Scratch<std::int32_t> seen(C);
    std::fill_n(seen.get(), C, -1);
    const std::size_t capacity = task.capacity();
    Scratch<Candidate<T>> found(capacity + 1);
    Scratch<std::int32_t> open(capacity + 1); // positions in `found` without a cost yet
    for (std::size_t e = begin; e < end; ++e) {
        const std::size_t i = e - begin, n = task.row(e);
        const auto stamp = static_cast<std::int32_t>(i);
        if (e + AHEAD < end) { // prefetch, because rows are scattered in memory
            const std::size_t next = task.row(e + AHEAD);
            __builtin_prefetch(task.previous + next * task.n_previous);
            __builtin_prefetch(task.extra + next * task.n_extra);
        }
        int count = 0, n_open = 0;
        const auto offer = [&](const std::int32_t *ids, int n_ids, const T *known) { // branch-free: half are repeated
            int next = count;
            for (int g = 0; g < n_ids; ++g) {
                if (ids[g] < 0)
                    continue;
                found[next] = {known ? known[g] : T(0), ids[g]};
                next += seen[ids[g]] != stamp;
                seen[ids[g]] = stamp;
            }
            for (; count < next; ++count)
                if (!known)
                    open[n_open++] = count;
        };
        const std::int32_t *previous = task.previous + n * task.n_previous;
        for (int h = 0; h < task.n_previous; ++h)
            offer(previous + h, 1, shared(i, h));
        for (int h = 0; h < task.n_previous; ++h)
            if (previous[h] >= 0) {
                const T *known = shared(i, h);
                offer(task.lists + static_cast<std::size_t>(previous[h]) * task.G, task.G, known ? known + 1 : nullptr);
            }
        for (int x = 0; x < task.n_extra; ++x)
            offer(task.extra + n * task.n_extra + x, 1, nullptr);
        if (n_open) {
            const auto square = from(n);
            for (int o = 0; o < n_open; ++o) { // prefetch, because centers are scattered in memory
                if (o + AHEAD < n_open)
                    fetch(found[open[o + AHEAD]].id);
                found[open[o]].square = square(found[open[o]].id);
            }
        }
        for (int o = 0; o < n_open; o += V::width) {
            const int some = std::min<int>(V::width, n_open - o);
            alignas(64) T cost[V::width] = {};
            for (int j = 0; j < some; ++j)
                cost[j] = found[open[o + j]].square;
            if (task.gaussians)
                V::store(cost,
                         costs_at(*task.gaussians, [&](int j) { return found[open[o + j]].id; }, some, V::load(cost)));
            for (int j = 0; j < some; ++j)
                found[open[o + j]].square = comparable(cost[j]);
        }
        for (int k = 0; task.evaluated && k < count; ++k) {
            task.evaluated[i * capacity + k] = found[k].id;
            task.evaluations[i * capacity + k] = found[k].square;
        }
        keep_found(task, n, found.get(), count);
    }
}

// Search entries (rows) [begin, end), which are ordered such that rows with the same components are adjacent.
template <class T> inline void search_lists(const ListSearchTask<T> &task, std::size_t begin, std::size_t end) {
    const auto ask = [&](std::int32_t c) { fetch(task, c); };
    const auto from = [&](std::size_t n) {
        return [&task, x = task.X[n]](std::int32_t c) {
            return task.gaussians ? gaussian_square(*task.gaussians, c, x)
                                  : squared_distance(x, task.centers[c], task.X.D);
        };
    };
    if (task.G)
        search_among(task, begin, end, ask, from, SharedCosts<T>(task, begin, end));
    else
        search_among(task, begin, end, ask, from, nothing_shared<T>);
}

template <class T> inline void best_in_lists(const ListSearchTask<T> &task, std::size_t begin, std::size_t end) {
    const bool full = task.gaussians && task.gaussians->full;
    if (task.G || task.n_extra || task.evaluated || !task.n_previous || full)
        return search_lists(task, begin, end);
    KeptCosts<T>(task).measure(begin, end);
}

} // namespace cprime::CPRIME_ISA
