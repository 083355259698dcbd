// Search for the nearest of C centers by the two least scores of each row. Each vector lane is a row, so the work that
// is done per row, besides its products, is done for a whole vector of rows at a time.
//
// A center's score is half its squared distance minus a constant of the row, so the nearest center has the least score.
// Products give lower bounds of all scores. A row is decided if the second least lower bound exceeds the upper bound of
// the least score: then no other center is nearer, nor has a smaller computed distance. All other rows are passed to
// the search of `nearest.h`.
#pragma once
#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels.h"
#include "screen.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

// The least and the second least lower bound of the scores of each of TILE_LANES rows, and the id of the center with
// the least one.
template <class T> struct BestTwo {
    typename simd<T>::vec least[TILE_VECTORS], second[TILE_VECTORS];
    typename simd<T>::ints id[TILE_VECTORS];

    void clear() {
        for (int v = 0; v < TILE_VECTORS; ++v) {
            least[v] = second[v] = simd<T>::fill(std::numeric_limits<T>::infinity());
            id[v] = typename simd<T>::ints{};
        }
    }

    // Update `least` and `second` with the lower bounds of `count` centers from c on. If the least bound occurs twice,
    // `second` equals `least`.
    void follow(const T (*low)[TILE_LANES<T>], int c, int count) {
        using V = simd<T>;
        for (int v = 0; v < TILE_VECTORS; ++v) {
            auto first = least[v], next = second[v];
            auto own = id[v];
            for (int r = 0; r < count; ++r) {
                const auto score = V::load(low[r] + v * V::width);
                const auto below = score < first;
                next = V::min(next, below ? first : score);
                own = below ? typename V::ints{} + static_cast<typename integer_of<T>::type>(c + r) : own;
                first = V::min(first, score);
            }
            least[v] = first, second[v] = next, id[v] = own;
        }
    }
};

// Find the nearest center of each of the n rows with the indices `which`, if bounds of scores decide which it is.
// Returns the number of rows that are not decided. Their indices are then the first in `which`.
template <class T> inline int nearest_by_two(const NearestTask<T> &task, std::size_t *which, int n) {
    constexpr int L = TILE_LANES<T>;
    const int D = task.X.D, C = static_cast<int>(task.centers.n), depth = D + 2;
    const int n_tiles = (n + L - 1) / L;
    const T error = score_error<T>(D), measuring = measuring_error<T>(D), lost = underflow<T>(D);
    const T most_norm = *std::max_element(task.panels.norm, task.panels.norm + C);
    const std::size_t tile_size = static_cast<std::size_t>(depth) * L;
    Scratch<T> rows(tile_size * n_tiles + PACK_SLACK<T>), norms(static_cast<std::size_t>(n_tiles) * L);
    Scratch<T> group(static_cast<std::size_t>(depth) * TILE_ROWS + PACK_SLACK<T>);
    Scratch<BestTwo<T>> found(n_tiles);

    // A packed row has the numbers 1, shift - x and the factor of its error bound; a packed center has |m|^2/2, m -
    // shift and -|m|. So a product is a lower bound of the score.
    for (int t = 0; t < n_tiles; ++t) {
        T *b = rows + tile_size * t;
        pack<L>([&](int i) { return task.X[which[t * L + i]]; }, std::min(L, n - t * L), D, task.panels.shift, b + L);
        std::fill_n(b, L, T(1));
        T square[L] = {};
        for (int k = 1; k <= D; ++k)
            for (int i = 0; i < L; ++i) {
                T &x = b[static_cast<std::size_t>(k) * L + i];
                square[i] += x * x;
                x = -x;
            }
        for (int i = 0; i < L; ++i) {
            const T norm = std::sqrt(square[i] * (1 + error) + lost);
            norms[t * L + i] = norm;
            b[static_cast<std::size_t>(D + 1) * L + i] = error * norm;
        }
        found[t].clear();
    }
    alignas(64) T low[TILE_ROWS][L];
    for (int c = 0; c < C; c += TILE_ROWS) {
        const int count = std::min(TILE_ROWS, C - c);
        pack<TILE_ROWS>([&](int i) { return task.centers[c + i]; }, count, D, task.panels.shift, group + TILE_ROWS);
        for (int i = 0; i < TILE_ROWS; ++i) {
            group[i] = i < count ? task.panels.half_norm[c + i] : T(0);
            group[(D + 1) * TILE_ROWS + i] = i < count ? -task.panels.norm[c + i] : T(0);
        }
        for (int t = 0; t < n_tiles; ++t) {
            tile<T, Form::product>(group, rows + tile_size * t, depth, nullptr, low);
            found[t].follow(low, c, count);
        }
    }

    constexpr int W = simd<T>::width;
    std::size_t settled[W] = {};
    int n_settled = 0, n_left = 0;
    const auto measure = [&] {
        const auto pair = [&](int i) { return std::pair(task.X[settled[i]], task.centers[task.kept[settled[i]]]); };
        const auto squares = squared_distances<T>(pair, n_settled, D);
        for (int i = 0; i < n_settled; ++i)
            task.distances[settled[i]] = squares[i];
        n_settled = 0;
    };
    for (int i = 0; i < n; ++i) {
        const BestTwo<T> &two = found[i / L];
        const int v = i % L / W, lane = i % W;
        const std::int32_t c = static_cast<std::int32_t>(two.id[v][lane]);
        const T norm = norms[i];
        const T high = two.least[v][lane] +
                       2 * error * (norm * task.panels.norm[c] + std::max(task.panels.half_norm[c], T(0))) + 6 * lost;
        const T above = told_apart(high, norm * norm, measuring);
        // If products might overflow, the bounds are not valid.
        const bool sound = norm * most_norm + most_norm * most_norm < std::numeric_limits<T>::max() / 8;
        if (!(sound && two.second[v][lane] > above)) {
            which[n_left++] = which[i];
            continue;
        }
        task.kept[which[i]] = c;
        settled[n_settled++] = which[i];
        if (n_settled == W)
            measure();
    }
    measure();
    return n_left;
}

} // namespace cprime::CPRIME_ISA
