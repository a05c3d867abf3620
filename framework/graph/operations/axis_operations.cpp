
#include <tessera/framework/graph/operations/operation.hpp>
#include <tessera/framework/nn/activations/activation_functions.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera::detail {
namespace {

using Reduction = DTensor (*)(const DTensor&, const ops::Axes&, bool);
using Along = DTensor (*)(const DTensor&, int64_t);

/// The dtype to reduce in: numbers in their own dtype (bool as int32), floating, or bool.
enum class ReduceIn { numbers, floating, booleans };

DTensor value_of(const OperationCall& call, ReduceIn kind) {
  if (kind == ReduceIn::floating) return call.floating("x");
  const DTensor x = call.tensor("x");
  const bool is_bool = x.dtype() == at::kBool;
  if (kind == ReduceIn::booleans) {
    return is_bool ? x : ops::not_equal(x, scalar(0, x.mesh(), x.dtype()));
  }
  return is_bool ? ops::cast(x, at::kInt) : x;
}

GraphOperation reduction(const std::string& name, const std::string& module, ReduceIn kind,
                         Reduction function, const Json& more = Json::object()) {
  Json options = {{"axis", nullptr}, {"keepdims", false}};
  options.update(more);
  return {name, module, {"x"}, options, [=](const OperationCall& call) {
            for (const auto& [key, value] : more.items()) {
              const auto actual = call.option<Json>(key);
              if (!actual.is_null()) json_fail(actual, call.path_of(key), "null");
            }
            return std::vector{
                function(value_of(call, kind), call.axes("axis"), call.option<bool>("keepdims"))};
          }};
}

DTensor deviation(const DTensor& x, const ops::Axes& axes, bool keepdims) {
  // The variance in float16 overflows at a deviation of 256.
  const DTensor wide = widened(x);
  return ops::cast(ops::sqrt(ops::variance(wide, axes, keepdims)), x.dtype());
}

/// Makes an operation of floating-point input along one axis (default: the last).
GraphOperation along(const std::string& name, Along function) {
  return {name, nn, {"x"}, {{"axis", -1}}, [=](const OperationCall& call) {
            return std::vector{function(call.floating("x"), call.option<int64_t>("axis"))};
          }};
}

/// Makes an argmax or argmin along one axis, or over the flattened tensor.
GraphOperation arg_reduction(const std::string& name, Along function) {
  return {
      name, numpy, {"x"}, {{"axis", nullptr}, {"keepdims", false}}, [=](const OperationCall& call) {
        const DTensor x = value_of(call, ReduceIn::numbers);
        const auto axis = call.option<std::optional<int64_t>>("axis");
        DTensor index = axis ? function(x, *axis) : function(ops::flatten(x), 0);
        if (call.option<bool>("keepdims")) {
          index = axis ? ops::expand_dims(index, *axis < 0 ? *axis + x.rank() : *axis)
                       : ops::reshape(index, Shape(size_t(x.rank()), 1));
        }
        return std::vector{ops::cast(index, at::kInt)};
      }};
}

/// Computes cumulative sums along an axis, or over the flattened tensor.
DTensor cumulative_sum(const OperationCall& call) {
  DTensor x = value_of(call, ReduceIn::numbers);
  if (const auto name = call.option<std::optional<std::string>>("dtype")) {
    const auto dtype = dtype_of_name(*name);
    if (!dtype || *dtype == at::kBool) json_fail(*name, call.path_of("dtype"), "a numeric dtype");
    x = ops::cast(x, *dtype);
  }
  const auto axis = call.option<std::optional<int64_t>>("axis");
  return axis ? ops::cumsum(x, *axis) : ops::cumsum(ops::flatten(x), 0);
}

/// Computes top_k, always sorted; Keras leaves the order open for sorted=False.
std::vector<DTensor> sorted_top_k(const OperationCall& call) {
  call.option<bool>("sorted");
  const auto [values, indices] = ops::top_k(call.tensor("x"), call.option<int64_t>("k"));
  return {values, ops::cast(indices, at::kInt)};
}

}  // namespace

std::vector<GraphOperation> axis_operations() {
  const Json initial = {{"initial", nullptr}}, dtype = {{"dtype", nullptr}};
  return {
      reduction("Sum", numpy, ReduceIn::numbers, ops::sum),
      reduction("Mean", numpy, ReduceIn::floating, ops::mean),
      reduction("Max", numpy, ReduceIn::numbers, ops::max, initial),
      reduction("Min", numpy, ReduceIn::numbers, ops::min, initial),
      reduction("Prod", numpy, ReduceIn::numbers, ops::prod, dtype),
      reduction("Var", numpy, ReduceIn::floating, ops::variance),
      reduction("Std", numpy, ReduceIn::floating, deviation),
      reduction("All", numpy, ReduceIn::booleans, ops::all),
      reduction("Any", numpy, ReduceIn::booleans, ops::any),
      reduction("Logsumexp", math, ReduceIn::floating, ops::logsumexp),
      arg_reduction("Argmax", ops::argmax),
      arg_reduction("Argmin", ops::argmin),
      numpy_operation("Cumsum", {"x"}, {{"axis", nullptr}, {"dtype", nullptr}}, cumulative_sum),
      {"TopK", math, {"x"}, {{"k", nullptr}, {"sorted", true}}, sorted_top_k},
      along("Softmax", ops::softmax),
      along("LogSoftmax", ops::log_softmax),
      along("Sparsemax", ops::sparsemax),
      along("Glu", activations::glu),
  };
}

}  // namespace tessera::detail
