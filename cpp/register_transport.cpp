#include "transport.h"

#include "arrays.h"

namespace cprime {
namespace {

template <class T>
bool assign_bounded(Table<std::int32_t> ids, Table<T> costs, Vector<std::int64_t> lower, Vector<std::int64_t> upper,
                    double accuracy, double limit, OutVector<double> prices, OutVector<std::int32_t> labels) {
    const std::size_t n = ids.shape(0), C = prices.shape(0);
    require(n < std::size_t(1) << 31, "2^31 points or more");
    require(costs.shape(0) == n && costs.shape(1) == ids.shape(1), "costs");
    require(lower.shape(0) == C && upper.shape(0) == C, "lower, upper");
    require(labels.shape(0) == n, "labels");
    require_components(ids, C, -1, "ids");
    const KernelCall call;
    return Auction<T>({ids.data(), costs.data(), n, ids.shape(1)}, lower.data(), upper.data(), C, prices.data(),
                      labels.data())
        .solve(accuracy, limit);
}

} // namespace

void register_transport(nb::module_ &m) {
    define(m, "assign_bounded", &assign_bounded<float>);
    define(m, "assign_bounded", &assign_bounded<double>);
}

} // namespace cprime
