// Which components are among a few.
#pragma once
#include <algorithm>
#include <bit>

#include "kernels.h"

namespace cprime::CPRIME_ISA {

// A few components, in a table of open addresses.
class IdSet {
  public:
    IdSet(const std::int32_t *ids, int n)
        : ids_(ids), last_(std::bit_ceil(static_cast<std::uint32_t>(4 * n + 1)) - 1), table_(last_ + 1) {
        std::fill_n(table_.get(), last_ + 1, -1);
        for (int i = 0; i < n; ++i)
            table_[place(ids[i])] = i;
    }
    bool has(std::int32_t id) const { return find(id) >= 0; }
    // Where it is among the ids that were given; -1 if nowhere.
    int find(std::int32_t id) const { return table_[place(id)]; }

  private:
    // Where the id is in the table, or would be.
    std::uint32_t place(std::int32_t id) const {
        std::uint32_t at = (static_cast<std::uint32_t>(id) * 2654435769u >> 7) & last_;
        while (table_[at] >= 0 && ids_[table_[at]] != id)
            at = (at + 1) & last_;
        return at;
    }

    const std::int32_t *ids_;
    std::uint32_t last_;
    Scratch<std::int32_t> table_;
};

} // namespace cprime::CPRIME_ISA
