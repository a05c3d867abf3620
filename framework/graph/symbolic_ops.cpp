#include <tessera/framework/graph/symbolic_ops.hpp>

#include <charconv>
#include <optional>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/nn/config/from_config.hpp>

namespace tessera {

using namespace detail;

namespace {

SymbolicTensor operation(const std::string& class_name, const std::vector<SymbolicOperand>& args,
                         const Json& options = Json::object()) {
  return operation_outputs(class_name, args, options)[0];
}

/// Returns the axes as Keras writes them: null for all.
Json symbolic_axes(const std::vector<int64_t>& axes) {
  return axes.empty() ? Json() : axes_json(axes);
}

SymbolicTensor symbolic_reduction(const std::string& class_name, const SymbolicTensor& x,
                                  const std::vector<int64_t>& axes, bool keepdims) {
  return operation(class_name, {x}, {{"axis", symbolic_axes(axes)}, {"keepdims", keepdims}});
}

[[noreturn]] void fail_at_item(const std::string& text) {
  throw ConfigError("SymbolicTensor::operator[]",
                    "each item must be an index, a slice \"1:3\", \"...\" or \"None\"",
                    in_quotes(text), "write it as in Python");
}

Json slice_json(std::optional<int64_t> start, std::optional<int64_t> stop,
                std::optional<int64_t> step = std::nullopt) {
  const auto number = [](std::optional<int64_t> part) { return part ? Json(*part) : Json(); };
  return {{"class_name", "__slice__"},
          {"config", {{"start", number(start)}, {"stop", number(stop)}, {"step", number(step)}}}};
}

/// Parses an index: "0" as a number, "1:3" and "::2" as slices, "..." and "None".
Json item_json(const std::string& text) {
  if (text == "...") return {{"class_name", "__ellipsis__"}, {"config", Json::object()}};
  if (text == "None") return nullptr;
  std::vector<std::optional<int64_t>> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(':', begin), text.size());
    int64_t number = 0;
    const char* const last = text.data() + end;
    const auto [rest, error] = std::from_chars(text.data() + begin, last, number);
    const bool empty = begin == end;
    if (!empty && (rest != last || error != std::errc())) fail_at_item(text);
    parts.push_back(empty ? std::nullopt : std::optional(number));
    begin = end + 1;
  }
  if (parts.size() == 1 && parts[0]) return *parts[0];
  if (parts.size() < 2 || parts.size() > 3) fail_at_item(text);
  return slice_json(parts[0], parts[1], parts.size() == 3 ? parts[2] : std::nullopt);
}

SymbolicTensor item(const SymbolicTensor& x, const Json& key) {
  SymbolicOperand operand(0);
  operand.value = key;
  return operation("GetItem", {x, operand});
}

}  // namespace

SymbolicTensor SymbolicTensor::operator[](std::initializer_list<AxisItem> items) const {
  Json key = Json::array();
  for (const AxisItem& one : items) key.push_back(item_json(one.text));
  return item(*this, key.size() == 1 ? Json(key[0]) : key);
}

SymbolicTensor operator+(const SymbolicOperand& a, const SymbolicOperand& b) {
  return operation("Add", {a, b});
}
SymbolicTensor operator-(const SymbolicOperand& a, const SymbolicOperand& b) {
  return operation("Subtract", {a, b});
}
SymbolicTensor operator*(const SymbolicOperand& a, const SymbolicOperand& b) {
  return operation("Multiply", {a, b});
}
SymbolicTensor operator/(const SymbolicOperand& a, const SymbolicOperand& b) {
  return operation("TrueDivide", {a, b});
}
SymbolicTensor operator-(const SymbolicTensor& x) { return operation("Negative", {x}); }

