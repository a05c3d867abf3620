#include <tessera/framework/graph/symbolic_ops.hpp>

#include <optional>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/graph/operations/operation.hpp>
#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/ops/internal/indexing.hpp>

namespace tessera {

using namespace detail;

namespace {

using S = SymbolicTensor;

SymbolicTensor operation(const std::string& class_name, const std::vector<SymbolicOperand>& args,
                         const Json& options = Json::object()) {
  return operation_outputs(class_name, args, options)[0];
}

Json slice_json(std::optional<int64_t> start, std::optional<int64_t> stop,
                std::optional<int64_t> step = std::nullopt) {
  const auto number = [](std::optional<int64_t> part) { return part ? Json(*part) : Json(); };
  return {{"class_name", "__slice__"},
          {"config", {{"start", number(start)}, {"stop", number(stop)}, {"step", number(step)}}}};
}

/// Returns an item of an index as Keras writes it.
Json item_json(const AxisItem& item) {
  const IndexItem read = index_item(item, "SymbolicTensor::operator[]");
  switch (read.kind) {
    case IndexItem::Kind::index:
      return read.index;
    case IndexItem::Kind::ellipsis:
      return {{"class_name", "__ellipsis__"}, {"config", Json::object()}};
    case IndexItem::Kind::new_axis:
      return nullptr;
    case IndexItem::Kind::slice:
      break;
  }
  return slice_json(read.start, read.stop, read.step);
}

SymbolicTensor item(const SymbolicTensor& x, const Json& key) {
  SymbolicOperand operand(0);
  operand.value = key;
  return operation("GetItem", {x, operand});
}

}  // namespace

SymbolicTensor SymbolicTensor::operator[](std::initializer_list<AxisItem> items) const {
  Json key = Json::array();
  for (const AxisItem& one : items) key.push_back(item_json(one));
  return item(*this, key.size() == 1 ? Json(key[0]) : key);
}

S operator+(const SymbolicOperand& a, const SymbolicOperand& b) { return ops::add(a, b); }
S operator-(const SymbolicOperand& a, const SymbolicOperand& b) { return ops::sub(a, b); }
S operator*(const SymbolicOperand& a, const SymbolicOperand& b) { return ops::mul(a, b); }
S operator/(const SymbolicOperand& a, const SymbolicOperand& b) {
  return operation("TrueDivide", {a, b});
}
S operator-(const S& x) { return ops::neg(x); }

S ops::round(const S& x) { return operation("Round", {x}); }
S ops::argmax(const S& x, int64_t axis) { return operation("Argmax", {x}, {{"axis", axis}}); }
S ops::argmin(const S& x, int64_t axis) { return operation("Argmin", {x}, {{"axis", axis}}); }
S ops::threshold(const S& x, double threshold, double default_value) {
  return operation("Threshold", {x}, {{"threshold", threshold}, {"default_value", default_value}});
}
S ops::clip(const S& x, double lo, double hi) {
  return operation("Clip", {x}, {{"x_min", lo}, {"x_max", hi}});
}
S ops::where(const S& condition, const SymbolicOperand& a, const SymbolicOperand& b) {
  return operation("Where", {condition, a, b});
}
S ops::matmul(const S& a, const S& b) { return operation("Matmul", {a, b}); }
S ops::einsum(const std::string& equation, const std::vector<S>& operands) {
  return operation("Einsum", {operands.begin(), operands.end()}, {{"subscripts", equation}});
}
S ops::take_along_axis(const S& x, const S& indices, int64_t axis) {
  return operation("TakeAlongAxis", {x, indices}, {{"axis", axis}});
}
S ops::cumsum(const S& x, int64_t axis) { return operation("Cumsum", {x}, {{"axis", axis}}); }
std::pair<S, S> ops::top_k(const S& x, int64_t k) {
  const std::vector<S> both = operation_outputs("TopK", {x}, {{"k", k}});
  return {both[0], both[1]};
}
S ops::gather(const S& x, const S& indices, int64_t axis) {
  return operation("Take", {x, indices}, {{"axis", axis}});
}
S ops::one_hot(const S& labels, int64_t classes) {
  return operation("OneHot", {labels}, {{"num_classes", classes}, {"dtype", "float32"}});
}
S ops::reshape(const S& x, const Shape& shape) {
  return operation("Reshape", {x}, {{"newshape", shape}});
}
S ops::transpose(const S& x, const std::vector<int64_t>& axes) {
  return operation("Transpose", {x}, {{"axes", axes.empty() ? Json() : Json(axes)}});
}
S ops::expand_dims(const S& x, int64_t axis) {
  return operation("ExpandDims", {x}, {{"axis", axis}});
}
S ops::squeeze(const S& x, const std::vector<int64_t>& axes) {
  return operation("Squeeze", {x}, {{"axis", axes_option(axes)}});
}
S ops::concat(const std::vector<S>& tensors, int64_t axis) {
  return operation("Concatenate", {tensors}, {{"axis", axis}});
}
S ops::stack(const std::vector<S>& tensors, int64_t axis) {
  return operation("Stack", {tensors}, {{"axis", axis}});
}
std::vector<S> ops::split(const S& x, int64_t sections, int64_t axis) {
  return operation_outputs("Split", {x}, {{"indices_or_sections", sections}, {"axis", axis}});
}
std::vector<S> ops::unstack(const S& x, int64_t axis) {
  return operation_outputs("Unstack", {x}, {{"axis", axis}});
}
S ops::tile(const S& x, const std::vector<int64_t>& repeats) {
  return operation("Tile", {x}, {{"repeats", repeats}});
}
S ops::flip(const S& x, const std::vector<int64_t>& axes) {
  return operation("Flip", {x}, {{"axis", axes_option(axes)}});
}
S ops::roll(const S& x, const std::vector<int64_t>& shifts, const std::vector<int64_t>& axes) {
  return operation("Roll", {x}, {{"shift", axes_json(shifts)}, {"axis", axes_option(axes)}});
}

S ops::cast(const S& x, at::ScalarType dtype) {
  return operation("Cast", {x}, {{"dtype", dtype_name(dtype)}});
}

S ops::slice(const S& x, int64_t axis, int64_t begin, int64_t size) {
  const auto rank = static_cast<int64_t>(x.shape().size());
  const int64_t last = normalize_axis(axis, rank, "slice");
  Json key(static_cast<size_t>(last), slice_json({}, {}));
  key.push_back(slice_json(begin, begin + size));
  return item(x, key);
}

S ops::pad(const S& x, int64_t axis, int64_t before, int64_t after, double value) {
  const size_t rank = x.shape().size();
  std::vector<std::vector<int64_t>> width(rank, {0, 0});
  width[size_t(normalize_axis(axis, static_cast<int64_t>(rank), "pad"))] = {before, after};
  return operation("Pad", {x},
                   {{"pad_width", width},
                    {"mode", "constant"},
                    {"constant_values", value == 0 ? Json() : Json(value)}});
}

}  // namespace tessera
