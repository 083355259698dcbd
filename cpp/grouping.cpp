#include "grouping.h"

#include <cmath>
#include <utility>

#include "thread_pool.h"

namespace cprime {

namespace {

// Chunks of entries, whose number does not depend on the number of threads.
class Chunks {
  public:
    explicit Chunks(std::size_t n_entries) : n(n_entries < 65536 ? 1 : 8), n_entries_(n_entries) {}
    // Call work(chunk, entry) for every entry, and for the entries of a chunk in ascending order.
    template <class Work> void for_each(int n_threads, Work work) const {
        const std::size_t step = (n_entries_ + n - 1) / n;
        parallel_for(n, n_threads, [&](std::size_t i) {
            for (std::size_t e = i * step; e < std::min(n_entries_, (i + 1) * step); ++e)
                work(i, e);
        });
    }
    const std::size_t n;

  private:
    std::size_t n_entries_;
};

// Group the entries e with counts(e) by component.
template <class Counts>
std::vector<std::size_t> group_some(const std::int32_t *kept, const Chunks &chunks, std::size_t n_components,
                                    int n_threads, std::vector<std::int64_t> &entries, Counts counts) {
    std::vector<std::vector<std::size_t>> places(chunks.n, std::vector<std::size_t>(n_components));
    chunks.for_each(n_threads, [&](std::size_t i, std::size_t e) {
        const auto c = static_cast<std::uint32_t>(kept[e]);
        if (c >= n_components)
            throw std::invalid_argument(OUTSIDE);
        places[i][c] += counts(e);
    });
    std::vector<std::size_t> begin(n_components + 1);
    std::size_t place = 0;
    for (std::size_t c = 0; c < n_components; ++c) {
        begin[c] = place;
        for (auto &chunk : places)
            place += std::exchange(chunk[c], place);
    }
    begin[n_components] = place;
    entries.resize(place);
    chunks.for_each(n_threads, [&](std::size_t i, std::size_t e) {
        if (counts(e))
            entries[places[i][kept[e]]++] = static_cast<std::int64_t>(e);
    });
    return begin;
}

} // namespace

std::vector<std::size_t> group(const std::int32_t *kept, std::size_t n_entries, std::size_t n_components, int n_threads,
                               std::vector<std::int64_t> &entries) {
    return group_some(kept, Chunks(n_entries), n_components, n_threads, entries, [](std::size_t) { return true; });
}

std::vector<std::size_t> group_shares(const std::int32_t *kept, std::size_t n, std::size_t H, std::size_t n_components,
                                      const double *q, const double *weight, const std::int64_t *rows,
                                      double negligible, int n_threads, std::vector<std::int64_t> &entries) {
    if (!q)
        return group(kept, n * H, n_components, n_threads, entries);
    const auto size = [&](std::size_t e) {
        return std::abs(q[e]) * (weight ? weight[rows ? rows[e / H] : static_cast<std::int64_t>(e / H)] : 1.0);
    };
    const Chunks chunks(n * H);
    std::vector<double> limit(n_components);
    if (negligible > 0) {
        std::vector<std::vector<double>> largest(chunks.n, std::vector<double>(n_components));
        chunks.for_each(n_threads, [&](std::size_t i, std::size_t e) {
            if (static_cast<std::uint32_t>(kept[e]) < n_components)
                largest[i][kept[e]] = std::max(largest[i][kept[e]], size(e));
        });
        for (std::size_t c = 0; c < n_components; ++c)
            for (const auto &chunk : largest)
                limit[c] = std::max(limit[c], negligible * chunk[c]);
    }
    return group_some(kept, chunks, n_components, n_threads, entries,
                      [&](std::size_t e) { return !(size(e) <= limit[kept[e]]); });
}

std::vector<std::size_t> group_by_first(const std::int32_t *kept, std::size_t n, std::size_t width,
                                        std::size_t n_components, int n_threads, std::vector<std::int64_t> &entries) {
    std::vector<std::int32_t> first(n);
    for (std::size_t i = 0; i < n; ++i)
        first[i] = kept[i * width];
    return group(first.data(), n, n_components, n_threads, entries);
}

std::vector<Segment> segments(const std::vector<std::size_t> &begin, std::size_t length, const std::uint8_t *active) {
    std::vector<Segment> out;
    for (std::size_t c = 0; c + 1 < begin.size(); ++c)
        for (std::size_t b = begin[c]; b < begin[c + 1] && (!active || active[c]); b += length)
            out.push_back({static_cast<int>(c), b, std::min(b + length, begin[c + 1])});
    return out;
}

void Sums::add(const Sums &other) const {
    *count += *other.count;
    for (std::size_t k = 0; k < n_first; ++k)
        first[k] += other.first[k];
    for (std::size_t k = 0; second && k < n_second; ++k)
        second[k] += other.second[k];
}

} // namespace cprime
