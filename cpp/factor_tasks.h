// Arguments of the kernels of factor analyzers.
#pragma once
#include "inlined.h"
#include "rows.h"

#include <cstddef>
#include <cstdint>

namespace cprime {

// Factor analyzers with costs offset + sum_d y_d^2 / psi_d - |U y|^2 and E[z | x] = R U y, where y = x - m and
// U = R^T L^T psi^-1. Without precisions, z are the products L^T y instead.
template <class T> struct FactorAnalysers {
    Rows<T> means;
    const double *precisions; // (C, D): 1 / psi, or null
    const T *loadings;        // (C, H, D): L^T, or (H, D) for all components
    std::size_t step;         // offset between the loadings of two components: H D, or 0
    const double *roots;      // (C, H, H): R, upper triangular, needed with precisions
    const double *offsets;    // (C,), needed for costs
    int H;
    CPRIME_INLINED const T *loading(std::size_t c) const { return loadings + c * step; }
};

template <class T> struct FactorCostsTask {
    Points<T> X;
    FactorAnalysers<T> factors;
    const std::int64_t *entries; // positions n * width + h, grouped by component
    std::size_t width;
    T *costs; // (N, width)
};

// Points grouped by the best component (factor analyzer) of their active sets, each compared with the neighbors of
// that component. Members are those of TopKTask.
template <class T> struct TopKFactorsTask {
    Points<T> X;
    FactorAnalysers<T> factors;
    const std::int32_t *lists;
    int G;
    const std::int32_t *previous;
    int n_previous;
    const std::int64_t *entries;
    int H;
    std::int32_t *kept;
    T *costs;
};

// Points and their responsibilities for the components of their active sets, grouped by component, for the sums of an
// M-step. The offsets of the factor analyzers are not used. Members are those of MomentsTask.
template <class T> struct FactorMomentsTask {
    Points<T> X;
    FactorAnalysers<T> factors;
    const std::int64_t *entries;
    const double *responsibilities, *sample_weight;
    std::size_t width;
};

} // namespace cprime
