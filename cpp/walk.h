// The walk along lists: each row goes from where it starts to what is near the nearest that it has found, again and
// again, until nothing new is nearer than the few nearest.
#pragma once
#include <algorithm>

#include "distances.h"
#include "screen.h"
#include "signals.h"

namespace cprime::CPRIME_ISA {

// The few nearest that a walk has met, by (distance, id).
template <class T> class Pool {
  public:
    explicit Pool(int width) : width_(width), met_(width) {}

    void clear() { n_ = open_ = 0; }

    void offer(T distance, std::int32_t id) {
        if (n_ == width_ && !before(distance, id, met_[n_ - 1]))
            return;
        int place = n_ < width_ ? n_++ : n_ - 1;
        for (; place > 0 && before(distance, id, met_[place - 1]); --place)
            met_[place] = met_[place - 1];
        met_[place] = {distance, id, true};
        open_ = std::min(open_, place);
    }

    // The nearest whose list has not been asked for; -1 if there is none, or it is far.
    std::int32_t next() {
        while (open_ < n_ && !met_[open_].open)
            ++open_;
        if (open_ == n_ || met_[open_].distance > FAR * met_[0].distance)
            return -1;
        met_[open_].open = false;
        return met_[open_].id;
    }

    std::int32_t best() const { return met_[0].id; }
    T distance() const { return met_[0].distance; }

  private:
    static constexpr T FAR = T(1.5); // times the least squared distance: from there on hardly any list has a nearer one
    struct Met {
        T distance;
        std::int32_t id;
        bool open;
    };
    static bool before(T distance, std::int32_t id, const Met &other) {
        return distance < other.distance || (distance == other.distance && id < other.id);
    }
    int width_, n_ = 0, open_ = 0;
    Scratch<Met> met_;
};

// Entries [begin, end). fetch(c) asks for a centre; measure(n, ids, count, out) gives squared distances, and
// anything up to a vector behind them.
template <class T, class Fetch, class Measure>
inline void walk_rows(const WalkTask<T> &task, std::size_t begin, std::size_t end, Fetch fetch, Measure measure) {
    const std::size_t C = task.centers.n, words = (C + 63) / 64;
    Scratch<std::uint64_t> seen(words);
    std::fill_n(seen.get(), words, 0);
    Scratch<std::int32_t> met(C + 1);
    Scratch<T> distance(std::max(task.G, task.n_starts) + simd<T>::width);
    Pool<T> pool(task.width);
    for (std::size_t e = begin; e < end; ++e) {
        answer_signals_at(e);
        const std::size_t n = task.entries[e];
        int count = 0;
        pool.clear();
        const auto look = [&](const std::int32_t *ids, int n_ids) {
            const int first = count;
            for (int i = 0; i < n_ids && ids[i] >= 0; ++i) { // without branches on what has been seen: half of it has
                const std::int32_t c = ids[i];
                const std::uint64_t bit = std::uint64_t(1) << (c & 63), before = seen[c >> 6];
                seen[c >> 6] = before | bit;
                met[count] = c;
                count += !(before & bit);
            }
            for (int i = first; i < count; ++i)
                fetch(met[i]);
            measure(n, met + first, count - first, distance.get());
            for (int i = first; i < count; ++i)
                pool.offer(comparable(distance[i - first]), met[i]);
        };
        look(task.starts + n * task.n_starts, task.n_starts);
        for (std::int32_t c = pool.next(); c >= 0; c = pool.next())
            look(task.lists + static_cast<std::size_t>(c) * task.G, task.G);
        for (int i = 0; i < count; ++i)
            seen[met[i] >> 6] = 0;
        task.labels[n] = pool.best();
        task.distances[n] = pool.distance();
        task.counts[n] = count;
    }
}

template <class T> inline void walk(const WalkTask<T> &task, std::size_t begin, std::size_t end) {
    walk_rows(
        task, begin, end, [&](std::int32_t c) { prefetch(task.centers[c], task.X.D); },
        [&](std::size_t n, const std::int32_t *ids, int count, T *out) {
            distances_to(task.X[n], task.centers, ids, count, out);
        });
}

} // namespace cprime::CPRIME_ISA
