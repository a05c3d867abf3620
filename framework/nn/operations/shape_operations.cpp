#include <algorithm>
#include <numeric>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/operations/operation.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/base/shape.hpp>

namespace tessera::detail {
namespace {

/// More parts or places than a model has; a configuration must not fill memory.
constexpr int64_t most_parts = 1 << 20;

void check_parts(int64_t count, const JsonPath& path) {
  if (count > most_parts) json_fail(count, path, str("at most ", most_parts, " parts of an axis"));
}

/// Positions from `begin` in steps up to `end`, as Python's slices of an axis have them.
struct Range {
  int64_t begin, end, step;
};

Range range_of(const Json& slice, const JsonPath& path, int64_t extent) {
  JsonObject config(slice.at("config"), path.key("config"));
  const int64_t step = config.take_or<int64_t>("step", 1);
  const auto start = config.take_optional<int64_t>("start");
  const auto stop = config.take_optional<int64_t>("stop");
  config.finish();
  if (step == 0) json_fail(slice["config"], path, "a step that is not 0");
  const int64_t first = step > 0 ? 0 : -1, last = step > 0 ? extent : extent - 1;
  const auto clipped = [&](int64_t at) {
    return std::clamp(at < 0 ? at + extent : at, first, last);
  };
  return {start ? clipped(*start) : (step > 0 ? first : last),
          stop ? clipped(*stop) : (step > 0 ? last : first), step};
}

bool is_kind(const Json& json, const char* kind) {
  return json.is_object() && json.contains("class_name") && json["class_name"] == kind;
}

DTensor sliced(const OperationCall& call, const DTensor& x, int64_t axis, const Range& range) {
  const auto [begin, end, step] = range;
  if (step == 1) {
    const int64_t size = std::max<int64_t>(end - begin, 0);
    return begin == 0 && size == x.size(axis) ? x : ops::slice(x, axis, begin, size);
  }
  check_parts((end - begin) / step, call.place("key"));
  std::vector<int64_t> positions;
  for (int64_t at = begin; step > 0 ? at < end : at > end; at += step) positions.push_back(at);
  return ops::gather(x, call.constant(at::tensor(positions, at::kLong)), axis);
}

/// x[key], the key of places, slices, an ellipsis and nulls, which are new axes.
DTensor item(const OperationCall& call) {
  DTensor x = call.tensor("x");
  const JsonPath path = call.place("key");
  Json key = call.argument("key");
  if (!key.is_array()) key = Json::array({key});
  int64_t taken = 0;
  for (const Json& one : key) taken += one.is_number() || is_kind(one, "__slice__");
  if (taken > x.rank()) json_fail(key, path, str("at most ", x.rank(), " places and slices"));
  int64_t axis = 0;
  for (size_t i = 0; i < key.size(); ++i) {
    const JsonPath at = path.index(i);
    if (key[i].is_null()) {
      x = ops::expand_dims(x, axis++);
    } else if (is_kind(key[i], "__ellipsis__")) {
      axis = x.rank();
      for (size_t j = i + 1; j < key.size(); ++j) axis -= !key[j].is_null();
    } else if (is_kind(key[i], "__slice__")) {
      x = sliced(call, x, axis, range_of(key[i], at, x.size(axis)));
      ++axis;
    } else if (key[i].is_number_integer()) {
      const auto place = json_as<int64_t>(key[i], at);
      const int64_t extent = x.size(axis);
      if (place < -extent || place >= extent) {
        json_fail(key[i], at, str("a place on an axis of ", extent));
      }
      x = ops::squeeze(ops::slice(x, axis, place < 0 ? place + extent : place, 1), {axis});
    } else {
      json_fail(key[i], at, "a place, a slice, an ellipsis or null");
    }
  }
  return x;
}

/// A shape in which null or -1 is what the others leave.
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
    json_fail(call.option<Json>("mode"), call.place("mode"), "\"constant\"");
  }
  const auto value = json_as<std::optional<double>>(call.argument("constant_values"),
                                                    call.place("constant_values"));
  const bool one_for_all = width.size() == 1;
  for (int64_t a = 0; a < x.rank(); ++a) {
    const size_t at = one_for_all ? 0 : size_t(a);
    if (at >= width.size() || width[at].size() != 2) {
      json_fail(call.option<Json>("pad_width"), call.place("pad_width"), "a pair for each axis");
    }
    const int64_t before = width[at][0], after = width[at][1];
    if (before || after) x = ops::pad(x, a, before, after, value.value_or(0));
  }
  return x;
}

std::vector<DTensor> split_parts(const OperationCall& call) {
  const DTensor x = call.tensor("x");
  const int64_t axis = normalize_axis(call.option<int64_t>("axis"), x.rank(), "split");
  const auto sections = call.option<Json>("indices_or_sections");
  if (!sections.is_array()) {
    const auto count = call.option<int64_t>("indices_or_sections");
    check_parts(count, call.place("indices_or_sections"));
    return ops::split(x, count, axis);
  }
  std::vector<int64_t> ends = call.option<std::vector<int64_t>>("indices_or_sections");
  ends.push_back(x.size(axis));
  std::vector<DTensor> parts;
  int64_t begin = 0;
  for (int64_t end : ends) {
    end = std::clamp(end < 0 ? end + x.size(axis) : end, begin, x.size(axis));
    parts.push_back(ops::slice(x, axis, begin, end - begin));
    begin = end;
  }
  return parts;
}

