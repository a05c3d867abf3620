#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Maximum number of inputs or outputs of one operation: a tape keeps a 32-bit mask of them.
constexpr int64_t max_operands = 32;

/// Returns the factors of an entry's axes, and of the stacked tensor's, which has one more at
/// `axis`.
std::pair<std::vector<int>, std::vector<int>> stack_factors(int64_t stacked_rank, int64_t axis) {
  std::vector<int> entry, stacked;
  for (int64_t a = 0; a < stacked_rank; ++a) {
    if (a != axis) entry.push_back(int(entry.size()));
    stacked.push_back(a == axis ? Rule::none : entry.back());
  }
  return {entry, stacked};
}

/// Tensors of one shape along a new axis.
struct StackOp {
  static constexpr std::string_view name = "stack";
  int64_t axis = 0;
  auto attributes() const { return std::tie(axis); }

  Specs infer(const Specs& in) const {
    check_same_dtype(name, in);
    for (const Spec& spec : in) {
      if (spec.shape == in[0].shape) continue;
      throw ShapeError("stack", "shapes are equal",
                       to_string(in[0].shape) + " and " + to_string(spec.shape), "");
    }
    Spec out = in[0];
    out.shape.insert(out.shape.begin() + axis, static_cast<int64_t>(in.size()));
    return {out};
  }
  Rule rule(const Specs& in) const {
    const auto [entry, stacked] = stack_factors(in[0].rank() + 1, axis);
    Rule rule;
    rule.in.assign(in.size(), entry);
    rule.out = {stacked};
    rule.factors.assign(entry.size(), FactorKind::pass);
    std::vector<int> through;
    for (size_t i = 0; i < in.size(); ++i) through.push_back(int(i));
    return rule.passing(Passes::all, through);
  }
  Tensors forward(const LocalArgs& in) const {
    return {at::stack(std::vector<at::Tensor>(in.all().begin(), in.all().end()), axis)};
  }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved&, const Cotangents& dy, Needs) const {
    return ops::unstack(dy[0], axis);
  }
  static Samples<StackOp> samples() {
    return {{{{{3, 2}}, {{3, 2}}}, {0}}, {{{{4}}, {{4}}, {{4}}}, {1}}};
  }
};

/// The entries of a tensor along an axis, without that axis.
struct UnstackOp {
  static constexpr std::string_view name = "unstack";
  int64_t axis = 0;
  auto attributes() const { return std::tie(axis); }

  Specs infer(const Specs& in) const {
    Spec entry = in[0];
    entry.shape.erase(entry.shape.begin() + axis);
    return Specs(size_t(in[0].shape[size_t(axis)]), entry);
  }
  Rule rule(const Specs& in) const {
    const auto [entry, stacked] = stack_factors(in[0].rank(), axis);
    Rule rule;
    rule.in = {stacked};
    rule.out.assign(size_t(in[0].shape[size_t(axis)]), entry);
    rule.factors.assign(entry.size(), FactorKind::pass);
    return rule.passing(Passes::all);
  }
  Tensors forward(const LocalArgs& in) const {
    Tensors entries;
    for (at::Tensor& entry : at::unbind(in[0], axis)) entries.push_back(std::move(entry));
    return entries;
  }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved&, const Cotangents& dy, Needs) const {
    const DTensor& some =
        *std::find_if(dy.begin(), dy.end(), [](const DTensor& d) { return d.defined(); });
    std::vector<DTensor> grads = dy;
    DTensor nothing;
    for (DTensor& grad : grads) {
      if (grad.defined()) continue;
      if (!nothing.defined()) {
        nothing = filled(some.shape(), 0, some.dtype(), some.layout().resolved());
      }
      grad = nothing;
    }
    return {ops::stack(grads, axis)};
  }
  static Samples<UnstackOp> samples() { return {{{{{3, 2}}}, {0}}, {{{{2, 3, 2}}}, {1}}}; }
};

TESSERA_REGISTER_OP(StackOp);
TESSERA_REGISTER_OP(UnstackOp);

}  // namespace

namespace ops {

DTensor stack(const std::vector<DTensor>& tensors, int64_t axis) {
  if (tensors.empty()) throw ShapeError("stack", "at least one tensor must be given", "none", "");
  const int64_t a = normalize_axis(axis, tensors[0].rank() + 1, "stack");
  const auto count = static_cast<int64_t>(tensors.size());
  if (count <= max_operands) return run_op(StackOp{a}, tensors);
  // Stacks groups of tensors recursively, few enough of them to join.
  std::vector<DTensor> groups;
  const int64_t size = count <= max_operands * max_operands
                           ? max_operands
                           : (count + max_operands - 1) / max_operands;
  for (int64_t at = 0; at < count; at += size) {
    const auto begin = tensors.begin() + at;
    groups.push_back(stack({begin, begin + std::min(size, count - at)}, a));
  }
  return concat(groups, a);
}

std::vector<DTensor> unstack(const DTensor& x, int64_t axis) {
  const int64_t a = normalize_axis(axis, x.rank(), "unstack");
  const int64_t count = x.size(a);
  if (count == 0) return {};
  if (count <= max_operands) {
    const UnstackOp op{a};
    return dispatch(op_info<UnstackOp>(), &op, attribute_hash(op), std::span(&x, 1));
  }
  std::vector<DTensor> entries;
  const int64_t size = count <= max_operands * max_operands
                           ? max_operands
                           : (count + max_operands - 1) / max_operands;
  for (int64_t at = 0; at < count; at += size) {
    const std::vector<DTensor> some = unstack(slice(x, a, at, std::min(size, count - at)), a);
    entries.insert(entries.end(), some.begin(), some.end());
  }
  return entries;
}

}  // namespace ops
}  // namespace tessera
