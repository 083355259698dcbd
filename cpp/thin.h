// Lists of neighbours thinned, so that a walk along them goes far in every direction (Arya & Mount 1993; Subramanya et
// al. 2019).
#pragma once
#include <algorithm>

#include "distances.h"
#include "signals.h"

namespace cprime::CPRIME_ISA {

// Lists of components [begin, end), nearest first. A neighbour stays unless one before it that stays is nearer to it
// than the component by the factor `spread`, of squared distances.
template <class T> inline void thin(const ThinTask<T> &task, std::size_t begin, std::size_t end) {
    const int room = task.G + simd<T>::width;
    Scratch<T> own(room), there(room);
    Scratch<std::int32_t> left(task.G);
    for (std::size_t c = begin; c < end; ++c) {
        answer_signals_at(c);
        const std::int32_t *list = task.lists + c * task.G;
        std::int32_t *out = task.out + c * task.G;
        int n_left = static_cast<int>(std::find(list, list + task.G, -1) - list), n_out = 0;
        const auto measure = [&](std::size_t from, T *squared) {
            distances_to(task.centers[from], task.centers, left.get(), n_left, squared);
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
