#include "grouping.h"

#include <utility>

#include "thread_pool.h"

namespace cprime {

std::vector<std::size_t> group(const std::int32_t *kept, std::size_t n_entries, std::size_t n_components, int n_threads,
                               std::vector<std::int64_t> &entries) {
    const std::size_t n_chunks = n_entries < 65536 ? 1 : 8;
    const std::size_t step = (n_entries + n_chunks - 1) / n_chunks;
    std::vector<std::vector<std::size_t>> places(n_chunks, std::vector<std::size_t>(n_components));
    parallel_for(n_chunks, n_threads, [&](std::size_t i) {
        for (std::size_t e = i * step; e < std::min(n_entries, (i + 1) * step); ++e) {
            const auto c = static_cast<std::uint32_t>(kept[e]);
            if (c >= n_components)
                throw std::invalid_argument(OUTSIDE);
            ++places[i][c];
        }
    });
    std::vector<std::size_t> begin(n_components + 1);
    std::size_t place = 0;
    for (std::size_t c = 0; c < n_components; ++c) {
        begin[c] = place;
        for (auto &chunk : places)
            place += std::exchange(chunk[c], place);
    }
    begin[n_components] = place;
    entries.resize(n_entries);
    parallel_for(n_chunks, n_threads, [&](std::size_t i) {
        for (std::size_t e = i * step; e < std::min(n_entries, (i + 1) * step); ++e)
            entries[places[i][kept[e]]++] = static_cast<std::int64_t>(e);
    });
    return begin;
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
