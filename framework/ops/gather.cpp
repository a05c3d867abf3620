#include <tessera/framework/ops/gather.hpp>

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/constants.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/engine/index_check.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/row_gradients.hpp>
#include <tessera/framework/ops/operand.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/row_sparse.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Factors of gather: x's axes first, then those of the indices.
struct GatherFactors {
  GatherFactors(int64_t x_rank, int64_t index_rank, int64_t axis) {
    for (int a = 0; a < x_rank; ++a) x.push_back(a);
    for (int a = 0; a < index_rank; ++a) index.push_back(int(x_rank) + a);
    y = x;
    y.erase(y.begin() + axis);
    y.insert(y.begin() + axis, index.begin(), index.end());
  }
  std::vector<int> x, index, y;
};

/// The gradient of gather: accumulates dy (a…, i…, b…) into zeros (a…, n, b…). The third input is
/// the axis_marker() of x's axis. With `rows`, for axis 0, the result is row-sparse.
struct GatherGradOp {
  static constexpr std::string_view name = "gather_grad";
  int64_t axis = 0;
  bool rows = false;
  auto attributes() const { return std::tie(axis, rows); }

  Specs infer(const Specs& in) const {
    const Shape& dy = in[0].shape;
    Shape shape(dy.begin(), dy.begin() + axis);
    shape.push_back(in[2].shape[0]);
    shape.insert(shape.end(), dy.begin() + axis + in[1].rank(), dy.end());
    return {{shape, in[0].dtype}};
  }
  Rule rule(const Specs& in) const {
    const int64_t x_rank = in[0].rank() - in[1].rank() + 1;
    const GatherFactors factors(x_rank, in[1].rank(), axis);
    Rule rule;
    rule.in = {factors.y, factors.index, {int(axis)}};
    rule.out = {factors.x};
    rule.factors.assign(factors.x.size(), FactorKind::pass);
    rule.factors.insert(rule.factors.end(), factors.index.size(), FactorKind::reduce);
    return rule;
  }
  Tensors forward(const LocalArgs& in) const {
    const Interval shard = in.range(2, 0);
    at::Tensor index = in[1].flatten().sub(shard.lo);
    const at::Tensor outside = index.lt(0).logical_or_(index.ge(shard.size()));
    if (rows && in[0].is_cpu()) return {sparse_rows(in, index, outside, shard.size())};
    index.masked_fill_(outside, -1);
    // ATen's kernel takes the indexed axis first, and skips index -1.
    const std::vector<int64_t> shape = in[0].sizes().vec();
    std::vector<int64_t> split(shape.begin(), shape.begin() + axis);
    split.push_back(index.size(0));
    split.insert(split.end(), shape.begin() + axis + in[1].dim(), shape.end());
    const at::ScalarType dtype = in[0].scalar_type();
    // On CPUs, ATen's kernel rounds after each addition.
    const at::Tensor wide = in[0].to(at::toOpMathType(dtype)).reshape(split).movedim(axis, 0);
    const at::Tensor sums = at::embedding_dense_backward(wide.reshape({index.size(0), -1}), index,
                                                         shard.size(), -1, false);
    std::vector<int64_t> front = wide.sizes().vec();
    front[0] = shard.size();
    return {sums.view(front).movedim(0, axis).to(dtype).contiguous()};
  }
  /// Returns the rows of dy at the indices that are not `outside` this shard of `count` rows.
  static at::Tensor sparse_rows(const LocalArgs& in, at::Tensor index, const at::Tensor& outside,
                                int64_t count) {
    std::vector<int64_t> shape = {index.size(0)};
    shape.insert(shape.end(), in[0].sizes().begin() + in[1].dim(), in[0].sizes().end());
    at::Tensor rows = in[0].reshape(shape);
    if (count != in.spec(2).shape[0]) {
      const at::Tensor inside = outside.logical_not().nonzero().flatten();
      index = index.index_select(0, inside);
      rows = rows.index_select(0, inside);
    }
    return row_sparse_block(index, rows, count);
  }
  static constexpr Saves saves = inputs(1);
  Grads gradient(const Saved& saved, const Cotangents& dx, Needs) const {
    const Shape& y = saved.shape(0);
    const bool empty = dx[0].size(axis) == 0;
    const Layout whole = Layout::replicated(dx[0].mesh(), int64_t(y.size()));
    return {empty ? filled(y, 0, dx[0].dtype(), whole) : ops::gather(dx[0], saved.in(1), axis),
            DTensor(), DTensor()};
  }
  static Samples<GatherGradOp> samples() {
    return {{{{{3, 2}}, {{3}, at::kLong, 0, 5}, {{5}, at::kByte, 0, 1}}, {0}},
            {{{{3, 2, 2, 2}}, {{2, 2}, at::kLong, 0, 4}, {{4}, at::kByte, 0, 1}}, {1}},
            {{{{2, 2, 3}}, {{2, 2}, at::kLong, 0, 5}, {{5}, at::kByte, 0, 1}}, {0, true}}};
  }
};