SymbolicTensor ops::neg(const SymbolicTensor& x) { return operation("Negative", {x}); }
SymbolicTensor ops::abs(const SymbolicTensor& x) { return operation("Absolute", {x}); }
SymbolicTensor ops::sign(const SymbolicTensor& x) { return operation("Sign", {x}); }
SymbolicTensor ops::exp(const SymbolicTensor& x) { return operation("Exp", {x}); }
SymbolicTensor ops::expm1(const SymbolicTensor& x) { return operation("Expm1", {x}); }
SymbolicTensor ops::log(const SymbolicTensor& x) { return operation("Log", {x}); }
SymbolicTensor ops::log1p(const SymbolicTensor& x) { return operation("Log1p", {x}); }
SymbolicTensor ops::sqrt(const SymbolicTensor& x) { return operation("Sqrt", {x}); }
SymbolicTensor ops::rsqrt(const SymbolicTensor& x) { return operation("Rsqrt", {x}); }
SymbolicTensor ops::square(const SymbolicTensor& x) { return operation("Square", {x}); }
SymbolicTensor ops::reciprocal(const SymbolicTensor& x) { return operation("Reciprocal", {x}); }
SymbolicTensor ops::sin(const SymbolicTensor& x) { return operation("Sin", {x}); }
SymbolicTensor ops::cos(const SymbolicTensor& x) { return operation("Cos", {x}); }
SymbolicTensor ops::tanh(const SymbolicTensor& x) { return operation("Tanh", {x}); }
SymbolicTensor ops::erf(const SymbolicTensor& x) { return operation("Erf", {x}); }
SymbolicTensor ops::sigmoid(const SymbolicTensor& x) { return operation("Sigmoid", {x}); }
SymbolicTensor ops::relu(const SymbolicTensor& x) { return operation("Relu", {x}); }
SymbolicTensor ops::softplus(const SymbolicTensor& x) { return operation("Softplus", {x}); }
SymbolicTensor ops::floor(const SymbolicTensor& x) { return operation("Floor", {x}); }
SymbolicTensor ops::ceil(const SymbolicTensor& x) { return operation("Ceil", {x}); }
SymbolicTensor ops::round(const SymbolicTensor& x) { return operation("Round", {x}); }
SymbolicTensor ops::is_finite(const SymbolicTensor& x) { return operation("Isfinite", {x}); }
SymbolicTensor ops::logical_not(const SymbolicTensor& x) { return operation("LogicalNot", {x}); }
SymbolicTensor ops::relu6(const SymbolicTensor& x) { return operation("Relu6", {x}); }
SymbolicTensor ops::hard_sigmoid(const SymbolicTensor& x) { return operation("HardSigmoid", {x}); }
SymbolicTensor ops::hard_silu(const SymbolicTensor& x) { return operation("HardSilu", {x}); }
SymbolicTensor ops::log_sigmoid(const SymbolicTensor& x) { return operation("LogSigmoid", {x}); }
SymbolicTensor ops::selu(const SymbolicTensor& x) { return operation("Selu", {x}); }
SymbolicTensor ops::silu(const SymbolicTensor& x) { return operation("Silu", {x}); }
SymbolicTensor ops::softsign(const SymbolicTensor& x) { return operation("Softsign", {x}); }
SymbolicTensor ops::sparse_plus(const SymbolicTensor& x) { return operation("SparsePlus", {x}); }
SymbolicTensor ops::sparse_sigmoid(const SymbolicTensor& x) {
  return operation("SparseSigmoid", {x});
}
SymbolicTensor ops::tanh_shrink(const SymbolicTensor& x) { return operation("TanhShrink", {x}); }
SymbolicTensor ops::stop_gradient(const SymbolicTensor& x) {
  return operation("StopGradient", {x});
}
SymbolicTensor ops::add(const SymbolicOperand& a, const SymbolicOperand& b) {
  return operation("Add", {a, b});
}
SymbolicTensor ops::sub(const SymbolicOperand& a, const SymbolicOperand& b) {
  return operation("Subtract", {a, b});
}
SymbolicTensor ops::mul(const SymbolicOperand& a, const SymbolicOperand& b) {
  return operation("Multiply", {a, b});
}
SymbolicTensor ops::div(const SymbolicOperand& a, const SymbolicOperand& b) {
  return operation("Divide", {a, b});
}
SymbolicTensor ops::maximum(const SymbolicOperand& a, const SymbolicOperand& b) {
  return operation("Maximum", {a, b});
}
SymbolicTensor ops::minimum(const SymbolicOperand& a, const SymbolicOperand& b) {
  return operation("Minimum", {a, b});
}
SymbolicTensor ops::pow(const SymbolicOperand& a, const SymbolicOperand& b) {
  return operation("Power", {a, b});
}
SymbolicTensor ops::floor_div(const SymbolicOperand& a, const SymbolicOperand& b) {
  return operation("FloorDivide", {a, b});
}
SymbolicTensor ops::remainder(const SymbolicOperand& a, const SymbolicOperand& b) {
  return operation("Mod", {a, b});
}
SymbolicTensor ops::equal(const SymbolicOperand& a, const SymbolicOperand& b) {
  return operation("Equal", {a, b});
}
SymbolicTensor ops::not_equal(const SymbolicOperand& a, const SymbolicOperand& b) {
  return operation("NotEqual", {a, b});
}
SymbolicTensor ops::less(const SymbolicOperand& a, const SymbolicOperand& b) {
  return operation("Less", {a, b});
}
SymbolicTensor ops::less_equal(const SymbolicOperand& a, const SymbolicOperand& b) {
  return operation("LessEqual", {a, b});
}
SymbolicTensor ops::greater(const SymbolicOperand& a, const SymbolicOperand& b) {
  return operation("Greater", {a, b});
}
SymbolicTensor ops::greater_equal(const SymbolicOperand& a, const SymbolicOperand& b) {
  return operation("GreaterEqual", {a, b});
}
SymbolicTensor ops::logical_and(const SymbolicOperand& a, const SymbolicOperand& b) {
  return operation("LogicalAnd", {a, b});
}
SymbolicTensor ops::logical_or(const SymbolicOperand& a, const SymbolicOperand& b) {
  return operation("LogicalOr", {a, b});
}
SymbolicTensor ops::elu(const SymbolicTensor& x, double alpha) {
  return operation("Elu", {x}, {{"alpha", alpha}});
}
SymbolicTensor ops::leaky_relu(const SymbolicTensor& x, double negative_slope) {
  return operation("LeakyRelu", {x}, {{"negative_slope", negative_slope}});
}
SymbolicTensor ops::hard_shrink(const SymbolicTensor& x, double threshold) {
  return operation("HardShrink", {x}, {{"threshold", threshold}});
}
SymbolicTensor ops::soft_shrink(const SymbolicTensor& x, double threshold) {
  return operation("SoftShrink", {x}, {{"threshold", threshold}});
}
SymbolicTensor ops::squareplus(const SymbolicTensor& x, double b) {
  return operation("Squareplus", {x}, {{"b", b}});
}
SymbolicTensor ops::softmax(const SymbolicTensor& x, int64_t axis) {
  return operation("Softmax", {x}, {{"axis", axis}});
}
SymbolicTensor ops::log_softmax(const SymbolicTensor& x, int64_t axis) {
  return operation("LogSoftmax", {x}, {{"axis", axis}});
}
SymbolicTensor ops::sparsemax(const SymbolicTensor& x, int64_t axis) {
  return operation("Sparsemax", {x}, {{"axis", axis}});
}
SymbolicTensor ops::argmax(const SymbolicTensor& x, int64_t axis) {
  return operation("Argmax", {x}, {{"axis", axis}});
}
SymbolicTensor ops::argmin(const SymbolicTensor& x, int64_t axis) {
  return operation("Argmin", {x}, {{"axis", axis}});
}
SymbolicTensor ops::sum(const SymbolicTensor& x, const std::vector<int64_t>& axes, bool keepdims) {
  return symbolic_reduction("Sum", x, axes, keepdims);
}
SymbolicTensor ops::mean(const SymbolicTensor& x, const std::vector<int64_t>& axes, bool keepdims) {
  return symbolic_reduction("Mean", x, axes, keepdims);
}
SymbolicTensor ops::max(const SymbolicTensor& x, const std::vector<int64_t>& axes, bool keepdims) {
  return symbolic_reduction("Max", x, axes, keepdims);
}
SymbolicTensor ops::min(const SymbolicTensor& x, const std::vector<int64_t>& axes, bool keepdims) {
  return symbolic_reduction("Min", x, axes, keepdims);
}
SymbolicTensor ops::prod(const SymbolicTensor& x, const std::vector<int64_t>& axes, bool keepdims) {
  return symbolic_reduction("Prod", x, axes, keepdims);
}
SymbolicTensor ops::all(const SymbolicTensor& x, const std::vector<int64_t>& axes, bool keepdims) {
  return symbolic_reduction("All", x, axes, keepdims);
}
SymbolicTensor ops::any(const SymbolicTensor& x, const std::vector<int64_t>& axes, bool keepdims) {
  return symbolic_reduction("Any", x, axes, keepdims);
}
SymbolicTensor ops::logsumexp(const SymbolicTensor& x, const std::vector<int64_t>& axes,
                              bool keepdims) {
  return symbolic_reduction("Logsumexp", x, axes, keepdims);
}
SymbolicTensor ops::variance(const SymbolicTensor& x, const std::vector<int64_t>& axes,
                             bool keepdims) {
  return symbolic_reduction("Var", x, axes, keepdims);
}
SymbolicTensor ops::gelu(const SymbolicTensor& x, bool approximate) {
  return operation("Gelu", {x}, {{"approximate", approximate}});
}
SymbolicTensor ops::threshold(const SymbolicTensor& x, double threshold, double default_value) {
  return operation("Threshold", {x}, {{"threshold", threshold}, {"default_value", default_value}});
}
SymbolicTensor ops::clip(const SymbolicTensor& x, double lo, double hi) {
  return operation("Clip", {x}, {{"x_min", lo}, {"x_max", hi}});
}
SymbolicTensor ops::where(const SymbolicTensor& condition, const SymbolicOperand& a,
                          const SymbolicOperand& b) {
  return operation("Where", {condition, a, b});
}
SymbolicTensor ops::matmul(const SymbolicTensor& a, const SymbolicTensor& b) {
  return operation("Matmul", {a, b});
}
SymbolicTensor ops::einsum(const std::string& equation,
                           const std::vector<SymbolicTensor>& operands) {
  return operation("Einsum", {operands.begin(), operands.end()}, {{"subscripts", equation}});
}
SymbolicTensor ops::take_along_axis(const SymbolicTensor& x, const SymbolicTensor& indices,
                                    int64_t axis) {
  return operation("TakeAlongAxis", {x, indices}, {{"axis", axis}});
}
SymbolicTensor ops::cumsum(const SymbolicTensor& x, int64_t axis) {
  return operation("Cumsum", {x}, {{"axis", axis}});
}
std::pair<SymbolicTensor, SymbolicTensor> ops::top_k(const SymbolicTensor& x, int64_t k) {
  const std::vector<SymbolicTensor> both = operation_outputs("TopK", {x}, {{"k", k}});
  return {both[0], both[1]};
}
SymbolicTensor ops::gather(const SymbolicTensor& x, const SymbolicTensor& indices, int64_t axis) {
  return operation("Take", {x, indices}, {{"axis", axis}});
}
SymbolicTensor ops::one_hot(const SymbolicTensor& labels, int64_t classes) {
  return operation("OneHot", {labels}, {{"num_classes", classes}, {"dtype", "float32"}});
}
SymbolicTensor ops::reshape(const SymbolicTensor& x, const Shape& shape) {
  return operation("Reshape", {x}, {{"newshape", shape}});
}
SymbolicTensor ops::transpose(const SymbolicTensor& x, const std::vector<int64_t>& axes) {
  return operation("Transpose", {x}, {{"axes", axes.empty() ? Json() : Json(axes)}});
}
SymbolicTensor ops::expand_dims(const SymbolicTensor& x, int64_t axis) {
  return operation("ExpandDims", {x}, {{"axis", axis}});
}
SymbolicTensor ops::squeeze(const SymbolicTensor& x, const std::vector<int64_t>& axes) {
  return operation("Squeeze", {x}, {{"axis", symbolic_axes(axes)}});
}
SymbolicTensor ops::broadcast_to(const SymbolicTensor& x, const Shape& shape) {
  return operation("BroadcastTo", {x}, {{"shape", shape}});
}
SymbolicTensor ops::concat(const std::vector<SymbolicTensor>& tensors, int64_t axis) {
  return operation("Concatenate", {tensors}, {{"axis", axis}});
}
SymbolicTensor ops::stack(const std::vector<SymbolicTensor>& tensors, int64_t axis) {
  return operation("Stack", {tensors}, {{"axis", axis}});
}
std::vector<SymbolicTensor> ops::split(const SymbolicTensor& x, int64_t sections, int64_t axis) {
  return operation_outputs("Split", {x}, {{"indices_or_sections", sections}, {"axis", axis}});
}
std::vector<SymbolicTensor> ops::unstack(const SymbolicTensor& x, int64_t axis) {
  return operation_outputs("Unstack", {x}, {{"axis", axis}});
}
SymbolicTensor ops::tile(const SymbolicTensor& x, const std::vector<int64_t>& repeats) {
  return operation("Tile", {x}, {{"repeats", repeats}});
}
SymbolicTensor ops::flip(const SymbolicTensor& x, const std::vector<int64_t>& axes) {
  return operation("Flip", {x}, {{"axis", symbolic_axes(axes)}});
}
SymbolicTensor ops::roll(const SymbolicTensor& x, const std::vector<int64_t>& shifts,
                         const std::vector<int64_t>& axes) {
  return operation("Roll", {x}, {{"shift", axes_json(shifts)}, {"axis", symbolic_axes(axes)}});
}
SymbolicTensor ops::tril(const SymbolicTensor& x, int64_t k) {
  return operation("Tril", {x}, {{"k", k}});
}
SymbolicTensor ops::triu(const SymbolicTensor& x, int64_t k) {
  return operation("Triu", {x}, {{"k", k}});
}

SymbolicTensor ops::cast(const SymbolicTensor& x, at::ScalarType dtype) {
  return operation("Cast", {x}, {{"dtype", dtype_name(dtype)}});
}

SymbolicTensor ops::slice(const SymbolicTensor& x, int64_t axis, int64_t begin, int64_t size) {
  const auto rank = static_cast<int64_t>(x.shape().size());
  const int64_t last = normalize_axis(axis, rank, "slice");
  Json key(static_cast<size_t>(last), slice_json({}, {}));
  key.push_back(slice_json(begin, begin + size));
  return item(x, key);
}

SymbolicTensor ops::pad(const SymbolicTensor& x, int64_t axis, int64_t before, int64_t after,
                        double value) {
  const size_t rank = x.shape().size();
  std::vector<std::vector<int64_t>> width(rank, {0, 0});
  width[size_t(normalize_axis(axis, static_cast<int64_t>(rank), "pad"))] = {before, after};
  return operation("Pad", {x},
                   {{"pad_width", width},
                    {"mode", "constant"},
                    {"constant_values", value == 0 ? Json() : Json(value)}});
}

}  // namespace tessera
