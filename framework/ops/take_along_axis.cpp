#include <ATen/ATen.h>

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

/// Factors of take_along_axis: all axes are shared but one, which x and the indices each have.
struct AlongFactors {
  AlongFactors(int64_t rank, int64_t axis) {
    for (int a = 0; a < rank; ++a) x.push_back(a);
    index = x;
    index[size_t(axis)] = int(rank);
    kinds.assign(size_t(rank) + 1, FactorKind::pass);
  }
  std::vector<int> x, index;
  std::vector<FactorKind> kinds;
};

/// Places from a shard's first element on, of indices that count from the end if negative.
at::Tensor places_in(const at::Tensor& indices, int64_t count, Interval shard) {
  return at::where(indices.lt(0), indices.add(count), indices).sub_(shard.lo);
}

at::Tensor outside_of(const at::Tensor& places, Interval shard) {
  return places.lt(0).logical_or_(places.ge(shard.size()));
}

/// Throws where elements are taken from an axis of none.
void check_has_elements(const Shape& x, int64_t axis, const Shape& taken) {
  if (x[size_t(axis)] > 0 || numel(taken) == 0) return;
  throw ShapeError("take_along_axis", str("axis ", axis, " has something to take"), to_string(x),
                   "pass a tensor that is not empty");
}

/// The gradient of take_along_axis. The third input is a marker of x's axis.
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
    AlongFactors factors(in[0].rank(), axis);
    factors.kinds.back() = FactorKind::reduce;
    Rule rule;
    rule.in = {factors.index, factors.index, {int(axis)}};
    rule.out = {factors.x};
    rule.factors = factors.kinds;
    return rule;
  }
  Tensors forward(const LocalArgs& in) const {
    const Interval shard = in.range(2, 0);
    const at::Tensor places = places_in(in[1], in.spec(2).shape[0], shard).movedim(axis, -1);
    const at::Tensor dy = in[0].movedim(axis, -1);
    // Numbers in a table of one column: ATen's kernel adds its rows in a fixed order on GPUs too,
    // and passes over number -1.
    const int64_t rows = places.numel() / places.size(-1);
    std::vector<int64_t> column(size_t(places.dim()), 1);
    std::vector<int64_t> shape = places.sizes().vec();
    std::copy(shape.begin(), shape.end() - 1, column.begin());
    const at::Tensor starts =
        at::arange(rows, places.options()).mul_(shard.size()).view(column);
    const at::Tensor numbers =
        places.add(starts).masked_fill_(outside_of(places, shard), -1).flatten();
    const at::Tensor sums = at::embedding_dense_backward(dy.reshape({-1, 1}), numbers,
                                                         rows * shard.size(), -1, false);
    shape.back() = shard.size();
    return {sums.view(shape).movedim(-1, axis).contiguous()};
  }
  static constexpr Saves saves = inputs(1);
  Grads gradient(const Saved& saved, const Cotangents& dx, Needs) const {
    return {ops::take_along_axis(dx[0], saved.in(1), axis), DTensor(), DTensor()};
  }
  static Samples<TakeAlongAxisGradOp> samples() {
    return {{{{{4, 3}}, {{4, 3}, at::kLong, 0, 5}, {{5}, at::kByte, 0, 1}}, {1}},
            {{{{3, 2, 2}}, {{3, 2, 2}, at::kLong, 0, 4}, {{4}, at::kByte, 0, 1}}, {0}},
            {{{{4}}, {{4}, at::kLong, 0, 3}, {{3}, at::kByte, 0, 1}}, {0}}};
  }
};

struct TakeAlongAxisOp {
  static constexpr std::string_view name = "take_along_axis";
  int64_t axis = 0;
  auto attributes() const { return std::tie(axis); }

  Specs infer(const Specs& in) const {
    check_index_dtype(name, "indices", in[1]);
    Shape expected = in[0].shape;
    const bool same_rank = in[0].rank() == in[1].rank();
    if (same_rank) expected[size_t(axis)] = in[1].shape[size_t(axis)];
    if (in[1].shape != expected) {
      throw ShapeError(std::string(name), str("shapes are equal but for axis ", axis),
                       to_string(in[0].shape) + " and " + to_string(in[1].shape),
                       "reshape the indices");
    }
    check_has_elements(in[0].shape, axis, expected);
    return {{expected, in[0].dtype}};
  }
  Rule rule(const Specs& in) const {
    AlongFactors factors(in[0].rank(), axis);
    factors.kinds[size_t(axis)] = FactorKind::reduce;
    Rule rule;
    rule.in = {factors.x, factors.index};
    rule.out = {factors.index};
    rule.factors = factors.kinds;
    return rule.reducing(in[0].dtype == at::kBool ? Reduce::max : Reduce::sum);
  }
  Tensors forward(const LocalArgs& in) const {
    const int64_t count = in.spec(0).shape[size_t(axis)];
    const at::Tensor checked =
        checked_indices(name, "indices", in[1], count, in.ranges(1), -count);
    const Interval shard = in.range(0, axis);
    const at::Tensor places = places_in(checked, count, shard);
    if (shard.size() == count) return {in[0].gather(axis, places)};
    at::Tensor taken = in[0].gather(axis, places.clamp(0, shard.size() - 1));
    return {taken.masked_fill_(outside_of(places, shard), 0)};
  }
  static constexpr Saves saves = inputs(1);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    return {take_along_axis_gradient(dy[0], saved.in(1), axis, saved.form(0)), DTensor()};
  }
  static Samples<TakeAlongAxisOp> samples() {
    return {{{{{4, 5}}, {{4, 3}, at::kLong, 0, 5}}, {1}},
            {{{{5, 2, 3}}, {{7, 2, 3}, at::kLong, 0, 5}}, {0}},
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
  if (x.rank() != indices.rank()) return run_op(TakeAlongAxisOp{a}, {x, as_indices(indices)});
  const auto others = [a](Shape shape) {
    shape[size_t(a)] = 1;
    return Spec{shape};
  };
  Shape of_x = broadcast_shape("take_along_axis", {others(x.shape()), others(indices.shape())});
  Shape of_indices = of_x;
  of_x[size_t(a)] = x.size(a);
  of_indices[size_t(a)] = indices.size(a);
  const auto grown = [](const DTensor& t, const Shape& shape) {
    return t.shape() == shape ? t : broadcast_to(t, shape);
  };
  return run_op(TakeAlongAxisOp{a}, {grown(x, of_x), grown(as_indices(indices), of_indices)});
}

}  // namespace ops
}  // namespace tessera
