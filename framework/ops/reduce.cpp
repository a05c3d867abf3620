#include <tessera/framework/ops/reduce.hpp>

#include <algorithm>

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/product_pairs.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {

using namespace detail;

namespace {

using ops::Axes;

Axes normalized(std::string_view op, const Axes& axes, int64_t rank) {
  Axes list;
  for (int64_t axis : axes) list.push_back(normalize_axis(axis, rank, std::string(op)));
  if (axes.empty()) {
    for (int64_t a = 0; a < rank; ++a) list.push_back(a);
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

bool contains(const Axes& axes, int64_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

Shape reduced(const Shape& shape, const Axes& axes, bool keepdims) {
  Shape out;
  for (int64_t a = 0; a < int64_t(shape.size()); ++a) {
    if (!contains(axes, a)) {
      out.push_back(shape[size_t(a)]);
    } else if (keepdims) {
      out.push_back(1);
    }
  }
  return out;
}

/// Broadcasts a reduction's gradient over the reduced axes.
DTensor broadcast_gradient(const DTensor& dy, const Shape& shape, const Axes& axes) {
  return ops::broadcast_to(ops::reshape(dy, reduced(shape, axes, true)), shape);
}

/// Returns the dtype of sums and products: bool and integers below 32 bits become int32, as in
/// keras.ops.
at::ScalarType total_dtype(at::ScalarType dtype) {
  const bool is_integer = at::isIntegralType(dtype, /*includeBool=*/true);
  return is_integer && c10::elementSize(dtype) < c10::elementSize(at::kInt) ? at::kInt : dtype;
}

/// Shared part of all reductions: axes, shape, rule.
struct Reduction {
  Axes axes;
  bool keepdims = false;
  auto attributes() const { return std::tie(axes, keepdims); }

  Specs shape_of(std::string_view op, const Specs& in, bool allow_empty,
                 at::ScalarType dtype) const {
    for (int64_t axis : axes) {
      if (in[0].shape[size_t(axis)] == 0 && !allow_empty) {
        throw ShapeError(std::string(op), "the reduced axes must not be empty",
                         to_string(in[0].shape), "pass a tensor that is not empty");
      }
    }
    return {{reduced(in[0].shape, axes, keepdims), dtype}};
  }
  Rule rule_of(const Specs& in, FactorKind kind) const {
    Rule rule;
    rule.in.emplace_back();
    rule.out.emplace_back();
    for (int64_t a = 0; a < in[0].rank(); ++a) {
      const bool is_reduced = contains(axes, a);
      rule.factors.push_back(is_reduced ? kind : FactorKind::pass);
      rule.in[0].push_back(int(a));
      if (!is_reduced) rule.out[0].push_back(int(a));
      if (is_reduced && keepdims) rule.out[0].push_back(Rule::none);
    }
    return rule;
  }
};

struct SumOp : Reduction {
  static constexpr std::string_view name = "sum";
  bool wide = false;  ///< whether float16 and bfloat16 become float32
  auto attributes() const { return std::tie(axes, keepdims, wide); }
  at::ScalarType out_dtype(at::ScalarType dtype) const {
    return wide ? at::toOpMathType(dtype) : total_dtype(dtype);
  }

  Specs infer(const Specs& in) const { return shape_of(name, in, true, out_dtype(in[0].dtype)); }
  Rule rule(const Specs& in) const { return rule_of(in, FactorKind::reduce).passing(Passes::sums); }
  Tensors forward(const LocalArgs& in) const {
    const at::ScalarType dtype = out_dtype(in.spec(0).dtype);
    return {axes.empty() ? in[0].to(dtype) : at::sum(in[0], axes, keepdims, dtype)};
  }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    const DTensor g = ops::cast(dy[0], saved.sharding(0).dtype);
    return {broadcast_gradient(g, saved.shape(0), axes)};
  }
  static Samples<SumOp> samples() {
    return {{{{{4, 3}}}, {{{0}, false}}},
            {{{{4, 3}}}, {{{0, 1}, false}}},
            {{{{2, 3, 4}}}, {{{1}, true}}},
            {{{{3, 4}, at::kLong, -5, 5}}, {{{1}, false}}}};
  }
};

template <bool Largest>
struct ExtremeOp : Reduction {
  static constexpr std::string_view name = Largest ? "max" : "min";
  Specs infer(const Specs& in) const { return shape_of(name, in, false, in[0].dtype); }
  Rule rule(const Specs& in) const {
    return rule_of(in, FactorKind::reduce)
        .reducing(Largest ? Reduce::max : Reduce::min)
        .passing(Largest ? Passes::maxima : Passes::minima);
  }
  Tensors forward(const LocalArgs& in) const {
    if (axes.empty()) return {in[0]};
    return {Largest ? at::amax(in[0], axes, keepdims) : at::amin(in[0], axes, keepdims)};
  }
  static constexpr Saves saves = {inputs(0).in, outputs(0).out};
  /// Elements tied for the extreme share the gradient equally, as in TensorFlow.
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    const DTensor& x = saved.in(0);
    const DTensor y = ops::reshape(saved.out(), reduced(x.shape(), axes, true));
    const DTensor hits = ops::cast(ops::equal(x, y), dy[0].dtype());
    const DTensor count = wide_sum(hits, axes, true);
    const DTensor share = ops::reshape(ops::cast(dy[0], count.dtype()), count.shape()) / count;
    return {hits * ops::cast(share, dy[0].dtype())};
  }
  static Samples<ExtremeOp> samples() {
    SampleInput x{{4, 3}}, deep{{2, 3, 4}};
    x.distinct = deep.distinct = true;
    return {{{x}, {{{0}, false}}}, {{x}, {{{0, 1}, false}}}, {{deep}, {{{1}, true}}}};
  }
};
using MaxOp = ExtremeOp<true>;
using MinOp = ExtremeOp<false>;

/// all and any, as the min and max of bools.
template <bool Any>
struct TruthOp : Reduction {
  static constexpr std::string_view name = Any ? "any" : "all";
  Specs infer(const Specs& in) const {
    if (in[0].dtype != at::kBool) {
      throw ConfigError(std::string(name), "the operand has dtype bool", dtype_name(in[0].dtype),
                        "compare it with a value");
    }
    return shape_of(name, in, true, at::kBool);
  }
  Rule rule(const Specs& in) const {
    return rule_of(in, FactorKind::reduce)
        .reducing(Any ? Reduce::max : Reduce::min)
        .passing(Any ? Passes::maxima : Passes::minima);
  }
  Tensors forward(const LocalArgs& in) const {
    if (axes.empty()) return {in[0]};
    return {Any ? at::any(in[0], at::OptionalIntArrayRef(axes), keepdims)
                : at::all(in[0], at::OptionalIntArrayRef(axes), keepdims)};
  }
  static Samples<TruthOp> samples() {
    return {{{{{4, 3}, at::kBool, 0, 2}}, {{{0}, false}}},
            {{{{4, 3}, at::kBool, 0, 2}}, {{{0, 1}, false}}},
            {{{{2, 5}, at::kBool, 0, 2}}, {{{1}, true}}}};
  }
};
using AllOp = TruthOp<false>;
using AnyOp = TruthOp<true>;

struct ProdOp : Reduction {
  static constexpr std::string_view name = "prod";
  Specs infer(const Specs& in) const { return shape_of(name, in, true, total_dtype(in[0].dtype)); }
  Rule rule(const Specs& in) const { return rule_of(in, FactorKind::replicated); }
  Tensors forward(const LocalArgs& in) const {
    const at::ScalarType dtype = total_dtype(in.spec(0).dtype);
    at::Tensor y = in[0].to(at::toOpMathType(dtype));
    for (size_t i = axes.size(); i-- > 0;) y = at::prod(y, axes[i], keepdims, y.scalar_type());
    return {y.to(dtype)};
  }
  static constexpr Saves saves = inputs(0);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const;
  static Samples<ProdOp> samples() {
    return {{{{{4, 3}}}, {{{0}, false}}}, {{{{2, 3, 2}}}, {{{0, 2}, true}}}};
  }
};

/// dy times the product of the other elements, which is correct even where elements are 0.
struct ProdGradOp {
  static constexpr std::string_view name = "prod_grad";
  Axes axes;
  auto attributes() const { return std::tie(axes); }
  Specs infer(const Specs& in) const { return {in[0]}; }
  Rule rule(const Specs& in) const {
    Rule rule;
    rule.in.resize(2);
    rule.out.emplace_back();
    for (int64_t a = 0; a < in[0].rank(); ++a) {
      const bool is_reduced = contains(axes, a);
      rule.factors.push_back(is_reduced ? FactorKind::replicated : FactorKind::pass);
      rule.in[0].push_back(int(a));
      rule.in[1].push_back(is_reduced ? Rule::none : int(a));
      rule.out[0].push_back(int(a));
    }
    return rule;
  }
  Tensors forward(const LocalArgs& in) const {
    const int64_t rank = in[0].dim(), last = rank - int64_t(axes.size());
    const std::vector<int64_t> order = reduced_last(rank);
    const at::Tensor moved = in[0].permute(order);
    const at::Tensor x = moved.flatten(last).to(at::toOpMathType(in[0].scalar_type()));
    const int64_t n = x.size(last);
    const at::Tensor one = at::ones_like(x.narrow(last, 0, 1));
    const at::Tensor left = at::cat({one, x.narrow(last, 0, n - 1)}, last).cumprod(last);
    const at::Tensor after = at::cat({x.narrow(last, 1, n - 1), one}, last);
    const at::Tensor right = after.flip({last}).cumprod(last).flip({last});
    const at::Tensor others = at::mul(left, right).reshape(moved.sizes()).permute(inverse(order));
    return {others.mul(in[1]).to(in[0].scalar_type())};
  }
  /// Returns the axes with the reduced ones last.
  std::vector<int64_t> reduced_last(int64_t rank) const {
    std::vector<int64_t> order;
    for (int64_t a = 0; a < rank; ++a) {
      if (!contains(axes, a)) order.push_back(a);
    }
    order.insert(order.end(), axes.begin(), axes.end());
    return order;
  }
  static std::vector<int64_t> inverse(const std::vector<int64_t>& order) {
    std::vector<int64_t> back(order.size());
    for (size_t i = 0; i < order.size(); ++i) back[size_t(order[i])] = int64_t(i);
    return back;
  }
  static constexpr Saves saves = inputs(0, 1);
  Grads gradient(const Saved& saved, const Cotangents& cotangents, Needs needs) const {
    const DTensor &x = saved.in(0), &dy = saved.in(1), &g = cotangents[0];
    Grads grads(2);
    if (needs[0]) {
      grads[0] = ops::cast(pairs(widened(x), widened(g)) * widened(dy), x.dtype());
    }
    if (needs[1]) {
      const DTensor ones = filled(dy.shape(), 1, dy.dtype(), fetch_layout(dy));
      grads[1] = ops::sum(g * run_op(*this, {x, ones}), axes, /*keepdims=*/true);
    }
    return grads;
  }
  /// Returns products_without_pairs() over all reduced axes together.
  DTensor pairs(const DTensor& x, const DTensor& g) const {
    const std::vector<int64_t> order = reduced_last(x.rank());
    Shape moved, merged;
    for (int64_t a : order) moved.push_back(x.size(a));
    merged.assign(moved.begin(), moved.end() - int64_t(axes.size()));
    const auto last = static_cast<int64_t>(merged.size());
    merged.push_back(numel(Shape(moved.begin() + last, moved.end())));
    const auto rows = [&](const DTensor& t) {
      return ops::reshape(ops::transpose(t, order), merged);
    };
    const DTensor sums = products_without_pairs(rows(x), rows(g), last);
    return ops::transpose(ops::reshape(sums, moved), inverse(order));
  }
  static Samples<ProdGradOp> samples() {
    return {{{{{4, 3}}, {{1, 3}}}, {{0}}}, {{{{2, 3, 2}}, {{1, 3, 1}}}, {{0, 2}}}};
  }
};

Grads ProdOp::gradient(const Saved& saved, const Cotangents& dy, Needs) const {
  const DTensor& x = saved.in(0);
  const DTensor g = ops::reshape(dy[0], reduced(x.shape(), axes, true));
  return {run_op(ProdGradOp{axes}, {x, g})};
}

TESSERA_REGISTER_OP(SumOp);
TESSERA_REGISTER_OP(MaxOp);
TESSERA_REGISTER_OP(MinOp);
TESSERA_REGISTER_OP(AllOp);
TESSERA_REGISTER_OP(AnyOp);
TESSERA_REGISTER_OP(ProdOp);
TESSERA_REGISTER_OP(ProdGradOp);

template <class Op>
DTensor reduce(const DTensor& x, const Axes& axes, bool keepdims, Op op = Op()) {
  op.axes = normalized(Op::name, axes, x.rank());
  op.keepdims = keepdims;
  return run_op(op, {x});
}

}  // namespace

DTensor detail::widened(const DTensor& x) { return ops::cast(x, at::toOpMathType(x.dtype())); }

DTensor detail::wide_sum(const DTensor& x, const Axes& axes, bool keepdims) {
  SumOp op;
  op.wide = at::isReducedFloatingType(x.dtype());
  return reduce(x, axes, keepdims, op);
}

DTensor detail::partial_sum(const DTensor& x, const Axes& axes) {
  return reduce<SumOp>(x, axes, /*keepdims=*/false);
}

namespace ops {

int64_t reduced_count(const Shape& shape, const Axes& axes) {
  int64_t count = 1;
  for (int64_t a : normalized("reduce", axes, int64_t(shape.size()))) count *= shape[size_t(a)];
  return count;
}

DTensor sum(const DTensor& x, const Axes& axes, bool keepdims) {
  const DTensor total = wide_sum(x, axes, keepdims);
  return at::isReducedFloatingType(x.dtype()) ? cast(total, x.dtype()) : total;
}
DTensor max(const DTensor& x, const Axes& axes, bool keepdims) {
  return reduce<MaxOp>(x, axes, keepdims);
}
DTensor min(const DTensor& x, const Axes& axes, bool keepdims) {
  return reduce<MinOp>(x, axes, keepdims);
}
DTensor prod(const DTensor& x, const Axes& axes, bool keepdims) {
  if (reduced_count(x.shape(), axes) > 0) return reduce<ProdOp>(x, axes, keepdims);
  const DTensor none = sum(x, axes, keepdims);
  return add(none, filled(none.shape(), 1, none.dtype(), fetch_layout(none)));
}
DTensor all(const DTensor& x, const Axes& axes, bool keepdims) {
  return reduce<AllOp>(x, axes, keepdims);
}
DTensor any(const DTensor& x, const Axes& axes, bool keepdims) {
  return reduce<AnyOp>(x, axes, keepdims);
}

}  // namespace ops
}  // namespace tessera
