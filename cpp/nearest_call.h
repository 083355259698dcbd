// Search for the nearest centers of all dense rows, in pieces.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "arrays.h"
#include "grouping.h"
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

// Find the nearest center of all rows, the squared distances (N,) to the nearest and the second nearest center, and the
// counts (C,) and sums (C, D) of the rows of each center. Rows are added to sums while they are in the cache.
template <class T>
void assign_with_second(const Points<T> &x, const double *weights, const Rows<T> &m, std::int32_t *labels, T *least,
                        T *second, double *counts, double *sums, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    constexpr std::size_t MOST_PIECES = 16, LEAST_PIECE = 2048;
    constexpr std::size_t NEAR = 512 << 10; // bytes of rows that are searched, and then added
    const std::size_t D = x.D, C = m.n, width = C * (D + 1);
    std::vector<T> packed((C + kernel.tile_rows - 1) / kernel.tile_rows * kernel.tile_rows * D + kernel.lanes);
    kernel.pack_tiles(m, packed.data());
    const TwoNearestTask<T> search{x, m, packed.data(), labels, least, second};
    const TableSumsTask<T> addition{x, nullptr, labels, nullptr, weights, 1, C};
    const std::size_t n_pieces = std::clamp<std::size_t>(x.n / LEAST_PIECE, 1, MOST_PIECES);
    const std::size_t step = std::clamp<std::size_t>(NEAR / (std::max<std::size_t>(D, 1) * sizeof(T)), 64, LEAST_PIECE);
    const std::unique_ptr<double[]> tables(new double[n_pieces * width]); // each piece clears its own
    parallel_for(n_pieces, worth(static_cast<double>(x.n) * static_cast<double>(C) * x.D, n_threads),
                 [&](std::size_t i) {
                     double *count = tables.get() + i * width;
                     std::fill_n(count, width, 0.0);
                     const std::size_t end = x.n * (i + 1) / n_pieces;
                     for (std::size_t first = x.n * i / n_pieces; first < end; first += step) {
                         kernel.two_nearest(search, first, std::min(end, first + step));
                         add_to_table(addition, first, std::min(end, first + step), count, count + C, nullptr);
                     }
                 });
    std::fill_n(counts, C, 0.0);
    std::fill_n(sums, C * D, 0.0);
    for (std::size_t i = 0; i < n_pieces; ++i) {
        const double *count = tables.get() + i * width;
        std::transform(counts, counts + C, count, counts, std::plus<>());
        std::transform(sums, sums + C * D, count + C, sums, std::plus<>());
    }
}

} // namespace cprime
