// Search for nearest centers by bounds that are carried over iterations: a center that has moved little cannot have
// become the nearest.
//
// For each row are stored its nearest center, a few other centers with one lower bound of the distance each, and one
// lower bound for all remaining centers (Drake & Hamerly 2012). A center's move lowers its bound by the distance moved.
// The decrease of the shared bound is chosen for each row. For any radius r, only the greatest move counts among the
// centers nearer than r to the row's own center, and all other centers are at least r minus the row's distance away
// (the annulus of Hamerly 2010 and Newling & Fleuret 2016); the best r is taken. The distance to the own center is
// always computed, those to other centers if their bounds do not exclude them. If the shared bound does not exclude the
// remaining centers, the row is compared with all centers by the search of `nearest.h`.
//
// Bounds are rounded down by more than the rounding errors, so an excluded center has a greater *computed* squared
// distance, and the result is that of `nearest`, ties included.
#pragma once
#include <algorithm>
#include <cmath>

#include "nearest.h"

namespace cprime::CPRIME_ISA {

// Return the lower bound of the distances to all remaining centers after the centers' moves: the maximum over the radii
// `reach` of min(rest - spread, reach - limit). rest: previous bound; spread: greatest move of a center within the
// radius; limit: upper bound of the row's distance to its own center.
template <class T> inline T rest_after(const BoundedTask<T> &task, std::int32_t own, T rest, T limit) {
    using V = simd<T>;
    const T *reach = task.reach + static_cast<std::size_t>(own) * task.width;
    const T *spread = task.spread + static_cast<std::size_t>(own) * task.width;
    const auto whole = V::fill(rest), away = V::fill(limit);
    auto best = V::fill(-std::numeric_limits<T>::max());
    for (int g = 0; g < task.width; g += V::width) {
        best = V::max(best, V::min(whole - V::load(spread + g), V::load(reach + g) - away));
        const int last = g + V::width - 1;
        // From one radius to the next, rest - spread falls, and reach - limit rises.
        if (reach[last] - limit >= rest - spread[last])
            break;
    }
    return Rounding<T>::down(-V::lowest(-best));
}

// Find the nearest center of row n (coordinates x) by its bounds, after these are lowered by the centers' moves.
// Returns false if the bounds do not decide.
template <class T>
inline bool settle_by_bounds(const BoundedTask<T> &task, const Rounding<T> &rounding, std::size_t n, const T *x,
                             std::int64_t &evaluations) {
    const int D = task.nearest.X.D, n_others = task.nearest.H - 1;
    std::int32_t *others = task.others + n * n_others, &own = task.nearest.kept[n];
    T *lows = task.lows + n * n_others, &distance = task.nearest.distances[n];
    distance = squared_distance(x, task.nearest.centers[own], D);
    ++evaluations;
    T limit = rounding.limit(distance), least = rounding.low(distance);
    const T rest = task.rest[n] = rest_after(task, own, task.rest[n], limit);
    for (int h = 0; h < n_others; ++h) {
        lows[h] = Rounding<T>::down(lows[h] - task.drift[others[h]]);
        least = std::min(least, lows[h]);
    }
    if (rest < least) // the shared bound can exclude no remaining center
        return false;
    for (int h = 0; h < n_others; ++h) {
        if (lows[h] > limit)
            continue;
        T there = squared_distance(x, task.nearest.centers[others[h]], D);
        ++evaluations;
        if (there < distance || (there == distance && others[h] < own)) {
            std::swap(there, distance);
            std::swap(others[h], own);
            limit = rounding.limit(distance);
        }
        lows[h] = rounding.low(there);
    }
    return rest > limit;
}

// Search the n rows `open`, whose coordinates are in x, among all centers, and compute new bounds for these rows.
template <class T>
inline void search_open(const BoundedTask<T> &task, const std::size_t *open, const T *x, int n) {
    const int D = task.nearest.X.D;
    const std::size_t H = task.nearest.H, n_others = H - 1;
    Scratch<T> distances(n), lows(static_cast<std::size_t>(n) * H);
    Scratch<std::int32_t> hint(static_cast<std::size_t>(n) * H), kept(static_cast<std::size_t>(n) * H);
    for (int i = 0; i < n; ++i) {
        hint[i * H] = task.nearest.kept[open[i]];
        std::copy_n(task.others + open[i] * n_others, n_others, hint + i * H + 1);
    }
    NearestTask<T> few = task.nearest;
    few.X = Rows<T>{x, D, static_cast<std::size_t>(n), D};
    few.hint = hint;
    few.kept = kept;
    few.distances = distances;
    few.lows = lows;
    nearest(few, 0, n);
    for (int i = 0; i < n; ++i) {
        const std::size_t row = open[i];
        task.nearest.kept[row] = kept[i * H];
        task.nearest.distances[row] = distances[i];
        std::copy_n(kept + i * H + 1, n_others, task.others + row * n_others);
        std::copy_n(lows + i * H, n_others, task.lows + row * n_others);
        task.rest[row] = lows[i * H + n_others];
    }
}

template <class T>
inline std::int64_t nearest_bounded(const BoundedTask<T> &task, std::size_t begin, std::size_t end) {
    const Rounding<T> rounding(task.nearest.X.D);
    const int most = static_cast<int>(nearest_rows<T>(task.nearest.H, task.nearest.X.D, task.nearest.panels.coarse));
    const Points<T> &X = task.nearest.X;
    const auto D = static_cast<std::size_t>(X.D);
    const std::size_t step = rows_near(X, end - begin);
    const Wide<T> wide(X, step);
    Scratch<std::size_t> open(most);
    Scratch<T> open_rows(most * D + PACK_SLACK<T>);
    int n_open = 0;
    std::int64_t evaluations = 0;
    for (std::size_t first = begin; first < end; first += step) {
        const std::size_t last = std::min(end, first + step);
        const Rows<T> rows = rows_of(X, first, last, wide);
        for (std::size_t n = first; n < last; ++n) {
            const T *x = rows[n - first];
            if (!settle_by_bounds(task, rounding, n, x, evaluations)) {
                std::copy_n(x, D, open_rows + n_open * D);
                open[n_open++] = n;
                evaluations += task.nearest.panels.C;
            }
            if (n_open == most || (n + 1 == end && n_open)) {
                search_open<T>(task, open, open_rows, n_open);
                n_open = 0;
            }
        }
    }
    return evaluations;
}

} // namespace cprime::CPRIME_ISA
