// Set of a few component ids.
#pragma once
#include <algorithm>
#include <bit>

#include "kernels.h"

namespace cprime::CPRIME_ISA {

// A few component ids in a hash table with open addressing.
class IdSet {
  public:
    IdSet(const std::int32_t *ids, int n)
        : ids_(ids), last_(std::bit_ceil(static_cast<std::uint32_t>(4 * n + 1)) - 1), table_(last_ + 1) {
        std::fill_n(table_.get(), last_ + 1, -1);
        for (int i = 0; i < n; ++i)
            table_[place(ids[i])] = i;
    }
    bool has(std::int32_t id) const { return find(id) >= 0; }
    // Return the position of an id among the given ids; -1 if it is not among them.
    int find(std::int32_t id) const { return table_[place(id)]; }

  private:
    // Return the slot that has the id, or the free slot for it.
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
