#include <tessera/framework/ops/internal/broadcast.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera::detail {

Shape broadcast_shape(std::string_view op, const Specs& in) {
  Shape shape;
  for (const Spec& spec : in) {
    if (spec.shape.size() > shape.size()) {
      shape.insert(shape.begin(), spec.shape.size() - shape.size(), 1);
    }
    const size_t offset = shape.size() - spec.shape.size();
    for (size_t a = 0; a < spec.shape.size(); ++a) {
      int64_t& extent = shape[offset + a];
      if (extent == 1) {
        extent = spec.shape[a];
      } else if (spec.shape[a] != 1 && spec.shape[a] != extent) {
        std::string received;
        for (const Spec& s : in) received += (received.empty() ? "" : " and ") + to_string(s.shape);
        throw ShapeError(std::string(op), "shapes broadcast: extents are equal or 1", received,
                         "reshape an operand");
      }
    }
  }
  return shape;
}

Rule broadcast_rule(const Specs& in) {
  const Shape shape = broadcast_shape("broadcast", in);
  Rule rule;
  rule.out.emplace_back();
  for (size_t a = 0; a < shape.size(); ++a) {
    rule.factors.push_back(FactorKind::pass);
    rule.out[0].push_back(int(a));
  }
  for (const Spec& spec : in) {
    const size_t offset = shape.size() - spec.shape.size();
    rule.in.emplace_back();
    for (size_t a = 0; a < spec.shape.size(); ++a) {
      const bool follows = spec.shape[a] == shape[offset + a];
      rule.in.back().push_back(follows ? int(offset + a) : Rule::none);
    }
  }
  return rule;
}

Rule unsharded_axis_rule(const Specs& in, int64_t axis) {
  Rule rule = broadcast_rule(in);
  rule.factors[size_t(axis)] = FactorKind::replicated;
  return rule;
}

std::pair<DTensor, DTensor> in_floating_dtype(const DTensor& a, const DTensor& b) {
  // The operation itself rejects empty operands.
  if (!a.defined() || !b.defined()) return {a, b};
  const bool first = at::isFloatingType(a.dtype()), second = at::isFloatingType(b.dtype());
  if (first == second) return {a, b};
  if (first) return {a, ops::cast(b, a.dtype())};
  return {ops::cast(a, b.dtype()), b};
}

void check_same_dtype(std::string_view op, const Specs& in, size_t first) {
  for (size_t i = first + 1; i < in.size(); ++i) {
    if (in[i].dtype == in[first].dtype) continue;
    throw ConfigError(std::string(op), "operands have one dtype",
                      str(dtype_name(in[first].dtype), " and ", dtype_name(in[i].dtype)),
                      "bring one to the other's with ops::cast()");
  }
}

void check_floating(std::string_view op, const Spec& in) {
  if (c10::isFloatingType(in.dtype)) return;
  throw ConfigError(std::string(op), "the operand has a floating dtype", dtype_name(in.dtype),
                    "cast it to float32 first");
}

void check_integer(std::string_view op, const Spec& in) {
  if (at::isIntegralType(in.dtype, /*includeBool=*/false)) return;
  throw ConfigError(std::string(op), "the operand has an integer dtype", dtype_name(in.dtype),
                    in.dtype == at::kBool ? "use the logical functions" : "cast it first");
}

void check_not_bool(std::string_view op, const Spec& in) {
  if (in.dtype != at::kBool) return;
  throw ConfigError(std::string(op), "the operand must be numeric", "bool",
                    "cast it, or use the logical functions");
}

DTensor sum_to(const DTensor& gradient, const Shape& shape) {
  if (gradient.shape() == shape) return gradient;
  const size_t offset = gradient.shape().size() - shape.size();
  std::vector<int64_t> axes;
  for (size_t a = 0; a < gradient.shape().size(); ++a) {
    const bool grown = a >= offset && shape[a - offset] == 1 && gradient.shape()[a] != 1;
    if (a < offset || grown) axes.push_back(int64_t(a));
  }
  const DTensor sum = axes.empty() ? gradient : partial_sum(gradient, axes);
  return ops::reshape(sum, shape);
}

}  // namespace tessera::detail
