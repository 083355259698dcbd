// Search for the nearest centers of all dense rows, in pieces.
#pragma once
#include <algorithm>
#include <optional>
#include <vector>

#include "arrays.h"
#include "origin.h"
#include "panels.h"
#include "thread_pool.h"

namespace cprime {

// Find the H nearest centers of all rows. hint (N, H): centers that are probably near, or null; kept, distances (N, H):
// ids of the nearest centers and squared distances.
template <class T>
void nearest_of(const Points<T> &x, const Rows<T> &m, const std::int32_t *hint, int H, std::int32_t *kept, T *distances,
                int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    constexpr std::size_t PREPARED = 10; // a row takes the time of so many distances, in addition to its own
    n_threads = worth(static_cast<double>(x.n) * static_cast<double>(m.n + PREPARED) * x.D, n_threads);
    // Least number of rows for which equal centers are marked, least number for which centers are packed, and numbers
    // in the rows of a task of the search that computes all distances.
    constexpr std::size_t WORTH = 256, WORTH_PACKING = 8, DIRECT_NUMBERS = 65536;
    std::optional<PackedCenters<T>> packed;
    std::vector<T> shift;
    const bool direct = is_direct(m.n, H, x.D);
    if (x.n >= WORTH_PACKING && !direct) {
        shift = median_of(m);
        packed.emplace(m, shift.data(), x.n < WORTH ? 0 : H, n_threads);
    }
    const NearestTask<T> task{x, m, packed ? packed->panels() : Panels<T>{}, hint, H, kept, distances, nullptr};
    const std::size_t direct_rows = std::clamp<std::size_t>(DIRECT_NUMBERS / std::max(x.D, 1) / 64 * 64, 64, 4096);
    const std::size_t step = direct ? direct_rows : packed ? kernel.nearest_rows(H, x.D, packed->panels().coarse) : 1;
    parallel_for((x.n + step - 1) / step, n_threads,
                 [&](std::size_t i) { kernel.nearest(task, i * step, std::min(x.n, (i + 1) * step)); });
}

// Find the nearest center of all rows, and the squared distances (N,) to the nearest and the second nearest center.
template <class T>
void two_nearest_of(const Points<T> &x, const Rows<T> &m, std::int32_t *labels, T *least, T *second, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    constexpr std::size_t MOST_PIECES = 16, LEAST_PIECE = 2048;
    std::vector<T> packed((m.n + kernel.tile_rows - 1) / kernel.tile_rows * kernel.tile_rows * x.D + kernel.lanes);
    kernel.pack_tiles(m, packed.data());
    const TwoNearestTask<T> task{x, m, packed.data(), labels, least, second};
    const std::size_t n_pieces = std::clamp<std::size_t>(x.n / LEAST_PIECE, 1, MOST_PIECES);
    parallel_for(n_pieces, worth(static_cast<double>(x.n) * static_cast<double>(m.n) * x.D, n_threads),
                 [&](std::size_t i) { kernel.two_nearest(task, x.n * i / n_pieces, x.n * (i + 1) / n_pieces); });
}

} // namespace cprime
