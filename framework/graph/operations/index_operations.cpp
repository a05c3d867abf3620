#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/graph/operations/operation.hpp>
#include <tessera/framework/ops/ops.hpp>

namespace tessera::detail {
namespace {

/// A slice of an axis, as Python resolves it: from `begin` in steps, `end` excluded.
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
  check_slice_count((end - begin) / step, call.path_of("key"));
  std::vector<int64_t> positions;
  for (int64_t at = begin; step > 0 ? at < end : at > end; at += step) positions.push_back(at);
  return ops::gather(x, call.constant(at::tensor(positions, at::kLong)), axis);
}

/// Computes x[key]; the key has indices, slices, an ellipsis and nulls, which are new axes.
DTensor get_item(const OperationCall& call) {
  DTensor x = call.tensor("x");
  const JsonPath path = call.path_of("key");
  Json key = call.argument("key");
  if (!key.is_array()) key = Json::array({key});
  int64_t indexed_axes = 0;
  for (const Json& one : key) indexed_axes += one.is_number() || is_kind(one, "__slice__");
  if (indexed_axes > x.rank())
    json_fail(key, path, str("at most ", x.rank(), " indices and slices"));
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
      const auto index = json_as<int64_t>(key[i], at);
      const int64_t extent = x.size(axis);
      if (index < -extent || index >= extent) {
        json_fail(key[i], at, str("an index of an axis of extent ", extent));
      }
      x = ops::squeeze(ops::slice(x, axis, index < 0 ? index + extent : index, 1), {axis});
    } else {
      json_fail(key[i], at, "an index, a slice, an ellipsis or null");
    }
  }
  return x;
}

/// Gathers slices of an axis by index; negative indices in the configuration count from the end.
DTensor take_indices(const OperationCall& call) {
  const DTensor x = call.tensor("x");
  const Json& indices = call.argument("indices");
  const auto axis = call.option<std::optional<int64_t>>("axis");
  const DTensor from = axis ? x : ops::flatten(x);
  const int64_t along = normalize_axis(axis.value_or(0), from.rank(), "take");
  if (tensor_at(indices)) return ops::gather(from, call.tensor("indices"), along);
  const bool one = !indices.is_array();
  auto numbers = one ? std::vector{json_as<int64_t>(indices, call.path_of("indices"))}
                     : json_as<std::vector<int64_t>>(indices, call.path_of("indices"));
  for (int64_t& number : numbers) number += number < 0 ? from.size(along) : 0;
  const at::Tensor positions = at::tensor(numbers, at::kLong);
  return ops::gather(from, call.constant(one ? positions[0] : positions), along);
}

/// Gathers elements along an axis, or from the flattened tensor.
DTensor take_along(const OperationCall& call) {
  const DTensor x = call.tensor("x");
  const auto axis = call.option<std::optional<int64_t>>("axis");
  return ops::take_along_axis(axis ? x : ops::flatten(x), call.tensor("indices"), axis.value_or(0));
}

DTensor one_hot(const OperationCall& call) {
  if (call.option<Json>("sparse") != false) {
    json_fail(call.option<Json>("sparse"), call.path_of("sparse"), "false");
  }
  const auto dtype = call.option<std::optional<std::string>>("dtype").value_or("float32");
  DTensor y = ops::one_hot(call.tensor("x"), call.option<int64_t>("num_classes"));
  if (call.option<int64_t>("axis") != -1) {
    json_fail(call.option<Json>("axis"), call.path_of("axis"), "-1");
  }
  if (dtype != "float32") json_fail(dtype, call.path_of("dtype"), "\"float32\"");
  return y;
}

}  // namespace

std::vector<GraphOperation> index_operations() {
  return {
      make_operation("GetItem", numpy, {"x", "key"}, Json::object(), get_item),
      make_operation("Take", numpy, {"x", "indices"}, {{"axis", nullptr}}, take_indices),
      make_operation("TakeAlongAxis", numpy, {"x", "indices"}, {{"axis", nullptr}}, take_along),
      make_operation(
          "OneHot", nn, {"x"},
          {{"num_classes", nullptr}, {"axis", -1}, {"dtype", nullptr}, {"sparse", false}}, one_hot),
  };
}

}  // namespace tessera::detail
