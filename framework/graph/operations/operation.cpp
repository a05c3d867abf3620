#include <tessera/framework/graph/operations/operation.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/nn/array_option.hpp>
#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>

namespace tessera::detail {
namespace {

const std::map<std::string, GraphOperation>& operation_table() {
  static const auto table = [] {
    std::map<std::string, GraphOperation> all;
    for (auto* make : {regular_operations, elementwise_operations, axis_operations,
                       index_operations, product_operations, shape_operations}) {
      for (GraphOperation& one : make()) all.emplace(one.class_name, std::move(one));
    }
    return all;
  }();
  return table;
}

/// Returns a constant array in the configuration; undefined for other JSON.
at::Tensor array_of(const Json& json, const JsonPath& path) {
  if (!json.is_object() || !json.contains("class_name")) return {};
  if (json["class_name"] != "__tensor__" && json["class_name"] != "__numpy__") return {};
  JsonObject array(json, path);
  JsonObject config = array.take_object("config");
  const auto value = config.take<ArrayOption>("value");
  const auto dtype = dtype_of_name(config.take<std::string>("dtype"));
  if (!dtype || !value.defined()) json_fail(json["config"], path, "an array of a supported dtype");
  return value.tensor().to(*dtype);
}

/// Returns the dtype after promotion with a number; a bool does not change it.
at::ScalarType promote_with_number(at::ScalarType dtype, const Json& number) {
  if (number.is_number_float() && !at::isFloatingType(dtype)) return at::kFloat;
  if (number.is_number_integer() && dtype == at::kBool) return at::kInt;
  return dtype;
}

}  // namespace

GraphOperation make_operation(const std::string& class_name, const std::string& module,
                              std::vector<std::string> arguments, Json options,
                              std::function<DTensor(const OperationCall&)> function) {
  return {class_name, module, std::move(arguments), std::move(options),
          [function = std::move(function)](const OperationCall& call) {
            return std::vector{function(call)};
          }};
}

void check_slice_count(int64_t count, const JsonPath& path) {
  constexpr int64_t max_slices = 1 << 20;
  if (count > max_slices) json_fail(count, path, str("at most ", max_slices, " slices of an axis"));
}

Json tensor_placeholder(size_t number) { return {{"tensor", number}}; }

std::optional<size_t> tensor_at(const Json& json) {
  if (!json.is_object() || json.size() != 1 || !json.contains("tensor")) return std::nullopt;
  return json["tensor"].get<size_t>();
}

std::optional<at::ScalarType> dtype_of_name(const std::string& name) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kByte,
                                     at::kInt, at::kLong, at::kBool}) {
    if (name == dtype_name(dtype)) return dtype;
  }
  return std::nullopt;
}

DTensor read_in(ReadIn dtype, const DTensor& x) {
  if (dtype == ReadIn::floating && !at::isFloatingType(x.dtype())) return ops::cast(x, at::kFloat);
  if (dtype == ReadIn::numbers && x.dtype() == at::kBool) return ops::cast(x, at::kInt);
  if (dtype == ReadIn::booleans && x.dtype() != at::kBool) {
    return ops::not_equal(x, scalar(0, x.mesh(), x.dtype()));
  }
  return x;
}

Json axes_option(const std::vector<int64_t>& axes) {
  return axes.empty() ? Json() : axes_json(axes);
}

const GraphOperation* find_operation(const std::string& class_name) {
  const auto found = operation_table().find(class_name);
  return found == operation_table().end() ? nullptr : &found->second;
}

std::vector<int64_t> OperationCall::axes(const std::string& name) const {
  const Json& json = options_.at(name);
  if (json.is_null()) return {};
  if (!json.is_array()) return {option<int64_t>(name)};
  return option<std::vector<int64_t>>(name);
}

const Json& OperationCall::argument(const std::string& name) const {
  static const Json none;
  const auto found = arguments_.find(name);
  return found == arguments_.end() ? none : found->second;
}

DTensor OperationCall::tensor(const Json& json, const JsonPath& path) const {
  if (const auto number = tensor_at(json)) return tensors_[*number];
  if (const at::Tensor array = array_of(json, path); array.defined()) return constant(array);
  json_fail(json, path, "a tensor");
}

DTensor OperationCall::tensor(const std::string& name, ReadIn dtype) const {
  return read_in(dtype, tensor(argument(name), path_of(name)));
}

std::vector<DTensor> OperationCall::promoted_values(
    const std::vector<std::pair<Json, JsonPath>>& values) const {
  std::optional<at::ScalarType> dtype;
  for (const auto& [json, path] : values) {
    const bool number = json.is_number() || json.is_boolean();
    if (number) continue;
    const at::ScalarType own = tensor(json, path).dtype();
    dtype = dtype ? c10::promoteTypes(*dtype, own) : own;
  }
  if (!dtype) {
    json_fail(values[0].first, values[0].second, "a tensor, since no other argument is one");
  }
  for (const auto& [json, path] : values) dtype = promote_with_number(*dtype, json);
  std::vector<DTensor> list;
  for (const auto& [json, path] : values) {
    if (json.is_number() || json.is_boolean()) {
      const double number = json.is_boolean() ? double(json.get<bool>()) : json.get<double>();
      list.push_back(scalar(number, tensors_[0].mesh(), *dtype));
    } else {
      list.push_back(ops::cast(tensor(json, path), *dtype));
    }
  }
  return list;
}

std::vector<DTensor> OperationCall::promoted(const std::vector<std::string>& names) const {
  std::vector<std::pair<Json, JsonPath>> values;
  values.reserve(names.size());
  for (const std::string& name : names) values.emplace_back(argument(name), path_of(name));
  return promoted_values(values);
}

std::vector<DTensor> OperationCall::promoted_list(const std::string& name) const {
  const Json& list = argument(name);
  if (!list.is_array() || list.empty()) json_fail(list, path_of(name), "a list of tensors");
  std::vector<std::pair<Json, JsonPath>> values;
  for (size_t i = 0; i < list.size(); ++i) values.emplace_back(list[i], path_of(name).index(i));
  return promoted_values(values);
}

DTensor OperationCall::constant(const at::Tensor& values) const {
  const Layout layout = Layout::replicated(tensors_[0].mesh(), values.dim());
  if (is_abstract()) return filled(values.sizes().vec(), 0, values.scalar_type(), layout);
  return pack(values, layout);
}

}  // namespace tessera::detail
