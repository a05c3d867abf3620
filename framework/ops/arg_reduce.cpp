#include <limits>

#include <ATen/ATen.h>

#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/reduce.hpp>

namespace tessera {

using namespace detail;

namespace {

/// (x, extreme) -> the first global index along `axis` where x equals the extreme, which has extent
/// 1 there; a partial min over the shards.
struct FirstIndexOp {
  static constexpr std::string_view name = "first_index";
  int64_t axis = 0;
  auto attributes() const { return std::tie(axis); }

  Specs infer(const Specs& in) const {
    Shape shape = in[0].shape;
    shape.erase(shape.begin() + axis);
    return {{shape, at::kLong}};
  }
  Rule rule(const Specs& in) const {
    std::vector<int> x;
    for (int a = 0; a < in[0].rank(); ++a) x.push_back(a);
    Rule rule;
    rule.in = {x, x};
    rule.in[1][size_t(axis)] = Rule::none;
    rule.out = {x};
    rule.out[0].erase(rule.out[0].begin() + axis);
    rule.factors.assign(x.size(), FactorKind::pass);
    rule.factors[size_t(axis)] = FactorKind::reduce;
    return rule.reducing(Reduce::min);
  }
  Tensors forward(const LocalArgs& in) const {
    std::vector<int64_t> shape(size_t(in[0].dim()), 1);
    shape[size_t(axis)] = in[0].size(axis);
    const Interval shard = in.range(0, axis);
    const at::TensorOptions options = in[0].options().dtype(at::kLong);
    const at::Tensor index = at::arange(shard.lo, shard.hi, options).view(shape);
    const at::Tensor none = at::full({}, std::numeric_limits<int64_t>::max(), options);
    // NaN equals nothing; it counts as the extreme, as in ATen's argmax.
    const at::Tensor hit = in[0].eq(in[1]).logical_or_(in[0].ne(in[0]));
    return {at::amin(at::where(hit, index, none), {axis})};
  }
  static Samples<FirstIndexOp> samples() {
    return {{{{{3, 4}, at::kLong, 0, 3}, {{3, 1}, at::kLong, 0, 3}}, {1}}};
  }
};

TESSERA_REGISTER_OP(FirstIndexOp);

/// Fused argmax and argmin along an axis that is not sharded.
struct ArgExtremeOp {
  static constexpr std::string_view name = "arg_extreme";
  int64_t axis = 0;
  bool smallest = false;
  auto attributes() const { return std::tie(axis, smallest); }

  Specs infer(const Specs& in) const { return FirstIndexOp{axis}.infer(in); }
  Rule rule(const Specs& in) const {
    Rule rule = FirstIndexOp{axis}.rule(in);
    rule.in.pop_back();
    rule.factors[size_t(axis)] = FactorKind::replicated;
    return rule;
  }
  Tensors forward(const LocalArgs& in) const {
    const bool is_bool = in[0].scalar_type() == at::kBool;  // which ATen refuses
    const at::Tensor x = is_bool ? in[0].to(at::kByte) : in[0];
    return {smallest ? at::argmin(x, axis) : at::argmax(x, axis)};
  }
  static Samples<ArgExtremeOp> samples() {
    return {{{{{3, 4}, at::kLong, 0, 3}}, {1, false}}, {{{{4, 3}, at::kLong, 0, 3}}, {0, true}}};
  }
};

TESSERA_REGISTER_OP(ArgExtremeOp);

/// Returns argmax or argmin. A sharded axis is not all-gathered.
DTensor index_of(const DTensor& x, int64_t axis, bool smallest) {
  const bool unsharded = x.layout().axis(axis).empty() && x.size(axis) > 0;
  if (unsharded) return run_op(ArgExtremeOp{axis, smallest}, {x});
  const DTensor extreme = smallest ? ops::min(x, {axis}, true) : ops::max(x, {axis}, true);
  return run_op(FirstIndexOp{axis}, {x, extreme});
}

}  // namespace

namespace ops {

DTensor argmax(const DTensor& x, int64_t axis) {
  return index_of(x, normalize_axis(axis, x.rank(), "argmax"), false);
}

DTensor argmin(const DTensor& x, int64_t axis) {
  return index_of(x, normalize_axis(axis, x.rank(), "argmin"), true);
}

}  // namespace ops
}  // namespace tessera
