// The cluster-major partial search: the points of a component share its neighbours as candidates, packed once relative
// to the component's own centre, and are scored in dense tiles. Where the processor has a matrix unit the tiles only
// screen: bounds of their error say which candidates have to be measured.
#pragma once
#include <algorithm>

#include "halves.h"
#include "kernels.h"
#include "screen.h"
#include "tile.h"

namespace cprime::CPRIME_ISA {

// Where the points of component c go. A point moves to the neighbour b of least outside[b] |x - m_b|^2 if that is less
// than inside[c] |x - m_c|^2. The factors of an exchange hold for one point at a time: of the points that go although
// the neighbour is not nearer, a share of the component at most may go, those of greatest gain.
template <class T> class Moves {
  public:
    Moves(const ReassignTask<T> &task, int c, std::size_t n_points)
        : task_(task), c_(c), inside_(task.inside ? task.inside[c] : T(1)), exchanges_(n_points),
          most_(std::max<std::size_t>(1, static_cast<std::size_t>(task.share * static_cast<double>(n_points)))) {}

    T inside() const { return inside_; }

    // `stay`: the squared distance of point n to its own centre; the candidates are measured from differences.
    void settle(std::size_t n, T stay, const std::int32_t *candidates, int n_candidates) {
        T best = inside_ * stay, distance = stay;
        std::int32_t winner = c_;
        for (int i = 0; i < n_candidates; ++i) {
            const T there = squared_distance(task_.X[n], task_.centers[candidates[i]], task_.X.D);
            const T score = task_.outside ? task_.outside[candidates[i]] * there : there;
            if (score < best) {
                best = score;
                winner = candidates[i];
                distance = there;
            }
        }
        if (winner != c_ && distance >= stay)
            exchanges_[n_exchanges_++] = {inside_ * stay - best, stay, n};
        task_.labels[n] = winner;
        task_.distances[n] = distance;
    }

    void limit() {
        if (n_exchanges_ <= most_)
            return;
        std::nth_element(exchanges_.get(), exchanges_ + most_, exchanges_ + n_exchanges_,
                         [](const Exchange &a, const Exchange &b) {
                             return a.gain > b.gain || (a.gain == b.gain && a.point < b.point);
                         });
        for (std::size_t e = most_; e < n_exchanges_; ++e) {
            task_.labels[exchanges_[e].point] = c_;
            task_.distances[exchanges_[e].point] = exchanges_[e].stay;
        }
    }

  private:
    struct Exchange {
        T gain, stay;
        std::size_t point;
    };
    const ReassignTask<T> &task_;
    std::int32_t c_;
    T inside_;
    Scratch<Exchange> exchanges_;
    std::size_t n_exchanges_ = 0, most_;
};

template <class T> inline void prefetch_rows(const ReassignTask<T> &task, std::size_t begin, std::size_t end) {
    for (std::size_t e = begin; e < end; ++e) {
        const char *next = reinterpret_cast<const char *>(task.X[task.entries[e]]);
        for (std::size_t byte = 0; byte < task.X.D * sizeof(T); byte += 64)
            __builtin_prefetch(next + byte, 0, 2);
    }
}

template <class T> inline void column_squares(const T *packed, int D, T *square) {
    using V = simd<T>;
    constexpr int blocks = (TILE_ROWS + V::width - 1) / V::width; // the last one reads and writes a little behind
    typename V::vec sum[blocks][4] = {};
    for (int k = 0; k < D; ++k)
        for (int b = 0; b < blocks; ++b) {
            const auto v = V::load(packed + k * TILE_ROWS + b * V::width);
            sum[b][k % 4] += v * v;
        }
    for (int b = 0; b < blocks; ++b)
        V::store(square + b * V::width, (sum[b][0] + sum[b][1]) + (sum[b][2] + sum[b][3]));
}

// score = outside (|m|^2 - 2 x m + |x|^2), all relative to the origin; |x|^2 is one more dimension of x. What rounding
// makes look best is measured.
template <class T>
inline void reassign_by_products(const ReassignTask<T> &task, int c, std::size_t begin, std::size_t end,
                                 const std::int32_t *list, int n_candidates) {
    using V = simd<T>;
    constexpr int L = TILE_LANES<T>;
    const int D = task.X.D;
    const T *origin = task.centers[c];
    const int n_panels = (n_candidates + L - 1) / L;
    const std::size_t panel_size = static_cast<std::size_t>(D + 1) * L;
    Scratch<T> columns(panel_size * n_panels);
    Scratch<T> start(static_cast<std::size_t>(L) * n_panels);
    for (int p = 0; p < n_panels; ++p) {
        T *column = columns + panel_size * p;
        const int n = std::min(L, n_candidates - p * L);
        pack<L>([&](int i) { return task.centers[list[p * L + i]]; }, n, D, origin, column);
        alignas(64) T factor[L];
        for (int i = 0; i < L; ++i)
            factor[i] = i >= n ? T(0) : task.outside ? task.outside[list[p * L + i]] : T(1);
        for (int v = 0; v < L; v += V::width) {
            typename V::vec square{};
            const auto f = V::load(factor + v);
            for (int k = 0; k < D; ++k) {
                const auto m = V::load(column + k * L + v);
                square += m * m;
                V::store(column + k * L + v, m * (f * T(-2)));
            }
            V::store(column + D * L + v, f);
            V::store(start + p * L + v, f * square);
        }
        for (int i = n; i < L; ++i)
            start[p * L + i] = std::numeric_limits<T>::infinity();
    }

    Moves<T> moves(task, c, end - begin);
    Scratch<T> packed(static_cast<std::size_t>(D + 1) * TILE_ROWS + PACK_SLACK<T>);
    alignas(64) T score[TILE_ROWS][L];
    for (std::size_t first = begin; first < end; first += TILE_ROWS) {
        const int rows = static_cast<int>(std::min<std::size_t>(TILE_ROWS, end - first));
        prefetch_rows(task, first + rows, std::min(end, first + 2 * TILE_ROWS));
        pack<TILE_ROWS>([&](int i) { return task.X[task.entries[first + i]]; }, rows, D, origin, packed.get());
        alignas(64) T square[TILE_ROWS + V::width];
        column_squares(packed.get(), D, square);
        T best[TILE_ROWS];
        std::int32_t winner[TILE_ROWS];
        for (int i = 0; i < TILE_ROWS; ++i) {
            packed[D * TILE_ROWS + i] = square[i];
            best[i] = moves.inside() * square[i];
            winner[i] = -1;
        }
        for (int p = 0; p < n_panels; ++p) {
            tile<T, Form::product>(packed, columns + panel_size * p, D + 1, start + p * L, score);
            for (int i = 0; i < rows; ++i) {
                const auto limit = V::fill(best[i]);
                const auto low = V::load(&score[i][0]), high = V::load(&score[i][V::width]);
                const auto lowest = V::min(low, high);
                if (!V::mask_le(lowest, limit))
                    continue;
                const T least = V::lowest(lowest);
                if (least < best[i]) {
                    const auto bar = V::fill(least);
                    best[i] = least;
                    winner[i] = list[p * L + __builtin_ctz(V::mask_le(low, bar) | V::mask_le(high, bar) << V::width)];
                }
            }
        }
        for (int i = 0; i < rows; ++i)
            moves.settle(task.entries[first + i], square[i], &winner[i], winner[i] >= 0);
    }
    moves.limit();
}

#if defined(__AMX_BF16__)

constexpr int HALF_POINTS = 2 * HALF_ROWS; // points that are screened at a time

// Some points of a component, as the right factor of a product.
struct HalfPoints {
    explicit HalfPoints(int depth) : columns(static_cast<std::size_t>(HALF_POINTS) * depth) {}

