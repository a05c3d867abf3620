#include <tessera/framework/graph/operations/operation.hpp>
#include <tessera/framework/nn/activations/activation_functions.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera::detail {
namespace {

using Reduction = DTensor (*)(const DTensor&, const ops::Axes&, bool);
using Along = DTensor (*)(const DTensor&, int64_t);

/// What is reduced: numbers as they are, or as floating ones, or truth values.
enum class Of { numbers, floating, truths };

DTensor value_of(const OperationCall& call, Of kind) {
  if (kind == Of::floating) return call.floating("x");
  const DTensor x = call.tensor("x");
  const bool truth = x.dtype() == at::kBool;
  if (kind == Of::truths) {
    return truth ? x : ops::not_equal(x, scalar(0, x.mesh(), x.dtype()));
  }
  return truth ? ops::cast(x, at::kInt) : x;
}

GraphOperation reduction(const std::string& name, const std::string& module, Of kind,
                         Reduction function, const Json& more = Json::object()) {
  Json options = {{"axis", nullptr}, {"keepdims", false}};
  options.update(more);
  return {name, module, {"x"}, options, [=](const OperationCall& call) {
            for (const auto& [key, value] : more.items()) {
              const auto given = call.option<Json>(key);
              if (!given.is_null()) json_fail(given, call.place(key), "null");
            }
            return std::vector{
                function(value_of(call, kind), call.axes("axis"), call.option<bool>("keepdims"))};
          }};
}

DTensor deviation(const DTensor& x, const ops::Axes& axes, bool keepdims) {
  return ops::sqrt(ops::variance(x, axes, keepdims));
}

/// Functions of floating numbers along one axis, the last one if none is given.
GraphOperation along(const std::string& name, Along function) {
  return {name, nn, {"x"}, {{"axis", -1}}, [=](const OperationCall& call) {
            return std::vector{function(call.floating("x"), call.option<int64_t>("axis"))};
          }};
}

/// The place of the largest or smallest number along one axis, or in all.
GraphOperation place_of(const std::string& name, Along function) {
  return {
      name, numpy, {"x"}, {{"axis", nullptr}, {"keepdims", false}}, [=](const OperationCall& call) {
        const DTensor x = value_of(call, Of::numbers);
        const auto axis = call.option<std::optional<int64_t>>("axis");
        DTensor place = axis ? function(x, *axis) : function(ops::flatten(x), 0);
        if (call.option<bool>("keepdims")) {
          place = axis ? ops::expand_dims(place, *axis < 0 ? *axis + x.rank() : *axis)
                       : ops::reshape(place, Shape(size_t(x.rank()), 1));
        }
        return std::vector{ops::cast(place, at::kInt)};
      }};
}

/// Sums up to each number of an axis, or of all.
DTensor running_sum(const OperationCall& call) {
  DTensor x = value_of(call, Of::numbers);
  if (const auto name = call.option<std::optional<std::string>>("dtype")) {
    const auto dtype = dtype_of_name(*name);
    if (!dtype || *dtype == at::kBool) json_fail(*name, call.place("dtype"), "a dtype of numbers");
    x = ops::cast(x, *dtype);
  }
  const auto axis = call.option<std::optional<int64_t>>("axis");
  return axis ? ops::cumsum(x, *axis) : ops::cumsum(ops::flatten(x), 0);
}

/// Always sorted, which Keras leaves open where it is not asked for.
std::vector<DTensor> largest(const OperationCall& call) {
  call.option<bool>("sorted");
  const auto [values, places] = ops::top_k(call.tensor("x"), call.option<int64_t>("k"));
  return {values, ops::cast(places, at::kInt)};
}

}  // namespace

std::vector<GraphOperation> axis_operations() {
  const Json initial = {{"initial", nullptr}}, dtype = {{"dtype", nullptr}};
  return {
      reduction("Sum", numpy, Of::numbers, ops::sum),
      reduction("Mean", numpy, Of::floating, ops::mean),
      reduction("Max", numpy, Of::numbers, ops::max, initial),
      reduction("Min", numpy, Of::numbers, ops::min, initial),
      reduction("Prod", numpy, Of::numbers, ops::prod, dtype),
      reduction("Var", numpy, Of::floating, ops::variance),
      reduction("Std", numpy, Of::floating, deviation),
      reduction("All", numpy, Of::truths, ops::all),
      reduction("Any", numpy, Of::truths, ops::any),
      reduction("Logsumexp", math, Of::floating, ops::logsumexp),
      place_of("Argmax", ops::argmax),
      place_of("Argmin", ops::argmin),
      numpy_operation("Cumsum", {"x"}, {{"axis", nullptr}, {"dtype", nullptr}}, running_sum),
      {"TopK", math, {"x"}, {{"k", nullptr}, {"sorted", true}}, largest},
      along("Softmax", ops::softmax),
      along("LogSoftmax", ops::log_softmax),
      along("Sparsemax", ops::sparsemax),
      along("Glu", activations::glu),
  };
}

}  // namespace tessera::detail