/// The sum of two gradients of one table.
struct AddRowsOp {
  static constexpr std::string_view name = "add_rows";
  static constexpr bool takes_rows = true;
  auto attributes() const { return std::tie(); }

  Specs infer(const Specs& in) const { return {in[0]}; }
  Rule rule(const Specs& in) const {
    Rule rule;
    rule.in.emplace_back();
    for (int a = 0; a < in[0].rank(); ++a) rule.in[0].push_back(a);
    rule.in.push_back(rule.in[0]);
    rule.out = {rule.in[0]};
    rule.factors.assign(rule.in[0].size(), FactorKind::pass);
    return rule.passing(Passes::sums, {0, 1});
  }
  Tensors forward(const LocalArgs& in) const {
    // ATen adds sparse tensors to dense ones only in this order.
    const bool swapped = in[0].is_sparse() && !in[1].is_sparse();
    return {swapped ? in[1] + in[0] : in[0] + in[1]};
  }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved&, const Cotangents& dy, Needs) const { return {dy[0], dy[0]}; }
  static Samples<AddRowsOp> samples() { return {{{{{5, 3}}, {{5, 3}}}}}; }
};

struct GatherOp {
  static constexpr std::string_view name = "gather";
  int64_t axis = 0;
  auto attributes() const { return std::tie(axis); }

