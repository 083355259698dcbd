// Assignment of points to clusters of bounded size at the least total cost: an auction (Bertsekas 1988).
//
// Each cluster has a price, which is added to its costs. A point is in a candidate cluster of least cost + price, up to
// epsilon. If a cluster is too large, its price rises until enough points prefer other clusters. If a cluster is too
// small, or if it has a positive price and is below its greatest size, its price falls until enough points prefer it.
// In the end the sum of costs exceeds the least possible sum by at most epsilon for each point.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "signals.h"

namespace cprime {

// Candidates of each point: ids (n, K), -1 for none, and their costs (n, K).
template <class T> struct PointCandidates {
    const std::int32_t *ids;
    const T *costs;
    std::size_t n, K;
};

template <class T> class Auction {
  public:
    Auction(const PointCandidates<T> &points, const std::int64_t *lower, const std::int64_t *upper, std::size_t C,
            double *prices, std::int32_t *labels)
        : points_(points), lower_(lower), upper_(upper), C_(C), prices_(prices), labels_(labels), places_(points.n),
          positions_(points.n), members_(C), queued_(C) {
        for (std::size_t i = 0; i < points_.n; ++i) {
            answer_signals_at(i);
            check(i);
        }
    }

    // Compute labels and prices such that the relative excess of the sum of costs over the least possible sum is at
    // most `accuracy`. Returns whether this is possible with prices up to `limit` times the greatest cost.
    //
    // At first epsilon is small, which is fast unless many points have equal costs. If that takes too long, the auction
    // starts again with an epsilon as large as prices may become.
    bool solve(double accuracy, double limit) {
        limit_ = std::isinf(limit) ? limit : limit * greatest_;
        const double least = std::max(1e-9 * greatest_, std::numeric_limits<double>::min());
        const double mean = points_.n ? sum_of_least_ / static_cast<double>(points_.n) : 0;
        const double last = std::max(accuracy * mean, least), size = static_cast<double>(points_.n * points_.K);
        start();
        Settled found = scale(std::max(0.003 * mean, least), last, accuracy, 64 * size);
        if (found == Settled::unfinished) {
            std::fill(prices_, prices_ + C_, 0.0);
            start();
            found = scale(std::max(0.1 * greatest_, least), last, accuracy, std::numeric_limits<double>::infinity());
        }
        return found == Settled::yes;
    }

  private:
    static constexpr std::int32_t NONE = -1;

    enum class Settled { yes, infeasible, unfinished };

    struct Choice {
        std::int32_t place; // position among the candidates of a point
        double value;       // cost + price
    };

    // Increase of cost + price if a point leaves its cluster, and the place of its best other candidate.
    struct Regret {
        double value;
        std::int32_t point, place;
        bool operator<(const Regret &other) const {
            return value < other.value || (value == other.value && point < other.point);
        }
    };

    // Check the candidates of a point, and add them to the properties of all costs.
    void check(std::size_t i) {
        const std::int32_t *ids = ids_of(i);
        const T *costs = costs_of(i);
        double least = std::numeric_limits<double>::infinity();
        for (std::size_t k = 0; k < points_.K; ++k) {
            if (ids[k] >= 0) {
                if (!(costs[k] >= 0 && std::isfinite(costs[k])))
                    throw std::invalid_argument("costs must be >= 0 and finite");
                greatest_ = std::max(greatest_, static_cast<double>(costs[k]));
                least = std::min(least, static_cast<double>(costs[k]));
            }
            ascending_ &= k == 0 || ids[k] < 0 || costs[k - 1] <= costs[k];
        }
        if (!std::isfinite(least))
            throw std::invalid_argument("ids must have a candidate for each point");
        sum_of_least_ += least;
    }

    // Run the auction with smaller and smaller values of epsilon, until the assignment is accurate.
    Settled scale(double epsilon, double last, double accuracy, double work) {
        work_ = work;
        for (;; epsilon = std::max(epsilon / 5, last)) {
            improve(epsilon);
            if (const Settled found = settle(epsilon); found != Settled::yes)
                return found;
            if (epsilon <= last || is_accurate(accuracy))
                return Settled::yes;
        }
    }

    // Assign every point to a candidate of least cost + price.
    void start() {
        for (std::vector<std::int32_t> &members : members_)
            members.clear();
        floor_ = C_ ? std::min(0.0, *std::min_element(prices_, prices_ + C_)) : 0;
        for (std::size_t i = 0; i < points_.n; ++i) {
            answer_signals_at(i);
            enter(i, best_place(i, NONE).place);
        }
    }

    // Move each point to its best candidate if this lowers its cost + price by more than epsilon.
    void improve(double epsilon) {
        for (std::size_t i = 0; i < points_.n; ++i) {
            answer_signals_at(i);
            if (const Choice best = best_place(i, NONE); value(i) > best.value + epsilon)
                move(i, best.place);
        }
    }

    // Return whether the relative excess of the sum of costs over a lower bound of all assignments is at most
    // `accuracy`. The bound is the value of the dual problem at the prices.
    bool is_accurate(double accuracy) const {
        double total = 0, bound = 0;
        for (std::size_t i = 0; i < points_.n; ++i) {
            answer_signals_at(i);
            total += costs_of(i)[places_[i]];
            bound += best_place(i, NONE).value;
        }
        for (std::size_t c = 0; c < C_; ++c)
            bound -= prices_[c] * static_cast<double>(prices_[c] > 0 ? upper_[c] : lower_[c]);
        return total - bound <= accuracy * bound;
    }

    // Change assignment and prices until all sizes are within their bounds and prices are consistent with them: 0, or
    // positive at the greatest size, or negative at the least size.
    Settled settle(double epsilon) {
        for (;;) {
            for (std::size_t c = 0; c < C_; ++c)
                queue(static_cast<std::int32_t>(c));
            while (!queue_.empty()) {
                if (work_ < 0)
                    return Settled::unfinished;
                round_.swap(queue_);
                for (const std::int32_t c : round_) {
                    queued_[c] = false;
                    if (is_over(c) && !raise_price(c, epsilon))
                        return Settled::infeasible;
                }
                round_.clear();
            }
            bool any = false;
            for (std::size_t c = 0; c < C_; ++c)
                if (is_short(c)) {
                    any = true;
                    if (!lower_price(static_cast<std::int32_t>(c), epsilon))
                        return Settled::infeasible;
                }
            if (!any)
                return Settled::yes;
            if (work_ < 0)
                return Settled::unfinished;
        }
    }

    const std::int32_t *ids_of(std::size_t i) const { return points_.ids + i * points_.K; }
    const T *costs_of(std::size_t i) const { return points_.costs + i * points_.K; }
    double value(std::size_t i) const { return costs_of(i)[places_[i]] + prices_[labels_[i]]; }

    // Return the candidate of point i with the least cost + price, except the one at position `excluded`.
    Choice best_place(std::size_t i, std::int32_t excluded) const {
        const std::int32_t *ids = ids_of(i);
        const T *costs = costs_of(i);
        Choice best{NONE, std::numeric_limits<double>::infinity()};
        for (std::size_t k = 0; k < points_.K; ++k) {
            if (ids[k] < 0 || static_cast<std::int32_t>(k) == excluded)
                continue;
            if (ascending_ && best.place != NONE && costs[k] + floor_ >= best.value)
                break;
            if (const double found = costs[k] + prices_[ids[k]]; found < best.value || best.place == NONE)
                best = {static_cast<std::int32_t>(k), found};
        }
        return best;
    }

    std::int64_t size(std::size_t c) const { return static_cast<std::int64_t>(members_[c].size()); }
    bool is_over(std::size_t c) const { return size(c) > upper_[c] || (prices_[c] < 0 && size(c) > lower_[c]); }
    bool is_short(std::size_t c) const { return size(c) < lower_[c] || (prices_[c] > 0 && size(c) < upper_[c]); }

    void queue(std::int32_t c) {
        if (!queued_[c] && is_over(c)) {
            queued_[c] = true;
            queue_.push_back(c);
        }
    }

    void enter(std::size_t i, std::int32_t place) {
        const std::int32_t c = ids_of(i)[place];
        places_[i] = place;
        labels_[i] = c;
        positions_[i] = static_cast<std::int32_t>(members_[c].size());
        members_[c].push_back(static_cast<std::int32_t>(i));
    }

    void move(std::size_t i, std::int32_t place) {
        std::vector<std::int32_t> &members = members_[labels_[i]];
        members[positions_[i]] = members.back();
        positions_[members.back()] = positions_[i];
        members.pop_back();
        enter(i, place);
    }

    // Raise the price of a cluster that is larger than its greatest size, or than its least size at a negative price,
    // until the surplus points prefer other candidates. These are the points whose cost + price rises least by the
    // change. A negative price rises to at most 0, unless the cluster is larger than its greatest size.
    bool raise_price(std::int32_t c, double epsilon) {
        answer_signals();
        const std::int64_t must = std::max<std::int64_t>(size(c) - upper_[c], 0);
        const std::int64_t may = prices_[c] < 0 ? size(c) - lower_[c] : must;
        const std::int64_t most = std::max(must, may);
        work_ -= static_cast<double>(size(c)) * static_cast<double>(points_.K);
        regrets_.clear();
        for (const std::int32_t i : members_[c]) {
            const Choice other = best_place(i, places_[i]);
            regrets_.push_back({other.value - value(i), i, other.place});
        }
        const auto end = regrets_.begin() + most;
        std::nth_element(regrets_.begin(), end - 1, regrets_.end());
        if (most > must)
            std::sort(regrets_.begin(), end);
        std::int64_t leaving = must;
        while (leaving < most && regrets_[leaving].value <= -prices_[c])
            ++leaving;
        double rise = 0;
        for (std::int64_t r = 0; r < leaving; ++r)
            rise = std::max(rise, regrets_[r].value);
        if (must > 0 && !std::isfinite(rise))
            return false;
        rise += epsilon;
        if (must == 0)
            rise = leaving < most ? -prices_[c] : std::min(rise, -prices_[c]);
        prices_[c] += rise;
        for (std::int64_t r = 0; r < leaving; ++r) {
            move(regrets_[r].point, regrets_[r].place);
            queue(labels_[regrets_[r].point]);
        }
        queue(c);
        return prices_[c] <= limit_;
    }

    // Lower the price of a cluster that is smaller than its least size, or than its greatest size at a positive price,
    // until as many points prefer the cluster as are missing. These are the points whose cost + price rises least by
    // the change. A positive price falls to at least 0, unless the cluster is smaller than its least size.
    bool lower_price(std::int32_t c, double epsilon) {
        answer_signals();
        if (begins_.empty())
            list_by_candidate();
        const std::int64_t needed = lower_[c] - size(c), wanted = needed > 0 ? needed : upper_[c] - size(c);
        regrets_.clear();
        work_ -= static_cast<double>(begins_[c + 1] - begins_[c]);
        for (std::int64_t p = begins_[c]; p < begins_[c + 1]; ++p) {
            const std::int32_t point = rows_[p], *ids = ids_of(point);
            if (labels_[point] == c)
                continue;
            const auto place = static_cast<std::int32_t>(std::find(ids, ids + points_.K, c) - ids);
            regrets_.push_back({costs_of(point)[place] + prices_[c] - value(point), point, place});
        }
        const auto found = static_cast<std::int64_t>(regrets_.size());
        if (needed > found)
            return false;
        const std::int64_t some = std::min(wanted + 1, found);
        std::partial_sort(regrets_.begin(), regrets_.begin() + some, regrets_.end());
        double fall = epsilon + (some > 0 ? regrets_[some - 1].value : std::numeric_limits<double>::infinity());
        if (needed <= 0)
            fall = std::min(fall, prices_[c]);
        fall = std::max(fall, 0.0);
        prices_[c] -= fall;
        floor_ = std::min(floor_, prices_[c]);
        for (std::int64_t r = 0; r < std::min(wanted, found) && regrets_[r].value <= fall; ++r)
            move(regrets_[r].point, regrets_[r].place);
        return prices_[c] >= -limit_;
    }

    // List for each cluster the points of which it is a candidate.
    void list_by_candidate() {
        begins_.assign(C_ + 1, 0);
        const std::size_t size = points_.n * points_.K;
        for (std::size_t e = 0; e < size; ++e)
            if (points_.ids[e] >= 0)
                ++begins_[points_.ids[e] + 1];
        std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
        rows_.resize(begins_[C_]);
        std::vector<std::int64_t> at(begins_.begin(), begins_.end() - 1);
        for (std::size_t i = 0; i < points_.n; ++i) {
            answer_signals_at(i);
            for (std::size_t k = 0; k < points_.K; ++k)
                if (const std::int32_t id = ids_of(i)[k]; id >= 0)
                    rows_[at[id]++] = static_cast<std::int32_t>(i);
        }
    }

    PointCandidates<T> points_;
    const std::int64_t *lower_, *upper_;
    std::size_t C_;
    double *prices_;
    std::int32_t *labels_;
    std::vector<std::int32_t> places_, positions_;   // of each point's cluster among its candidates; of the point in it
    std::vector<std::vector<std::int32_t>> members_; // points of each cluster
    std::vector<char> queued_;
    std::vector<std::int32_t> queue_, round_;
    std::vector<Regret> regrets_;
    std::vector<std::int64_t> begins_;       // position of each cluster's points in `rows_`
    std::vector<std::int32_t> rows_;         // points that have a cluster as a candidate, by cluster
    bool ascending_ = true;                  // whether the costs of each point ascend
    double greatest_ = 0, sum_of_least_ = 0; // greatest of all costs; sum of each point's least cost
    double floor_ = 0;                       // lower bound of all prices
    double limit_ = 0;
    double work_ = 0; // number of candidates that may be compared until the auction gives up
};

} // namespace cprime
