// Search for the H nearest of C centers, by a screen and a proof.
//
// Screen: matrix products give score(n, c) = |m_c|^2/2 - x_n m_c, where rows x and centers m are relative to a common
// shift. So the score is half the squared distance minus a constant of the row. Its rounding error is at most
// gamma (|x_n||m_c| + |m_c|^2/2). This bound is an additional dimension of the product, so products give *lower* bounds
// of the scores; upper bounds are computed where needed.
//
// Proof: if the lower bound of a center's score exceeds the H-th smallest upper bound by more than the rounding error
// of a difference, its computed distance is not among the H smallest. The few remaining distances are computed from
// differences, which is accurate for any origin. So the result is that of a search by differences over all C, with ties
// going to the lower id.
//
// If the one nearest of few centers is wanted, each vector lane is a row at first, and the two least scores of a row
// mostly decide (`best_two.h`); for very few centers, and in few dimensions, all distances are computed (`direct.h`).
// If the processor has coarse numbers, a first screen uses them, with wider bounds (`coarse_screen.h`); rows for which
// it leaves too many candidates go through the screen at full precision. If that leaves too many, the shift is too far
// from the row to distinguish centers that are close together: such rows are screened again relative to a center near
// them.
//
// Finite numbers may give NaN scores (infinity minus infinity) or bounds that overflow. If a comparison is unordered,
// the distance is computed.
#pragma once
#include <algorithm>
#include <cmath>

#include "best_two.h"
#include "coarse_screen.h"
#include "direct.h"
#include "kernels.h"
#include "points.h"
#include "screen.h"
#include "signals.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

// Pack the centers of panel p relative to a shift.
template <class T>
inline void pack_panel(const Rows<T> &centers, const std::uint8_t *surplus, int p, const T *shift,
                       const Panel<T> &panel) {
    constexpr int L = TILE_LANES<T>;
    constexpr T infinity = std::numeric_limits<T>::infinity();
    const int D = centers.D, n = lanes_used<T>(centers.n, p);
    const T error = score_error<T>(D), lost = 2 * underflow<T>(D);
    pack<L>([&](int i) { return centers[static_cast<std::size_t>(p) * L + i]; }, n, D, shift, panel.columns);
    double squares[L] = {};
    for (int k = 0; k < D; ++k) {
        T *m = panel.columns + static_cast<std::size_t>(k) * L;
        for (int i = 0; i < L; ++i) {
            squares[i] += static_cast<double>(m[i]) * static_cast<double>(m[i]);
            m[i] = -m[i];
        }
    }
    for (int i = 0; i < L; ++i) {
        const bool fits = squares[i] < std::numeric_limits<T>::max();
        panel.norm[i] = fits ? static_cast<T>(std::sqrt(squares[i]) * (1 + 1e-6)) : infinity;
        panel.columns[static_cast<std::size_t>(D) * L + i] = -panel.norm[i];
        panel.half_norm[i] = fits ? static_cast<T>(squares[i] / 2) * (1 - error) - lost : -infinity;
        if (i >= n || (surplus && surplus[static_cast<std::size_t>(p) * L + i]))
            panel.half_norm[i] = infinity;
    }
}

template <class T> inline void pack_panels(const Rows<T> &centers, const Panels<T> &panels, int begin, int end) {
    for (int p = begin; p < end; ++p) {
        const Panel<T> panel = panel_of(panels, p, centers.D);
        pack_panel(centers, panels.surplus, p, panels.shift, panel);
#if CPRIME_COARSE
        if constexpr (sizeof(T) == sizeof(float))
            if (panels.coarse)
                pack_coarse(centers, panels, p, panel);
#endif
    }
}