  Specs infer(const Specs& in) const {
    check_index_dtype(name, "indices", in[1]);
    Shape shape = in[0].shape;
    if (shape[size_t(axis)] == 0 && numel(in[1].shape) > 0) {
      throw ShapeError("gather", str("axis ", axis, " must not be empty"), to_string(shape),
                       "pass a tensor that is not empty");
    }
    shape.erase(shape.begin() + axis);
    shape.insert(shape.begin() + axis, in[1].shape.begin(), in[1].shape.end());
    return {{shape, in[0].dtype}};
  }
  Rule rule(const Specs& in) const {
    const GatherFactors factors(in[0].rank(), in[1].rank(), axis);
    Rule rule;
    rule.in = {factors.x, factors.index};
    rule.out = {factors.y};
    rule.factors.assign(factors.x.size() + factors.index.size(), FactorKind::pass);
    rule.factors[size_t(axis)] = FactorKind::reduce;
    return rule.reducing(in[0].dtype == at::kBool ? Reduce::max : Reduce::sum);
  }
  Tensors forward(const LocalArgs& in) const {
    const int64_t count = in.spec(0).shape[size_t(axis)];
    const at::Tensor checked = checked_indices(name, "indices", in[1], count, in.ranges(1));
    const Interval shard = in.range(0, axis);
    const at::Tensor index = checked.flatten().sub(shard.lo);
    std::vector<int64_t> shape = in[0].sizes().vec();
    shape.erase(shape.begin() + axis);
    shape.insert(shape.begin() + axis, in[1].sizes().begin(), in[1].sizes().end());
    if (shard.size() == count) return {in[0].index_select(axis, index).view(shape)};
    std::vector<int64_t> column(size_t(in[0].dim()), 1);
    column[size_t(axis)] = index.size(0);
    const at::Tensor outside = index.lt(0).logical_or_(index.ge(shard.size())).view(column);
    at::Tensor taken = in[0].index_select(axis, index.clamp(0, shard.size() - 1));
    return {taken.masked_fill_(outside, 0).view(shape)};
  }
  static constexpr Saves saves = inputs(1);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    const Sharding& x = saved.sharding(0);
    const bool rows = row_sparse_gradients() && suits_rows(x, saved.in(1));
    if (rows || is_large(x, saved.in(1))) {
      return {whole_gradient({0, rows}, x.shape[0], dy[0], saved.in(1), x.layout), DTensor()};
    }
    const DTensor marker =
        axis_marker(x.shape[size_t(axis)], x.layout.axis(axis), {dy[0], saved.in(1)});
    return {run_op(GatherGradOp{axis}, {dy[0], saved.in(1), marker}), DTensor()};
  }
  /// Gathers indices and dy, which are smaller than the table, so that the result is complete and
  /// has the table's layout.
  static DTensor whole_gradient(const GatherGradOp& op, int64_t rows, const DTensor& dy,
                                const DTensor& indices, const Layout& table) {
    std::vector<std::vector<int>> axes(size_t(indices.rank()));
    for (int64_t a = 1; a < table.rank(); ++a) axes.push_back(table.axis(a));
    const DTensor whole_dy = ops::relayout(dy, Layout::from_axes(table.mesh(), axes));
    const DTensor whole_indices =
        ops::relayout(indices, Layout::replicated(indices.mesh(), indices.rank()));
    const DTensor marker = axis_marker(rows, table.axis(0), {whole_dy, whole_indices});
    return run_op(op, {whole_dy, whole_indices, marker});
  }
  /// Whether few rows of a table are read.
  bool reads_few(const Sharding& x, const DTensor& indices) const {
    return axis == 0 && 2 * indices.numel() <= x.shape[0];
  }
  bool suits_rows(const Sharding& x, const DTensor& indices) const {
    const bool wide = x.dtype == at::kFloat || x.dtype == at::kDouble;
    return wide && reads_few(x, indices) && !on_gpus(indices.mesh());
  }
  /// Whether reducing gradients of the table's shape takes longer than gathering dy and indices,
  /// which are two collectives more.
  bool is_large(const Sharding& x, const DTensor& indices) const {
    constexpr int64_t many_elements = 1 << 18;
    return reads_few(x, indices) && numel(x.shape) >= many_elements;
  }
  static Samples<GatherOp> samples() {
    return {{{{{5, 3}}, {{4}, at::kLong, 0, 5}}, {0}},
            {{{{7, 2}}, {{2, 3}, at::kLong, 0, 7}}, {0}},
            {{{{5}}, {{}, at::kLong, 0, 5}}, {0}},
            {{{{2, 3, 2}}, {{3}, at::kLong, 0, 3}}, {1}},
            {{{{3, 4}}, {{0}, at::kLong, 0, 4}}, {1}},
            {{{{4, 2}, at::kLong, -5, 5}, {{3}, at::kLong, 0, 4}}, {0}}};
  }
};

struct OneHotOp {
  static constexpr std::string_view name = "one_hot";
  int64_t classes = 0;
  at::ScalarType dtype = at::kFloat;
  double on = 1, off = 0;
  auto attributes() const { return std::tie(classes, dtype, on, off); }
  Specs infer(const Specs& in) const {
    check_index_dtype(name, "labels", in[0]);
    Shape shape = in[0].shape;
    shape.push_back(classes);
    return {{shape, dtype}};
  }
  Rule rule(const Specs& in) const {
    Rule rule;
    rule.in.emplace_back();
    for (int a = 0; a < in[0].rank(); ++a) rule.in[0].push_back(a);
    rule.out = rule.in;
    rule.out[0].push_back(Rule::none);
    rule.factors.assign(rule.in[0].size(), FactorKind::pass);
    return rule;
  }
  Tensors forward(const LocalArgs& in) const {
    const at::Tensor hit = in[0].unsqueeze(-1).eq(at::arange(classes, in[0].options()));
    const at::TensorOptions options = in[0].options().dtype(dtype);
    return {at::where(hit, at::full({}, on, options), at::full({}, off, options))};
  }
  static Samples<OneHotOp> samples() {
    return {{{{{5}, at::kLong, 0, 4}}, {4, at::kDouble}},
            {{{{2, 3}, at::kLong, -1, 4}}, {3, at::kDouble, 0.9, 0.05}},
            {{{{}, at::kLong, 0, 2}}, {2, at::kLong}}};
  }
};

