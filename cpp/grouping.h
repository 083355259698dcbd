// Points by component, as a counting sort.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cprime {

// The entries n * H + h of `kept`, grouped by component and in rising order within each: a counting sort over a fixed
// number of chunks, so that the order does not depend on the threads. Returns where each component begins.
std::vector<std::size_t> group(const std::int32_t *kept, std::size_t n_entries, std::size_t n_components, int n_threads,
                               std::vector<std::int64_t> &entries);

} // namespace cprime
