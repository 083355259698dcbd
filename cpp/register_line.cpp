#include "line.h"

#include <array>
#include <limits>
#include <numeric>

#include "arrays.h"
#include "thread_pool.h"

namespace cprime {
namespace {

// Return a cut into C runs, made from two cuts of fewer and of more runs that are cheapest at the same price per run:
// the beginning of `many` and the rest of `few`. If a run of `few` encloses one of `many`, exchanging the runs after
// these two does not raise the cost, because runs that overlap cost no more than runs of which one contains the other
// (Aggarwal, Schieber & Tokuyama 1994, lemma 6).
std::vector<std::int32_t> spliced(const Cut &few, const Cut &many, std::int32_t C) {
    const std::int32_t ahead = C - few.n_runs();
    std::int32_t run = 0;
    while (many.ends[run + 1 + ahead] > few.ends[run + 1])
        ++run;
    std::vector<std::int32_t> ends(many.ends.begin(), many.ends.begin() + run + ahead + 1);
    ends.insert(ends.end(), few.ends.begin() + run + 1, few.ends.end());
    return ends;
}

// Return the price per run at which C runs are expected, from the nearer of two cuts. The price at which k runs are
// cheapest is about proportional to k^-3, because the least cost E(k) is to k^-2. If this law failed before (`halve`),
// return the geometric mean of the two prices.
double expected_price(const Cut &few, const Cut &many, std::int32_t C, bool halve) {
    const bool above = few.price < std::numeric_limits<double>::infinity(), below = many.price > 0;
    if (halve && above && below)
        return std::sqrt(few.price) * std::sqrt(many.price);
    const double ratio1 = static_cast<double>(few.n_runs()) / C, ratio2 = static_cast<double>(many.n_runs()) / C;
    if (below && ratio1 * ratio2 < 1)
        return std::min(many.price * std::pow(ratio2, 3), few.price);
    return std::max((above ? few.price : 2 * few.cost.high) * std::pow(ratio1, 3), many.price);
}

// Return the cut into C runs of least cost. The least cost E(k) of k runs is convex in k, so every point of its graph
// is found at some price per run: the cut that is cheapest at this price has k runs, or E is linear around k. For two
// points on both sides of C, either E is their chord, or the slope of the chord is a price that gives a point between
// them. `hint`: a price to try first, or 0.
Cut best_cut(const Line &line, std::int32_t C, double hint, int n_threads) {
    const std::int32_t n = line.size();
    Cut few{{0, n}, {}, std::numeric_limits<double>::infinity()}, many{{}, {}, 0};
    few.cost = total_cost(line, few.ends);
    many.ends.resize(n + 1);
    std::iota(many.ends.begin(), many.ends.end(), 0);
    many.cost = total_cost(line, many.ends);
    for (bool halve = false; few.n_runs() < C && C < many.n_runs();) {
        const std::int32_t k1 = few.n_runs(), k2 = many.n_runs();
        const double slope = ((few.cost - many.cost) / Twofold{static_cast<double>(k2 - k1), 0}).high;
        const std::array<double, 2> prices{slope, hint > 0 ? hint : expected_price(few, many, C, halve)};
        std::array<Cut, 2> cuts;
        parallel_for(2, n_threads, [&](std::size_t i) { cuts[i] = cheapest_cut(line, prices[i]); });
        // `below` is how far the new point is below the chord. If the point is not below the chord, or not between its
        // ends, E is linear there.
        const std::int32_t k = cuts[0].n_runs();
        const Twofold done{static_cast<double>(k - k1), 0}, left{static_cast<double>(k2 - k), 0};
        const Twofold chord = (few.cost * left + many.cost * done) / (done + left);
        if (k <= k1 || k >= k2 || (chord - cuts[0].cost).high <= slope * std::numeric_limits<double>::epsilon())
            return {spliced(few, many, C), {}, slope};
        for (Cut &cut : cuts) {
            const std::int32_t runs = cut.n_runs();
            if (runs <= C && (runs > few.n_runs() || (runs == few.n_runs() && cut.price < few.price)))
                few = std::move(cut);
            else if (runs >= C && (runs < many.n_runs() || (runs == many.n_runs() && cut.price > many.price)))
                many = std::move(cut);
        }
        halve = many.n_runs() - few.n_runs() > (k2 - k1) / 2;
        hint = 0;
    }
    return few.n_runs() == C ? few : many;
}

void cut_line(Vector<double> values, Vector<double> weights, OutVector<std::int64_t> starts, int n_threads) {
    const std::size_t n = values.shape(0), C = starts.shape(0);
    require(n <= std::size_t(1) << 30, "more than 2^30 values");
    require(weights.shape(0) == n, "weights");
    require(0 < C && C <= n, "starts");
    const KernelCall call;
    const Line line(values.data(), weights.data(), n);
    double hint = 0;
    const std::size_t n_groups = 16 * std::max<std::size_t>(C, 2048); // few enough to be cheap, many per run
    if (n_groups < n / 4) {
        const Line coarse(line, places_of_groups(values.data(), weights.data(), line.size(), n_groups));
        if (coarse.size() > static_cast<std::int32_t>(C))
            hint = best_cut(coarse, C, 0, n_threads).price;
    }
    const Cut cut = best_cut(line, C, hint, n_threads);
    std::copy_n(cut.ends.begin(), C, starts.data());
}

} // namespace

void register_line(nb::module_ &m) { define(m, "cut_line", &cut_line); }

} // namespace cprime
