// Lloyd's algorithm. Everything that makes k-means iterations in compiled code uses this loop.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "component_sums.h"
#include "nearest_call.h"
#include "sparse_calls.h"

namespace cprime {

// Centers (C, D), which are changed in place, and the assignment of rows X (`Points<T>` or `SparseRows<T>`) to them.
template <class T, class X> class Lloyd {
  public:
    // two: whether the distances to the second nearest centers are computed, too
    Lloyd(const X &x, const double *weights, T *centers, std::size_t C, bool two, int n_threads)
        : labels(x.n), least(x.n), second(two ? x.n : 0), counts(C), sums(C * static_cast<std::size_t>(x.D)), x_(x),
          weights_(weights), centers_(centers), n_threads_(n_threads), before_(x.n), squares_(sums.size()) {}

    // Assign the rows and move the centers, in turn. assigned() is called after each assignment, moved(shift) after
    // each move, with the sum of squared shifts of the centers. The loop ends if one of them returns true.
    template <class Assigned, class Moved> void iterate(Assigned assigned, Moved moved) {
        for (;;) {
            assign();
            if (assigned() || moved(move()))
                return;
        }
    }

    // Find the nearest centers, and compute counts (C,), sums (C, D) and the error J of the assignment.
    // two: whether the distances to the second nearest centers are computed, if there is memory for them
    void assign(bool two = true) {
        if (second.empty() || !two) {
            find_nearest();
            accumulate_of(x_, labels.data(), x_.n, 1, counts.size(), static_cast<const double *>(nullptr), weights_,
                          nullptr, false, counts.data(), sums.data(), n_threads_);
            return;
        }
        std::swap(labels, before_);
        assign_with_second(x_, weights_, rows_of_centers(), labels.data(), least.data(), second.data(), counts.data(),
                           sums.data(), n_threads_);
        add_error();
    }

    // Find the nearest centers, and compute the error J.
    void find_nearest() {
        std::swap(labels, before_);
        nearest_of(x_, rows_of_centers(), n_assigned_ ? before_.data() : nullptr, 1, labels.data(), least.data(),
                   n_threads_);
        add_error();
    }

    // Move the centers to the means of their rows; a center without rows stays. Returns the sum of squared shifts.
    double move() {
        const auto D = static_cast<std::size_t>(x_.D);
        std::fill(squares_.begin(), squares_.end(), 0.0);
        for (std::size_t c = 0; c < counts.size(); ++c)
            for (std::size_t k = c * D; counts[c] > 0 && k < (c + 1) * D; ++k) {
                const T mean = static_cast<T>(sums[k] / counts[c]);
                const double shift = static_cast<double>(mean) - static_cast<double>(centers_[k]);
                squares_[k] = shift * shift;
                centers_[k] = mean;
            }
        return weighted_sum(squares_.data(), nullptr, squares_.size());
    }

    double weight(std::size_t i) const { return weights_ ? weights_[i] : 1.0; }

    // Return how many rows of positive weight the last assignment has reassigned; the first one counts all of them.
    std::int64_t n_moved() const {
        std::int64_t n = 0;
        for (std::size_t i = 0; i < x_.n; ++i)
            n += (n_assigned_ == 1 || labels[i] != before_[i]) && weight(i) > 0;
        return n;
    }

    std::vector<std::int32_t> labels; // (n,) nearest centers
    std::vector<T> least, second;     // (n,) squared distances to the nearest and the second nearest center
    std::vector<double> counts, sums; // (C,), (C, D): weights of the clusters, and weighted sums of their rows
    double error = 0;                 // J, the weighted sum of `least`

  private:
    Rows<T> rows_of_centers() const { return {centers_, x_.D, counts.size(), x_.D}; }
    void add_error() {
        error = weighted_sum(least.data(), weights_, x_.n);
        ++n_assigned_;
    }

    const X x_;
    const double *weights_;
    T *centers_;
    int n_threads_, n_assigned_ = 0;
    std::vector<std::int32_t> before_;
    std::vector<double> squares_;
};

} // namespace cprime
