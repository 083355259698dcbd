// k-means in one dimension: the cost of a run (consecutive sorted values, one cluster), and the cut into runs of least
// cost plus a price per run.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "signals.h"
#include "twofold.h"

namespace cprime {

// Running sums of sorted distinct values, about their weighted median and in units of their range. Sums are in twofold
// precision, because the sum of a run of close values far from the median is a small difference of large numbers.
class Line {
  public:
    Line(const double *values, const double *weights, std::size_t n) : linear_(n + 1), squares_(n + 1) {
        const int unit = n > 1 ? std::ilogb(values[n - 1] / 2 - values[0] / 2) + 2 : 0;
        const int mass = std::ilogb(*std::max_element(weights, weights + n));
        for (std::size_t i = 0; i < n; ++i)
            linear_[i + 1].weight = linear_[i].weight + Twofold{std::ldexp(weights[i], -mass), 0};
        std::size_t median = 0;
        while (linear_[median + 1].weight.high < linear_[n].weight.high / 2)
            ++median;
        for (std::size_t i = 0; i < n; ++i) {
            answer_signals_at(i);
            const Twofold x = exact_sum(std::ldexp(values[i], -unit), -std::ldexp(values[median], -unit));
            const Twofold wx = Twofold{std::ldexp(weights[i], -mass), 0} * x;
            linear_[i + 1].sum = linear_[i].sum + wx;
            squares_[i + 1] = squares_[i] + wx * x;
        }
    }

    // Copy the running sums of another line at some of its places, between which runs begin and end. The first place
    // is 0, the last is the size of that line.
    Line(const Line &line, const std::vector<std::int32_t> &places) : linear_(places.size()), squares_(places.size()) {
        for (std::size_t i = 0; i < places.size(); ++i) {
            linear_[i] = line.linear_[places[i]];
            squares_[i] = line.squares_[places[i]];
        }
    }

    std::int32_t size() const { return static_cast<std::int32_t>(squares_.size() - 1); }
    Twofold weight(std::int32_t begin, std::int32_t end) const { return linear_[end].weight - linear_[begin].weight; }
    Twofold sum(std::int32_t begin, std::int32_t end) const { return linear_[end].sum - linear_[begin].sum; }

    // Return the mean of a run; zero if its weight is lost by rounding in the weight of all values before it.
    Twofold mean(std::int32_t begin, std::int32_t end) const {
        const Twofold w = weight(begin, end);
        return w.high > 0 ? sum(begin, end) / w : Twofold{};
    }

    // Return the sum of w (x - mean)^2 over [begin, end).
    Twofold cost(std::int32_t begin, std::int32_t end) const {
        return squares_[end] - squares_[begin] - sum(begin, end) * mean(begin, end);
    }