    // Entries [first, end), or as many as fit; those behind them are fetched.
    void read(const ReassignTask<float> &task, const float *origin, std::size_t first, std::size_t end, int depth) {
        n = static_cast<int>(std::min<std::size_t>(HALF_POINTS, end - first));
        const auto row = [&](int i) { return task.X[task.entries[first + i]]; };
        const auto next = [&](int i) { return first + HALF_POINTS + i < task.X.n ? row(HALF_POINTS + i) : nullptr; };
        for (int j = 0; j < n; j += HALF_ROWS) {
            round_rows([&](int i) { return row(j + i); }, std::min(HALF_ROWS, n - j),
                       [&](int i) { return next(j + i); }, task.X.D, depth, origin, 1, columns + j * depth, square + j,
                       lost + j);
            transpose_tiles(columns + j * depth, depth);
        }
    }

    int n = 0;
    Scratch<half> columns;
    alignas(64) float square[HALF_POINTS], lost[HALF_POINTS];
};

// The same scores from halves, with |error| <= outside (e |m| + g (|x|^2 + |m|^2)): e for what rounding takes, g for
// the arithmetic. Candidates whose lower bound is below every upper one, and below the own score, are measured.
inline void reassign_by_halves(const ReassignTask<float> &task, int c, std::size_t begin, std::size_t end,
                               const std::int32_t *list, int n_candidates) {
    using V = simd<float>;
    const int D = task.X.D, depth = half_depth(D);
    const float *origin = task.centers[c];
    const int n_padded = (n_candidates + 2 * HALF_ROWS - 1) / (2 * HALF_ROWS) * (2 * HALF_ROWS);
    const float g = score_error<float>(D);
    constexpr float INFINITE = std::numeric_limits<float>::infinity();

    HalfPoints buffers[2] = {HalfPoints(depth), HalfPoints(depth)}; // a product waits for what was stored just before
    buffers[0].read(task, origin, begin, end, depth);

    struct alignas(16) Terms { // score = factor |x|^2 + slope x m + start
        float factor, slope, start, width;
    };
    Scratch<half> left(static_cast<std::size_t>(n_padded) * depth);
    Scratch<Terms> terms(n_padded);
    float worst = 0, longest = 0; // of the candidates: the share that rounding takes, and |m|
    for (int p = 0; p < n_padded; p += HALF_ROWS) {
        float square[HALF_ROWS], lost[HALF_ROWS];
        const auto row = [&](int i) { return task.centers[list[p + i]]; };
        const auto next = [&](int i) { return p + HALF_ROWS + i < n_candidates ? row(HALF_ROWS + i) : nullptr; };
        round_rows(row, std::min(HALF_ROWS, n_candidates - p), next, D, depth, origin, 1, left + p * depth, square,
                   lost);
        for (int i = 0; i < HALF_ROWS && p + i < n_candidates; ++i) {
            const float factor = task.outside ? task.outside[list[p + i]] : 1;
            const float norm = std::sqrt(square[i]);
            terms[p + i] = {factor, -2 * factor, factor * square[i], factor * norm};
            longest = std::max(longest, norm);
            if (square[i] > 0)
                worst = std::max(worst, lost[i] / square[i]);
        }
    }
    worst = std::sqrt(worst);

    Moves<float> moves(task, c, end - begin);
    Scratch<float> low(static_cast<std::size_t>(n_padded) * HALF_POINTS);
    Scratch<std::int32_t> near(static_cast<std::size_t>(HALF_POINTS) * n_candidates);
    int turn = 0;
    for (std::size_t first = begin; first < end; first += HALF_POINTS, turn ^= 1) {
        const HalfPoints &points = buffers[turn];
        if (first + HALF_POINTS < end)
            buffers[turn ^ 1].read(task, origin, first + HALF_POINTS, end, depth);
        for (int p = 0; p < n_padded; p += 2 * HALF_ROWS)
            if (points.n > HALF_ROWS)
                multiply<2, 2>(left + p * depth, points.columns, depth, low + p * HALF_POINTS, HALF_POINTS);
            else
                multiply<2, 1>(left + p * depth, points.columns, depth, low + p * HALF_POINTS, HALF_POINTS);
        int n_near[HALF_POINTS] = {};
        for (int j = 0; j < points.n; j += V::width) {
            alignas(64) float own[V::width], e[V::width];
            for (int i = 0; i < V::width; ++i) {
                own[i] = j + i < points.n ? moves.inside() * points.square[j + i] : -INFINITE;
                e[i] = 2.05f * (std::sqrt(points.lost[j + i]) + (worst + g) * std::sqrt(points.square[j + i])) +
                       2 * g * longest;
            }
            const auto x2 = V::load(points.square + j), error = V::load(e), arithmetic = x2 * (2 * g);
            auto bar = V::load(own), lowest = V::fill(INFINITE);
            float *column = low + j;
            for (int b = 0; b < n_candidates; ++b) {
                const Terms t = terms[b];
                const auto width = error * t.width + arithmetic * t.factor;
                const auto score = V::load(column + b * HALF_POINTS) * t.slope + (x2 * t.factor + t.start);
                bar = V::min(bar, score + width);
                lowest = V::min(lowest, score - width);
                V::store(column + b * HALF_POINTS, score - width);
            }
            if (!V::mask_le(lowest, bar))
                continue;
            for (int b = 0; b < n_candidates; ++b)
                for (auto mask = V::mask_le(V::load(column + b * HALF_POINTS), bar); mask; mask &= mask - 1) {
                    const int i = j + __builtin_ctz(mask);
                    near[i * n_candidates + n_near[i]++] = list[b];
                }
        }
        for (int i = 0; i < points.n; ++i)
            moves.settle(task.entries[first + i], points.square[i], near + i * n_candidates, n_near[i]);
    }
    moves.limit();
}

#endif

// Points [begin, end) of `entries`, all of them of component c.
template <class T> inline void reassign(const ReassignTask<T> &task, int c, std::size_t begin, std::size_t end) {
    const std::int32_t *list = task.lists + static_cast<std::size_t>(c) * task.G;
    const int n_candidates = static_cast<int>(std::find(list, list + task.G, -1) - list);
#if defined(__AMX_BF16__)
    if constexpr (sizeof(T) == sizeof(float)) {
        const MatrixUnit unit;
        return reassign_by_halves(task, c, begin, end, list, n_candidates);
    }
#endif
    reassign_by_products(task, c, begin, end, list, n_candidates);
}

} // namespace cprime::CPRIME_ISA
