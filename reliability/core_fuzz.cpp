// libFuzzer on the compiled core without Python: bytes become shapes, numbers and lists, a kernel is called on arrays
// of exactly that size (AddressSanitizer sees what is beyond), and what it says is checked: components in range and
// distinct, whatever the numbers; of numbers whose squares are in range, distances and order as plain loops find them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "grouping.h"
#include "kernels.h"
#include "panels.h"

using namespace cprime;

namespace {

[[noreturn]] void fail(const char *what) {
    std::fprintf(stderr, "core_fuzz: %s\n", what);
    std::abort();
}

// Choices from the bytes, and behind their end from a generator that these seed.
class Bytes {
  public:
    Bytes(const std::uint8_t *data, std::size_t size) : data_(data), size_(size) {
        for (std::size_t i = 0; i < size; ++i)
            state_ = (state_ ^ data[i]) * 1099511628211u;
    }
    std::uint8_t next() {
        if (at_ < size_)
            return data_[at_++];
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return static_cast<std::uint8_t>(state_ >> 56);
    }
    // From 1 on: mostly few.
    int count(int few, int many) {
        const int byte = next();
        return 1 + (byte < 224 ? byte % few : byte * 8 % many);
    }
    int below(int n) { return (next() * 256 + next()) % n; }

  private:
    const std::uint8_t *data_;
    std::size_t size_, at_ = 0;
    std::uint64_t state_ = 14695981039346656037u;
};

enum class Numbers { ordinary, lattice, far, any };

template <class T> T number(Bytes &in, Numbers kind) {
    using limits = std::numeric_limits<T>;
    const int byte = in.next();
    switch (kind) {
    case Numbers::ordinary:
        return static_cast<T>((byte * 256 + in.next() - 32768) / 4096.0);
    case Numbers::lattice:
        return static_cast<T>(byte % 5 - 2);
    case Numbers::far:
        return static_cast<T>((byte & 1 ? 1e6 : -1e6) + byte / 64.0);
    case Numbers::any:
        break;
    }
    const T special[] = {limits::infinity(),
                         -limits::infinity(),
                         limits::quiet_NaN(),
                         limits::max(),
                         limits::lowest(),
                         limits::min(),
                         limits::denorm_min(),
                         T(-0.0),
                         std::sqrt(limits::max()),
                         -std::sqrt(limits::max()) / 3,
                         std::sqrt(limits::min()),
                         limits::max() / 2,
                         T(1e19),
                         T(1e-21),
                         T(1e10),
                         T(16777217)};
    return byte < 64 ? special[byte % 16] : static_cast<T>(byte - 160);
}

template <class T> struct Problem {
    int n, C, D;
    Numbers kind;
    std::vector<T> points, centers, shift;

    explicit Problem(Bytes &in)
        : n(in.count(20, 150)), C(in.count(24, 200)), D(in.count(16, 80)), kind(static_cast<Numbers>(in.next() % 4)) {
        points.resize(static_cast<std::size_t>(n) * D);
        centers.resize(static_cast<std::size_t>(C) * D);
        shift.resize(D);
        for (auto *numbers : {&points, &centers})
            for (T &x : *numbers)
                x = number<T>(in, kind);
        if (in.next() % 4 == 0) // some centres are equal
            for (int c = 1; c < C; c += 1 + in.next() % 4)
                std::copy_n(centers.data(), D, centers.data() + static_cast<std::size_t>(c) * D);
        for (int k = 0; k < D; ++k)
            shift[k] = kind == Numbers::any ? T(0) : centers[k];
    }
    bool sound() const { return kind != Numbers::any; }
    Rows<T> x() const { return {points.data(), D, static_cast<std::size_t>(n), D}; }
    Rows<T> m() const { return {centers.data(), D, static_cast<std::size_t>(C), D}; }

    double squared(int i, int c) const {
        double sum = 0;
        for (int k = 0; k < D; ++k) {
            const double d = static_cast<double>(points[static_cast<std::size_t>(i) * D + k]) -
                             static_cast<double>(centers[static_cast<std::size_t>(c) * D + k]);
            sum += d * d;
        }
        return sum;
    }
    double share() const { return 4 * (D + 4) * static_cast<double>(std::numeric_limits<T>::epsilon()); }
    bool near(double a, double b) const { return std::abs(a - b) <= share() * b; }
    void check(int i, const std::int32_t *kept, const T *distances, int H, bool all) const {
        for (int h = 0; h < H; ++h) {
            if (kept[h] < (all ? 0 : -1) || kept[h] >= C)
                fail("a component outside its range");
            for (int g = 0; g < h; ++g)
                if (kept[g] == kept[h] && kept[h] >= 0)
                    fail("a component twice");
            if (sound() && kept[h] >= 0 && !near(static_cast<double>(distances[h]), squared(i, kept[h])))
                fail("a distance that is not that of its component");
        }
    }
    // Neighbours of every component: distinct, not itself, -1 behind the last.
    std::vector<std::int32_t> lists(Bytes &in, int G) const {
        std::vector<std::int32_t> out(static_cast<std::size_t>(C) * G, -1);
        for (int c = 0; c < C; ++c) {
            const int first = in.below(C), wanted = std::min(in.next() % 8 ? G : G / 2, C - 1);
            for (int g = 0, id = first; g < wanted; id = (id + 1) % C)
                if (id != c)
                    out[static_cast<std::size_t>(c) * G + g++] = id;
        }
        return out;
    }
    // H distinct components for every point.
    std::vector<std::int32_t> sets(Bytes &in, int H) const {
        std::vector<std::int32_t> out(static_cast<std::size_t>(n) * H);
        for (int i = 0; i < n; ++i)
            for (int h = 0, first = in.below(C); h < H; ++h)
                out[static_cast<std::size_t>(i) * H + h] = (first + h) % C;
        return out;
    }
};

template <class T> void nearest(Bytes &in) {
    const Problem<T> p(in);
    const int H = in.next() % 4 ? 1 + in.next() % std::min(p.C, 8) : p.C;
    const bool hinted = in.next() % 2;
    const auto hint = p.sets(in, H);
    const PackedCenters<T> packed(p.m(), p.shift.data(), H, 1);
    std::vector<std::int32_t> kept(static_cast<std::size_t>(p.n) * H, -7);
    std::vector<T> distances(static_cast<std::size_t>(p.n) * H);
    const NearestTask<T> task{p.x(), p.m(),       packed.panels(),  hinted ? hint.data() : nullptr,
                              H,     kept.data(), distances.data(), nullptr};
    const std::size_t step = kernels<T>().nearest_rows(H, p.D, packed.panels().coarse);
    for (std::size_t begin = 0; begin < static_cast<std::size_t>(p.n); begin += step)
        kernels<T>().nearest(task, begin, std::min<std::size_t>(p.n, begin + step));
    for (int i = 0; i < p.n; ++i) {
        p.check(i, &kept[static_cast<std::size_t>(i) * H], &distances[static_cast<std::size_t>(i) * H], H, true);
        if (!p.sound())
            continue;
        std::vector<double> all(p.C);
        for (int c = 0; c < p.C; ++c)
            all[c] = p.squared(i, c);
        std::sort(all.begin(), all.end());
        for (int h = 0; h < H; ++h)
            if (!p.near(static_cast<double>(distances[static_cast<std::size_t>(i) * H + h]), all[h]))
                fail("not the nearest");
    }
}

template <class T> void reassign(Bytes &in) {
    const Problem<T> p(in);
    const int G = in.count(12, 100);
    const auto lists = p.lists(in, G), labels = p.sets(in, 1);
    std::vector<T> factors(p.C);
    for (T &f : factors)
        f = static_cast<T>(1 + in.next() / 256.0);
    const bool exchange = in.next() % 2;
    std::vector<std::int32_t> found(p.n, -7);
    std::vector<T> distances(p.n);
    std::vector<std::int64_t> entries;
    const auto begin = group(labels.data(), p.n, p.C, 1, entries);
    const ReassignTask<T> task{p.x(),
                               p.m(),
                               lists.data(),
                               G,
                               exchange ? factors.data() : nullptr,
                               exchange ? factors.data() : nullptr,
                               1.0,
                               entries.data(),
                               found.data(),
                               distances.data()};
    for (const Segment &s : segments(begin, SHARED))
        kernels<T>().reassign(task, s.component, s.begin, s.end);
    for (int i = 0; i < p.n; ++i) {
        p.check(i, &found[i], &distances[i], 1, true);
        if (!p.sound() || exchange)
            continue;
        double least = p.squared(i, labels[i]), most = least; // products choose, and are right to a share of the most
        for (int g = 0; g < G; ++g) {
            const int id = lists[static_cast<std::size_t>(labels[i]) * G + g];
            least = id < 0 ? least : std::min(least, p.squared(i, id));
            most = id < 0 ? most : std::max(most, p.squared(i, id));
        }
        if (static_cast<double>(distances[i]) > least + p.share() * (most + least))
            fail("not the nearest of its list");
    }
}

template <class T> void keep(Bytes &in) {
    const Problem<T> p(in);
    const int G = in.count(12, 100), width = 1 + in.next() % std::min(p.C, 6), H = 1 + in.next() % std::min(p.C, 8);
    const auto lists = p.lists(in, G), previous = p.sets(in, width);
    std::vector<std::int32_t> kept(static_cast<std::size_t>(p.n) * H, -7);
    std::vector<T> distances(static_cast<std::size_t>(p.n) * H);
    std::vector<std::int64_t> entries;
    const auto begin = group_by_first(previous.data(), p.n, width, p.C, 1, entries);
    const TopKTask<T> task{p.x(), p.m(),       lists.data(),    G, previous.data(), width, entries.data(),
                           H,     kept.data(), distances.data()};
    for (const Segment &s : segments(begin, SHARED))
        kernels<T>().top_k(task, s.component, s.begin, s.end);
    for (int i = 0; i < p.n; ++i)
        p.check(i, &kept[static_cast<std::size_t>(i) * H], &distances[static_cast<std::size_t>(i) * H], H, false);
}

template <class T> void among(Bytes &in) {
    const Problem<T> p(in);
    const int G = in.count(12, 40), width = 1 + in.next() % std::min(p.C, 6), H = 1 + in.next() % std::min(p.C, 8);
    const int n_extra = in.next() % 3;
    const auto lists = p.lists(in, G), previous = p.sets(in, width), extra = p.sets(in, n_extra);
    const std::size_t capacity = static_cast<std::size_t>(width) * (G + 1) + n_extra, n = p.n;
    std::vector<std::int32_t> kept(n * H, -7), counts(n), evaluated(n * capacity);
    std::vector<T> distances(n * H), evaluations(n * capacity);
    const bool evidence = in.next() % 2;
    ListSearchTask<T> task{
        p.x(), p.m(),       nullptr,          lists.data(), G, previous.data(), width, extra.data(), n_extra,
        H,     kept.data(), distances.data(), counts.data()};
    if (evidence) {
        task.evaluated = evaluated.data();
        task.evaluations = evaluations.data();
    }
    kernels<T>().best_in_lists(task, 0, n);
    for (std::size_t i = 0; i < n; ++i) {
        p.check(static_cast<int>(i), &kept[i * H], &distances[i * H], H, false);
        if (counts[i] < 1 || static_cast<std::size_t>(counts[i]) > capacity)
            fail("more evaluations than there can be");
        for (std::size_t e = i * capacity; evidence && e < i * capacity + counts[i]; ++e)
            if (evaluated[e] < 0 || evaluated[e] >= p.C)
                fail("an evaluation outside its range");
    }
}

template <class T> void posterior(Bytes &in) {
    const int n = in.count(20, 200), H = in.count(12, 80);
    const Numbers kind = static_cast<Numbers>(in.next() % 4);
    std::vector<T> values(static_cast<std::size_t>(n) * H);
    for (T &v : values)
        v = std::abs(number<T>(in, kind));
    const double scale = -std::ldexp(1.0, in.next() - 128);
    std::vector<double> q(values.size()), log_sum(n), mean(n);
    kernels<T>().posterior(values.data(), scale, H, q.data(), log_sum.data(), mean.data(), 0, n);
    if (kind == Numbers::any)
        return;
    for (int i = 0; i < n; ++i) {
        double sum = 0;
        for (int h = 0; h < H; ++h)
            sum += q[static_cast<std::size_t>(i) * H + h];
        if (!(std::abs(sum - 1) < 1e-12))
            fail("responsibilities that do not sum to 1");
    }
}

template <class T> void spread(Bytes &in) {
    const Problem<T> p(in);
    const int n_trials = 1 + in.next() % 4, wanted = 1 + in.below(p.n);
    std::vector<double> weights(p.n), uniform(static_cast<std::size_t>(wanted) * n_trials);
    for (double &w : weights)
        w = in.next() % 4 ? in.next() : 0;
    for (double &u : uniform)
        u = in.next() / 256.0;
    std::vector<std::int64_t> chosen(wanted, -7);
    kernels<T>().spread_out(p.x(), weights.data(), uniform.data(), n_trials, wanted, chosen.data());
    for (const std::int64_t i : chosen)
        if (i < 0 || i >= p.n)
            fail("a candidate outside its range");
}

template <class T> void distances(Bytes &in) {
    const Problem<T> p(in);
    const Kernels<T> &kernel = kernels<T>();
    const std::size_t n_tiles = (p.C + kernel.tile_rows - 1) / kernel.tile_rows, n = p.n;
    std::vector<T> packed(n_tiles * kernel.tile_rows * p.D + kernel.lanes), out(n * p.C);
    kernel.pack_tiles(p.m(), packed.data());
    kernel.distances(p.x(), p.m(), packed.data(), nullptr, out.data(), 0, n);
    for (int c = 0; p.sound() && c < p.C; ++c)
        for (int i = 0; i < p.n; ++i)
            if (!p.near(static_cast<double>(out[c * n + i]), p.squared(i, c)))
                fail("a distance that is wrong");
}

template <class T> void any_kernel(Bytes &in) {
    void (*const all[])(Bytes &) = {nearest<T>, nearest<T>,   reassign<T>, keep<T>,
                                    among<T>,   posterior<T>, spread<T>,   distances<T>};
    all[in.next() % std::size(all)](in);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    Bytes in(data, size);
    in.next() % 2 ? any_kernel<double>(in) : any_kernel<float>(in);
    return 0;
}
