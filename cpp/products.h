// Products of rows, minus a shift, with other rows, as tiles. The order of summation does not depend on the number of
// threads.
#pragma once
#include <algorithm>

#include "kernels.h"
#include "points.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

template <class T>
inline void products(const Points<T> &X, const T *shift, const T *columns, std::size_t m, T *out, std::size_t begin,
                     std::size_t end) {
    constexpr int L = TILE_LANES<T>;
    const int D = X.D;
    Scratch<T> packed(static_cast<std::size_t>(D) * TILE_ROWS + PACK_SLACK<T>);
    const Wide<T> wide(X, TILE_ROWS);
    alignas(64) T part[TILE_ROWS][L];
    for (std::size_t first = begin; first < end; first += TILE_ROWS) {
        const int rows = static_cast<int>(std::min<std::size_t>(TILE_ROWS, end - first));
        const Rows<T> x = rows_of(X, first, first + rows, wide);
        pack<TILE_ROWS>([&](int i) { return x[i]; }, rows, D, shift, packed.get());
        for (std::size_t column = 0; column < m; column += L) {
            tile<T, Form::product>(packed, columns + column * D, D, nullptr, part);
            for (int r = 0; r < rows; ++r)
                std::copy_n(part[r], std::min<std::size_t>(L, m - column), out + (first + r) * m + column);
        }
    }
}

} // namespace cprime::CPRIME_ISA
