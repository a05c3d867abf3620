#include <tessera/framework/graph/operations/operation_layer.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/graph/symbolic_ops.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>

namespace tessera::detail {
namespace {

/// Stand-ins for unknown extents: output extents that differ between the two are unknown. They have
/// many divisors, so that reshapes succeed.
constexpr int64_t unknown_extent = 5040, other_unknown_extent = 7560;

std::string name_in(const Json& config) {
  const bool named = config.is_object() && config.contains("name") && config["name"].is_string();
  return named ? config["name"].get<std::string>() : "";
}

/// Returns the operation's options, overridden by the configuration.
Json options_from(const GraphOperation& operation, const Json& config, const JsonPath& where) {
  JsonObject fields(config, where);
  Json options = operation.options;
  fields.take_or<std::string>("name", "");
  // Some versions of Keras write it, but it does not affect the result.
  fields.take_or<Json>("dtype_policy", {});
  for (auto& [key, value] : options.items()) {
    if (fields.has(key)) value = fields.take<Json>(key);
  }
  fields.finish();
  return options;
}

OperationCall::Arguments bind(const GraphOperation& operation, const OperationArguments& arguments,
                              const JsonPath& where) {
  const auto& names = operation.arguments;
  OperationCall::Arguments bound;
  for (size_t i = 0; i < arguments.args.size(); ++i) {
    if (i >= names.size()) {
      json_fail(arguments.args[i], where.key("args").index(i),
                str("absent: ", operation.class_name, " takes ", names.size(), " arguments"));
    }
    bound.emplace(names[i], arguments.args[i]);
  }
  for (const auto& [key, value] : arguments.kwargs.items()) {
    const bool known = std::find(names.begin(), names.end(), key) != names.end();
    if (known && bound.emplace(key, value).second) continue;
    json_fail(value, where.key("kwargs").key(key),
              str("that of an argument of ", operation.class_name, ", given only once"));
  }
  return bound;
}

}  // namespace

OperationLayer::OperationLayer(const GraphOperation& operation, const Json& config,
                               OperationArguments arguments, std::vector<at::ScalarType> dtypes,
                               const JsonPath& where)
    : Layer({.name = name_in(config)}),
      operation_(operation),
      options_(options_from(operation, config, where.key("config"))),
      arguments_(std::move(arguments)),
      bound_(bind(operation, arguments_, where)),
      dtypes_(std::move(dtypes)) {}

Json OperationLayer::config() const {
  Json json = {{"name", name()}};
  json.update(options_);
  return json;
}

std::vector<DTensor> OperationLayer::run(const Inputs& inputs) const {
  return operation_.run(OperationCall(class_name() + " " + path(), options_, bound_, inputs));
}

std::vector<DTensor> OperationLayer::planned(Shapes inputs, int64_t unknown) const {
  const NoRecording no_recording;
  const AbstractScope plans_only(default_mesh());
  Inputs planned;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::replace(inputs[i].begin(), inputs[i].end(), int64_t{-1}, unknown);
    planned.push_back(filled(inputs[i], 0, dtypes_[i]));
  }
  return run(planned);
}

Shapes OperationLayer::output_shapes(const Shapes& inputs) const {
  const std::vector<DTensor> outputs = planned(inputs, unknown_extent);
  const std::vector<DTensor> others = planned(inputs, other_unknown_extent);
  Shapes shapes;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Shape shape = outputs[i].shape();
    for (size_t a = 0; a < shape.size(); ++a) {
      if (shape[a] != others[i].shape()[a]) shape[a] = -1;
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

std::vector<at::ScalarType> OperationLayer::symbolic_dtypes(const Shapes& inputs, size_t) const {
  std::vector<at::ScalarType> dtypes;
  for (const DTensor& output : planned(inputs, unknown_extent)) dtypes.push_back(output.dtype());
  return dtypes;
}

std::vector<DTensor> OperationLayer::call_all(const Inputs& inputs, const CallContext&) {
  Inputs plain;
  for (const DTensor& input : inputs) plain.push_back(input.with_mask({}));
  return run(plain);
}

std::vector<SymbolicTensor> operation_outputs(const std::string& class_name,
                                              const std::vector<SymbolicOperand>& args,
                                              const Json& options) {
  std::vector<SymbolicTensor> tensors;
  std::vector<at::ScalarType> dtypes;
  OperationArguments arguments;
  const auto placeholder = [&](const SymbolicTensor& tensor) {
    if (!tensor.defined()) {
      throw StateError(class_name, "arguments must be tensors of a model",
                       "an empty SymbolicTensor", "start from Input()");
    }
    tensors.push_back(tensor);
    dtypes.push_back(tensor.dtype());
    return tensor_placeholder(tensors.size() - 1);
  };
  for (const SymbolicOperand& arg : args) {
    if (arg.is_list) {
      Json list = Json::array();
      for (const SymbolicTensor& tensor : arg.tensors) list.push_back(placeholder(tensor));
      arguments.args.push_back(std::move(list));
    } else {
      arguments.args.push_back(arg.tensors.empty() ? arg.value : placeholder(arg.tensors[0]));
    }
  }
  const GraphOperation& operation = *find_operation(class_name);
  arguments.kwargs = operation.named;
  Json config = options;
  // Moves the options that Keras writes among the call's arguments.
  for (auto& [key, value] : arguments.kwargs.items()) {
    if (!config.contains(key)) continue;
    value = config[key];
    config.erase(key);
  }
  const auto layer = std::make_shared<OperationLayer>(operation, config, std::move(arguments),
                                                      std::move(dtypes), JsonPath(class_name));
  return Layer::outputs(layer, tensors);
}

}  // namespace tessera::detail
