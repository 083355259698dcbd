// Partial searches: a point looks at the neighbours of the components it keeps, not at all C.
//
// `reassign` is cluster-major: the points of a component share its neighbours as candidates, packed once relative to
// the component's own centre, and are scored in dense tiles. `nearest_among` is point-major: each row has candidates
// of its own, the union of the lists of what it keeps.
#pragma once
#include <algorithm>

#include "kernels.h"
#include "nearest.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

// Points [begin, end) of `entries`, all of them of component c. A point moves to the neighbour b of least
// outside[b] |x - m_b|^2 if that is less than inside[c] |x - m_c|^2. The factors of an exchange hold for one point at a
// time: of the points that go although the neighbour is not nearer, a share of the component at most may go, those of
// greatest gain.
template <class T> inline void column_squares(const T *packed, int D, T *square) {
    using V = simd<T>;
    constexpr int blocks = (TILE_ROWS + V::width - 1) / V::width; // the last one reads and writes a little behind
    typename V::vec sum[blocks][4] = {};
    for (int k = 0; k < D; ++k)
        for (int b = 0; b < blocks; ++b) {
            const auto v = V::load(packed + k * TILE_ROWS + b * V::width);
            sum[b][k % 4] += v * v;
        }
    for (int b = 0; b < blocks; ++b)
        V::store(square + b * V::width, (sum[b][0] + sum[b][1]) + (sum[b][2] + sum[b][3]));
}

template <class T> inline void reassign(const ReassignTask<T> &task, int c, std::size_t begin, std::size_t end) {
    using V = simd<T>;
    constexpr int L = TILE_LANES<T>;
    const int D = task.X.D;
    const T *origin = task.centers[c];
    const std::int32_t *list = task.lists + static_cast<std::size_t>(c) * task.G;
    const int n_candidates = static_cast<int>(std::find(list, list + task.G, -1) - list);
    const int n_panels = (n_candidates + L - 1) / L;
    const std::size_t panel_size = static_cast<std::size_t>(D + 1) * L;

    // score = outside (|m|^2 - 2 x m + |x|^2), all relative to the origin; |x|^2 is one more dimension of x.
    Scratch<T> columns(panel_size * n_panels);
    Scratch<T> start(static_cast<std::size_t>(L) * n_panels);
    for (int p = 0; p < n_panels; ++p) {
        T *column = columns + panel_size * p;
        const int n = std::min(L, n_candidates - p * L);
        pack<L>([&](int i) { return task.centers[list[p * L + i]]; }, n, D, origin, column);
        alignas(64) T factor[L];
        for (int i = 0; i < L; ++i)
            factor[i] = i >= n ? T(0) : task.outside ? task.outside[list[p * L + i]] : T(1);
        for (int v = 0; v < L; v += V::width) {
            typename V::vec square{};
            const auto f = V::load(factor + v);
            for (int k = 0; k < D; ++k) {
                const auto m = V::load(column + k * L + v);
                square += m * m;
                V::store(column + k * L + v, m * (f * T(-2)));
            }
            V::store(column + D * L + v, f);
            V::store(start + p * L + v, f * square);
        }
        for (int i = n; i < L; ++i)
            start[p * L + i] = std::numeric_limits<T>::infinity();
    }

    struct Exchange {
        T gain, stay; // stay: the squared distance to the own centre
        std::size_t point;
    };
    Scratch<Exchange> exchanges(end - begin);
    std::size_t n_exchanges = 0;
    const T inside = task.inside ? task.inside[c] : T(1);
    Scratch<T> packed(static_cast<std::size_t>(D + 1) * TILE_ROWS + PACK_SLACK<T>);
    alignas(64) T score[TILE_ROWS][L];
    for (std::size_t first = begin; first < end; first += TILE_ROWS) {
        const int rows = static_cast<int>(std::min<std::size_t>(TILE_ROWS, end - first));
        for (std::size_t e = first + TILE_ROWS; e < std::min(end, first + 2 * TILE_ROWS); ++e) {
            const char *next = reinterpret_cast<const char *>(task.X[task.entries[e]]);
            for (std::size_t byte = 0; byte < D * sizeof(T); byte += 64)
                __builtin_prefetch(next + byte, 0, 2);
        }
        pack<TILE_ROWS>([&](int i) { return task.X[task.entries[first + i]]; }, rows, D, origin, packed.get());
        alignas(64) T square[TILE_ROWS + V::width];
        column_squares(packed.get(), D, square);
        T best[TILE_ROWS];
        std::int32_t winner[TILE_ROWS];
        for (int i = 0; i < TILE_ROWS; ++i) {
            packed[D * TILE_ROWS + i] = square[i];
            best[i] = inside * square[i];
            winner[i] = c;
        }
        for (int p = 0; p < n_panels; ++p) {
            tile<T, Form::product>(packed, columns + panel_size * p, D + 1, start + p * L, score);
            for (int i = 0; i < rows; ++i) {
                const auto limit = V::fill(best[i]);
                const auto low = V::load(&score[i][0]), high = V::load(&score[i][V::width]);
                const auto lowest = V::min(low, high);
                if (!V::mask_le(lowest, limit))
                    continue;
                const T least = V::lowest(lowest);
                if (least < best[i]) {
                    const auto bar = V::fill(least);
                    best[i] = least;
                    winner[i] = list[p * L + __builtin_ctz(V::mask_le(low, bar) | V::mask_le(high, bar) << V::width)];
                }
            }
        }
        for (int i = 0; i < rows; ++i) {
            const std::size_t n = task.entries[first + i];
            T distance = square[i];
            if (winner[i] != c) { // what rounding made look better is measured again from differences
                const T there = squared_distance(task.X[n], task.centers[winner[i]], D);
                const T gain = inside * distance - (task.outside ? task.outside[winner[i]] : T(1)) * there;
                if (gain > 0) {
                    if (there >= distance)
                        exchanges[n_exchanges++] = {gain, distance, n};
                    distance = there;
                } else {
                    winner[i] = c;
                }
            }
            task.labels[n] = winner[i];
            task.distances[n] = distance;
        }
    }
    const auto most = std::max<std::size_t>(1, static_cast<std::size_t>(task.share * static_cast<double>(end - begin)));
    if (n_exchanges > most) {
        std::nth_element(exchanges.get(), exchanges + most, exchanges + n_exchanges, [](const auto &a, const auto &b) {
            return a.gain > b.gain || (a.gain == b.gain && a.point < b.point);
        });
        for (std::size_t e = most; e < n_exchanges; ++e) {
            task.labels[exchanges[e].point] = c;
            task.distances[exchanges[e].point] = exchanges[e].stay;
        }
    }
}

