#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/engine/index_check.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/take_gradient.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Factors of take_along_axis: x and the indices share all axes but `axis`, where each has a factor
/// of its own. Indices of extent 1 along another axis apply to all of it.
struct AlongFactors {
  AlongFactors(const Spec& taken, const Spec& indices, int64_t axis) {
    const int rank = int(taken.rank());
    for (int a = 0; a < rank; ++a) x.push_back(a);
    y = x;
    y[size_t(axis)] = rank;
    index = y;
    for (size_t a = 0; a < index.size(); ++a) {
      if (indices.shape[a] != taken.shape[a]) index[a] = Rule::none;
    }
    kinds.assign(size_t(rank) + 1, FactorKind::pass);
  }
  std::vector<int> x, y, index;
  std::vector<FactorKind> kinds;
};

/// Whether each index applies to all axes after `axis`, so that entire rows are taken.
bool takes_rows(const Shape& taken, const Shape& indices, int64_t axis) {
  bool rows = false;
  for (size_t a = size_t(axis) + 1; a < taken.size(); ++a) {
    if (indices[a] != 1) return false;
    rows = rows || taken[a] != 1;
  }
  return rows;
}

/// Returns t as (…, n, width). If `rows`, the axes after `axis` merge into width; otherwise `axis`
/// becomes the last but one, and width is 1.
at::Tensor as_rows(const at::Tensor& t, int64_t axis, bool rows) {
  return rows ? t.flatten(axis + 1) : t.movedim(axis, -1).unsqueeze(-1);
}

/// Returns positions relative to a shard's first element; negative indices count from the end.
at::Tensor shard_positions(const at::Tensor& indices, int64_t count, Interval shard) {
  return at::where(indices.lt(0), indices.add(count), indices).sub_(shard.lo);
}

at::Tensor outside_of(const at::Tensor& positions, Interval shard) {
  return positions.lt(0).logical_or_(positions.ge(shard.size()));
}

/// Throws ShapeError if elements are taken from an empty axis.
void check_has_elements(const Shape& x, int64_t axis, const Shape& taken) {
  if (x[size_t(axis)] > 0 || numel(taken) == 0) return;
  throw ShapeError("take_along_axis", str("axis ", axis, " must not be empty"), to_string(x),
                   "pass a tensor that is not empty");
}

/// The gradient of take_along_axis. The third input is the axis_marker() of x's axis.
struct TakeAlongAxisGradOp {
  static constexpr std::string_view name = "take_along_axis_grad";
  int64_t axis = 0;
  auto attributes() const { return std::tie(axis); }

  Specs infer(const Specs& in) const {
    Spec x = in[0];
    x.shape[size_t(axis)] = in[2].shape[0];
    check_has_elements(x.shape, axis, in[0].shape);
    return {x};
  }
  Rule rule(const Specs& in) const {
    AlongFactors factors(in[0], in[1], axis);
    factors.kinds.back() = FactorKind::reduce;
    Rule rule;
    rule.in = {factors.y, factors.index, {int(axis)}};
    rule.out = {factors.x};
    rule.factors = factors.kinds;
    return rule;
  }
  Tensors forward(const LocalArgs& in) const {
    const Interval shard = in.range(2, 0);
    const bool rows = takes_rows(in.spec(0).shape, in.spec(1).shape, axis);
    const at::ScalarType dtype = in[0].scalar_type();
    // On CPUs, ATen's kernel rounds after each addition.
    const at::Tensor dy = as_rows(in[0].to(at::toOpMathType(dtype)), axis, rows);
    std::vector<int64_t> shape = dy.sizes().vec();
    const int64_t width = shape.back();
    shape.back() = 1;
    const at::Tensor positions =
        as_rows(shard_positions(in[1], in.spec(2).shape[0], shard), axis, rows).expand(shape);
    // Rows of one table: ATen's kernel accumulates them in a fixed order on GPUs too, and skips
    // index -1.
    int64_t tables = 1;
    std::vector<int64_t> column(shape.size(), 1);
    for (size_t a = 0; a + 2 < shape.size(); ++a) tables *= column[a] = shape[a];
    const at::Tensor starts =
        at::arange(tables, positions.options()).mul_(shard.size()).view(column);
    const at::Tensor numbers =
        positions.add(starts).masked_fill_(outside_of(positions, shard), -1).flatten();
    const at::Tensor sums = at::embedding_dense_backward(dy.reshape({numbers.size(0), width}),
                                                         numbers, tables * shard.size(), -1, false);
    if (rows) {
      shape = in[0].sizes().vec();
      shape[size_t(axis)] = shard.size();
      return {sums.view(shape).to(dtype)};
    }
    shape.pop_back();
    shape.back() = shard.size();
    return {sums.view(shape).movedim(-1, axis).to(dtype).contiguous()};
  }
  static constexpr Saves saves = inputs(1);
  Grads gradient(const Saved& saved, const Cotangents& dx, Needs) const {
    return {ops::take_along_axis(dx[0], saved.in(1), axis), DTensor(), DTensor()};
  }
  static Samples<TakeAlongAxisGradOp> samples() {
    return {{{{{4, 3}}, {{4, 3}, at::kLong, 0, 5}, {{5}, at::kByte, 0, 1}}, {1}},
            {{{{3, 2, 2}}, {{3, 2, 2}, at::kLong, 0, 4}, {{4}, at::kByte, 0, 1}}, {0}},
            {{{{2, 5, 3}}, {{2, 5, 1}, at::kLong, 0, 4}, {{4}, at::kByte, 0, 1}}, {1}},
            {{{{4}}, {{4}, at::kLong, 0, 3}, {{3}, at::kByte, 0, 1}}, {0}}};
  }
};