template <class T> inline std::size_t nearest_rows(int H, int D, bool coarse) {
    const std::size_t bytes = candidate_capacity(H) * (2 * sizeof(T) + sizeof(std::int32_t)) + D * sizeof(T);
    const std::size_t fitting = (std::size_t(1) << 20) / bytes / TILE_ROWS * TILE_ROWS;
    if (coarse) { // rows that fit into the first-level cache
        const std::size_t rows = (std::size_t(60) << 10) / (panel_bytes<T>(D) / TILE_LANES<T>) / 32 * 32;
        return std::clamp<std::size_t>(std::min(fitting, rows), 32, 384);
    }
    return std::clamp<std::size_t>(fitting, TILE_ROWS, 192 / TILE_ROWS * TILE_ROWS);
}

// Rows packed in tiles at full precision, and bounds of the errors of their scores.
template <class T> class TiledRows {
  public:
    TiledRows(int n, int D)
        : n_(n), D_(D), packed_(tile_size() * n_tiles() + PACK_SLACK<T>), squares_(n_tiles() * TILE_ROWS) {}

    // Read the rows `which` of X, minus a shift; call open(i) as soon as row i is ready.
    template <class Open> void read(const Points<T> &X, const std::size_t *which, const T *shift, Open open) {
        const T error = score_error<T>(D_);
        for (int t = 0; t < n_tiles(); ++t) {
            T *a = packed_ + tile_size() * t;
            const std::size_t *row = which + t * TILE_ROWS;
            const int rows = std::min(TILE_ROWS, n_ - t * TILE_ROWS);
            pack<TILE_ROWS>([&](int i) { return X[row[i]]; }, rows, D_, shift, a);
            for (int i = 0; i < TILE_ROWS; ++i) {
                T &bound = error_of(t * TILE_ROWS + i);
                bound = 0;
                if (i >= rows)
                    continue;
                const double square = squares_[t * TILE_ROWS + i] = row_square(X[row[i]], shift, D_);
                bound = error * static_cast<T>(std::sqrt(square) * (1 + 1e-6));
                open(t * TILE_ROWS + i);
            }
        }
    }

    double square(int i) const { return squares_[i]; } // |row - shift|^2
    RowBound<T> bound(int i) const { return {error_of(i), 0, rounded_up<T>(squares_[i])}; }

    // Call see(first, n_rows, low, panel, p, lanes) with lower bounds of the scores of n_rows rows and the lanes of
    // panel p = panel_at(p), for all panels of centers [first_center, end_center).
    template <class PanelOf, class See> void scan(PanelOf panel_at, int first_center, int end_center, See see) const {
        alignas(64) T low[TILE_ROWS][TILE_LANES<T>];
        const int end_panel = (end_center + TILE_LANES<T> - 1) / TILE_LANES<T>;
        for (int p = first_center / TILE_LANES<T>; p < end_panel; ++p) {
            if (p % 32 == 0)
                answer_signals();
            const Panel<T> panel = panel_at(p);
            const std::uint32_t lanes = lanes_within<T>(p, first_center, end_center);
            for (int t = 0; t < n_tiles(); ++t) {
                tile<T, Form::product>(packed_ + tile_size() * t, panel.columns, D_ + 1, panel.half_norm, low);
                see(t * TILE_ROWS, std::min(TILE_ROWS, n_ - t * TILE_ROWS), low, panel, p, lanes);
            }
        }
    }

  private:
    int n_tiles() const { return (n_ + TILE_ROWS - 1) / TILE_ROWS; }
    std::size_t tile_size() const { return static_cast<std::size_t>(D_ + 1) * TILE_ROWS; }
    T &error_of(int i) const {
        return packed_[tile_size() * (i / TILE_ROWS) + static_cast<std::size_t>(D_) * TILE_ROWS + i % TILE_ROWS];
    }

    int n_, D_;
    Scratch<T> packed_;
    Scratch<double> squares_;
};

