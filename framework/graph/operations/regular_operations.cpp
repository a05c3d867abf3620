#include <type_traits>

#include <tessera/framework/graph/operations/operation.hpp>
#include <tessera/framework/graph/symbolic_ops.hpp>
#include <tessera/framework/nn/activations/activation_functions.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/ops.hpp>

// The table of operations that call one function of `ops`. Each row makes the operation, under
// Keras' name, and the function on symbolic tensors, which symbolic_ops.hpp declares:
//   UNARY(function, Keras' class and module, the ReadIn of its tensor)
//   BINARY(function, class, ReadIn), of tensors or numbers, which are promoted to one dtype
//   OPTION(function, class, module, ReadIn, type of the option, its name and default in Keras)
//   REDUCTION(function, class, module, ReadIn, name of a further option, which must be null)
#define REGULAR_OPERATIONS(UNARY, BINARY, OPTION, REDUCTION)                      \
  UNARY(neg, "Negative", numpy, own)                                              \
  UNARY(abs, "Absolute", numpy, own)                                              \
  UNARY(sign, "Sign", numpy, own)                                                 \
  UNARY(square, "Square", numpy, own)                                             \
  UNARY(stop_gradient, "StopGradient", core, own)                                 \
  UNARY(exp, "Exp", numpy, floating)                                              \
  UNARY(expm1, "Expm1", numpy, floating)                                          \
  UNARY(log, "Log", numpy, floating)                                              \
  UNARY(log1p, "Log1p", numpy, floating)                                          \
  UNARY(sqrt, "Sqrt", numpy, floating)                                            \
  UNARY(rsqrt, "Rsqrt", math, floating)                                           \
  UNARY(reciprocal, "Reciprocal", numpy, floating)                                \
  UNARY(sin, "Sin", numpy, floating)                                              \
  UNARY(cos, "Cos", numpy, floating)                                              \
  UNARY(tanh, "Tanh", numpy, floating)                                            \
  UNARY(erf, "Erf", math, floating)                                               \
  UNARY(floor, "Floor", numpy, floating)                                          \
  UNARY(ceil, "Ceil", numpy, floating)                                            \
  UNARY(is_finite, "Isfinite", numpy, floating)                                   \
  UNARY(logical_not, "LogicalNot", numpy, booleans)                               \
  UNARY(relu, "Relu", nn, floating)                                               \
  UNARY(relu6, "Relu6", nn, floating)                                             \
  UNARY(sigmoid, "Sigmoid", nn, floating)                                         \
  UNARY(silu, "Silu", nn, floating)                                               \
  UNARY(softplus, "Softplus", nn, floating)                                       \
  UNARY(softsign, "Softsign", nn, floating)                                       \
  UNARY(selu, "Selu", nn, floating)                                               \
  UNARY(hard_sigmoid, "HardSigmoid", nn, floating)                                \
  UNARY(hard_silu, "HardSilu", nn, floating)                                      \
  UNARY(log_sigmoid, "LogSigmoid", nn, floating)                                  \
  UNARY(tanh_shrink, "TanhShrink", nn, floating)                                  \
  UNARY(sparse_plus, "SparsePlus", nn, floating)                                  \
  UNARY(sparse_sigmoid, "SparseSigmoid", nn, floating)                            \
  BINARY(add, "Add", own)                                                         \
  BINARY(sub, "Subtract", own)                                                    \
  BINARY(mul, "Multiply", own)                                                    \
  BINARY(div, "Divide", floating)                                                 \
  BINARY(floor_div, "FloorDivide", own)                                           \
  BINARY(remainder, "Mod", own)                                                   \
  BINARY(pow, "Power", own)                                                       \
  BINARY(maximum, "Maximum", own)                                                 \
  BINARY(minimum, "Minimum", own)                                                 \
  BINARY(equal, "Equal", own)                                                     \
  BINARY(not_equal, "NotEqual", own)                                              \
  BINARY(less, "Less", own)                                                       \
  BINARY(less_equal, "LessEqual", own)                                            \
  BINARY(greater, "Greater", own)                                                 \
  BINARY(greater_equal, "GreaterEqual", own)                                      \
  BINARY(logical_and, "LogicalAnd", booleans)                                     \
  BINARY(logical_or, "LogicalOr", booleans)                                       \
  OPTION(elu, "Elu", nn, floating, double, "alpha", 1.0)                          \
  OPTION(leaky_relu, "LeakyRelu", nn, floating, double, "negative_slope", 0.2)    \
  OPTION(hard_shrink, "HardShrink", nn, floating, double, "threshold", 0.5)       \
  OPTION(soft_shrink, "SoftShrink", nn, floating, double, "threshold", 0.5)       \
  OPTION(squareplus, "Squareplus", nn, floating, double, "b", 4)                  \
  OPTION(gelu, "Gelu", nn, floating, bool, "approximate", true)                   \
  OPTION(softmax, "Softmax", nn, floating, int64_t, "axis", -1)                   \
  OPTION(log_softmax, "LogSoftmax", nn, floating, int64_t, "axis", -1)            \
  OPTION(sparsemax, "Sparsemax", nn, floating, int64_t, "axis", -1)               \
  OPTION(tril, "Tril", numpy, own, int64_t, "k", 0)                               \
  OPTION(triu, "Triu", numpy, own, int64_t, "k", 0)                               \
  OPTION(broadcast_to, "BroadcastTo", numpy, own, const Shape&, "shape", nullptr) \
  REDUCTION(sum, "Sum", numpy, numbers, "")                                       \
  REDUCTION(mean, "Mean", numpy, floating, "")                                    \
  REDUCTION(max, "Max", numpy, numbers, "initial")                                \
  REDUCTION(min, "Min", numpy, numbers, "initial")                                \
  REDUCTION(prod, "Prod", numpy, numbers, "dtype")                                \
  REDUCTION(variance, "Var", numpy, floating, "")                                 \
  REDUCTION(all, "All", numpy, booleans, "")                                      \
  REDUCTION(any, "Any", numpy, booleans, "")                                      \
  REDUCTION(logsumexp, "Logsumexp", math, floating, "")