struct TakeAlongAxisOp {
  static constexpr std::string_view name = "take_along_axis";
  int64_t axis = 0;
  auto attributes() const { return std::tie(axis); }

  Specs infer(const Specs& in) const {
    check_index_dtype(name, "indices", in[1]);
    const bool same_rank = in[0].rank() == in[1].rank();
    bool fits = same_rank;
    for (size_t a = 0; fits && a < in[0].shape.size(); ++a) {
      fits = int64_t(a) == axis || in[1].shape[a] == 1 || in[1].shape[a] == in[0].shape[a];
    }
    if (!fits) {
      throw ShapeError(std::string(name), str("shapes must be equal except along axis ", axis),
                       to_string(in[0].shape) + " and " + to_string(in[1].shape),
                       "reshape the indices");
    }
    Shape expected = in[0].shape;
    expected[size_t(axis)] = in[1].shape[size_t(axis)];
    check_has_elements(in[0].shape, axis, expected);
    return {{expected, in[0].dtype}};
  }
  Rule rule(const Specs& in) const {
    const Spec taken = infer(in)[0];
    AlongFactors factors(taken, in[1], axis);
    factors.kinds[size_t(axis)] = FactorKind::reduce;
    Rule rule;
    rule.in = {factors.x, factors.index};
    rule.out = {factors.y};
    rule.factors = factors.kinds;
    return rule.reducing(in[0].dtype == at::kBool ? Reduce::max : Reduce::sum);
  }
  Tensors forward(const LocalArgs& in) const {
    const int64_t count = in.spec(0).shape[size_t(axis)];
    const at::Tensor checked = checked_indices(name, "indices", in[1], count, in.ranges(1), -count);
    const Interval shard = in.range(0, axis);
    const at::Tensor positions = shard_positions(checked, count, shard);
    const at::Tensor inside =
        shard.size() == count ? positions : positions.clamp(0, shard.size() - 1);
    at::Tensor taken = take(in[0], inside, takes_rows(in.spec(0).shape, in.spec(1).shape, axis));
    return {shard.size() == count ? taken : taken.masked_fill_(outside_of(positions, shard), 0)};
  }
  at::Tensor take(const at::Tensor& x, const at::Tensor& positions, bool rows) const {
    std::vector<int64_t> shape = x.sizes().vec();
    shape[size_t(axis)] = positions.size(axis);
    if (!rows) return x.gather(axis, positions.expand(shape));
    int64_t tables = 1;
    std::vector<int64_t> column(shape.size(), 1);
    for (size_t a = 0; a < size_t(axis); ++a) tables *= column[a] = shape[a];
    const at::Tensor starts =
        at::arange(tables, positions.options()).mul_(x.size(axis)).view(column);
    return x.flatten(0, axis)
        .flatten(1)
        .index_select(0, positions.add(starts).flatten())
        .view(shape);
  }
  static constexpr Saves saves = inputs(1);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    return {take_along_axis_gradient(dy[0], saved.in(1), axis, saved.sharding(0)), DTensor()};
  }
  static Samples<TakeAlongAxisOp> samples() {
    return {{{{{4, 5}}, {{4, 3}, at::kLong, 0, 5}}, {1}},
            {{{{5, 2, 3}}, {{7, 2, 3}, at::kLong, 0, 5}}, {0}},
            {{{{2, 5, 3}}, {{2, 4, 1}, at::kLong, 0, 5}}, {1}},
            {{{{5, 2, 3}}, {{4, 1, 1}, at::kLong, 0, 5}}, {0}},
            {{{{2, 5, 3}}, {{1, 4, 3}, at::kLong, 0, 5}}, {1}},
            {{{{3}}, {{4}, at::kLong, 0, 3}}, {0}},
            {{{{4, 3}, at::kLong, -5, 5}, {{4, 2}, at::kLong, 0, 3}}, {1}},
            {{{{3, 4}}, {{3, 0}, at::kLong, 0, 4}}, {1}}};
  }
};

TESSERA_REGISTER_OP(TakeAlongAxisGradOp);
TESSERA_REGISTER_OP(TakeAlongAxisOp);

}  // namespace

DTensor detail::take_along_axis_gradient(const DTensor& dy, const DTensor& indices, int64_t axis,
                                         const Sharding& x) {
  const DTensor marker = axis_marker(x.shape[size_t(axis)], x.layout.axis(axis), {dy, indices});
  return run_op(TakeAlongAxisGradOp{axis}, {dy, indices, marker});
}

namespace ops {

DTensor take_along_axis(const DTensor& x, const DTensor& indices, int64_t axis) {
  const int64_t a = normalize_axis(axis, x.rank(), "take_along_axis");
  if (x.rank() != indices.rank()) return run_op(TakeAlongAxisOp{a}, {x, to_int64_indices(indices)});
  const auto others = [a](Shape shape) {
    shape[size_t(a)] = 1;
    return Spec{shape};
  };
  Shape x_shape = broadcast_shape("take_along_axis", {others(x.shape()), others(indices.shape())});
  x_shape[size_t(a)] = x.size(a);
  const DTensor broadcasted = x.shape() == x_shape ? x : broadcast_to(x, x_shape);
  return run_op(TakeAlongAxisOp{a}, {broadcasted, to_int64_indices(indices)});
}

}  // namespace ops
}  // namespace tessera
