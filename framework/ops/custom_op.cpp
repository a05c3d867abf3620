#include <tessera/framework/ops/custom_op.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>

namespace tessera::detail {

/// The operation that OpInfo's functions receive, identified by its address. Never destroyed:
/// plans, tapes, captured steps and profiles of any thread hold its OpInfo and its name.
struct CustomOpBody {
  std::string name;
  ops::CustomOpOptions options;
  Rule rule;  ///< options.rule, parsed; unused if that is empty
  OpInfo info;
};

namespace {

const CustomOpBody& body_of(const void* op) { return *static_cast<const CustomOpBody*>(op); }

bool is_in_inputs(const Rule& rule, int factor) {
  return std::any_of(rule.in.begin(), rule.in.end(), [&](const std::vector<int>& axes) {
    return std::find(axes.begin(), axes.end(), factor) != axes.end();
  });
}

Rule parse_rule(const std::string& name, const ops::CustomOpOptions& options) {
  const Rule rule = Rule::parse(options.rule);
  if (rule.out.size() != 1) {
    throw ConfigError(name, "the rule has one output", '"' + options.rule + '"',
                      "write it as \"b n, n -> b n\"");
  }
  for (const int factor : rule.out[0]) {
    if (factor == Rule::none || options.shape) continue;
    if (!is_in_inputs(rule, factor)) {
      throw ConfigError(name, "an input has each axis of the output", '"' + options.rule + '"',
                        "set .shape if the output has axes of its own, and name them \"!n\"");
    }
  }
  if (std::find(rule.factors.begin(), rule.factors.end(), FactorKind::window) !=
      rule.factors.end()) {
    throw ConfigError(name, "no axis of the rule is a window", '"' + options.rule + '"',
                      "keep the axis replicated: \"!h\"");
  }
  return rule;
}

void check_ranks(const CustomOpBody& body, const Specs& in) {
  const auto fits = [&] {
    if (in.size() != body.rule.in.size()) return false;
    for (size_t i = 0; i < in.size(); ++i) {
      if (in[i].shape.size() != body.rule.in[i].size()) return false;
    }
    return true;
  };
  if (fits()) return;
  std::vector<std::string> shapes;
  for (const Spec& spec : in) shapes.push_back(to_string(spec.shape));
  throw ShapeError(body.name, str("the inputs have the axes of \"", body.options.rule, '"'),
                   join(shapes, ", "), "reshape them, or change the rule");
}

/// Returns the extent of each factor. Throws ShapeError if inputs disagree on one.
std::vector<int64_t> factor_extents(const CustomOpBody& body, const Specs& in) {
  std::vector<int64_t> extents(body.rule.factors.size(), 1);
  std::vector<bool> known(extents.size(), false);
  for (size_t i = 0; i < in.size(); ++i) {
    for (size_t a = 0; a < in[i].shape.size(); ++a) {
      if (body.rule.in[i][a] == Rule::none) continue;
      const auto f = static_cast<size_t>(body.rule.in[i][a]);
      if (known[f] && extents[f] != in[i].shape[a]) {
        throw ShapeError(
            body.name, str("axes of one name in \"", body.options.rule, "\" must have one extent"),
            str(extents[f], " and ", in[i].shape[a]), "reshape the inputs");
      }
      extents[f] = in[i].shape[a];
      known[f] = true;
    }
  }
  return extents;
}

Shape output_shape(const CustomOpBody& body, const Specs& in) {
  if (body.options.shape) {
    std::vector<Shape> shapes;
    for (const Spec& spec : in) shapes.push_back(spec.shape);
    return body.options.shape(shapes);
  }
  if (body.options.rule.empty()) return broadcast_shape(body.name, in);
  const std::vector<int64_t> extents = factor_extents(body, in);
  Shape shape;
  for (const int factor : body.rule.out[0]) {
    shape.push_back(factor == Rule::none ? 1 : extents[static_cast<size_t>(factor)]);
  }
  return shape;
}

Specs infer_custom(const void* op, const Specs& in) {
  const CustomOpBody& body = body_of(op);
  if (in.empty()) {
    throw ConfigError(body.name, "an operation must have at least one input", "none",
                      "pass a tensor");
  }
  if (!body.options.rule.empty()) check_ranks(body, in);
  Shape shape = output_shape(body, in);
  if (!body.options.rule.empty() && shape.size() != body.rule.out[0].size()) {
    throw ShapeError(body.name, str("the output has the axes of \"", body.options.rule, '"'),
                     to_string(shape), "return a shape with as many axes from .shape");
  }
  return {{std::move(shape), in[0].dtype}};
}

Rule rule_of_custom(const void* op, const Specs& in) {
  const CustomOpBody& body = body_of(op);
  return body.options.rule.empty() ? broadcast_rule(in) : body.rule;
}

std::string spec_text(at::IntArrayRef shape, at::ScalarType dtype) {
  return str(dtype_name(dtype), " ", to_string(Shape(shape.begin(), shape.end())));
}

Tensors forward_custom(const void* op, const LocalArgs& args) {
  const CustomOpBody& body = body_of(op);
  at::Tensor out = body.options.forward(args.all());
  Shape expected;
  for (size_t a = 0; a < args.out_rank(); ++a) {
    expected.push_back(args.out_range(static_cast<int64_t>(a)).size());
  }
  const at::ScalarType dtype = args.spec(0).dtype;
  if (!out.defined() || out.sizes() != at::IntArrayRef(expected) || out.scalar_type() != dtype) {
    throw StateError(body.name, "forward must return a block of " + spec_text(expected, dtype),
                     out.defined() ? spec_text(out.sizes(), out.scalar_type()) : "no tensor",
                     "follow the rule: a block may be part of each axis that is not replicated");
  }
  return {std::move(out)};
}

Grads gradient_of_custom(const void* op, const Saved& saved, const Cotangents& dy, Needs needs) {
  const CustomOpBody& body = body_of(op);
  std::vector<DTensor> in;
  for (size_t i = 0; i < saved.size(); ++i) in.push_back(saved.in(i));
  Grads gradients = body.options.gradient(in, saved.out(), dy[0]);
  if (gradients.size() != in.size()) {
    throw StateError(body.name, str("gradient must return one for each of ", in.size(), " inputs"),
                     str(gradients.size()), "return DTensor() for an input that has none");
  }
  for (size_t i = 0; i < in.size(); ++i) {
    if (!needs[i]) gradients[i] = DTensor();
    if (gradients[i].defined() && gradients[i].shape() != in[i].shape()) {
      throw StateError(
          body.name, str("the gradient of input ", i, " has its shape, ", to_string(in[i].shape())),
          to_string(gradients[i].shape()), "sum over the broadcast axes");
    }
  }
  return gradients;
}

OpInfo info_of(const CustomOpBody& body) {
  OpInfo info;
  info.name = body.name;
  info.rule = rule_of_custom;
  info.infer = infer_custom;
  info.forward = forward_custom;
  if (body.options.gradient) {
    info.differentiable = true;
    info.saves = {~0U, 1};
    info.gradient = gradient_of_custom;
  }
  info.equal = [](const void* a, const void* b) { return a == b; };
  info.copy = [](const void* op) -> std::shared_ptr<const void> {
    return {std::shared_ptr<const void>(), op};
  };
  return info;
}

}  // namespace
}  // namespace tessera::detail

namespace tessera::ops {

using namespace detail;

CustomOp::CustomOp(const std::string& name, const CustomOpOptions& options) {
  if (name.empty()) throw ConfigError("CustomOp", "an operation has a name", "none", "give one");
  if (!options.forward) {
    throw ConfigError(name, "an operation has .forward", "none", "give an ATen function");
  }
  auto body = std::make_unique<CustomOpBody>();
  body->name = name;
  body->options = options;
  if (!options.rule.empty()) body->rule = parse_rule(name, options);
  body->info = info_of(*body);
  body_ = body.get();
  static std::mutex mutex;
  static auto* bodies = new std::vector<std::unique_ptr<const CustomOpBody>>;
  const std::lock_guard<std::mutex> lock(mutex);
  bodies->push_back(std::move(body));
}

DTensor CustomOp::operator()(const std::vector<DTensor>& inputs) const {
  return std::move(dispatch(body_->info, body_, 0, inputs)[0]);
}

}  // namespace tessera::ops