struct SearchSortedOp {
  static constexpr std::string_view name = "searchsorted";
  bool right = false;
  auto attributes() const { return std::tie(right); }
  Specs infer(const Specs& in) const {
    check_same_dtype(name, in);
    if (in[0].rank() != 1) {
      throw ShapeError(std::string(name), "the sorted sequence has one axis",
                       to_string(in[0].shape), "flatten it");
    }
    return {{in[1].shape, at::kLong}};
  }
  Rule rule(const Specs& in) const {
    Rule rule = broadcast_rule({in[1]});
    rule.in = {{Rule::none}, rule.out[0]};
    return rule;
  }
  Tensors forward(const LocalArgs& in) const {
    return {at::searchsorted(in[0], in[1].contiguous(), /*out_int32=*/false, right)};
  }
  static Samples<SearchSortedOp> samples() {
    // Equal elements are sorted whatever values are drawn.
    return {{{{{1}}, {{5, 3}}}, {true}},
            {{{{3}, at::kLong, 1, 1}, {{4}, at::kLong, 0, 3}}, {false}}};
  }
};

TESSERA_REGISTER_OP(AddRowsOp);
TESSERA_REGISTER_OP(GatherGradOp);
TESSERA_REGISTER_OP(GatherOp);
TESSERA_REGISTER_OP(OneHotOp);
TESSERA_REGISTER_OP(SearchSortedOp);

}  // namespace

bool& detail::row_sparse_gradients() {
  thread_local bool wanted = false;
  return wanted;
}

DTensor detail::add_rows(const DTensor& a, const DTensor& b) { return run_op(AddRowsOp{}, {a, b}); }

namespace ops {

DTensor gather(const DTensor& x, const DTensor& indices, int64_t axis) {
  const int64_t a = normalize_axis(axis, x.rank(), "gather");
  return run_op(GatherOp{a}, {x, to_int64_indices(indices)});
}

DTensor take(const DTensor& x, const DTensor& indices, std::optional<int64_t> axis) {
  const int64_t a = axis ? normalize_axis(*axis, x.rank(), "take") : 0;
  const DTensor taken = axis ? x : reshape(x, {-1});
  const DTensor from_ends = to_int64_indices(indices);
  check_index_dtype("take", "indices", {from_ends.shape(), from_ends.dtype()});
  const DTensor counted = where(less(from_ends, 0), add(from_ends, taken.size(a)), from_ends);
  return gather(taken, counted, a);
}

DTensor embedding(const DTensor& table, const DTensor& ids) {
  if (table.rank() != 2) {
    throw ShapeError("embedding", "the table has shape (v, d)", to_string(table.shape()),
                     "pass a row for each id");
  }
  return gather(table, ids, 0);
}

DTensor one_hot(const DTensor& labels, int64_t classes, at::ScalarType dtype, double on,
                double off) {
  if (classes < 0) {
    throw ShapeError("one_hot", "the number of classes is at least 0", str(classes), "");
  }
  return run_op(OneHotOp{classes, dtype, on, off}, {to_int64_indices(labels)});
}

DTensor multi_hot(const DTensor& labels, int64_t classes, at::ScalarType dtype) {
  if (labels.rank() != 1 && labels.rank() != 2) {
    throw ShapeError("multi_hot", "labels have one or two axes", to_string(labels.shape()),
                     "pass a row of labels for each result");
  }
  return max(one_hot(labels, classes, dtype), {labels.rank() - 1});
}

DTensor searchsorted(const DTensor& sorted_sequence, const DTensor& values, bool right) {
  return run_op(SearchSortedOp{right}, {sorted_sequence, values});
}

DTensor digitize(const DTensor& x, const DTensor& bins) {
  const auto [edges, values] = in_floating_dtype(bins, x);
  return searchsorted(edges, values, /*right=*/true);
}

DTensor isin(const DTensor& x, const DTensor& values, bool invert) {
  if (values.numel() == 0) return full_like(x, invert ? 1 : 0, at::kBool);
  const auto numbers = [](const DTensor& some) {
    return stop_gradient(some.dtype() == at::kBool ? cast(some, at::kInt) : some);
  };
  const auto [elements, among] = in_floating_dtype(numbers(x), numbers(ravel(values)));
  const DTensor sorted = sort(among, 0);
  const DTensor first = minimum(searchsorted(sorted, elements), sorted.size(0) - 1);
  const DTensor found = equal(gather(sorted, first), elements);
  return invert ? logical_not(found) : found;
}

}  // namespace ops
}  // namespace tessera
