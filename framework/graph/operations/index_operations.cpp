#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/graph/operations/operation.hpp>
#include <tessera/framework/ops/internal/indexing.hpp>
#include <tessera/framework/ops/ops.hpp>

namespace tessera::detail {
namespace {

bool is_kind(const Json& json, const char* kind) {
  return json.is_object() && json.contains("class_name") && json["class_name"] == kind;
}

IndexItem item_of(const Json& json, const JsonPath& path) {
  using Kind = IndexItem::Kind;
  if (json.is_null()) return {.kind = Kind::new_axis};
  if (is_kind(json, "__ellipsis__")) return {.kind = Kind::ellipsis};
  if (json.is_number_integer()) return {.kind = Kind::index, .index = json_as<int64_t>(json, path)};
  if (!is_kind(json, "__slice__")) {
    json_fail(json, path, "an index, a slice, an ellipsis or null");
  }
  JsonObject config(json.at("config"), path.key("config"));
  const IndexItem item{.kind = Kind::slice,
                       .start = config.take_optional<int64_t>("start"),
                       .stop = config.take_optional<int64_t>("stop"),
                       .step = config.take_optional<int64_t>("step")};
  config.finish();
  return item;
}

/// Computes x[key]; the key has indices, slices, an ellipsis and nulls, which are new axes.
DTensor get_item(const OperationCall& call) {
  const JsonPath path = call.path_of("key");
  Json key = call.argument("key");
  if (!key.is_array()) key = Json::array({key});
  std::vector<IndexItem> items;
  for (size_t i = 0; i < key.size(); ++i) items.push_back(item_of(key[i], path.index(i)));
  return indexed(call.tensor("x"), items, path.text());
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
