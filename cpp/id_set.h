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
        : last_(std::bit_ceil(static_cast<std::uint32_t>(4 * n + 1)) - 1), table_(last_ + 1) {
        std::fill_n(table_.get(), last_ + 1, -1);
        for (int i = 0; i < n; ++i)
            table_[place(ids[i])] = ids[i];
    }
    bool has(std::int32_t id) const { return table_[place(id)] == id; }

  private:
    // Where the id is, or would be.
    std::uint32_t place(std::int32_t id) const {
        std::uint32_t at = (static_cast<std::uint32_t>(id) * 2654435769u >> 7) & last_;
        while (table_[at] != id && table_[at] != -1)
            at = (at + 1) & last_;
        return at;
    }

    std::uint32_t last_;
    Scratch<std::int32_t> table_;
};

} // namespace cprime::CPRIME_ISA