namespace tessera {

using namespace detail;

#define DEFINE_UNARY(function, name, ...) \
  SymbolicTensor ops::function(const SymbolicTensor& x) { return operation_outputs(name, {x})[0]; }
#define DEFINE_BINARY(function, name, ...)                                           \
  SymbolicTensor ops::function(const SymbolicOperand& a, const SymbolicOperand& b) { \
    return operation_outputs(name, {a, b})[0];                                       \
  }
#define DEFINE_OPTION(function, name, module, dtype, Type, option, ...) \
  SymbolicTensor ops::function(const SymbolicTensor& x, Type value) {   \
    return operation_outputs(name, {x}, {{option, value}})[0];          \
  }
#define DEFINE_REDUCTION(function, name, ...)                                                      \
  SymbolicTensor ops::function(const SymbolicTensor& x, const Axes& axes, bool keepdims) {         \
    return operation_outputs(name, {x}, {{"axis", axes_option(axes)}, {"keepdims", keepdims}})[0]; \
  }
REGULAR_OPERATIONS(DEFINE_UNARY, DEFINE_BINARY, DEFINE_OPTION, DEFINE_REDUCTION)

namespace {

GraphOperation unary(const std::string& name, const std::string& module, ReadIn dtype,
                     DTensor (*function)(const DTensor&)) {
  return make_operation(name, module, {"x"}, Json::object(), [=](const OperationCall& call) {
    return function(call.tensor("x", dtype));
  });
}

GraphOperation binary(const std::string& name, ReadIn dtype,
                      DTensor (*function)(const DTensor&, const DTensor&)) {
  return make_operation(name, numpy, {"x1", "x2"}, Json::object(), [=](const OperationCall& call) {
    const std::vector<DTensor> x = call.promoted({"x1", "x2"});
    return function(read_in(dtype, x[0]), read_in(dtype, x[1]));
  });
}

template <class T>
GraphOperation with_option(const std::string& name, const std::string& module, ReadIn dtype,
                           const std::string& option, const Json& value,
                           DTensor (*function)(const DTensor&, T)) {
  return make_operation(name, module, {"x"}, {{option, value}}, [=](const OperationCall& call) {
    return function(call.tensor("x", dtype), call.option<std::remove_cvref_t<T>>(option));
  });
}

GraphOperation reduction(const std::string& name, const std::string& module, ReadIn dtype,
                         const std::string& null_option,
                         DTensor (*function)(const DTensor&, const ops::Axes&, bool)) {
  Json options = {{"axis", nullptr}, {"keepdims", false}};
  if (!null_option.empty()) options[null_option] = nullptr;
  return make_operation(name, module, {"x"}, options, [=](const OperationCall& call) {
    if (!null_option.empty()) {
      const auto actual = call.option<Json>(null_option);
      if (!actual.is_null()) json_fail(actual, call.path_of(null_option), "null");
    }
    return function(call.tensor("x", dtype), call.axes("axis"), call.option<bool>("keepdims"));
  });
}

DTensor deviation(const DTensor& x, const ops::Axes& axes, bool keepdims) {
  // The variance in float16 overflows at a deviation of 256.
  const DTensor wide = widened(x);
  return ops::cast(ops::sqrt(ops::variance(wide, axes, keepdims)), x.dtype());
}

}  // namespace

std::vector<GraphOperation> detail::regular_operations() {
#define MAKE_UNARY(function, name, module, dtype) unary(name, module, ReadIn::dtype, ops::function),
#define MAKE_BINARY(function, name, dtype) binary(name, ReadIn::dtype, ops::function),
#define MAKE_OPTION(function, name, module, dtype, Type, option, value) \
  with_option<Type>(name, module, ReadIn::dtype, option, value,         \
                    [](const DTensor& x, Type one) { return ops::function(x, one); }),
#define MAKE_REDUCTION(function, name, module, dtype, option) \
  reduction(name, module, ReadIn::dtype, option, ops::function),
  return {
      REGULAR_OPERATIONS(MAKE_UNARY, MAKE_BINARY, MAKE_OPTION, MAKE_REDUCTION)
      // Operations that have no function of their own on symbolic tensors.
      unary("HardTanh", nn, ReadIn::floating, activations::hard_tanh),
      binary("TrueDivide", ReadIn::floating, ops::div),
      with_option("Celu", nn, ReadIn::floating, "alpha", 1.0, activations::celu),
      with_option("Glu", nn, ReadIn::floating, "axis", -1, activations::glu),
      reduction("Std", numpy, ReadIn::floating, "", deviation),
  };
}

}  // namespace tessera
