// Interface of the kernels, which are compiled once for each instruction set: plain functions over a range of rows or
// components. Each is called from several threads at once on disjoint ranges. No kernel starts a thread.
#pragma once
#include "factor_tasks.h"
#include "inlined.h"
#include "rows.h"

#include <cstddef>
#include <cstdint>

namespace cprime {

// Centers packed for the computation of scores (half squared distances minus a constant of the row): panels of `lanes`
// centers each, stored as columns of D + 1 numbers, with bounds of the errors of scores.
template <class T> struct Panels {
    T *columns;           // (n_panels, D + 1, lanes): -(m - shift), and -|m - shift| in the last row
    T *half_norm;         // (n_panels, lanes): |m - shift|^2 / 2, rounded down by its error; infinity where padded
    T *norm;              // (n_panels, lanes): |m - shift|
    std::uint8_t *coarse; // (n_panels, coarse_panel_size): columns in coarse numbers, or null
    T *scale;             // (n_panels, lanes): scale of the coarse numbers
    T *lost;              // (n_panels, lanes): |m - shift - its coarse numbers|, zeros if there are none
    const T *shift;       // (D,)
    // (C,), or null: true for a center that is preceded by as many equal centers as are wanted. It is never among the
    // nearest, because ties go to the lower id.
    const std::uint8_t *surplus;
    int n_panels;
    int C;
};

// Greatest number of dimensions, and of numbers in all centers, for which it is faster to compute all distances than to
// exclude centers by bounds of scores.
constexpr int DIRECT_FEATURES = 16, DIRECT_VALUES = 384;
constexpr std::size_t DIRECT_CENTERS = 4; // greatest number of centers for which this is so in any dimension
CPRIME_INLINED bool is_direct(std::size_t C, int H, int D) {
    const bool is_low = D <= DIRECT_FEATURES && C * static_cast<std::size_t>(D) <= DIRECT_VALUES;
    return H == 1 && D >= 1 && (is_low || C <= DIRECT_CENTERS);
}

template <class T> struct NearestTask {
    Points<T> X;
    Rows<T> centers;
    Panels<T> panels;
    const std::int32_t *hint; // (N, H) components that are probably near, distinct within a row, or null
    int H;
    std::int32_t *kept; // (N, H)
    T *distances;       // (N, H), or (N,) if lows is given
    // Null, or (N, H). If given, only the nearest center's distance is computed, and the H - 1 other ids in `kept` are
    // near centers. `lows` are lower bounds of the distances to these H - 1 centers and, in the last column, to all
    // remaining centers.
    T *lows;
    bool improve = false; // a center replaces one in `kept` and `distances` only if it is nearer
};

// Rows, each compared with the centers in a few cells (groups of centers). The first n_cells centers are those of the
// cells; the centers in the cells follow, cell by cell.
template <class T> struct CellsTask {
    NearestTask<T> nearest;     // nearest.improve is set; ids and distances are empty at first
    const std::int64_t *begins; // (n_cells + 1,): the first center in each cell
    const T *between;           // (n_cells, n_cells) divisors: no center in cell b is nearer to a row than (d2_b -
                                // d2_a) / between[a, b]; a: nearest cell, d2: squared distances to cells
    int n_cells;
    int most; // greatest number of cells in which a row is searched, at most n_cells
};

// Rows with bounds from an earlier iteration, which mostly prove that the nearest center is still the same; H - 1 other
// centers have a bound each.
template <class T> struct BoundedTask {
    NearestTask<T> nearest; // of all rows; kept (N, 1) in and out, distances (N, 1) out
    const T *drift;         // (C,): upper bound of each center's move since that iteration
    // (C, width): for each center some radii `reach` in ascending order, and for each radius an upper bound `spread` of
    // the moves of all other centers within it. The last radius is infinite; unused entries after it are -infinity.
    const T *reach, *spread;
    int width;
    std::int32_t *others; // (N, H - 1) other centers
    T *lows;              // (N, H - 1) lower bounds of their distances
    T *rest;              // (N,): lower bound of the distances to all centers but the nearest and `others`
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

// Rows and their responsibilities for the H components `kept` of their active sets, for sums of all C components.
template <class T> struct TableSumsTask {
    Points<T> X;
    const Rows<T> *means; // means about which moments are taken, or null for plain sums
    const std::int32_t *kept;
    const double *responsibilities; // (N, H), or null for ones
    const double *sample_weight;    // (N,), or null for ones
    int H;
    std::size_t C;
};

// One block of rows of the exact E-step of the isotropic mixture. Exponentials are stored by panels of `lanes`
// components. Z_n: sum of the exponentials of row n
template <class T> struct ExpectTask {
    Points<T> X;
    const T *columns; // (n_panels, D, lanes): coordinates of the centers, zeros where padded
    int n_panels;
    int C;
    double variance;
    const double *sample_weight; // (N,), or null for ones
    T *exponentials;             // (n_panels, n_padded, lanes)
    T *scaled;                   // (D + 1 padded to tiles, n_padded): w_n x_n / Z_n, and w_n / Z_n last
    // Results for each row (n,), without its weight. They are relative to the nearest center, so that nothing cancels
    // if the variance is small.
    double *least;   // min_c d2_nc
    double *excess;  // sum_c r_nc d2_nc - least
    double *log_sum; // log sum_c exp(-(d2_nc - least) / 2 variance)
    std::size_t n_padded;
};

// One of n parts into which the sums of one segment are divided. All parts read the same points; each computes other
// sums.
struct Part {
    std::size_t i, n;
};

// Points grouped by component, each compared with the neighbors of its component.
template <class T> struct ReassignTask {
    Points<T> X;
    Rows<T> centers;
    const std::int32_t *lists; // (at most C, G): G neighbors of each component, not itself; -1 after the last
    int G;
    const T *inside;  // (C,) factor on the squared distance to the own component, or null for ones
    const T *outside; // (C,) factor on the squared distance to another component, or null for ones
    double share;     // greatest share of a component's points that may be reassigned to a component not nearer
    const std::int64_t *entries;
    std::int32_t *labels; // (N,) new component of each point
    T *distances;         // (N,) squared distance to it
};

// Points grouped by the nearest component of their active sets, each compared with the neighbors of that component.
template <class T> struct TopKTask {
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
    const T *origin;  // (D,): point relative to which rows are packed
    Starts<T> starts; // gaussian_start for that origin
    int H;
    std::int32_t *kept; // (N, H)
    T *costs;           // (N, H)
};

// One block of rows of the exact E-step of Gaussian or t mixtures.
template <class T> struct RespondTask {
    Points<T> X;
    Gaussians<T> gaussians;
    const T *origin; // (D,): point relative to which rows are packed
    Starts<T> starts;
    const double *sample_weight; // (n,), or null for ones
    std::size_t n_padded;
    T *table;             // (C, n_padded)
    std::int32_t *labels; // (n,): best component of each row
    double *log_sum;      // (n,): log sum_c exp(-cost_c / 2)
    double *mean;         // (n,): mean cost
    std::size_t step;     // rows of one call, for t distributions
    double *tails;        // (calls, 2, C): sums of each component's responsibilities, and of these times log u; or null
};

// Active sets of rows and their costs, for the weights of rows in the M-step of t distributions.
template <class T> struct ScaledResponsibilitiesTask {
    const std::int32_t *kept;       // (N, H)
    const T *costs;                 // (N, H)
    const double *responsibilities; // (N, H), or null for ones
    const double *sample_weight;    // (N,), or null for ones
    int H;
    const T *offsets, *dof; // (C,)
    std::size_t C;
    int D;
    double *scaled; // (N, H): responsibilities times the weights u of the t distributions
};

// Points grouped by the best (Gaussian) component of their active sets, each compared with this component's neighbors.
template <class T> struct TopKGaussiansTask {
    Points<T> X;
    Gaussians<T> gaussians;
    const std::int32_t *lists; // (C, G) neighbors without the component itself, -1 after the last
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

// Rows with candidates of their own: their active sets, the neighbor lists of these, and extra components.
template <class T> struct ListSearchTask {
    Points<T> X;
    Rows<T> centers;
    const Gaussians<T> *gaussians; // components whose costs are evaluated; null for squared distances to the centers
    const std::int32_t *lists;     // (C, G), -1 where empty
    int G;
    const std::int32_t *previous; // (N, n_previous), -1 where empty
    int n_previous;
    const std::int32_t *extra; // (N, n_extra)
    int n_extra;
    int H;
    std::int32_t *kept;   // (N, H), -1 where fewer were found
    T *distances;         // (N, H)
    std::int32_t *counts; // (N,) number of evaluated components

    const std::int64_t *entries = nullptr; // (N,): row order of the search, or null for the order of X
    // Results of one call of the kernel, or null: the evaluated components and their costs, (entries of the call,
    // capacity) each.
    std::int32_t *evaluated = nullptr;
    T *evaluations = nullptr;

    CPRIME_INLINED std::size_t row(std::size_t e) const { return entries ? static_cast<std::size_t>(entries[e]) : e; }
    // Return the greatest number of components that a row may be compared with.
    CPRIME_INLINED std::size_t capacity() const { return static_cast<std::size_t>(n_previous) * (G + 1) + n_extra; }
};

// Rows compared with a few centers.
template <class T> struct TwoNearestTask {
    Points<T> X;
    Rows<T> centers;
    const T *packed;      // the centers as written by `pack_tiles`
    std::int32_t *labels; // (N,) nearest center
    T *least, *second;    // (N,) squared distances to the nearest and the next one, infinite if there is none
};

template <class T> struct SparseKernels; // sparse.h

template <class T> struct Kernels {
    int lanes;
    int tile_rows;
    // Return the bytes of a panel of coarse numbers for a search of the H nearest of C centers; 0 if they would not
    // help.
    std::size_t (*coarse_panel_size)(std::size_t C, int H, int D);
    // Pack panels [begin, end) of `lanes` centers each.
    void (*pack_panels)(const Rows<T> &centers, const Panels<T> &panels, int begin, int end);
    // Return how many rows one call of `nearest` should process, with or without panels of coarse numbers.
    std::size_t (*nearest_rows)(int H, int D, bool coarse);
    void (*nearest)(const NearestTask<T> &task, std::size_t begin, std::size_t end);
    // Find the nearest center of each row by bounds; return the number of evaluated distances.
    std::int64_t (*nearest_bounded)(const BoundedTask<T> &task, std::size_t begin, std::size_t end);
    // Find near centers in cells; return the number of evaluated distances, including those to cells.
    std::int64_t (*find_in_cells)(const CellsTask<T> &task, std::size_t begin, std::size_t end);
    // Compute out[l * n + i] = min(current[i], |x_i - candidate_l|^2) for rows [begin, end).
    void (*distances)(const Points<T> &X, const Rows<T> &candidates, const T *packed_candidates, const T *current,
                      T *out, std::size_t begin, std::size_t end);
    // Return the sum of w min(squares, closest) over rows [begin, end), with weights w.
    double (*potential)(const T *squares, const T *closest, const double *weights, std::size_t begin, std::size_t end);
    // Compute out[n] = |x_n - m_c|^2 for rows [begin, end); c is the label of row n.
    void (*own_distances)(const Points<T> &X, const Rows<T> &centers, const std::int32_t *labels, T *out,
                          std::size_t begin, std::size_t end);
    void (*pack_tiles)(const Rows<T> &rows, T *out); // (ceil(n / tile_rows), D, tile_rows)
    void (*posterior)(const T *values, double scale, int H, double *responsibilities, double *log_sum, double *mean,
                      std::size_t begin, std::size_t end);
    // Add the weights and the weighted rows of entries [begin, end), all of one component, to count and sum (D,).
    void (*accumulate)(const AccumulateTask<T> &task, std::size_t begin, std::size_t end, double *count, double *sum);
    // Add rows [begin, end) to the sums of their components: count (C,), first (C, D), the sums of rows or, if
    // task.means is given, of differences from the means, and then also second (C, D), of squared differences.
    void (*sum_table)(const TableSumsTask<T> &task, std::size_t begin, std::size_t end, double *count, double *first,
                      double *second);
    // Compute out[n] = (x_n - m_c) v_c for rows [begin, end); c is the label of row n.
    void (*along)(const Points<T> &X, const Rows<T> &centers, const Rows<T> &directions, const std::int32_t *labels,
                  double *out, std::size_t begin, std::size_t end);
    void (*pack_columns)(const Rows<T> &centers, T *columns);
    void (*expect)(const ExpectTask<T> &task, std::size_t begin, std::size_t end);
    // Compute, of the results of an ExpectTask, only least and log_sum, for rows [begin, end).
    void (*log_sum_exp)(const ExpectTask<T> &task, std::size_t begin, std::size_t end);
    // Add the responsibilities, and the rows weighted by them, of a block to counts (C,) and sums (C, D), for the
    // components of one panel.
    void (*maximise)(const ExpectTask<T> &task, int panel, double *counts, double *sums);
    // Reassign points [begin, end) of the entries, all of one component; `top_k` updates their active sets.
    void (*reassign)(const ReassignTask<T> &task, int component, std::size_t begin, std::size_t end);
    void (*top_k)(const TopKTask<T> &task, int component, std::size_t begin, std::size_t end);
    void (*best_in_lists)(const ListSearchTask<T> &task, std::size_t begin, std::size_t end);
    // Choose n_chosen of the candidates by uniform random numbers (n_chosen, n_trials).
    void (*spread_out)(const Points<T> &candidates, const double *weights, const double *uniform, int n_trials,
                       std::size_t n_chosen, std::int64_t *chosen);
    // Write out (n, m): products of rows [begin, end), minus a shift (D,) or null, with the m columns of pack_columns.
    void (*products)(const Points<T> &X, const T *shift, const T *columns, std::size_t m, T *out, std::size_t begin,
                     std::size_t end);
    bool (*gaussian_start)(const Gaussians<T> &gaussians, std::size_t component, const T *origin, T *out);
    void (*best)(const BestTask<T> &task, std::size_t begin, std::size_t end);
    void (*top_k_gaussians)(const TopKGaussiansTask<T> &task, int component, std::size_t begin, std::size_t end);
    void (*respond)(const RespondTask<T> &task, std::size_t begin, std::size_t end);
    // Add rows [begin, end) of a block to the moments of one component about its mean: count, first (D,), and second,
    // (D,) or (D, D).
    void (*column_moments)(const RespondTask<T> &task, int component, std::size_t begin, std::size_t end, Part part,
                           double *count, double *first, double *second);
    // Compute q u (q: responsibilities, u: weights of t distributions) of rows [begin, end), and add the sums of w q
    // and of w q log u to tails (2, C). w: weights of the rows
    void (*scaled_responsibilities)(const ScaledResponsibilitiesTask<T> &task, std::size_t begin, std::size_t end,
                                    double *tails);
    void (*moments)(const MomentsTask<T> &task, int component, std::size_t begin, std::size_t end, Part part,
                    double *count, double *first, double *second);
    // Compute the costs of one component for the points of entries [begin, end); `top_k_factors` also uses such costs.
    void (*factor_costs)(const FactorCostsTask<T> &task, int component, std::size_t begin, std::size_t end);
    void (*top_k_factors)(const TopKFactorsTask<T> &task, int component, std::size_t begin, std::size_t end);
    // Add entries [begin, end) to the moments of one factor analyzer: count, first (2, D), and second (H D + H + H^2).
    void (*factor_moments)(const FactorMomentsTask<T> &task, int component, std::size_t begin, std::size_t end,
                           double *count, double *first, double *second);
    // Compute the greatest |x| of rows [begin, end), infinite or NaN if one is, and the greatest |x - origin|.
    void (*extent)(const Points<T> &X, const T *origin, std::size_t begin, std::size_t end, T *largest, T *spread);
    // Divide rows [begin, end) of an order (null: the order of X) by their lengths.
    void (*normalized)(const Rows<T> &X, const std::int64_t *order, T least, T *out, double *lengths, std::size_t begin,
                       std::size_t end);
    // Find the nearest and the second nearest center of rows [begin, end).
    void (*two_nearest)(const TwoNearestTask<T> &task, std::size_t begin, std::size_t end);
    // Cut a cluster into two and compute the means (2, D) of the halves; return by how much J falls.
    double (*halve)(const Points<T> &X, const double *sample_weight, const std::int64_t *rows, std::size_t n,
                    std::int64_t far, const double *mean, double *means);
    // Write out (n, D): rows [begin, end), converted from a narrower stored type.
    void (*widen)(const Points<T> &X, std::size_t begin, std::size_t end, T *out);
    const SparseKernels<T> *sparse;
};

template <class T> const Kernels<T> &kernels(); // for the best instruction set of this processor
const char *instruction_set();

} // namespace cprime
