// Components of least cost for some points; each vector lane is a point.
#pragma once
#include <algorithm>
#include <cstring>

#include "tile.h"

namespace cprime::CPRIME_ISA {

// The H components of least (cost, id) for each of some points, in this order; each vector lane is a point.
template <class T> class LaneBest {
  public:
    using Id = typename integer_of<T>::type;
    static constexpr int L = TILE_LANES<T>;
    static constexpr Id NONE = ~Id(0); // greater than every component id

    explicit LaneBest(int H) : H_(H), costs_(static_cast<std::size_t>(L) * H), ids_(static_cast<std::size_t>(L) * H) {}

    void clear() {
        std::fill_n(costs_.get(), L * H_, std::numeric_limits<T>::infinity());
        std::fill_n(ids_.get(), L * H_, NONE);
    }

    // Return, for each lane, the cost of the last of the H components, above which no further component is accepted.
    const T *bar() const { return at(costs_, H_ - 1); }

    // Offer component c, which has not been offered before, with a cost for every lane.
    [[gnu::always_inline]] void offer(std::int32_t c, const T *cost) {
        const ints id = static_cast<Id>(c) - ints{};
        for (int v = 0; v < L; v += W)
            offer(v, id, V::load(cost + v));
    }

    // Offer a different component to each lane of the vector that begins at lane v.
    [[gnu::always_inline]] void offer(int v, typename simd<T>::ints id, typename simd<T>::vec x) {
        if (V::mask_not_above(x, V::load(at(costs_, H_ - 1) + v)))
            insert(v, id, x);
    }

    // Offer a component to one lane (point).
    void offer_to(int i, std::int32_t c, T cost) {
        cost = comparable(cost);
        const auto id = static_cast<Id>(c);
        int h = H_ - 1;
        const auto behind = [&](int k) {
            const T other = at(costs_, k)[i];
            return cost < other || (cost == other && id < at(ids_, k)[i]);
        };
        if (!behind(h))
            return;
        for (; h > 0 && behind(h - 1); --h) {
            at(costs_, h)[i] = at(costs_, h - 1)[i];
            at(ids_, h)[i] = at(ids_, h - 1)[i];
        }
        at(costs_, h)[i] = cost;
        at(ids_, h)[i] = id;
    }

    // Write the components of a lane; missing ones have id -1 and an infinite cost.
    void store(int i, std::int32_t *ids, T *costs) const {
        for (int h = 0; h < H_; ++h) {
            ids[h] = static_cast<std::int32_t>(at(ids_, h)[i]);
            costs[h] = at(costs_, h)[i];
        }
    }

  private:
    using V = simd<T>;
    using vec = typename V::vec;
    using ints = typename V::ints;
    static constexpr int W = V::width;
    struct Entry {
        vec cost;
        ints id;
    };

    static auto before(const Entry &a, const Entry &b) {
        return (a.cost < b.cost) | ((a.cost == b.cost) & (a.id < b.id));
    }
    template <class U> U *at(const Scratch<U> &rows, int h) const {
        return rows.get() + static_cast<std::size_t>(h) * L;
    }
    Entry read(int h, int v) const {
        Entry out{V::load(at(costs_, h) + v), {}};
        std::memcpy(&out.id, at(ids_, h) + v, sizeof(ints));
        return out;
    }
    void write(int h, int v, const Entry &entry) {
        V::store(at(costs_, h) + v, entry.cost);
        std::memcpy(at(ids_, h) + v, &entry.id, sizeof(ints));
    }

    // Insert an entry that precedes the last entry of at least one lane.
    void insert(int v, ints id, vec x) {
        x = x == x ? x : std::numeric_limits<T>::infinity() - vec{};
        Entry entry{x, id}, kept = read(H_ - 1, v);
        const auto first = before(entry, kept);
        entry = {first ? x : kept.cost, first ? id : kept.id};
        int h = H_ - 1;
        for (; h > 0; --h) { // until no lane's entry precedes the one above it
            kept = read(h - 1, v);
            const auto rises = before(entry, kept);
            if (!V::any(rises))
                break;
            write(h, v, {rises ? kept.cost : entry.cost, rises ? kept.id : entry.id});
            entry = {rises ? entry.cost : kept.cost, rises ? entry.id : kept.id};
        }
        write(h, v, entry);
    }

    int H_;
    Scratch<T> costs_;
    Scratch<Id> ids_;
};

// Candidates in an order in which preferred ones come first.
class Preferred {
  public:
    explicit Preferred(int n) : n_(n), marks_(n), order_(n + 1) { std::fill_n(marks_.get(), n, 0u); }

    // Make all candidates not preferred.
    void clear() {
        ++turn_;
        n_first_ = 0;
    }
    void add(int i) { // adds to the preferred candidates
        order_[n_first_] = i;
        n_first_ += marks_[i] != turn_;
        marks_[i] = turn_;
    }
    int size() const { return n_; }
    int n_first() const { return n_first_; }
    // Return all candidates, the preferred ones first.
    const std::int32_t *order() {
        for (int i = 0, n = n_first_; i < n_; ++i) {
            order_[n] = i;
            n += marks_[i] != turn_;
        }
        return order_;
    }

  private:
    int n_, n_first_ = 0;
    std::uint32_t turn_ = 1;
    Scratch<std::uint32_t> marks_;
    Scratch<std::int32_t> order_;
};

} // namespace cprime::CPRIME_ISA
