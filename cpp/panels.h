// All centers packed for the screens of `nearest.h`, by several threads.
#pragma once
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels.h"
#include "thread_pool.h"

namespace cprime {

template <class T> class PackedCenters {
  public:
    // n_kept: how many of the nearest centers are wanted, with ties going to the lower id; 0 if all of several equal
    // centers are wanted.
    PackedCenters(const Rows<T> &centers, const T *shift, int n_kept, int n_threads) {
        const Kernels<T> &kernel = kernels<T>();
        const int lanes = kernel.lanes, n = static_cast<int>((centers.n + lanes - 1) / lanes);
        columns_.reset(new T[static_cast<std::size_t>(n) * (centers.D + 1) * lanes]); // all of it is written
        for (auto *numbers : {&half_norm_, &norm_, &scale_, &lost_})
            numbers->resize(static_cast<std::size_t>(n) * lanes);
        if (const std::size_t size = kernel.coarse_panel_size(centers.n, n_kept, centers.D))
            coarse_.resize(size * n + LINE);
        if (n_kept)
            find_surplus(centers, n_kept);
        panels_ = {columns_.get(),
                   half_norm_.data(),
                   norm_.data(),
                   coarse_.empty() ? nullptr : aligned(coarse_.data()),
                   scale_.data(),
                   lost_.data(),
                   shift,
                   surplus_.empty() ? nullptr : surplus_.data(),
                   n,
                   static_cast<int>(centers.n)};
        constexpr int PANELS_A_TASK = 16;
        parallel_for((n + PANELS_A_TASK - 1) / PANELS_A_TASK, n_threads, [&](std::size_t i) {
            const int begin = static_cast<int>(i) * PANELS_A_TASK;
            kernel.pack_panels(centers, panels_, begin, std::min(n, begin + PANELS_A_TASK));
        });
    }
    PackedCenters(const PackedCenters &) = delete;
    PackedCenters &operator=(const PackedCenters &) = delete;

    const Panels<T> &panels() const { return panels_; }

  private:
    static constexpr std::size_t LINE = 64; // bytes

    static std::uint8_t *aligned(std::uint8_t *p) {
        return p + (LINE - reinterpret_cast<std::uintptr_t>(p) % LINE) % LINE;
    }

    // Mark the centers that are preceded by n_kept equal ones. Equal centers are adjacent in the order of their hashes.
    void find_surplus(const Rows<T> &centers, int n_kept) {
        struct Hashed {
            std::uint64_t hash;
            std::uint32_t id;
        };
        const std::size_t n_kept_before = static_cast<std::size_t>(n_kept), row_bytes = centers.D * sizeof(T);
        std::vector<Hashed> order(centers.n);
        for (std::size_t c = 0; c < centers.n; ++c)
            order[c] = {std::hash<std::string_view>()({reinterpret_cast<const char *>(centers[c]), row_bytes}),
                        static_cast<std::uint32_t>(c)};
        std::sort(order.begin(), order.end(), [](const Hashed &a, const Hashed &b) {
            return a.hash < b.hash || (a.hash == b.hash && a.id < b.id);
        });
        const auto equal = [&](const Hashed &a, const Hashed &b) {
            return a.hash == b.hash && std::memcmp(centers[a.id], centers[b.id], row_bytes) == 0;
        };
        for (std::size_t i = n_kept_before; i < order.size(); ++i) {
            std::size_t before = 0;
            while (before < n_kept_before && equal(order[i - before - 1], order[i]))
                ++before;
            if (before < n_kept_before)
                continue;
            surplus_.resize(centers.n);
            surplus_[order[i].id] = 1;
        }
    }

    std::unique_ptr<T[]> columns_;
    std::vector<T> half_norm_, norm_, scale_, lost_;
    std::vector<std::uint8_t> coarse_;
    std::vector<std::uint8_t> surplus_;
    Panels<T> panels_;
};

} // namespace cprime