/// Slices of an axis by number; numbers of the configuration count from the end if negative.
DTensor taken(const OperationCall& call) {
  const DTensor x = call.tensor("x");
  const Json& indices = call.argument("indices");
  const auto axis = call.option<std::optional<int64_t>>("axis");
  const DTensor from = axis ? x : ops::flatten(x);
  const int64_t along = normalize_axis(axis.value_or(0), from.rank(), "take");
  if (tensor_at(indices)) return ops::gather(from, call.tensor("indices"), along);
  const bool one = !indices.is_array();
  auto numbers = one ? std::vector{json_as<int64_t>(indices, call.place("indices"))}
                     : json_as<std::vector<int64_t>>(indices, call.place("indices"));
  for (int64_t& number : numbers) number += number < 0 ? from.size(along) : 0;
  const at::Tensor places = at::tensor(numbers, at::kLong);
  return ops::gather(from, call.constant(one ? places[0] : places), along);
}

/// Each element, or each slice of an axis, several times over.
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

GraphOperation shaping(const std::string& name, std::vector<std::string> arguments, Json options,
                  DTensor (*function)(const OperationCall&)) {
  return {name, numpy, std::move(arguments), std::move(options),
          [=](const OperationCall& call) { return std::vector{function(call)}; }};
}

DTensor one_hot(const OperationCall& call) {
  if (call.option<Json>("sparse") != false) {
    json_fail(call.option<Json>("sparse"), call.place("sparse"), "false");
  }
  const auto dtype = call.option<std::optional<std::string>>("dtype").value_or("float32");
  const DTensor y = ops::one_hot(call.tensor("x"), call.option<int64_t>("num_classes"));
  if (call.option<int64_t>("axis") != -1) {
    json_fail(call.option<Json>("axis"), call.place("axis"), "-1");
  }
  if (dtype != "float32") json_fail(dtype, call.place("dtype"), "\"float32\"");
  return y;
}

/// Its value is an argument of the call, by name.
GraphOperation numpy_pad() {
  GraphOperation pad = shaping("Pad", {"x", "constant_values"},
                          {{"pad_width", nullptr}, {"mode", "constant"}}, padded);
  pad.named = {{"constant_values", nullptr}};
  return pad;
}

}  // namespace

std::vector<GraphOperation> shape_operations() {
  using Call = const OperationCall&;
  std::vector<GraphOperation> all = {
      shaping("GetItem", {"x", "key"}, Json::object(), item),
      shaping("Reshape", {"x"}, {{"newshape", nullptr}}, [](Call call) {
        return ops::reshape(call.tensor("x"), shape_option(call, "newshape"));
      }),
      shaping("Transpose", {"x"}, {{"axes", nullptr}}, [](Call call) {
        return ops::transpose(call.tensor("x"), call.axes("axes"));
      }),
      shaping("Swapaxes", {"x"}, {{"axis1", nullptr}, {"axis2", nullptr}}, swapped),
      shaping("Moveaxis", {"x"}, {{"source", nullptr}, {"destination", nullptr}}, moved),
      shaping("ExpandDims", {"x"}, {{"axis", nullptr}}, [](Call call) {
        DTensor x = call.tensor("x");
        std::vector<int64_t> axes = call.axes("axis");
        const auto rank = x.rank() + static_cast<int64_t>(axes.size());
        for (int64_t& axis : axes) axis = normalize_axis(axis, rank, "expand_dims");
        std::sort(axes.begin(), axes.end());
        for (const int64_t axis : axes) x = ops::expand_dims(x, axis);
        return x;
      }),
      shaping("Squeeze", {"x"}, {{"axis", nullptr}}, squeezed),
      shaping("BroadcastTo", {"x"}, {{"shape", nullptr}}, [](Call call) {
        return ops::broadcast_to(call.tensor("x"), call.option<std::vector<int64_t>>("shape"));
      }),
      shaping("Concatenate", {"xs"}, {{"axis", 0}}, [](Call call) {
        return ops::concat(call.promoted_list("xs"), call.option<int64_t>("axis"));
      }),
      shaping("Stack", {"x"}, {{"axis", 0}}, [](Call call) {
        return ops::stack(call.promoted_list("x"), call.option<int64_t>("axis"));
      }),
      shaping("Tile", {"x"}, {{"repeats", nullptr}}, tiled),
      shaping("Repeat", {"x"}, {{"repeats", nullptr}, {"axis", nullptr}}, repeated),
      numpy_pad(),
      shaping("Take", {"x", "indices"}, {{"axis", nullptr}}, taken),
      shaping("Matmul", {"x1", "x2"}, Json::object(), [](Call call) {
        const std::vector<DTensor> x = call.promoted({"x1", "x2"});
        return ops::matmul(x[0], x[1]);
      }),
      {"OneHot", nn, {"x"},
       {{"num_classes", nullptr}, {"axis", -1}, {"dtype", nullptr}, {"sparse", false}},
       [](Call call) { return std::vector{one_hot(call)}; }},
      {"Split", numpy, {"x"}, {{"indices_or_sections", nullptr}, {"axis", 0}}, split_parts},
      {"Unstack", core, {"x"}, {{"num", nullptr}, {"axis", 0}}, [](Call call) {
         const DTensor x = call.tensor("x");
         const int64_t axis = normalize_axis(call.option<int64_t>("axis"), x.rank(), "unstack");
         check_parts(x.size(axis), call.place("axis"));
         return ops::unstack(x, axis);
       }},
  };
  return all;
}

}  // namespace tessera::detail
