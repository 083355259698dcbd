#include <memory>
#include <vector>

#include "arrays.h"
#include "grouping.h"
#include "local_tasks.h"
#include "origin.h"
#include "thread_pool.h"

namespace cprime {
namespace {

// The median of the means as the origin of all points, and each component's start for this origin.
template <class T> class AllStarts {
  public:
    AllStarts(const Gaussians<T> &gaussians, int n_threads)
        : origin_(median_of(gaussians.means)), values_(gaussians.means.n * gaussians.means.D),
          far_(new bool[gaussians.means.n]) {
        for_each(gaussians.means.n, n_threads, [&](std::size_t c) {
            far_[c] = kernels<T>().gaussian_start(gaussians, c, origin(), values_.data() + c * gaussians.means.D);
        });
    }
    const T *origin() const { return origin_.data(); }
    Starts<T> starts() const { return {values_.data(), far_.get()}; }

  private:
    std::vector<T> origin_, values_;
    std::unique_ptr<bool[]> far_;
};

// Return the number of threads, at most n_threads, that make costs of n rows for all Gaussians, and their moments,
// faster.
template <class T> int worth_for(const Gaussians<T> &gaussians, std::size_t n, int n_threads) {
    constexpr double OF_EXPONENTIAL = 32; // multiplications in the time of one exponential
    const double D = gaussians.means.D, of_cost = 4 * (gaussians.full ? D * D : D) + OF_EXPONENTIAL;
    return worth(static_cast<double>(n) * static_cast<double>(gaussians.means.n) * of_cost, n_threads);
}

// Return into how many parts the second moments of a component are divided. Large matrices are divided by rows, so that
// many threads can work on few components without matrices of their own.
std::size_t parts_of(std::size_t D, bool full) { return full && D > 256 ? (D + 95) / 96 : 1; }

template <class T> using OutFactors = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

template <class T>
void products(AnyRows<T> X, Matrix<T> B, std::optional<Vector<T>> shift, OutTable<T> out, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Points<T> x = points(X);
    const Rows<T> b = rows(B);
    require(x.D == b.D, "X and B differ in their columns");
    require(out.shape(0) == x.n && out.shape(1) == b.n && (!shift || shift->shape(0) == B.shape(1)), "out, shift");
    const KernelCall call;
    const std::size_t panels = (b.n + kernel.lanes - 1) / kernel.lanes;
    std::vector<T> columns(panels * kernel.lanes * b.D);
    kernel.pack_columns(b, columns.data());
    const std::size_t step = static_cast<std::size_t>(kernel.tile_rows) * 16;
    parallel_for((x.n + step - 1) / step, n_threads, [&](std::size_t i) {
        kernel.products(x, data_or_null(shift), columns.data(), b.n, out.data(), i * step,
                        std::min(x.n, (i + 1) * step));
    });
}

template <class T>
void best(AnyRows<T> X, Matrix<T> means, Factors<T> factors, Vector<T> offsets, std::optional<Vector<T>> dof,
          OutTable<std::int32_t> kept, OutTable<T> costs, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Points<T> x = points(X);
    const Gaussians<T> gaussians = gaussians_of(means, factors, offsets, dof);
    require(x.D == gaussians.means.D, "X and means differ in their columns");
    require(kept.shape(0) == x.n && costs.shape(0) == x.n && costs.shape(1) == kept.shape(1), "kept, costs");
    require(kept.shape(1) >= 1 && kept.shape(1) <= gaussians.means.n, "kept");
    const KernelCall call;
    n_threads = worth_for(gaussians, x.n, n_threads);
    const AllStarts<T> all(gaussians, n_threads);
    const BestTask<T> task{x, gaussians, all.origin(), all.starts(), columns(kept), kept.data(), costs.data()};
    const std::size_t step = static_cast<std::size_t>(kernel.lanes) * 4;
    parallel_for((x.n + step - 1) / step, n_threads,
                 [&](std::size_t i) { kernel.best(task, i * step, std::min(x.n, (i + 1) * step)); });
}

template <class T>
void top_k_gaussians(AnyRows<T> X, Matrix<T> means, Factors<T> factors, Vector<T> offsets, std::optional<Vector<T>> dof,
                     Table<std::int32_t> lists, Table<std::int32_t> previous, OutTable<std::int32_t> kept,
                     OutTable<T> costs, int n_threads) {
    const Gaussians<T> gaussians = gaussians_of(means, factors, offsets, dof);
    top_k_of<TopKGaussiansTask<T>>(points(X), gaussians, gaussians.means, lists, previous, kept, costs, SHARED,
                                   n_threads, kernels<T>().top_k_gaussians);
}

// Compute an E-step: write labels, log_sum and mean of every row, and add sums to counts, first and second unless these
// are none. For t distributions, each row's sum of its weights in these sums is added to row_weights, unless none.
template <class T>
void respond(AnyRows<T> X, Matrix<T> means, Factors<T> factors, Vector<T> offsets, std::optional<Vector<T>> dof,
             std::optional<Vector<double>> sample_weight, OutVector<std::int32_t> labels, OutVector<double> log_sum,
             OutVector<double> mean, std::optional<OutVector<double>> counts, std::optional<OutTable<double>> first,
             std::optional<OutFactors<double>> second, std::optional<OutTable<double>> responsibilities,
             std::optional<OutTable<double>> tails, std::optional<OutVector<double>> row_weights, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Points<T> x = points(X);
    const Gaussians<T> gaussians = gaussians_of(means, factors, offsets, dof);
    const std::size_t C = gaussians.means.n, D = x.D;
    require(x.D == gaussians.means.D, "X and means differ in their columns");
    require(!sample_weight || sample_weight->shape(0) == x.n, "sample_weight");
    require(labels.shape(0) == x.n && log_sum.shape(0) == x.n && mean.shape(0) == x.n, "labels, log_sum, mean");
    require(!counts || (counts->shape(0) == C && first && first->shape(0) == C && first->shape(1) == D && second &&
                        second->size() == factors.size()),
            "counts, first, second");
    require(!responsibilities || (responsibilities->shape(0) == x.n && responsibilities->shape(1) == C),
            "responsibilities");
    require(tails.has_value() == (counts && dof) && (!tails || (tails->shape(0) == 2 && tails->shape(1) == C)),
            "tails");
    require(!row_weights || row_weights->shape(0) == x.n, "row_weights");

    const KernelCall call;
    n_threads = worth_for(gaussians, x.n, n_threads);
    const AllStarts<T> all(gaussians, n_threads);
    // Rows of a block: few enough to stay in the cache while every component reads them, and enough to be divided among
    // threads and to fill vectors. The table of a block is bounded, but has at least one vector per component.
    constexpr std::size_t NEAR = std::size_t(1) << 19, WORTH = std::size_t(1) << 20, BUDGET = std::size_t(32) << 20;
    const std::size_t lanes = kernel.lanes;
    const std::size_t wanted = std::max(NEAR / (std::max<std::size_t>(D, 1) * sizeof(T)), WORTH / C);
    const std::size_t most = std::clamp<std::size_t>(BUDGET / (C * sizeof(T)) / lanes * lanes, lanes, 32768);
    const std::size_t fitting = std::clamp(wanted, std::min(8 * lanes, most), most);
    const std::size_t block = (std::min(x.n, fitting) + lanes - 1) / lanes * lanes;
    const std::size_t step = block < 32 * lanes ? lanes : 4 * lanes;
    const std::size_t stride = (block / lanes | 1) * lanes; // columns a power of two apart conflict in the cache
    const std::size_t n_parts = parts_of(D, gaussians.full);
    std::vector<T> table(C * stride);
    std::vector<double> parts(tails ? (block + step - 1) / step * 2 * C : 0);
    // A component's rows are summed in one piece if there are many components, and in a few pieces if threads would
    // otherwise be idle.
    const std::size_t piece = (block + (64 + C - 1) / C - 1) / ((64 + C - 1) / C);
    for (std::size_t begin = 0; begin < x.n; begin += block) {
        const std::size_t n = std::min(block, x.n - begin);
        const RespondTask<T> task{x.from(begin, n),
                                  gaussians,
                                  all.origin(),
                                  all.starts(),
                                  sample_weight ? sample_weight->data() + begin : nullptr,
                                  stride,
                                  table.data(),
                                  labels.data() + begin,
                                  log_sum.data() + begin,
                                  mean.data() + begin,
                                  step,
                                  tails ? parts.data() : nullptr};
        std::fill(parts.begin(), parts.end(), 0.0);
        parallel_for((n + step - 1) / step, n_threads,
                     [&](std::size_t i) { kernel.respond(task, i * step, std::min(n, (i + 1) * step)); });
        for (std::size_t i = 0; i < parts.size(); ++i)
            tails->data()[i % (2 * C)] += parts[i];
        if (counts) {
            std::vector<Segment> pieces;
            for (std::size_t c = 0; c < C; ++c)
                for (std::size_t b = 0; b < n; b += piece)
                    pieces.push_back({static_cast<int>(c), b, std::min(n, b + piece)});
            sum_segments(pieces, {counts->data(), first->data(), second->data(), D, factors.size() / C}, n_parts,
                         n_threads, [&](const Segment &s, Part part, const Sums &to) {
                             kernel.column_moments(task, s.component, s.begin, s.end, part, to.count, to.first,
                                                   to.second);
                         });
        }
        if (row_weights)
            parallel_for((n + step - 1) / step, n_threads, [&](std::size_t i) {
                double *sums = row_weights->data() + begin;
                for (std::size_t c = 0; c < C; ++c)
                    for (std::size_t r = i * step; r < std::min(n, (i + 1) * step); ++r)
                        sums[r] += table[c * stride + r];
            });
        if (responsibilities)
            parallel_for((n + step - 1) / step, n_threads, [&](std::size_t i) {
                for (std::size_t r = i * step; r < std::min(n, (i + 1) * step); ++r)
                    for (std::size_t c = 0; c < C; ++c)
                        responsibilities->data()[(begin + r) * C + c] = table[c * stride + r];
            });
    }
}

template <class T>
void moments(AnyRows<T> X, Matrix<T> means, Table<std::int32_t> kept, std::optional<Table<double>> responsibilities,
             std::optional<Vector<double>> sample_weight, OutVector<double> counts, OutTable<double> first,
             OutFactors<double> second, int n_threads) {
    const Kernels<T> &kernel = kernels<T>();
    const Points<T> x = points(X);
    const Rows<T> m = components(means);
    const std::size_t C = m.n, D = m.D, H = kept.shape(1);
    const bool full = second.ndim() == 3;
    // Segments are long if D is large, because each segment may need sums of its own, of which one is a D x D matrix.
    const std::size_t length = std::max<std::size_t>(16384, full ? D * D / 2 : 0);
    require(C > 0, "means");
    require(x.D == m.D, "X and means differ in their columns");
    require(kept.shape(0) == x.n, "kept");
    require(!responsibilities || (responsibilities->shape(0) == x.n && responsibilities->shape(1) == H),
            "responsibilities");
    require(!sample_weight || sample_weight->shape(0) == x.n, "sample_weight");
    require(counts.shape(0) == C && first.shape(0) == C && first.shape(1) == D, "counts, first");
    require((full || second.ndim() == 2) && second.size() == C * D * (full ? D : 1), "second");

    const KernelCall call;
    const double *q = data_or_null(responsibilities), *weight = data_or_null(sample_weight);
    const Sums out{counts.data(), first.data(), second.data(), D, second.size() / C};
    const TableSumsTask<T> tables{x, &m, kept.data(), q, weight, static_cast<int>(H), C};
    if (H > 1 && !full && sum_in_tables(tables, out, n_threads))
        return;
    std::vector<std::int64_t> entries;
    const std::vector<std::size_t> begin =
        group_shares(kept.data(), x.n, H, C, q, weight, nullptr, LEAST_SHARE<T>, n_threads, entries);
    const MomentsTask<T> task{x, m, full, entries.data(), q, weight, static_cast<int>(H)};
    sum_segments(segments(begin, length), out, parts_of(D, full), n_threads,
                 [&](const Segment &s, Part part, const Sums &to) {
                     kernel.moments(task, s.component, s.begin, s.end, part, to.count, to.first, to.second);
                 });
}

// For active sets of t distributions, write scaled = q u, and add the sums of w q and of w q log u to tails (2, C). q:
// responsibility, w: weight of a row, u: the distribution's weight of the row, small for far rows.
template <class T>
void scaled_responsibilities(Table<std::int32_t> kept, Table<T> costs, std::optional<Table<double>> responsibilities,
                             std::optional<Vector<double>> sample_weight, Vector<T> offsets, Vector<T> dof, int D,
                             OutTable<double> scaled, OutTable<double> tails, int n_threads) {
    constexpr std::size_t ENTRIES = 64, MOST_PIECES = 16; // ENTRIES: number per component in a piece of the rows
    const std::size_t n = kept.shape(0), H = kept.shape(1), C = offsets.shape(0);
    const auto fits = [&](const auto &table) { return table.shape(0) == n && table.shape(1) == H; };
    require(C > 0 && dof.shape(0) == C && D >= 0, "offsets, dof");
    require(fits(costs) && fits(scaled) && (!responsibilities || fits(*responsibilities)), "kept, costs");
    require(!sample_weight || sample_weight->shape(0) == n, "sample_weight");
    require(tails.shape(0) == 2 && tails.shape(1) == C, "tails");
    const KernelCall call;
    require_components(kept, C, 0, "kept");
    const ScaledResponsibilitiesTask<T> task{kept.data(),
                                             costs.data(),
                                             data_or_null(responsibilities),
                                             data_or_null(sample_weight),
                                             columns(kept),
                                             offsets.data(),
                                             dof.data(),
                                             C,
                                             D,
                                             scaled.data()};
    const std::size_t n_pieces = std::clamp<std::size_t>(n * H / (ENTRIES * C), 1, MOST_PIECES);
    const std::size_t step = (n + n_pieces - 1) / n_pieces;
    std::vector<double> parts(n_pieces * 2 * C);
    parallel_for(n_pieces, worth(static_cast<double>(n) * H * 16, n_threads), [&](std::size_t i) {
        kernels<T>().scaled_responsibilities(task, std::min(n, i * step), std::min(n, (i + 1) * step),
                                             parts.data() + i * 2 * C);
    });
    for (std::size_t i = 0; i < parts.size(); ++i)
        tails.data()[i % (2 * C)] += parts[i];
}

} // namespace

void register_gaussians(nb::module_ &m) {
    define(m, "products", &products<float>);
    define(m, "products", &products<double>);
    define(m, "best", &best<float>);
    define(m, "best", &best<double>);
    define(m, "top_k_gaussians", &top_k_gaussians<float>);
    define(m, "top_k_gaussians", &top_k_gaussians<double>);
    define(m, "respond", &respond<float>);
    define(m, "respond", &respond<double>);
    define(m, "scaled_responsibilities", &scaled_responsibilities<float>);
    define(m, "scaled_responsibilities", &scaled_responsibilities<double>);
    define(m, "moments", &moments<float>);
    define(m, "moments", &moments<double>);
}

} // namespace cprime
