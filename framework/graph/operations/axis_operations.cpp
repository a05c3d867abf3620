#include <tessera/framework/graph/operations/operation.hpp>
#include <tessera/framework/ops/ops.hpp>

namespace tessera::detail {
namespace {

using Along = DTensor (*)(const DTensor&, int64_t);

/// Makes an argmax or argmin along one axis, or over the flattened tensor.
GraphOperation arg_reduction(const std::string& name, Along function) {
  return make_operation(
      name, numpy, {"x"}, {{"axis", nullptr}, {"keepdims", false}}, [=](const OperationCall& call) {
        const DTensor x = call.tensor("x", ReadIn::numbers);
        const auto axis = call.option<std::optional<int64_t>>("axis");
        DTensor index = axis ? function(x, *axis) : function(ops::flatten(x), 0);
        if (call.option<bool>("keepdims")) {
          index = axis ? ops::expand_dims(index, *axis < 0 ? *axis + x.rank() : *axis)
                       : ops::reshape(index, Shape(size_t(x.rank()), 1));
        }
        return ops::cast(index, at::kInt);
      });
}

/// Computes cumulative sums along an axis, or over the flattened tensor.
DTensor cumulative_sum(const OperationCall& call) {
  DTensor x = call.tensor("x", ReadIn::numbers);
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
  return {
      arg_reduction("Argmax", ops::argmax),
      arg_reduction("Argmin", ops::argmin),
      make_operation("Cumsum", numpy, {"x"}, {{"axis", nullptr}, {"dtype", nullptr}},
                     cumulative_sum),
      {"TopK", math, {"x"}, {{"k", nullptr}, {"sorted", true}}, sorted_top_k},
  };
}

}  // namespace tessera::detail
