#include <tessera/framework/graph/operations/operation.hpp>
#include <tessera/framework/nn/activations/activation_functions.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera::detail {
namespace {

/// Returns the dtype that the option names; the input's own for null.
at::ScalarType dtype_option(const OperationCall& call) {
  const auto name = call.option<std::optional<std::string>>("dtype");
  if (!name) return call.tensor("x").dtype();
  if (const auto dtype = dtype_of_name(*name)) return *dtype;
  json_fail(*name, call.path_of("dtype"), "a supported dtype");
}

/// Returns a tensor filled with `value`, with the input's shape and layout.
DTensor filled_like(const OperationCall& call, double value) {
  const DTensor x = call.tensor("x");
  return filled(x.shape(), value, dtype_option(call), x.layout().resolved());
}

DTensor clipped(const OperationCall& call) {
  return ops::clip(call.tensor("x"), call.option<double>("x_min"), call.option<double>("x_max"));
}

DTensor selected(const OperationCall& call) {
  const std::vector<DTensor> x = call.promoted({"x1", "x2"});
  return ops::where(call.tensor("condition", ReadIn::booleans), x[0], x[1]);
}

DTensor rounded(const OperationCall& call) {
  if (call.option<int64_t>("decimals") != 0) {
    json_fail(call.option<int64_t>("decimals"), call.path_of("decimals"), "0");
  }
  return ops::round(call.tensor("x"));
}

DTensor rectified(const OperationCall& call) {
  return activations::relu(
      call.tensor("x", ReadIn::floating), call.option<double>("negative_slope"),
      call.option<std::optional<double>>("max_value"), call.option<double>("threshold"));
}

DTensor above_threshold(const OperationCall& call) {
  return ops::threshold(call.tensor("x", ReadIn::floating), call.option<double>("threshold"),
                        call.option<double>("default_value"));
}

DTensor converted(const OperationCall& call) {
  return ops::cast(call.tensor("x"), dtype_option(call));
}

}  // namespace

std::vector<GraphOperation> elementwise_operations() {
  using Call = const OperationCall&;
  const Json dtype = {{"dtype", nullptr}};
  return {
      make_operation("Threshold", nn, {"x"}, {{"threshold", 0}, {"default_value", 0}},
                     above_threshold),
      make_operation("ReLU", "keras.src.activations.activations", {"x"},
                     {{"negative_slope", 0.0}, {"max_value", nullptr}, {"threshold", 0.0}},
                     rectified),
      make_operation("Round", numpy, {"x"}, {{"decimals", 0}}, rounded),
      make_operation("Clip", numpy, {"x"}, {{"x_min", nullptr}, {"x_max", nullptr}}, clipped),
      make_operation("Where", numpy, {"condition", "x1", "x2"}, Json::object(), selected),
      make_operation("OnesLike", numpy, {"x"}, dtype,
                     [](Call call) { return filled_like(call, 1); }),
      make_operation("ZerosLike", numpy, {"x"}, dtype,
                     [](Call call) { return filled_like(call, 0); }),
      make_operation("Cast", core, {"x"}, {{"dtype", "float32"}}, converted),
      make_operation("ConvertToTensor", core, {"x"},
                     {{"dtype", nullptr}, {"sparse", nullptr}, {"ragged", nullptr}}, converted),
  };
}

}  // namespace tessera::detail