// Find the nearest of centers [first_center, end_center) for the n rows with the indices `which`, by a screen at full
// precision, relative to the panels' shift, or to `origin` unless it is null. Returns the number of rows without a
// result, because too many distances would have to be computed. Their indices are then the first in `which`.
template <class T>
inline int nearest_by_products(const NearestTask<T> &task, const T *origin, std::size_t *which, int n, int first_center,
                               int end_center) {
    constexpr int L = TILE_LANES<T>;
    const int D = task.X.D;
    Screen<T> screen(task, n);
    TiledRows<T> rows(n, D);
    rows.read(task.X, which, origin ? origin : task.panels.shift,
              [&](int i) { screen.open(i, which[i], rows.square(i), rows.bound(i)); });
    Scratch<T> own(origin ? (D + std::size_t(4)) * L + PACK_SLACK<T> : 0);
    const auto panel_at = [&](int p) {
        if (!origin)
            return panel_of(task.panels, p, D);
        T *numbers = own + (D + std::size_t(1)) * L;
        const Panel<T> panel{own, numbers, numbers + L, nullptr, numbers + 2 * L};
        std::fill_n(panel.lost, L, T(0));
        pack_panel(task.centers, task.panels.surplus, p, origin, panel);
        return panel;
    };
    rows.scan(panel_at, first_center, end_center, offered_to(screen));
    return close_rows(screen, task, which, n);
}

// Find the nearest of centers [first_center, end_center) for the n rows with the indices `which`, one by one, by
// distances from differences.
template <class T>
inline void nearest_by_differences(const NearestTask<T> &task, const std::size_t *which, int n, int first_center,
                                   int end_center) {
    Screen<T> screen(task, 1);
    for (int i = 0; i < n; ++i)
        screen.close_by_all(0, which[i], first_center, end_center);
}

template <class T> inline void nearest(const NearestTask<T> &task, std::size_t begin, std::size_t end) {
    if (!task.lows && is_direct(task.centers.n, task.H, task.X.D))
        return nearest_directly_in(task, begin, end);
    Scratch<std::size_t> which(end - begin);
    int n = static_cast<int>(end - begin);
    const int C = static_cast<int>(task.centers.n);
    for (int i = 0; i < n; ++i)
        which[i] = begin + i;
    if (!task.panels.n_panels)
        return nearest_by_differences(task, which.get(), n, 0, C);
#if CPRIME_COARSE
    if constexpr (sizeof(T) == sizeof(float))
        if (task.panels.coarse)
            n = nearest_coarsely(task, which, n, 0, C);
#endif
    if (task.H == 1 && !task.lows && !task.panels.coarse && task.centers.n <= FEW_CENTERS && n)
        n = nearest_by_two(task, which, n);
    if (n)
        n = nearest_by_products(task, static_cast<const T *>(nullptr), which.get(), n, 0, C);
    // Screen the remaining rows relative to the nearest center of one of them, repeatedly, while this decides enough
    // rows.
    for (bool pays = true; n && pays;) {
        nearest_by_differences(task, which + --n, 1, 0, C);
        const T *origin = task.centers[task.kept[which[n] * task.H]];
        const int left = n ? nearest_by_products(task, origin, which.get(), n, 0, C) : 0;
        pays = 8 * (n - left) > n;
        n = left;
    }
    if (n)
        nearest_by_differences(task, which.get(), n, 0, C);
}

// Find the nearest centers of rows that may be stored in a narrower type: all rows of the call are converted at once.
template <class T> inline void nearest_of_piece(const NearestTask<T> &task, std::size_t begin, std::size_t end) {
    if (task.X.stored == Stored::own)
        return nearest(task, begin, end);
    const std::size_t n = end - begin;
    const Wide<T> wide(task.X, n);
    NearestTask<T> piece = task;
    piece.X = rows_of(task.X, begin, end, wide);
    piece.hint = task.hint ? task.hint + begin * task.H : nullptr;
    piece.kept += begin * task.H;
    piece.distances += begin * task.H;
    nearest(piece, 0, n);
}

} // namespace cprime::CPRIME_ISA
