// k-means with jumps: a center whose removal raises the error J little is moved to a cluster whose best cut into two
// lowers J much. First, jumps that certainly lower J are made, several at once. Then single jumps are tried, each with
// only the points around it, until several consecutive tries have not lowered J.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "arrays.h"
#include "lloyd.h"
#include "signals.h"
#include "thread_pool.h"

namespace cprime {
namespace {

// Iterations end if J falls by less than this share: those after jumps, and those before single jumps.
constexpr double AFTER_JUMPS = 1e-2;
constexpr double BEFORE_TRIES = 1e-3;
constexpr double LIGHT = 32; // momentum of clusters of few points is less, as in `em/k_means.py`
constexpr int FEW_STEPS = 3, ROUNDS = 10, AROUND = 8;
constexpr double PATIENCE = 2;      // a try fails if J minus its target exceeds this many times its last fall
constexpr double LEAST_RATIO = 0.3; // least gain (fall of J) of a tried cut, relative to the center's price (rise of J)

struct Budget {
    int n_tries;      // number of consecutive single jumps that may fail
    int n_iterations; // number of Lloyd's iterations around a single jump
    double tol;       // the last iterations end if J falls by less than this share
};

// Cut a cluster into two, see `Kernels::halve`.
template <class T, class... Cut> double halve(const Points<T> &X, Cut... cut) { return kernels<T>().halve(X, cut...); }
template <class T, class... Cut> double halve(const SparseRows<T> &X, Cut... cut) {
    return kernels<T>().sparse->halve(X, cut...);
}

// Some rows, in any order.
template <class T, class X> class Part;

template <class T> class Part<T, Points<T>> {
  public:
    Points<T> of(const Points<T> &X, const std::vector<std::int64_t> &which) {
        places_.clear();
        for (const std::int64_t n : which)
            places_.push_back(static_cast<std::int64_t>(X.place(static_cast<std::size_t>(n))));
        Points<T> some = X;
        some.n = places_.size();
        some.order = places_.data();
        if (X.stored == Stored::own)
            some.stored = Stored::ordered;
        return some;
    }

  private:
    std::vector<std::int64_t> places_;
};

// Sparse rows are copied. The memory is kept for the next ones.
template <class T> class Part<T, SparseRows<T>> {
  public:
    SparseRows<T> of(const SparseRows<T> &X, const std::vector<std::int64_t> &which) {
        values_.clear();
        columns_.clear();
        begin_.assign(1, 0);
        for (const std::int64_t n : which) {
            const SparseRow<T> x = row_of(X, static_cast<std::size_t>(n));
            values_.insert(values_.end(), x.values, x.values + x.length);
            columns_.insert(columns_.end(), x.columns, x.columns + x.length);
            begin_.push_back(static_cast<std::int64_t>(values_.size()));
        }
        return {values_.data(), columns_.data(), begin_.data(), which.size(), X.D};
    }

  private:
    std::vector<T> values_;
    std::vector<std::int32_t> columns_;
    std::vector<std::int64_t> begin_;
};

template <class T, class X> class Jumps {
  public:
    Jumps(const X &x, const double *weights, std::vector<T> start, int n_threads)
        : X_(x), weights_(weights), D_(static_cast<std::size_t>(x.D)), C_(start.size() / D_), n_threads_(n_threads),
          centers(std::move(start)), all_(x, weights, centers.data(), C_, true, n_threads), gains_(C_), prices_(C_),
          partners_(C_), halves_(C_ * 2 * D_), apart_(C_ * C_), version_(C_, 0), cut_centers_(C_ * D_),
          failed_(C_ * C_, 0) {}

    double improve(const Budget &budget) {
        all_.assign();
        steps();
        for (int round = 0; round < ROUNDS && sure_round();)
            ++round;
        settle(BEFORE_TRIES);
        for (int failures = 0; failures < budget.n_tries;) {
            if (!failures)
                measure();
            std::size_t from = 0, to = 0;
            if (!promising(from, to))
                break;
            answer_signals();
            if (tried(from, to, budget)) {
                failures = 0;
            } else {
                failed_[from * C_ + to] = stamp(from, to);
                ++failures;
            }
        }
        if (budget.tol < BEFORE_TRIES)
            settle(budget.tol);
        return all_.error;
    }

  private:
    // Make the few of Lloyd's iterations that follow jumps.
    void steps() {
        double before = all_.error;
        int left = FEW_STEPS;
        all_.move();
        all_.iterate(
            [&] {
                const bool falls = before - all_.error > AFTER_JUMPS * before;
                before = all_.error;
                return !falls || !--left;
            },
            [](double) { return false; });
    }

    // Iterate with momentum until J falls by no more than the share `tol`: a center is moved beyond the mean of its
    // rows, in the direction of the last change of the mean. If J, that of the means, does not fall, the iterations go
    // on from the means before. The last iteration is a plain one.
    void settle(double tol) {
        const double weight = std::accumulate(all_.counts.begin(), all_.counts.end(), 0.0) / static_cast<double>(X_.n);
        std::vector<T> means = centers, before = centers;
        double J = all_.error;
        for (bool plain = true;;) {
            answer_signals();
            const double error = put_means(means);
            if (!(error < J) && !plain) {
                restore(before);
                plain = true;
                continue;
            }
            if (!(error < (1 - tol) * J)) // also if J is not a number, because squares overflow
                return error < J ? restore(means) : void();
            J = error;
            for (std::size_t c = 0; c < C_; ++c) {
                const auto share = static_cast<T>(all_.counts[c] / (all_.counts[c] + LIGHT * weight));
                for (std::size_t k = c * D_; k < (c + 1) * D_; ++k)
                    centers[k] = means[k] + share * (means[k] - before[k]);
            }
            before = means;
            plain = false;
            all_.assign(false);
        }
    }

    // Write the means of the rows of each center, and return J of these means.
    double put_means(std::vector<T> &means) const {
        double J = all_.error;
        for (std::size_t c = 0; c < C_; ++c)
            for (std::size_t k = c * D_; k < (c + 1) * D_; ++k) {
                means[k] = all_.counts[c] > 0 ? static_cast<T>(all_.sums[k] / all_.counts[c]) : centers[k];
                const double shift = static_cast<double>(means[k]) - static_cast<double>(centers[k]);
                J -= all_.counts[c] * shift * shift;
            }
        return J;
    }

    // Replace the centers by others, and assign the rows to these.
    void restore(const std::vector<T> &others) {
        std::copy(others.begin(), others.end(), centers.begin());
        all_.assign();
    }

    // Compute the gain (fall of J) of cutting each cluster in two, and the price (rise of J) of removing each center.
    void measure() {
        const std::size_t n = X_.n;
        begins_.assign(C_ + 1, 0);
        for (std::size_t e = 0; e < n; ++e)
            ++begins_[static_cast<std::size_t>(all_.labels[e]) + 1];
        std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
        members_.resize(n);
        std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
        std::vector<std::size_t> far(C_, n);
        std::vector<double> removal(C_, 0.0);
        for (std::size_t e = 0; e < n; ++e) {
            const auto c = static_cast<std::size_t>(all_.labels[e]);
            members_[next[c]++] = static_cast<std::int64_t>(e);
            removal[c] += all_.weight(e) * (static_cast<double>(all_.second[e]) - static_cast<double>(all_.least[e]));
            if (all_.weight(e) > 0 && (far[c] == n || all_.least[e] > all_.least[far[c]]))
                far[c] = e;
        }
        std::vector<double> means(C_ * D_);
        for (std::size_t c = 0; c < C_; ++c)
            for (std::size_t k = 0; k < D_; ++k)
                means[c * D_ + k] = all_.counts[c] > 0 ? all_.sums[c * D_ + k] / all_.counts[c]
                                                       : static_cast<double>(centers[c * D_ + k]);
        std::vector<std::size_t> changed;
        for (std::size_t c = 0; c < C_; ++c)
            if (!version_[c] || !std::equal(means.begin() + static_cast<std::ptrdiff_t>(c * D_),
                                            means.begin() + static_cast<std::ptrdiff_t>((c + 1) * D_),
                                            cut_centers_.begin() + static_cast<std::ptrdiff_t>(c * D_)))
                changed.push_back(c);
        ++clock_;
        parallel_for(changed.size(), worth(static_cast<double>(n) * D_ * 20, n_threads_), [&](std::size_t i) {
            const std::size_t c = changed[i];
            version_[c] = clock_;
            gains_[c] = far[c] == n
                            ? 0
                            : halve(X_, weights_, static_cast<const std::int64_t *>(members_.data() + begins_[c]),
                                    begins_[c + 1] - begins_[c], static_cast<std::int64_t>(far[c]),
                                    static_cast<const double *>(means.data() + c * D_), halves_.data() + c * 2 * D_);
        });
        cut_centers_ = means;
        for (std::size_t a = 0; a < C_; ++a)
            for (std::size_t b = 0; b < a; ++b) {
                double square = 0;
                for (std::size_t k = 0; k < D_; ++k) {
                    const double step = means[a * D_ + k] - means[b * D_ + k];
                    square += step * step;
                }
                apart_[a * C_ + b] = apart_[b * C_ + a] = square;
            }
        for (std::size_t a = 0; a < C_; ++a) {
            double least = std::numeric_limits<double>::infinity();
            for (std::size_t b = 0; b < C_; ++b) {
                const double W = all_.counts[a], V = all_.counts[b];
                const double cost = W > 0 && V > 0 ? apart_[a * C_ + b] / (1 / W + 1 / V) : 0.0;
                if (b != a && cost < least) {
                    least = cost;
                    partners_[a] = b;
                }
            }
            joined_.resize(C_);
            joined_[a] = least < removal[a];
            prices_[a] = std::min(least, removal[a]);
        }
    }

    std::vector<std::size_t> nearest_of(std::size_t c, std::size_t n) const {
        std::vector<std::size_t> others;
        for (std::size_t b = 0; b < C_; ++b)
            if (b != c)
                others.push_back(b);
        n = std::min(n, others.size());
        std::partial_sort(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(n), others.end(),
                          [&](std::size_t a, std::size_t b) {
                              const double x = apart_[c * C_ + a], y = apart_[c * C_ + b];
                              return x < y || (x == y && a < b);
                          });
        others.resize(n);
        return others;
    }

    T *center(std::size_t c) { return centers.data() + c * D_; }
    void put_half(std::size_t c, std::size_t of, int which) {
        const double *half = halves_.data() + (2 * of + static_cast<std::size_t>(which)) * D_;
        std::transform(half, half + D_, center(c), [](double v) { return static_cast<T>(v); });
    }

    // Make all jumps that are sure to lower J and do not interfere with each other. The center of the lowest price and
    // the cut of the greatest gain come first. Returns whether J fell.
    bool sure_round() {
        measure();
        std::vector<std::size_t> cheap(C_), dear(C_);
        std::iota(cheap.begin(), cheap.end(), std::size_t(0));
        dear = cheap;
        std::stable_sort(cheap.begin(), cheap.end(),
                         [&](std::size_t a, std::size_t b) { return prices_[a] < prices_[b]; });
        std::stable_sort(dear.begin(), dear.end(), [&](std::size_t a, std::size_t b) { return gains_[a] > gains_[b]; });
        const std::vector<T> before = centers;
        const double error = all_.error;
        std::vector<std::uint8_t> frozen(C_, 0);
        bool any = false;
        for (const std::size_t from : cheap) {
            if (frozen[from])
                continue;
            std::vector<std::size_t> near = nearest_of(from, 2);
            near.push_back(partners_[from]);
            if (std::any_of(near.begin(), near.end(), [&](std::size_t c) { return frozen[c]; }))
                continue;
            const auto to = std::find_if(dear.begin(), dear.end(), [&](std::size_t c) {
                return !frozen[c] && c != from && std::find(near.begin(), near.end(), c) == near.end();
            });
            if (to == dear.end() || !(gains_[*to] > prices_[from]))
                break;
            for (const std::size_t c : near)
                frozen[c] = 1;
            frozen[from] = frozen[*to] = 1;
            if (joined_[from]) {
                const std::size_t b = partners_[from];
                const double W = all_.counts[from], V = all_.counts[b];
                for (std::size_t k = 0; k < D_ && W + V > 0; ++k)
                    center(b)[k] = static_cast<T>((all_.sums[from * D_ + k] + all_.sums[b * D_ + k]) / (W + V));
            }
            put_half(from, *to, 0);
            put_half(*to, *to, 1);
            any = true;
        }
        if (!any)
            return false;
        all_.assign();
        steps();
        if (all_.error < error)
            return true;
        restore(before);
        return false;
    }

    std::int64_t stamp(std::size_t from, std::size_t to) const { return std::max(version_[from], version_[to]) + 1; }

    // Find the jump of greatest gain minus price that may lower J, and has not failed since its two clusters changed.
    // Returns whether there is one.
    bool promising(std::size_t &from, std::size_t &to) const {
        double best = -std::numeric_limits<double>::infinity();
        for (std::size_t r = 0; r < C_; ++r)
            for (std::size_t s = 0; s < C_; ++s) {
                const double worth = gains_[s] - prices_[r];
                if (r != s && worth > best && gains_[s] > 0 && gains_[s] >= LEAST_RATIO * prices_[r] &&
                    failed_[r * C_ + s] != stamp(r, s)) {
                    best = worth;
                    from = r;
                    to = s;
                }
            }
        return best > -std::numeric_limits<double>::infinity();
    }

    // Return some rows of X, in any order, and their weights; X and its weights if these are all.
    std::pair<X, const double *> part_of(const std::vector<std::int64_t> &rows) {
        if (rows.size() == X_.n)
            return {X_, weights_};
        some_weights_.clear();
        for (std::size_t i = 0; weights_ && i < rows.size(); ++i)
            some_weights_.push_back(weights_[rows[i]]);
        return {part_.of(X_, rows), weights_ ? some_weights_.data() : nullptr};
    }

    // Try a jump, followed by Lloyd's iterations of the centers around. Returns whether J falls; if not, nothing
    // changes.
    bool tried(std::size_t from, std::size_t to, const Budget &budget) {
        std::vector<std::size_t> around{from, to};
        for (const std::size_t c : {from, to})
            for (const std::size_t b : nearest_of(c, AROUND))
                if (std::find(around.begin(), around.end(), b) == around.end())
                    around.push_back(b);
        std::vector<std::int64_t> rows;
        double before = 0;
        for (const std::size_t c : around)
            rows.insert(rows.end(), members_.begin() + static_cast<std::ptrdiff_t>(begins_[c]),
                        members_.begin() + static_cast<std::ptrdiff_t>(begins_[c + 1]));
        for (const std::int64_t n : rows)
            before +=
                all_.weight(static_cast<std::size_t>(n)) * static_cast<double>(all_.least[static_cast<std::size_t>(n)]);
        std::vector<T> local(around.size() * D_);
        for (std::size_t i = 2; i < around.size(); ++i)
            std::copy_n(center(around[i]), D_, local.data() + i * D_);
        const double *halves = halves_.data() + to * 2 * D_;
        std::transform(halves, halves + 2 * D_, local.data(), [](double v) { return static_cast<T>(v); });
        // For so few centers, the search for the two nearest takes less time, except in few dimensions.
        const bool two = std::is_same_v<X, Points<T>> && !is_direct(around.size(), 1, X_.D);
        const auto [part, weights] = part_of(rows);
        Lloyd<T, X> some(part, weights, local.data(), around.size(), two, n_threads_);
        const double bar = before * (1 - 64 * static_cast<double>(std::numeric_limits<T>::epsilon()));
        double last = std::numeric_limits<double>::infinity();
        bool lower = false;
        int i = 0;
        some.iterate(
            [&] {
                lower = some.error < bar;
                const bool hopeless = i && some.error - before > PATIENCE * (last - some.error);
                last = some.error;
                return lower || hopeless || ++i == budget.n_iterations;
            },
            [](double) { return false; });
        if (!lower)
            return false;
        const std::vector<T> kept = centers;
        const double error = all_.error;
        for (std::size_t j = 0; j < around.size(); ++j)
            std::copy_n(local.data() + j * D_, D_, center(around[j]));
        all_.assign();
        steps();
        if (all_.error < error)
            return true;
        restore(kept); // by rounding, only the sum over the points around the jump had fallen
        return false;
    }

    const X &X_;
    const double *weights_;
    std::size_t D_, C_;
    int n_threads_;

  public:
    std::vector<T> centers;

  private:
    Lloyd<T, X> all_;
    Part<T, X> part_;
    std::vector<double> some_weights_;
    std::vector<std::size_t> begins_;
    std::vector<std::int64_t> members_;
    std::vector<double> gains_, prices_;
    std::vector<std::size_t> partners_;
    std::vector<std::uint8_t> joined_;
    std::vector<double> halves_, apart_;
    std::vector<std::int64_t> version_; // value of clock_ when the cut of each cluster was computed
    std::int64_t clock_ = 0;
    std::vector<double> cut_centers_;
    std::vector<std::int64_t> failed_; // for each jump, the version of its two clusters when it failed
};

template <class T, class X>
double jump(X rows, std::optional<Vector<double>> sample_weight, OutTable<T> centers, int n_tries, int n_iterations,
            double tol, int n_threads) {
    const auto x = points(rows);
    require(centers.shape(1) == static_cast<std::size_t>(x.D) && centers.shape(0) >= 2 && x.D >= 1, "centers");
    require(!sample_weight || sample_weight->shape(0) == x.n, "sample_weight");
    require(n_iterations >= 1, "n_iterations");
    const KernelCall call;
    check(rows, n_threads);
    Jumps<T, std::remove_const_t<decltype(x)>> jumps(
        x, data_or_null(sample_weight), std::vector<T>(centers.data(), centers.data() + centers.size()), n_threads);
    const double error = jumps.improve({n_tries, n_iterations, tol});
    std::copy(jumps.centers.begin(), jumps.centers.end(), centers.data());
    return error;
}

} // namespace

void register_jumps(nb::module_ &m) {
    define(m, "jump", &jump<float, AnyRows<float>>);
    define(m, "jump", &jump<double, AnyRows<double>>);
    define(m, "jump", &jump<float, Csr<float>>);
    define(m, "jump", &jump<double, Csr<double>>);
}

} // namespace cprime
