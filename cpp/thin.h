// Lists of neighbours thinned, so that a walk along them goes far in every direction (Arya & Mount 1993; Subramanya et
// al. 2019).
#pragma once
#include <algorithm>

#include "kernels.h"
#include "screen.h"
#include "signals.h"

namespace cprime::CPRIME_ISA {

// Lists of components [begin, end), nearest first. A neighbour stays unless one before it that stays is nearer to it
// than the component by the factor `spread`, of squared distances.
template <class T> inline void thin(const ThinTask<T> &task, std::size_t begin, std::size_t end) {
    using V = simd<T>;
    const int D = task.centers.D, room = task.G + V::width;
    Scratch<T> own(room), there(room);
    Scratch<std::int32_t> left(task.G);
    for (std::size_t c = begin; c < end; ++c) {
        answer_signals_at(c);
        const std::int32_t *list = task.lists + c * task.G;
        std::int32_t *out = task.out + c * task.G;
        int n_left = static_cast<int>(std::find(list, list + task.G, -1) - list), n_out = 0;
        const auto measure = [&](std::size_t from, T *squared) {
            for (int i = 0; i < n_left; i += V::width)
                V::store(squared + i,
                         squared_distances<T>(
                             [&](int j) { return std::pair(task.centers[from], task.centers[left[i + j]]); },
                             std::min(V::width, n_left - i), D));
        };
        std::copy_n(list, n_left, left.get());
        measure(c, own);
        while (n_left) {
            const std::int32_t stays = out[n_out++] = left[0];
            measure(stays, there);
            int n = 0;
            for (int i = 1; i < n_left; ++i)
                if (!(task.spread * there[i] < own[i])) {
                    left[n] = left[i];
                    own[n++] = own[i];
                }
            n_left = n;
        }
        std::fill(out + n_out, out + task.G, -1);
    }
}

} // namespace cprime::CPRIME_ISA
