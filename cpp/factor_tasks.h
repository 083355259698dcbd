// What kernels of factor analysers are given.
#pragma once
#include "inlined.h"
#include "rows.h"

#include <cstddef>
#include <cstdint>

namespace cprime {

// Factor analysers, whose costs are offset + sum_d y_d^2 / psi_d - |U y|^2 of y = x - m, and E[z | x] = R U y.
template <class T> struct FactorAnalysers {
    Rows<T> means;
    const double *precisions; // (C, D): 1 / psi
    const double *directions; // (C, H, D): U, or (H, D) that all have
    std::size_t step;         // from one component's directions to the next: H D, or 0
    const double *loadings;   // (C, D, H)
    const double *roots;      // (C, H, H): R, or null for ones
    const double *offsets;    // (C,)
    int H;
    CPRIME_INLINED const double *direction(std::size_t c) const { return directions + c * step; }
};

template <class T> struct FactorCostsTask {
    Points<T> X;
    FactorAnalysers<T> factors;
    const std::int64_t *entries; // positions n * width + h, grouped by component
    std::size_t width;
    T *costs; // (N, width)
};

// As KeepTask.
template <class T> struct KeepFactorsTask {
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

// As MomentsTask; of the factors, means, directions and roots count.
template <class T> struct FactorMomentsTask {
    Points<T> X;
    FactorAnalysers<T> factors;
    const std::int64_t *entries;
    const double *responsibilities, *sample_weight;
    std::size_t width;
};

} // namespace cprime
