// Assignment of points to clusters of bounded size at the least total cost: an auction (Bertsekas 1988).
//
// Each cluster has a price, which is added to its costs. A point is in a candidate cluster of least cost + price, up to
// epsilon. If a cluster is too large, its price rises until enough points prefer other clusters. If a cluster is too
// small, or if it has a positive price and is below its greatest size, its price falls until enough points prefer it.
// In the end the sum of costs exceeds the least possible sum by at most epsilon for each point.
//
// If many points have nearly equal costs, prices rise in tiny steps. Then the auction is broken off, and the assignment
// is completed: points move from clusters that are too large along shortest paths of clusters, as in every algorithm of
// successive shortest paths for flows of least cost (Ahuja, Magnanti & Orlin 1993, chapter 9). Further points move
// along the same path if their steps are longer by at most epsilon.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <unordered_map>
#include <utility>
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
    // An auction takes little time unless many points have nearly equal costs. If it takes too long, its prices are the
    // first ones of the search of shortest paths.
    bool solve(double accuracy, double limit) {
        limit_ = std::isinf(limit) ? limit : limit * greatest_;
        const double least = std::max(1e-9 * greatest_, std::numeric_limits<double>::min());
        const double mean = points_.n ? sum_of_least_ / static_cast<double>(points_.n) : 0;
        const double last = std::max(accuracy * mean, least), size = static_cast<double>(points_.n * points_.K);
        epsilon_ = last;
        start();
        const Settled found = scale(std::max(0.003 * mean, least), last, accuracy, work_of(C_) * size);
        return found == Settled::unfinished ? complete() : found == Settled::yes;
    }

  private:
    static constexpr std::int32_t NONE = -1;
    // An auction ends unfinished after this number of comparisons of a point with all its candidates, per point and
    // 64 clusters: the search of a path takes longer the more clusters there are.
    static double work_of(std::size_t C) { return std::clamp(static_cast<double>(C) / 64, 1.0, 32.0); }

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

    // A point that may move to another of its candidates, and the increase of its cost.
    struct Step {
        double rise;
        std::int32_t point, place;
        bool operator>(const Step &other) const {
            return rise > other.rise || (rise == other.rise && point > other.point);
        }
    };

    // All points of a cluster that may move to cluster `to`, as a heap, the least rise of cost first.
    struct Steps {
        std::int32_t to;
        std::vector<Step> heap;
    };

    // Complete the assignment at the least cost, from the present prices. Returns whether this is possible with prices
    // up to the limit.
    //
    // The sizes that clusters should have follow from the prices: the greatest at a positive price, the least at a
    // negative one, and at the price 0 any within the bounds. A hub stands for the choice of these sizes: a cluster
    // that gets larger passes a unit to the hub, and one that gets smaller takes one from it. Points move along
    // shortest paths from clusters (or the hub) with too many points to those with too few. The length of a step is the
    // rise of cost + price, which is never negative, as each point is in its best cluster.
    bool complete() {
        start();
        target_.resize(C_);
        std::vector<double> potentials(prices_, prices_ + C_);
        potentials.push_back(0.0);
        std::vector<std::int64_t> excess(C_ + 1, 0);
        for (std::size_t c = 0; c < C_; ++c) {
            const std::int64_t most = prices_[c] < 0 ? lower_[c] : upper_[c];
            const std::int64_t least = prices_[c] > 0 ? upper_[c] : lower_[c];
            target_[c] = std::clamp(size(c), least, most);
            excess[c] = size(c) - target_[c];
            excess[C_] -= excess[c];
        }
        steps_.assign(C_, {});
        step_to_.assign(C_, {});
        bool done = true;
        for (std::size_t s = 0; s <= C_ && done; ++s)
            while (excess[s] > 0 && (done = move_along_path(s, potentials, excess))) {
            }
        for (std::size_t c = 0; c < C_; ++c)
            prices_[c] = potentials[c] - potentials[C_];
        return done;
    }

    // Move one point, or one unit of a size, from node `source` to the nearest node with too few.
    bool move_along_path(std::size_t source, std::vector<double> &potentials, std::vector<std::int64_t> &excess) {
        answer_signals();
        constexpr double FAR = std::numeric_limits<double>::infinity();
        distances_.assign(C_ + 1, FAR);
        before_.assign(C_ + 1, NONE);
        reached_.assign(C_ + 1, false);
        order_.clear();
        distances_[source] = 0;
        frontier_.assign(1, {0.0, static_cast<std::int32_t>(source)});
        std::size_t end = C_ + 1;
        while (!frontier_.empty()) {
            std::pop_heap(frontier_.begin(), frontier_.end(), std::greater<>());
            const auto [distance, node] = frontier_.back();
            frontier_.pop_back();
            const auto u = static_cast<std::size_t>(node);
            if (reached_[u])
                continue;
            reached_[u] = true;
            order_.push_back(node);
            if (excess[u] < 0) {
                end = u;
                break;
            }
            const auto reach = [&](std::size_t v, double rise) {
                const double there = distance + std::max(0.0, rise + potentials[v] - potentials[u]);
                if (there < distances_[v]) {
                    distances_[v] = there;
                    before_[v] = node;
                    frontier_.push_back({there, static_cast<std::int32_t>(v)});
                    std::push_heap(frontier_.begin(), frontier_.end(), std::greater<>());
                }
            };
            if (u == C_) {
                for (std::size_t c = 0; c < C_; ++c)
                    if (target_[c] > lower_[c])
                        reach(c, 0.0);
                continue;
            }
            if (target_[u] < upper_[u])
                reach(C_, 0.0);
            for (Steps &steps : steps_of(u))
                if (const Step *step = first_step(u, steps))
                    reach(static_cast<std::size_t>(steps.to), step->rise);
        }
        if (end > C_)
            return false;
        for (const std::int32_t node : order_)
            potentials[node] += distances_[end] - distances_[node];
        for (const std::int32_t node : order_)
            if (std::abs(potentials[node] - potentials[C_]) > limit_)
                return false;
        path_.assign(1, end);
        while (path_.back() != source)
            path_.push_back(static_cast<std::size_t>(before_[path_.back()]));
        std::reverse(path_.begin(), path_.end());
        do {
            --excess[source];
            ++excess[end];
            for (std::size_t i = 1; i < path_.size(); ++i)
                take_step(path_[i - 1], path_[i]);
        } while (excess[source] > 0 && excess[end] < 0 && is_open(potentials));
        return true;
    }

    // Return whether another point, or unit of a size, can move along the present path at steps of length epsilon or
    // less.
    bool is_open(const std::vector<double> &potentials) {
        for (std::size_t i = 1; i < path_.size(); ++i) {
            const std::size_t u = path_[i - 1], v = path_[i];
            if (v == C_ ? target_[u] >= upper_[u] : u == C_ && target_[v] <= lower_[v])
                return false;
            if (u == C_ || v == C_)
                continue;
            const Step *step = first_step(u, steps_to(u, v));
            if (!step || step->rise + potentials[v] - potentials[u] > epsilon_)
                return false;
        }
        return true;
    }

    // Return for a cluster the steps of its points to each other cluster; found on the first call.
    std::vector<Steps> &steps_of(std::size_t c) {
        if (step_to_[c].empty()) {
            step_to_[c].emplace(static_cast<std::int32_t>(c), NONE); // marks the cluster as listed
            for (const std::int32_t point : members_[c])
                list_steps(c, static_cast<std::size_t>(point), false);
            for (Steps &steps : steps_[c])
                std::make_heap(steps.heap.begin(), steps.heap.end(), std::greater<>());
        }
        return steps_[c];
    }

    // Add the steps of a point of cluster c to those of the cluster, which stay heaps if `keeps_heaps`.
    void list_steps(std::size_t c, std::size_t point, bool keeps_heaps) {
        const std::int32_t *ids = ids_of(point);
        const T *costs = costs_of(point);
        const double here = costs[places_[point]];
        for (std::size_t k = 0; k < points_.K; ++k) {
            if (ids[k] < 0 || static_cast<std::size_t>(ids[k]) == c)
                continue;
            const auto [found, is_new] = step_to_[c].try_emplace(ids[k], static_cast<std::int32_t>(steps_[c].size()));
            if (is_new)
                steps_[c].push_back({ids[k], {}});
            std::vector<Step> &heap = steps_[c][found->second].heap;
            heap.push_back({costs[k] - here, static_cast<std::int32_t>(point), static_cast<std::int32_t>(k)});
            if (keeps_heaps)
                std::push_heap(heap.begin(), heap.end(), std::greater<>());
        }
    }

    // Return the step of least rise of a point that is still in cluster c; null if there is none.
    const Step *first_step(std::size_t c, Steps &steps) const {
        while (!steps.heap.empty()) {
            if (static_cast<std::size_t>(labels_[steps.heap.front().point]) == c)
                return &steps.heap.front();
            std::pop_heap(steps.heap.begin(), steps.heap.end(), std::greater<>());
            steps.heap.pop_back();
        }
        return nullptr;
    }

    // Return the steps of the points of cluster u to cluster v.
    Steps &steps_to(std::size_t u, std::size_t v) { return steps_[u][step_to_[u].at(static_cast<std::int32_t>(v))]; }

    // Move the point of cluster u whose cost rises least to cluster v; or a unit of a size from or to the hub.
    void take_step(std::size_t u, std::size_t v) {
        if (v == C_ || u == C_) {
            v == C_ ? ++target_[u] : --target_[v];
            return;
        }
        const Step step = *first_step(u, steps_to(u, v));
        move(static_cast<std::size_t>(step.point), step.place);
        if (!step_to_[v].empty())
            list_steps(v, static_cast<std::size_t>(step.point), true);
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
    double epsilon_ = 0;                    // least accuracy of the assignment: excess of the cost of a point
    double work_ = 0;                       // number of candidates that may be compared until the auction gives up
    std::vector<std::int64_t> target_;      // sizes that clusters should have while points move along paths
    std::vector<std::vector<Steps>> steps_; // for each cluster, the steps of its points to other clusters
    std::vector<std::unordered_map<std::int32_t, std::int32_t>> step_to_; // their positions, by the other cluster
    std::vector<double> distances_;                                       // of the nodes from the source of a path
    std::vector<std::int32_t> before_, order_;              // previous node on the path; nodes in order of distance
    std::vector<char> reached_;                             // whether a node's distance is final
    std::vector<std::pair<double, std::int32_t>> frontier_; // nodes to be reached, as a heap
    std::vector<std::size_t> path_;
};

} // namespace cprime
