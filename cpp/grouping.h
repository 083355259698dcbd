// Points by component, as a counting sort, and work on the points of each in segments.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "thread_pool.h"

namespace cprime {

// The entries n * H + h of `kept`, grouped by component and in rising order within each: a counting sort over a fixed
// number of chunks, so that the order does not depend on the threads. Returns where each component begins.
std::vector<std::size_t> group(const std::int32_t *kept, std::size_t n_entries, std::size_t n_components, int n_threads,
                               std::vector<std::int64_t> &entries);

// The rows of `kept` (n, width), grouped by their first component.
std::vector<std::size_t> group_by_first(const std::int32_t *kept, std::size_t n, std::size_t width,
                                        std::size_t n_components, int n_threads, std::vector<std::int64_t> &entries);

constexpr std::size_t SHARED = 2048; // points of a component that share what is made of its candidates

// Entries [begin, end) of one component.
struct Segment {
    int component;
    std::size_t begin, end;
};

// The entries of every component (of the active ones only if some are not) in pieces of at most `length`.
std::vector<Segment> segments(const std::vector<std::size_t> &begin, std::size_t length,
                              const std::uint8_t *active = nullptr);

// work(s) for every s < n, a few of them at a time.
template <class Work> void for_each(std::size_t n, int n_threads, Work work) {
    constexpr std::size_t STEP = 4;
    parallel_for((n + STEP - 1) / STEP, n_threads, [&](std::size_t i) {
        for (std::size_t s = i * STEP; s < std::min(n, (i + 1) * STEP); ++s)
            work(s);
    });
}

// work(component, begin, end) for each segment.
template <class Work> void for_each(const std::vector<Segment> &segments, int n_threads, Work work) {
    for_each(segments.size(), n_threads,
             [&](std::size_t s) { work(segments[s].component, segments[s].begin, segments[s].end); });
}

// Where sums go: per component a count, n_first and n_second numbers.
struct Sums {
    double *count, *first, *second;
    std::size_t n_first, n_second;
    Sums of(std::size_t c) const {
        return {count + c, first + c * n_first, second ? second + c * n_second : nullptr, n_first, n_second};
    }
    void add(const Sums &other) const;
};

// work(segment, sums) adds to the sums of its component. What a component has beyond its first segment is summed apart
// and merged in order: the same sums for any number of threads.
template <class Work>
void sum_segments(const std::vector<Segment> &segments, const Sums &out, int n_threads, Work work) {
    std::vector<char> later(segments.size());
    std::size_t n_later = 0;
    for (std::size_t s = 1; s < segments.size(); ++s)
        n_later += later[s] = segments[s].component == segments[s - 1].component;
    const std::size_t width = 1 + out.n_first + out.n_second;
    std::vector<double> spare(n_later * width);
    std::vector<Sums> sums;
    sums.reserve(segments.size());
    double *place = spare.data();
    for (std::size_t s = 0; s < segments.size(); ++s) {
        sums.push_back(out.of(segments[s].component));
        if (later[s]) {
            sums.back() = {place, place + 1, out.second ? place + 1 + out.n_first : nullptr, out.n_first, out.n_second};
            place += width;
        }
    }
    for_each(segments.size(), n_threads, [&](std::size_t s) { work(segments[s], sums[s]); });
    for (std::size_t s = 0; s < segments.size(); ++s)
        if (later[s])
            out.of(segments[s].component).add(sums[s]);
}

} // namespace cprime
