// k-means of many small problems at once, one problem per task: the initialization by k-means++, and Lloyd's
// iterations. Both call the kernels that a fit of one problem calls, and compute everything between these in the same
// order, so results are bit-identical to those of single fits. `lloyd` makes the iterations of a single problem, whose
// rows may be sparse.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "arrays.h"
#include "lloyd.h"
#include "thread_pool.h"

namespace cprime {
namespace {

// The rows of all problems: problem b has the rows offsets[b] to offsets[b + 1] - 1, and their weights.
template <class T> struct Problems {
    Points<T> X;
    const std::int64_t *offsets;
    const double *weights; // (N,), or null for ones
    std::size_t n, C;

    Points<T> rows(std::size_t b) const {
        return X.from(static_cast<std::size_t>(offsets[b]), static_cast<std::size_t>(offsets[b + 1] - offsets[b]));
    }
    const double *weights_of(std::size_t b) const { return weights ? weights + offsets[b] : nullptr; }
};

template <class T>
Problems<T> problems(const Matrix<T> &X, const Vector<std::int64_t> &offsets,
                     const std::optional<Vector<double>> &sample_weight, std::size_t C) {
    const Points<T> x = rows(X);
    const std::size_t B = offsets.shape(0) - 1;
    require(offsets.shape(0) >= 1 && C >= 1, "offsets, centers");
    bool rising = offsets.data()[0] == 0 && static_cast<std::size_t>(offsets.data()[B]) == x.n;
    for (std::size_t b = 0; b < B; ++b)
        rising = rising && offsets.data()[b] < offsets.data()[b + 1];
    require(rising, "offsets");
    require(!sample_weight || sample_weight->shape(0) == x.n, "sample_weight");
    return {x, offsets.data(), data_or_null(sample_weight), B, C};
}

// Return an index drawn with probability proportional to weight; cumulative: cumulative sums of the weights, uniform:
// a random number in [0, 1).
std::size_t drawn(const std::vector<double> &cumulative, double uniform) {
    const auto begin = cumulative.begin(), end = cumulative.end();
    const double total = cumulative.back();
    return static_cast<std::size_t>(
        std::min(std::upper_bound(begin, end, uniform * total), std::lower_bound(begin, end, total)) - begin);
}

// Greedy k-means++ of one problem: the choice of its starting centers among its rows.
template <class T> class PlusPlus {
  public:
    PlusPlus(const Points<T> &X, const double *weights, const std::int64_t *order, std::size_t most)
        : X_(X), weights_(weights), order_(order), closest_(X.n), squares_(most * X.n), cumulative_(X.n) {}

    // Choose C rows; n_proposed (C,): how many candidates are drawn for the next centers, by the number of chosen ones.
    // Returns whether the n_uniform random numbers suffice, and rows are left that differ from the chosen ones.
    bool choose(std::size_t C, std::size_t n_trials, const std::int64_t *n_proposed, const double *uniform,
                std::size_t n_uniform, std::int64_t *chosen) {
        accumulate([&](std::size_t i) { return weights_ ? weights_[i] : 1.0; });
        if (!n_uniform || !(cumulative_.back() > 0))
            return false;
        chosen[0] = order_[drawn(cumulative_, uniform[0])];
        measure(chosen, 1, nullptr, closest_.data());
        for (std::size_t c = 1, used = 1; c < C;) {
            accumulate([&](std::size_t i) {
                const auto square = static_cast<double>(closest_[i]);
                return weights_ ? square * weights_[i] : square;
            });
            const auto n = static_cast<std::size_t>(n_proposed[c]);
            if (!(cumulative_.back() > 0) || used + 2 * n > n_uniform)
                return false;
            propose(n, uniform + used);
            used += 2 * n;
            for (std::size_t next = 0; c < C && accept(n_trials, next); ++c)
                chosen[c] = add_best();
        }
        return true;
    }

  private:
    template <class Mass> void accumulate(Mass mass) {
        double sum = 0;
        for (std::size_t i = 0; i < X_.n; ++i)
            cumulative_[i] = sum += mass(static_cast<std::size_t>(order_[i]));
    }

    // Draw n candidates, and a number for each that its distance must exceed to be accepted later.
    void propose(std::size_t n, const double *uniform) {
        proposed_.resize(n);
        bars_.resize(n);
        for (std::size_t i = 0; i < n; ++i) {
            proposed_[i] = order_[drawn(cumulative_, uniform[i])];
            bars_[i] = uniform[n + i] * static_cast<double>(closest_[static_cast<std::size_t>(proposed_[i])]);
        }
        measure(proposed_.data(), n, closest_.data(), squares_.data());
    }

    // Accept the next n_trials candidates from position `next` on; return false if fewer are left.
    bool accept(std::size_t n_trials, std::size_t &next) {
        accepted_.clear();
        for (; next < proposed_.size() && accepted_.size() < n_trials; ++next)
            if (static_cast<double>(closest_[static_cast<std::size_t>(proposed_[next])]) > bars_[next])
                accepted_.push_back(next);
        return accepted_.size() == n_trials;
    }

    // Return the row of the accepted candidate that lowers the potential most, and update the distances.
    std::int64_t add_best() {
        std::size_t best = accepted_[0];
        double least = std::numeric_limits<double>::infinity();
        for (const std::size_t i : accepted_) {
            const double value = potential(squares_.data() + i * X_.n);
            if (value < least) {
                least = value;
                best = i;
            }
        }
        const T *square = squares_.data() + best * X_.n;
        for (std::size_t i = 0; i < X_.n; ++i)
            closest_[i] = std::min(closest_[i], square[i]);
        return proposed_[best];
    }

    double potential(const T *squares) const {
        constexpr std::size_t PIECE = 8192; // that of the kernel `potentials`
        double total = 0;
        for (std::size_t begin = 0; begin < X_.n; begin += PIECE)
            total += kernels<T>().potential(squares, closest_.data(), weights_, begin, std::min(X_.n, begin + PIECE));
        return total;
    }

    // Compute squared distances (n, N), at most `current`, of all rows to the n rows `ids`.
    void measure(const std::int64_t *ids, std::size_t n, const T *current, T *out) {
        const Kernels<T> &kernel = kernels<T>();
        const auto D = static_cast<std::size_t>(X_.D);
        gathered_.resize(n * D);
        for (std::size_t i = 0; i < n; ++i)
            std::copy_n(X_[static_cast<std::size_t>(ids[i])], D, gathered_.data() + i * D);
        const Rows<T> candidates{gathered_.data(), X_.D, n, X_.D};
        packed_.resize((n + kernel.tile_rows - 1) / kernel.tile_rows * kernel.tile_rows * D + kernel.lanes);
        kernel.pack_tiles(candidates, packed_.data());
        kernel.distances(X_, candidates, packed_.data(), current, out, 0, X_.n);
    }

    Points<T> X_;
    const double *weights_;
    const std::int64_t *order_;
    std::vector<T> closest_, squares_, gathered_, packed_;
    std::vector<double> cumulative_, bars_;
    std::vector<std::int64_t> proposed_;
    std::vector<std::size_t> accepted_;
};

// Choose starting centers of all problems by greedy k-means++; chosen (B, C): rows counted from the problem's first. If
// random numbers or different rows do not suffice, chosen[b, 0] is -1.
template <class T>
void plus_plus_many(Matrix<T> X, Vector<std::int64_t> offsets, std::optional<Vector<double>> sample_weight,
                    Vector<std::int64_t> order, Table<double> uniform, int n_trials, Vector<std::int64_t> n_proposed,
                    OutTable<std::int64_t> chosen, int n_threads) {
    const std::size_t C = chosen.shape(1), U = uniform.shape(1);
    const Problems<T> all = problems(X, offsets, sample_weight, C);
    require(order.shape(0) == all.X.n, "order");
    require(uniform.shape(0) == all.n && chosen.shape(0) == all.n, "uniform, chosen");
    require(n_proposed.shape(0) == C && n_trials >= 1, "n_proposed");
    std::int64_t most = 0;
    for (std::size_t c = 0; c < C; ++c) {
        require(n_proposed.data()[c] >= n_trials, "n_proposed: fewer than n_trials");
        most = std::max(most, n_proposed.data()[c]);
    }
    for (std::size_t b = 0; b < all.n; ++b)
        for (std::int64_t i = offsets.data()[b], n = offsets.data()[b + 1] - i; i < offsets.data()[b + 1]; ++i)
            require(order.data()[i] >= 0 && order.data()[i] < n, "order: outside the problem");
    const KernelCall call;
    parallel_for(all.n, n_threads, [&](std::size_t b) {
        PlusPlus<T> start(all.rows(b), all.weights_of(b), order.data() + offsets.data()[b],
                          static_cast<std::size_t>(most));
        std::int64_t *rows = chosen.data() + b * C;
        if (!start.choose(C, static_cast<std::size_t>(n_trials), n_proposed.data(), uniform.data() + b * U, U, rows))
            rows[0] = -1;
    });
}

// When iterations end, and what an empty cluster means.
struct Limits {
    int max_iter;
    double tol;                        // least change of the error J, relative to J
    std::optional<double> least_shift; // least sum of squared shifts of the centers, which replaces `tol`
    bool keep_empty;                   // whether centers of empty clusters stay; otherwise they are a failure
};

struct Outcome {
    std::int64_t n_iterations = 0; // -1 if a cluster is empty and may not be
    bool converged = false;        // whether the iterations have ended for another reason than their number
    bool settled = false;          // whether the last iteration has reassigned no row and moved no center
};

// Iterate until no row is reassigned or a limit is reached. record(i, J, n) is called in every iteration with its
// error and its number of reassigned rows. Labels and squares are then those before the last move of the centers.
template <class T, class X, class Record> Outcome run(Lloyd<T, X> &fit, const Limits &limits, Record record) {
    Outcome run;
    double last = std::numeric_limits<double>::infinity(), change = last;
    fit.iterate(
        [&] {
            const std::int64_t n_moved = fit.n_moved();
            change = std::abs(last - fit.error) / (fit.error > 0 ? fit.error : 1.0);
            last = fit.error;
            record(run.n_iterations++, fit.error, n_moved);
            run.settled = run.converged = run.n_iterations > 1 && n_moved == 0;
            if (!limits.keep_empty && std::find(fit.counts.begin(), fit.counts.end(), 0.0) != fit.counts.end()) {
                run.n_iterations = -1;
                return true;
            }
            return run.settled;
        },
        [&](double shift) {
            run.converged = limits.least_shift ? shift <= *limits.least_shift : change <= limits.tol;
            return run.converged || run.n_iterations >= limits.max_iter;
        });
    return run;
}

// Make Lloyd's iterations of all problems from the centers (B C, D), which are replaced by the results. labels,
// squares (N,), errors (B,): nearest final centers, squared distances to them, and the error J. n_iterations (B,):
// problems with -1 are omitted; after the call, -1 if a cluster is empty, and the other results of this problem are
// undefined.
template <class T>
void lloyd_many(Matrix<T> X, Vector<std::int64_t> offsets, std::optional<Vector<double>> sample_weight,
                OutTable<T> centers, int max_iter, double tol, std::optional<double> least_shift,
                OutVector<std::int32_t> labels, OutVector<T> squares, OutVector<double> errors,
                OutVector<std::int64_t> n_iterations, int n_threads) {
    const std::size_t B = n_iterations.shape(0), C = B ? centers.shape(0) / B : 1, D = centers.shape(1);
    const Problems<T> all = problems(X, offsets, sample_weight, C);
    require(all.n == B && centers.shape(0) == B * C && D == static_cast<std::size_t>(all.X.D), "centers, n_iterations");
    require(labels.shape(0) == all.X.n && squares.shape(0) == all.X.n && errors.shape(0) == B, "labels, squares");
    const KernelCall call;
    parallel_for(B, n_threads, [&](std::size_t b) {
        if (n_iterations.data()[b] < 0)
            return;
        Lloyd<T, Points<T>> fit(all.rows(b), all.weights_of(b), centers.data() + b * C * D, C, false, 1);
        const Outcome found = run(fit, {max_iter, tol, least_shift, false}, [](std::int64_t, double, std::int64_t) {});
        n_iterations.data()[b] = found.n_iterations;
        if (found.n_iterations > 0 && !found.settled)
            fit.find_nearest();
        std::copy(fit.labels.begin(), fit.labels.end(), labels.data() + offsets.data()[b]);
        std::copy(fit.least.begin(), fit.least.end(), squares.data() + offsets.data()[b]);
        errors.data()[b] = fit.error;
    });
}

// Make Lloyd's iterations of one problem from the centers (C, D), which are replaced by the result. labels, squares
// (N,) and counts (C,): nearest centers, squared distances and weights of the clusters in the last iteration; errors,
// n_moved (max_iter,): error J and number of reassigned rows of each iteration. Returns the number of iterations, -1 if
// a cluster is empty and empty ones are not kept, and whether they have converged.
template <class T, class X>
nb::tuple lloyd(X rows, std::optional<Vector<double>> sample_weight, OutTable<T> centers, int max_iter, double tol,
                std::optional<double> least_shift, bool keep_empty, OutVector<std::int32_t> labels,
                OutVector<T> squares, OutVector<double> counts, OutVector<double> errors,
                OutVector<std::int64_t> n_moved, int n_threads) {
    const auto x = points(rows);
    const std::size_t C = centers.shape(0);
    require(C >= 1 && centers.shape(1) == static_cast<std::size_t>(x.D) && counts.shape(0) == C, "centers, counts");
    require(labels.shape(0) == x.n && squares.shape(0) == x.n, "labels, squares");
    require(!sample_weight || sample_weight->shape(0) == x.n, "sample_weight");
    require(max_iter >= 1 && errors.shape(0) == static_cast<std::size_t>(max_iter) &&
                n_moved.shape(0) == errors.shape(0),
            "errors, n_moved");
    Outcome found;
    {
        const KernelCall call;
        check(rows, n_threads);
        Lloyd<T, std::remove_const_t<decltype(x)>> fit(x, data_or_null(sample_weight), centers.data(), C, false,
                                                       n_threads);
        found = run(fit, {max_iter, tol, least_shift, keep_empty}, [&](std::int64_t i, double J, std::int64_t n) {
            errors.data()[i] = J;
            n_moved.data()[i] = n;
        });
        std::copy(fit.labels.begin(), fit.labels.end(), labels.data());
        std::copy(fit.least.begin(), fit.least.end(), squares.data());
        std::copy(fit.counts.begin(), fit.counts.end(), counts.data());
    }
    return nb::make_tuple(found.n_iterations, found.converged);
}

template <class T> void define_many(nb::module_ &m) {
    define(m, "plus_plus_many", &plus_plus_many<T>);
    define(m, "lloyd_many", &lloyd_many<T>);
    define(m, "lloyd", &lloyd<T, AnyRows<T>>);
    define(m, "lloyd", &lloyd<T, Csr<T>>);
}

} // namespace

void register_many(nb::module_ &m) {
    define_many<float>(m);
    define_many<double>(m);
}

} // namespace cprime
