// Interface of the instruction-set builds: plain functions over a range of rows or components. Each is called from
// several threads at once on disjoint ranges; none of them starts a thread.
#pragma once
#include "factor_tasks.h"
#include "inlined.h"
#include "rows.h"

#include <cstddef>
#include <cstdint>

namespace cprime {

// Centers packed for scoring: panels of `lanes` columns, each (D + 1) rows deep, with bounds of the errors of scores.
template <class T> struct Panels {
    T *columns;           // (n_panels, D + 1, lanes): -(m - shift), and -|m - shift| in the last row
    T *half_norm;         // (n_panels, lanes): |m - shift|^2 / 2, rounded down by its error; infinity where padded
    T *norm;              // (n_panels, lanes): |m - shift|
    std::uint8_t *coarse; // (n_panels, coarse_panel_size): the same in coarse numbers, or null
    T *scale;             // (n_panels, lanes): scale of the coarse numbers
    T *lost;              // (n_panels, lanes): |m - shift - its coarse numbers|, zeros if there are none
    const T *shift;       // (D,)
    // (C,), or null: true for a center that is preceded by as many equal centers as are wanted. It is never among the
    // nearest, because ties go to the lower id.
    const std::uint8_t *surplus;
    int n_panels;
    int C;
};

// Limits below which computing all distances is faster than screening the centers.
constexpr int DIRECT_FEATURES = 16, DIRECT_VALUES = 384;
CPRIME_INLINED bool is_direct(std::size_t C, int H, int D) {
    return H == 1 && D >= 1 && D <= DIRECT_FEATURES && C * static_cast<std::size_t>(D) <= DIRECT_VALUES;
}

template <class T> struct NearestTask {
    Points<T> X;
    Rows<T> centers;
    Panels<T> panels;
    const std::int32_t *hint; // (N, H) components that are probably near, distinct within a row, or null
    int H;
    std::int32_t *kept; // (N, H)
    T *distances;       // (N, H), or (N,) with lows
    // Null, or (N, H). If given, only the distance to the nearest center is computed and the H - 1 other centers are
    // near ones. These are lower bounds of the distances to the others and, in the last column, to all remaining
    // centers.
    T *lows;
    bool improve = false; // replace only what is farther than a center found, in `kept` and `distances`
};

// Rows, each compared with the centers of a few cells. The first n_cells centers are those of the cells; the centers in
// the cells follow, cell by cell.
template <class T> struct CellsTask {
    NearestTask<T> nearest;     // with improve set; lists are empty at first
    const std::int64_t *begins; // (n_cells + 1,): the first center in each cell
    const T *between;           // (n_cells, n_cells) divisors: cell b has no center nearer to a row than (d2_b - d2_a)
                                // / between[a, b], if a is its nearest cell
    int n_cells;
    int most; // greatest number of cells in which a row is searched, at most n_cells
};

// Rows with bounds from an earlier iteration, which mostly prove that the nearest center is still the same; H - 1 other
// centers have a bound each.
template <class T> struct BoundedTask {
    NearestTask<T> nearest; // of all rows; kept (N, 1) in and out, distances (N, 1) out
    const T *drift;         // (C,): upper bound of each center's move since then
    // (C, width), for each center in ascending order of reach: all other centers nearer to it than reach have moved by
    // at most spread. The last reach is infinite; unused entries after it are -infinity.
    const T *reach, *spread;
    int width;
    std::int32_t *others; // (N, H - 1) other centres
    T *lows;              // (N, H - 1) lower bounds of their distances
    T *rest;              // (N,): lower bound of the distances to all other centers
};

template <class T> struct AccumulateTask {
    Points<T> X;
    const std::int64_t *rows;       // (n,) rows of X to which the entries refer, or null for all in order
    const std::int64_t *entries;    // positions n * H + h, grouped by component
    const double *responsibilities; // (n, H), or null for ones
    const double *sample_weight;    // (N,) by rows of X, or null for ones
    int H;
    std::size_t n_entries;
};

// Rows and their responsibilities for the components of their active sets.
template <class T> struct TableSumsTask {
    Points<T> X;
    const Rows<T> *means; // means about which moments are taken, or null for plain sums
    const std::int32_t *kept;
    const double *responsibilities; // (N, H), or null for ones
    const double *sample_weight;    // (N,), or null for ones
    int H;
    std::size_t C;
};

// One block of rows of the exact E-step. Exponentials are stored panel by panel: (n_panels, n_rows padded, lanes).
template <class T> struct ExpectTask {
    Points<T> X;
    const T *columns; // (n_panels, D, lanes): the centres' coordinates, zeros where padded
    int n_panels;
    int C;
    double variance;
    const double *sample_weight; // (N,), or null for ones
    T *exponentials;             // (n_panels, n_padded, lanes)
    T *scaled;                   // (D + 1 padded to tiles, n_padded): w_n x_n / Z_n, and w_n / Z_n last
    // For each row (n,), unweighted and relative to the nearest center, so that nothing cancels if the variance is
    // small.
    double *least;   // min_c d2_nc
    double *excess;  // sum_c r_nc d2_nc - least
    double *log_sum; // log sum_c exp(-(d2_nc - least) / 2 variance)
    std::size_t n_padded;
};

// One of n parts into which the sums of one segment are divided. All parts read the same points and have sums of their
// own.
struct Part {
    std::size_t i, n;
};

// Points grouped by component, each compared with the neighbors of its component.
template <class T> struct ReassignTask {
    Points<T> X;
    Rows<T> centers;
    const std::int32_t *lists; // (at most C, G) neighbors without the component itself, -1 after the last
    int G;
    const T *inside;  // (C,) factor on the squared distance to the own component, or null for ones
    const T *outside; // (C,) factor on that to another one, or null for ones
    double share;     // greatest share of a component's points that may be reassigned to a component not nearer
    const std::int64_t *entries;
    std::int32_t *labels; // (N,) new component of each point
    T *distances;         // (N,) squared distance to it
};

// Points grouped by the nearest component of their active sets, each compared with the neighbors of that component.
template <class T> struct KeepTask {
    Points<T> X;
    Rows<T> centers;
    const std::int32_t *lists; // (C, G) neighbors without the component itself, -1 after the last
    int G;
    const std::int32_t *previous; // (N, n_previous), nearest first, -1 where empty
    int n_previous;
    const std::int64_t *entries;
    int H;
    std::int32_t *kept; // (N, H), -1 where fewer were found
    T *distances;       // (N, H)
};

// Gaussian components with costs offset + |A (x - m)|^2. With degrees of freedom nu they are t distributions with costs
// offset + (nu + D) log(1 + |A (x - m)|^2 / nu).
template <class T> struct Gaussians {
    Rows<T> means;
    const T *factors; // (C, D), the diagonals of A, or (C, D, D), lower triangles with zeros above
    const T *offsets; // (C,)
    const T *dof;     // (C,): degrees of freedom, or null for Gaussians
    bool full;
    CPRIME_INLINED const T *factor(std::size_t c) const {
        return factors + c * means.D * (full ? static_cast<std::size_t>(means.D) : 1);
    }
};

// The constant term of a Gaussian component for points relative to an origin.
template <class T> struct Start {
    const T *values; // (D,): A (origin - m)
    bool far;        // whether squared distances have to be computed from x - m
};
template <class T> struct Starts {
    const T *values; // (C, D)
    const bool *far; // (C,)
    CPRIME_INLINED Start<T> of(std::size_t c, int D) const { return {values + c * D, far[c]}; }
};

// Rows compared with all Gaussian components.
template <class T> struct BestTask {
    Points<T> X;
    Gaussians<T> gaussians;
    const T *origin;  // (D,): points are packed relative to it
    Starts<T> starts; // gaussian_start for that origin
    int H;
    std::int32_t *kept; // (N, H)
    T *costs;           // (N, H)
};

// One block of rows of the exact E-step of Gaussian or t mixtures.
template <class T> struct RespondTask {
    Points<T> X;
    Gaussians<T> gaussians;
    const T *origin; // as in BestTask
    Starts<T> starts;
    const double *sample_weight; // (n,), or null for ones
    std::size_t n_padded;
    T *table;             // (C, n_padded)
    std::int32_t *labels; // (n,)
    double *log_sum;      // (n,)
    double *mean;         // (n,)
    std::size_t step;     // rows of one call, for t distributions
    double *tails;        // (calls, 2, C): sums of the shares of each component, and of these times log u; or null
};

// What rows keep of t distributions.
template <class T> struct PullTask {
    const std::int32_t *kept;       // (N, H)
    const T *costs;                 // (N, H)
    const double *responsibilities; // (N, H), or null for ones
    const double *sample_weight;    // (N,), or null for ones
    int H;
    const T *offsets, *dof; // (C,)
    std::size_t C;
    int D;
    double *pulled; // (N, H)
};

// Points grouped by the best of what they keep, each compared with the neighbours of that.
template <class T> struct KeepBestTask {
    Points<T> X;
    Gaussians<T> gaussians;
    const std::int32_t *lists; // (C, G) neighbours without the component itself, -1 behind the last
    int G;
    const std::int32_t *previous; // (N, n_previous), best first, -1 where empty
    int n_previous;
    const std::int64_t *entries;
    int H;
    std::int32_t *kept; // (N, H), -1 where fewer were found
    T *costs;           // (N, H)
};

template <class T> struct MomentsTask {
    Points<T> X;
    Rows<T> means;
    bool full;
    const std::int64_t *entries;    // positions n * H + h, grouped by component
    const double *responsibilities; // (N, H), or null for ones
    const double *sample_weight;    // (N,), or null for ones
    int H;
};

// Rows with candidates of their own: what they keep, the lists of that, and extra ones.
template <class T> struct AmongTask {
    Points<T> X;
    Rows<T> centers;
    const Gaussians<T> *gaussians; // whose costs are meant, or null for squared distances to the centres
    const std::int32_t *lists;     // (C, G), -1 where empty
    int G;
    const std::int32_t *previous; // (N, n_previous), -1 where empty
    int n_previous;
    const std::int32_t *extra; // (N, n_extra)
    int n_extra;
    int H;
    std::int32_t *kept;   // (N, H), -1 where fewer were found
    T *distances;         // (N, H)
    std::int32_t *counts; // (N,) evaluations

    const std::int64_t *entries = nullptr; // (N,) the rows in the order of a search, or null: as they are
    // For one call of the kernel: (entries of the call, capacity) what each has looked at, counts of them; or null.
    std::int32_t *evaluated = nullptr;
    T *evaluations = nullptr;

    CPRIME_INLINED std::size_t row(std::size_t e) const { return entries ? static_cast<std::size_t>(entries[e]) : e; }
    // Most that a row looks at.
    CPRIME_INLINED std::size_t capacity() const { return static_cast<std::size_t>(n_previous) * (G + 1) + n_extra; }
};

// Some rows against a few centres.
template <class T> struct TwoNearestTask {
    Points<T> X;
    Rows<T> centers;
    const std::int64_t *which; // rows of X, or null for all
    std::int32_t *labels;      // of each of these, as the following: its nearest centre
    T *least, *second; // squared distances to that and to the next one, infinite if there is none; second or null
    CPRIME_INLINED std::size_t row(std::size_t e) const { return which ? static_cast<std::size_t>(which[e]) : e; }
};

template <class T> struct SparseKernels; // sparse.h

template <class T> struct Kernels {
    int lanes;
    int tile_rows;
    // Bytes of a panel of coarse numbers when the H nearest of C centres are wanted; 0 where they would not help.
    std::size_t (*coarse_panel_size)(std::size_t C, int H, int D);
    // Packs panels [begin, end) of `lanes` centres each.
    void (*pack_panels)(const Rows<T> &centers, const Panels<T> &panels, int begin, int end);
    // Rows that one call of `nearest` should be given, with panels of coarse numbers or without.
    std::size_t (*nearest_rows)(int H, int D, bool coarse);
    void (*nearest)(const NearestTask<T> &task, std::size_t begin, std::size_t end);
    // The same for one row each, by bounds; returns how many distances it took.
    std::int64_t (*nearest_bounded)(const BoundedTask<T> &task, std::size_t begin, std::size_t end);
    // Returns how many distances it took, those to cells among them.
    std::int64_t (*find_in_cells)(const CellsTask<T> &task, std::size_t begin, std::size_t end);
    // out[l * n + i] = min(current[i], |x_i - candidate_l|^2) for rows [begin, end).
    void (*distances)(const Points<T> &X, const Rows<T> &candidates, const T *packed_candidates, const T *current,
                      T *out, std::size_t begin, std::size_t end);
    // Sum of w min(squares, closest) over [begin, end).
    double (*potential)(const T *squares, const T *closest, const double *weights, std::size_t begin, std::size_t end);
    // out[n] = |x_n - m_c|^2 of rows [begin, end), c being their labels.
    void (*own_distances)(const Points<T> &X, const Rows<T> &centers, const std::int32_t *labels, T *out,
                          std::size_t begin, std::size_t end);
    void (*pack_tiles)(const Rows<T> &rows, T *out); // (ceil(n / tile_rows), D, tile_rows)
    void (*posterior)(const T *values, double scale, int H, double *responsibilities, double *log_sum, double *mean,
                      std::size_t begin, std::size_t end);
    // count and sum (D,) are added to, over entries [begin, end).
    void (*accumulate)(const AccumulateTask<T> &task, std::size_t begin, std::size_t end, double *count, double *sum);
    // count (C,), first (C, D) and, with means, second (C, D) are added to.
    void (*sum_table)(const TableSumsTask<T> &task, std::size_t begin, std::size_t end, double *count, double *first,
                      double *second);
    // out[n] = (x_n - m_c) v_c of rows [begin, end), c being their labels.
    void (*along)(const Points<T> &X, const Rows<T> &centers, const Rows<T> &directions, const std::int32_t *labels,
                  double *out, std::size_t begin, std::size_t end);
    void (*pack_columns)(const Rows<T> &centers, T *columns);
    void (*expect)(const ExpectTask<T> &task, std::size_t begin, std::size_t end);
    // Of these rows least and log_sum alone.
    void (*log_sum_exp)(const ExpectTask<T> &task, std::size_t begin, std::size_t end);
    // counts (C,) and sums (C, D) of the components of one panel are added to.
    void (*maximise)(const ExpectTask<T> &task, int panel, double *counts, double *sums);
    // Points [begin, end) of the entries, all of them of one component.
    void (*reassign)(const ReassignTask<T> &task, int component, std::size_t begin, std::size_t end);
    void (*keep)(const KeepTask<T> &task, int component, std::size_t begin, std::size_t end);
    void (*nearest_among)(const AmongTask<T> &task, std::size_t begin, std::size_t end);
    // n_chosen of the candidates, by uniform (n_chosen, n_trials).
    void (*spread_out)(const Points<T> &candidates, const double *weights, const double *uniform, int n_trials,
                       std::size_t n_chosen, std::int64_t *chosen);
    // out (n, m): products of rows [begin, end), less a shift (D,) or null, with the m columns of pack_columns.
    void (*products)(const Points<T> &X, const T *shift, const T *columns, std::size_t m, T *out, std::size_t begin,
                     std::size_t end);
    bool (*gaussian_start)(const Gaussians<T> &gaussians, std::size_t component, const T *origin, T *out);
    void (*best)(const BestTask<T> &task, std::size_t begin, std::size_t end);
    void (*keep_best)(const KeepBestTask<T> &task, int component, std::size_t begin, std::size_t end);
    void (*respond)(const RespondTask<T> &task, std::size_t begin, std::size_t end);
    // count, first (D,) and second (D,) or (D, D) of one component are added to.
    void (*column_moments)(const RespondTask<T> &task, int component, std::size_t begin, std::size_t end, Part part,
                           double *count, double *first, double *second);
    // q u of rows [begin, end); tails (2, C), sums of w q and of w q log u, are added to.
    void (*pull)(const PullTask<T> &task, std::size_t begin, std::size_t end, double *tails);
    void (*moments)(const MomentsTask<T> &task, int component, std::size_t begin, std::size_t end, Part part,
                    double *count, double *first, double *second);
    // Entries [begin, end), all of one component, as the following.
    void (*factor_costs)(const FactorCostsTask<T> &task, int component, std::size_t begin, std::size_t end);
    void (*keep_factors)(const KeepFactorsTask<T> &task, int component, std::size_t begin, std::size_t end);
    // count, first (2, D) and second (H D + H + H^2) are added to.
    void (*factor_moments)(const FactorMomentsTask<T> &task, int component, std::size_t begin, std::size_t end,
                           double *count, double *first, double *second);
    // Of rows [begin, end): the greatest |x|, infinite or NaN where one is, and the greatest |x - origin|.
    void (*extent)(const Points<T> &X, const T *origin, std::size_t begin, std::size_t end, T *largest, T *spread);
    // Rows [begin, end) of an order, or as they come for null, divided by their lengths.
    void (*normalized)(const Rows<T> &X, const std::int64_t *order, T least, T *out, double *lengths, std::size_t begin,
                       std::size_t end);
    // Entries [begin, end) of the task; centres as of pack_tiles.
    void (*two_nearest)(const TwoNearestTask<T> &task, const T *packed, std::size_t begin, std::size_t end);
    // counts (C,) and sums (C, D) are added to, by the labels of entries [begin, end).
    void (*add_rows)(const TwoNearestTask<T> &task, const double *sample_weight, std::size_t begin, std::size_t end,
                     double *counts, double *sums);
    // The means (2, D) of the halves of a cluster; returns by how much J falls.
    double (*halve)(const Points<T> &X, const double *sample_weight, const std::int64_t *rows, std::size_t n,
                    std::int64_t far, const double *mean, double *means);
    // out (n, D): rows [begin, end), which are stored otherwise.
    void (*widen)(const Points<T> &X, std::size_t begin, std::size_t end, T *out);
    const SparseKernels<T> *sparse;
};

template <class T> const Kernels<T> &kernels(); // of the best instruction set this processor has
const char *instruction_set();

} // namespace cprime
