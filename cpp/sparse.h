// Rows that are mostly zeros: interface of the instruction-set builds for them, like that of `kernels.h` for dense
// rows.
#pragma once
#include "inlined.h"
#include "kernels.h"
#include "twofold.h"

namespace cprime {

// n rows of D numbers. The entries of row i are values and columns begin[i] to begin[i + 1] - 1, with ascending
// columns; all other numbers are zeros.
template <class T> struct SparseRows {
    const T *values;
    const std::int32_t *columns;
    const std::int64_t *begin;
    std::size_t n;
    int D;
};

// One sparse row.
template <class T> struct SparseRow {
    const T *values;
    const std::int32_t *columns;
    std::int64_t length;
};

template <class T> CPRIME_INLINED SparseRow<T> row_of(const SparseRows<T> &X, std::size_t i) {
    return {X.values + X.begin[i], X.columns + X.begin[i], X.begin[i + 1] - X.begin[i]};
}

// Centers packed for scoring: `lanes` of them side by side, column by column.
template <class T> struct SparsePanels {
    T *columns;            // (n_panels, D, lanes), zeros where padded
    T *half_norm;          // (n_panels, lanes): |m|^2 / 2, far above any score where padded
    T *norm;               // (n_panels, lanes): |m|, zeros where padded
    const Twofold *square; // (C,): |m|^2
    int n_panels;
};

template <class T> struct SparseNearestTask {
    SparseRows<T> X;
    Rows<T> centers;
    SparsePanels<T> panels;
    const std::int32_t *hint; // (N, H) components that are probably near, or null
    int H;
    std::int32_t *kept; // (N, H)
    T *distances;       // (N, H)
};

// The task of the same name for dense rows, with sparse rows instead of its X, which is not read. The same holds for
// the following tasks.
template <class T> struct SparseAccumulateTask : AccumulateTask<T> {
    SparseRows<T> sparse;
};

template <class T> struct SparseReassignTask : ReassignTask<T> {
    SparseRows<T> sparse;
    const Twofold *square;         // (C,): |m|^2
    const SparsePanels<T> *panels; // all components, if lists contain a large share of them, or null
};

template <class T> struct SparseListSearchTask : ListSearchTask<T> {
    SparseRows<T> sparse;
    const Twofold *square; // (C,): |m|^2
};

template <class T> struct SparseKernels {
    int lanes;
    void (*squares)(const Rows<T> &centers, Twofold *out, std::size_t begin, std::size_t end);
    void (*pack)(const Rows<T> &centers, const SparsePanels<T> &panels, int panel);
    void (*nearest)(const SparseNearestTask<T> &task, std::size_t begin, std::size_t end);
    // Compute out[l * n + i] = min(current[i], |x_i - candidate_l|^2) for rows [begin, end).
    void (*distances)(const SparseRows<T> &X, const Rows<T> &candidates, const Twofold *square, const T *packed,
                      const T *current, T *out, std::size_t begin, std::size_t end);
    void (*pack_columns)(const Rows<T> &candidates, T *out); // (ceil(n / lanes), D, lanes)
    void (*accumulate)(const SparseAccumulateTask<T> &task, std::size_t begin, std::size_t end, double *count,
                       double *sum);
    double (*product)(const T *m, const T *v, int D);
    // Compute out[n] = x_n v_c - offset_c for rows [begin, end); c is the label of row n.
    void (*along)(const SparseRows<T> &X, const Rows<T> &directions, const double *offsets, const std::int32_t *labels,
                  double *out, std::size_t begin, std::size_t end);
    void (*reassign)(const SparseReassignTask<T> &task, int component, std::size_t begin, std::size_t end);
    void (*best_in_lists)(const SparseListSearchTask<T> &task, std::size_t begin, std::size_t end);
    void (*spread_out)(const SparseRows<T> &candidates, const double *weights, const double *uniform, int n_trials,
                       std::size_t n_chosen, std::int64_t *chosen);
    double (*halve)(const SparseRows<T> &X, const double *sample_weight, const std::int64_t *rows, std::size_t n,
                    std::int64_t far, const double *mean, double *means);
};

} // namespace cprime
