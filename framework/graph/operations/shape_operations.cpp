#include <algorithm>
#include <numeric>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/graph/operations/operation.hpp>
#include <tessera/framework/ops/ops.hpp>

namespace tessera::detail {
namespace {

/// Returns a shape option; null and -1 stand for the inferred extent.
Shape shape_option(const OperationCall& call, const std::string& name) {
  Shape shape;
  for (const auto& extent : call.option<std::vector<std::optional<int64_t>>>(name)) {
    shape.push_back(extent.value_or(-1));
  }
  return shape;
}

DTensor squeezed(const OperationCall& call) {
  const DTensor x = call.tensor("x");
  std::vector<int64_t> axes = call.axes("axis");
  for (int64_t a = 0; call.option<Json>("axis").is_null() && a < x.rank(); ++a) {
    if (x.size(a) == 1) axes.push_back(a);
  }
  return axes.empty() ? x : ops::squeeze(x, axes);
}

std::vector<int64_t> axes_in_order(int64_t rank) {
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

DTensor swapped(const OperationCall& call) {
  const DTensor x = call.tensor("x");
  std::vector<int64_t> axes = axes_in_order(x.rank());
  const auto axis = [&](const char* name) -> int64_t& {
    return axes[size_t(normalize_axis(call.option<int64_t>(name), x.rank(), "swapaxes"))];
  };
  std::swap(axis("axis1"), axis("axis2"));
  return ops::transpose(x, axes);
}

DTensor moved(const OperationCall& call) {
  const DTensor x = call.tensor("x");
  std::vector<int64_t> axes = axes_in_order(x.rank());
  const int64_t from = normalize_axis(call.option<int64_t>("source"), x.rank(), "moveaxis");
  const int64_t to = normalize_axis(call.option<int64_t>("destination"), x.rank(), "moveaxis");
  axes.erase(axes.begin() + from);
  axes.insert(axes.begin() + to, from);
  return ops::transpose(x, axes);
}

DTensor padded(const OperationCall& call) {
  DTensor x = call.tensor("x");
  const auto width = call.option<std::vector<std::vector<int64_t>>>("pad_width");
  if (call.option<std::string>("mode") != "constant") {
    json_fail(call.option<Json>("mode"), call.path_of("mode"), "\"constant\"");
  }
  const auto value = json_as<std::optional<double>>(call.argument("constant_values"),
                                                    call.path_of("constant_values"));
  const bool one_for_all = width.size() == 1;
  for (int64_t a = 0; a < x.rank(); ++a) {
    const size_t at = one_for_all ? 0 : size_t(a);
    if (at >= width.size() || width[at].size() != 2) {
      json_fail(call.option<Json>("pad_width"), call.path_of("pad_width"), "a pair for each axis");
    }
    const int64_t before = width[at][0], after = width[at][1];
    if (before || after) x = ops::pad(x, a, before, after, value.value_or(0));
  }
  return x;
}

std::vector<DTensor> split_sections(const OperationCall& call) {
  const DTensor x = call.tensor("x");
  const int64_t axis = normalize_axis(call.option<int64_t>("axis"), x.rank(), "split");
  const auto sections = call.option<Json>("indices_or_sections");
  if (!sections.is_array()) {
    const auto count = call.option<int64_t>("indices_or_sections");
    check_slice_count(count, call.path_of("indices_or_sections"));
    return ops::split(x, count, axis);
  }
  std::vector<int64_t> ends = call.option<std::vector<int64_t>>("indices_or_sections");
  ends.push_back(x.size(axis));
  std::vector<DTensor> slices;
  int64_t begin = 0;
  for (int64_t end : ends) {
    end = std::clamp(end < 0 ? end + x.size(axis) : end, begin, x.size(axis));
    slices.push_back(ops::slice(x, axis, begin, end - begin));
    begin = end;
  }
  return slices;
}

std::vector<DTensor> unstacked(const OperationCall& call) {
  const DTensor x = call.tensor("x");
  const int64_t axis = normalize_axis(call.option<int64_t>("axis"), x.rank(), "unstack");
  check_slice_count(x.size(axis), call.path_of("axis"));
  return ops::unstack(x, axis);
}

/// Repeats each element of the flattened tensor, or each slice of an axis.
DTensor repeated(const OperationCall& call) {
  const DTensor x = call.tensor("x");
  const auto axis = call.option<std::optional<int64_t>>("axis");
  const DTensor from = axis ? x : ops::flatten(x);
  const int64_t along = normalize_axis(axis.value_or(0), from.rank(), "repeat");
  std::vector<int64_t> repeats(static_cast<size_t>(from.rank() + 1), 1);
  repeats[size_t(along) + 1] = call.option<int64_t>("repeats");
  Shape shape = from.shape();
  shape[size_t(along)] *= repeats[size_t(along) + 1];
  return ops::reshape(ops::tile(ops::expand_dims(from, along + 1), repeats), shape);
}

DTensor tiled(const OperationCall& call) {
  DTensor x = call.tensor("x");
  std::vector<int64_t> repeats = call.axes("repeats");
  while (static_cast<int64_t>(repeats.size()) < x.rank()) repeats.insert(repeats.begin(), 1);
  while (x.rank() < static_cast<int64_t>(repeats.size())) x = ops::expand_dims(x, 0);
  return ops::tile(x, repeats);
}

/// Makes Pad, whose value is a named argument of the call.
GraphOperation numpy_pad() {
  GraphOperation pad = make_operation("Pad", numpy, {"x", "constant_values"},
                                      {{"pad_width", nullptr}, {"mode", "constant"}}, padded);
  pad.named = {{"constant_values", nullptr}};
  return pad;
}

}  // namespace

std::vector<GraphOperation> shape_operations() {
  using Call = const OperationCall&;
  return {
      make_operation(
          "Reshape", numpy, {"x"}, {{"newshape", nullptr}},
          [](Call call) { return ops::reshape(call.tensor("x"), shape_option(call, "newshape")); }),
      make_operation("Transpose", numpy, {"x"}, {{"axes", nullptr}},
                     [](Call call) { return ops::transpose(call.tensor("x"), call.axes("axes")); }),
      make_operation("Swapaxes", numpy, {"x"}, {{"axis1", nullptr}, {"axis2", nullptr}}, swapped),
      make_operation("Moveaxis", numpy, {"x"}, {{"source", nullptr}, {"destination", nullptr}},
                     moved),
      make_operation("ExpandDims", numpy, {"x"}, {{"axis", nullptr}},
                     [](Call call) {
                       DTensor x = call.tensor("x");
                       std::vector<int64_t> axes = call.axes("axis");
                       const auto rank = x.rank() + static_cast<int64_t>(axes.size());
                       for (int64_t& axis : axes) axis = normalize_axis(axis, rank, "expand_dims");
                       std::sort(axes.begin(), axes.end());
                       for (const int64_t axis : axes) x = ops::expand_dims(x, axis);
                       return x;
                     }),
      make_operation("Squeeze", numpy, {"x"}, {{"axis", nullptr}}, squeezed),
      make_operation("Concatenate", numpy, {"xs"}, {{"axis", 0}},
                     [](Call call) {
                       return ops::concat(call.promoted_list("xs"), call.option<int64_t>("axis"));
                     }),
      make_operation("Stack", numpy, {"x"}, {{"axis", 0}},
                     [](Call call) {
                       return ops::stack(call.promoted_list("x"), call.option<int64_t>("axis"));
                     }),
      make_operation("Tile", numpy, {"x"}, {{"repeats", nullptr}}, tiled),
      make_operation("Repeat", numpy, {"x"}, {{"repeats", nullptr}, {"axis", nullptr}}, repeated),
      numpy_pad(),
      make_operation("Roll", numpy, {"x"}, {{"shift", nullptr}, {"axis", nullptr}},
                     [](Call call) {
                       return ops::roll(call.tensor("x"), call.axes("shift"), call.axes("axis"));
                     }),
      make_operation("Flip", numpy, {"x"}, {{"axis", nullptr}},
                     [](Call call) { return ops::flip(call.tensor("x"), call.axes("axis")); }),
      {"Split", numpy, {"x"}, {{"indices_or_sections", nullptr}, {"axis", 0}}, split_sections},
      {"Unstack", core, {"x"}, {{"num", nullptr}, {"axis", 0}}, unstacked},
  };
}

}  // namespace tessera::detail