  private:
    struct Linear {
        Twofold weight, sum;
    };
    std::vector<Linear> linear_;
    std::vector<Twofold> squares_;
};

// Return at most n_groups + 1 places that cut the values into groups as the cheapest cut into very many runs would: the
// density of places is that of the values to the power 1/3 (Panter & Dite 1951). The density at a value follows from
// its weight and the interval before it.
inline std::vector<std::int32_t> places_of_groups(const double *values, const double *weights, std::int32_t n,
                                                  std::int32_t n_groups) {
    std::vector<double> running(n);
    for (std::int32_t i = 1; i < n; ++i) {
        answer_signals_at(i);
        const double gap = std::cbrt(values[i] / 2 - values[i - 1] / 2);
        running[i] = running[i - 1] + std::cbrt(weights[i]) * gap * gap;
    }
    std::vector<std::int32_t> places{0};
    double group = 0;
    for (std::int32_t i = 1; i < n; ++i)
        if (const double at = std::floor(running[i] / running[n - 1] * (n_groups - 1)); at > group) {
            places.push_back(i);
            group = at;
        }
    places.push_back(n);
    return places;
}

// A cut into runs: ends has a 0 first, and run r is [ends[r], ends[r + 1]).
struct Cut {
    std::vector<std::int32_t> ends;
    Twofold cost;
    double price; // price per run at which this cut is cheapest
    std::int32_t n_runs() const { return static_cast<std::int32_t>(ends.size()) - 1; }
};

inline Twofold total_cost(const Line &line, const std::vector<std::int32_t> &ends) {
    Twofold total;
    for (std::size_t r = 1; r < ends.size(); ++r)
        total = total + line.cost(ends[r - 1], ends[r]);
    return total;
}

// Comparison of two beginnings of the last run: from some end on, a run that begins at `later` costs no more than one
// that begins at `earlier`. The cost of [earlier, end) is the sum of the cost of [earlier, later), the cost of [later,
// end), and w1 w2 / (w1 + w2) (m2 - m1)^2, which only grows with the end (w, m: weights and means of the two parts).
class Contest {
  public:
    Contest(const Line &line, const std::vector<Twofold> &cheapest, std::int32_t earlier, std::int32_t later)
        : line_(line), later_(later), weight_(line.weight(earlier, later)), mean_(line.mean(earlier, later)),
          lead_((cheapest[later] - cheapest[earlier] - line.cost(earlier, later)).high) {}

    bool later_wins(std::int32_t end) const {
        const Twofold weight = line_.weight(later_, end);
        const double w1 = weight_.high, w2 = weight.high;
        const double shift = (line_.sum(later_, end) - mean_ * weight).high; // w2 (m2 - m1)
        return w1 * shift * shift >= lead_ * (w1 + w2) * w2;
    }

    // Return the first end after `lost` from which on the later beginning costs no more, or n + 1 for n values.
    std::int32_t first_win(std::int32_t lost) const {
        const std::int32_t n = line_.size();
        std::int32_t step = 1;
        while (step <= n - lost && !later_wins(lost + step)) {
            lost += step;
            step *= 2;
        }
        std::int32_t won = step <= n - lost ? lost + step : n + 1;
        while (won - lost > 1) {
            const std::int32_t middle = lost + (won - lost) / 2;
            (later_wins(middle) ? won : lost) = middle;
        }
        return won;
    }

  private:
    const Line &line_;
    std::int32_t later_;
    Twofold weight_, mean_;
    double lead_;
};

// Return the cut of least cost + price * runs. Beginnings that are best for some further end form a queue: once a later
// beginning is better it stays better, so each is best for an interval of ends. Takes O(n log n) time, and O(n) if the
// intervals change little.
inline Cut cheapest_cut(const Line &line, double price) {
    struct Beginning {
        std::int32_t at, from; // best for ends from `from` up to the next one's `from`
    };
    const std::int32_t n = line.size();
    std::vector<Twofold> cheapest(n + 1);
    std::vector<std::int32_t> begin(n + 1);
    std::vector<Beginning> queue(n + 1);
    std::int32_t front = 0, back = 0;
    queue[0] = {0, 1};
    for (std::int32_t end = 1; end <= n; ++end) {
        answer_signals_at(end);
        while (front < back && queue[front + 1].from <= end)
            ++front;
        begin[end] = queue[front].at;
        cheapest[end] = cheapest[begin[end]] + Twofold{price, 0} + line.cost(begin[end], end);
        for (;;) {
            const Contest contest(line, cheapest, queue[back].at, end);
            if (back > front && contest.later_wins(queue[back].from)) {
                --back;
                continue;
            }
            const std::int32_t from = contest.first_win(std::max(queue[back].from, end));
            if (from <= n)
                queue[++back] = {end, from};
            break;
        }
    }
    Cut cut{{n}, {}, price};
    while (cut.ends.back() > 0)
        cut.ends.push_back(begin[cut.ends.back()]);
    std::reverse(cut.ends.begin(), cut.ends.end());
    cut.cost = total_cost(line, cut.ends);
    return cut;
}

} // namespace cprime
