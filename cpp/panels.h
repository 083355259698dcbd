// All centres packed for the screens of `nearest.h`, by several threads.
#pragma once
#include <algorithm>
#include <vector>

#include "kernels.h"
#include "thread_pool.h"

namespace cprime {

template <class T> class PackedCenters {
  public:
    PackedCenters(const Rows<T> &centers, const T *shift, int n_threads) {
        const Kernels<T> &kernel = kernels<T>();
        const int lanes = kernel.lanes, n = static_cast<int>((centers.n + lanes - 1) / lanes);
        columns_.resize(static_cast<std::size_t>(n) * (centers.D + 1) * lanes);
        for (auto *numbers : {&half_norm_, &norm_, &lost_})
            numbers->resize(static_cast<std::size_t>(n) * lanes);
        halves_.resize(kernel.half_panel_size(centers.D) * n);
        panels_ = {columns_.data(),
                   half_norm_.data(),
                   norm_.data(),
                   halves_.empty() ? nullptr : halves_.data(),
                   lost_.data(),
                   shift,
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
    std::vector<T> columns_, half_norm_, norm_, lost_;
    std::vector<std::uint16_t> halves_;
    Panels<T> panels_;
};

} // namespace cprime