// Rows [begin, end): the H nearest among what a row keeps, the lists of those, and `extra` components of its own.
template <class T> inline void nearest_among(const AmongTask<T> &task, std::size_t begin, std::size_t end) {
    const int D = task.X.D;
    const std::size_t C = task.centers.n;
    Scratch<std::int32_t> seen(C);
    std::fill_n(seen.get(), C, -1);
    const int capacity = task.n_previous * (task.G + 1) + task.n_extra;
    Scratch<Candidate<T>> found(capacity);
    for (std::size_t n = begin; n < end; ++n) {
        const T *x = task.X[n];
        const auto stamp = static_cast<std::int32_t>(n - begin);
        int count = 0;
        const auto offer = [&](std::int32_t c) {
            if (c < 0 || seen[c] == stamp)
                return;
            seen[c] = stamp;
            found[count].low = squared_distance(x, task.centers[c], D);
            found[count++].id = c;
        };
        const std::int32_t *previous = task.previous + n * task.n_previous;
        for (int h = 0; h < task.n_previous; ++h)
            offer(previous[h]);
        for (int h = 0; h < task.n_previous; ++h)
            for (int g = 0; previous[h] >= 0 && g < task.G; ++g)
                offer(task.lists[static_cast<std::size_t>(previous[h]) * task.G + g]);
        for (int e = 0; e < task.n_extra; ++e)
            offer(task.extra[n * task.n_extra + e]);
        if (task.evaluated) {
            std::int32_t *ids = task.evaluated + n * capacity;
            T *distances = task.evaluations + n * capacity;
            for (int i = 0; i < capacity; ++i) {
                ids[i] = i < count ? found[i].id : -1;
                distances[i] = i < count ? found[i].low : T(0);
            }
        }
        task.counts[n] = count;
        const int H = std::min(task.H, count);
        std::partial_sort(found.get(), found + H, found + count, nearer<T>);
        for (int h = 0; h < task.H; ++h) {
            task.kept[n * task.H + h] = h < H ? found[h].id : -1;
            task.distances[n * task.H + h] = h < H ? found[h].low : std::numeric_limits<T>::infinity();
        }
    }
}

} // namespace cprime::CPRIME_ISA
