#include <tessera/framework/graph/operations/operation.hpp>
#include <tessera/framework/nn/activations/activation_functions.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera::detail {
namespace {

using One = DTensor (*)(const DTensor&);
using Two = DTensor (*)(const DTensor&, const DTensor&);
using With = DTensor (*)(const DTensor&, double);

/// Makes an operation of one tensor in its own dtype.
GraphOperation unary(const std::string& name, const std::string& module, One function) {
  return {name, module, {"x"}, Json::object(), [=](const OperationCall& call) {
            return std::vector{function(call.tensor("x"))};
          }};
}

/// Makes an operation of one floating-point tensor.
GraphOperation floating(const std::string& name, const std::string& module, One function) {
  return {name, module, {"x"}, Json::object(), [=](const OperationCall& call) {
            return std::vector{function(call.floating("x"))};
          }};
}

/// Makes an operation of one floating-point tensor with a number as its option.
GraphOperation floating(const std::string& name, const std::string& option, const Json& value,
                        With function) {
  return {name, nn, {"x"}, {{option, value}}, [=](const OperationCall& call) {
            return std::vector{function(call.floating("x"), call.option<double>(option))};
          }};
}

/// Makes an operation of two tensors, one of which may be a number.
GraphOperation binary(const std::string& name, Two function) {
  return {name, numpy, {"x1", "x2"}, Json::object(), [=](const OperationCall& call) {
            const std::vector<DTensor> x = call.promoted({"x1", "x2"});
            return std::vector{function(x[0], x[1])};
          }};
}

DTensor to_bool(const DTensor& x) {
  return x.dtype() == at::kBool ? x : ops::not_equal(x, scalar(0, x.mesh(), x.dtype()));
}

/// Makes a logical operation; numbers other than 0 are true.
GraphOperation logical(const std::string& name, Two function) {
  return {name, numpy, {"x1", "x2"}, Json::object(), [=](const OperationCall& call) {
            const std::vector<DTensor> x = call.promoted({"x1", "x2"});
            return std::vector{function(to_bool(x[0]), to_bool(x[1]))};
          }};
}

/// Divides; integers as float32.
DTensor quotient(const DTensor& a, const DTensor& b) {
  if (at::isFloatingType(a.dtype())) return ops::div(a, b);
  return ops::div(ops::cast(a, at::kFloat), ops::cast(b, at::kFloat));
}

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

}  // namespace

std::vector<GraphOperation> elementwise_operations() {
  const auto clip = [](const OperationCall& call) {
    return std::vector{
        ops::clip(call.tensor("x"), call.option<double>("x_min"), call.option<double>("x_max"))};
  };
  const auto where = [](const OperationCall& call) {
    const std::vector<DTensor> x = call.promoted({"x1", "x2"});
    return std::vector{ops::where(to_bool(call.tensor("condition")), x[0], x[1])};
  };
  const auto rounded = [](const OperationCall& call) {
    if (call.option<int64_t>("decimals") != 0) {
      json_fail(call.option<int64_t>("decimals"), call.path_of("decimals"), "0");
    }
    return std::vector{ops::round(call.tensor("x"))};
  };
  const auto relu = [](const OperationCall& call) {
    return std::vector{activations::relu(call.floating("x"), call.option<double>("negative_slope"),
                                         call.option<std::optional<double>>("max_value"),
                                         call.option<double>("threshold"))};
  };
  return {
      unary("Negative", numpy, ops::neg),
      unary("Absolute", numpy, ops::abs),
      unary("Sign", numpy, ops::sign),
      unary("Square", numpy, ops::square),
      unary("StopGradient", core, ops::stop_gradient),
      floating("Exp", numpy, ops::exp),
      floating("Expm1", numpy, ops::expm1),
      floating("Log", numpy, ops::log),
      floating("Log1p", numpy, ops::log1p),
      floating("Sqrt", numpy, ops::sqrt),
      floating("Rsqrt", math, ops::rsqrt),
      floating("Reciprocal", numpy, ops::reciprocal),
      floating("Sin", numpy, ops::sin),
      floating("Cos", numpy, ops::cos),
      floating("Tanh", numpy, ops::tanh),
      floating("Erf", math, ops::erf),
      floating("Floor", numpy, ops::floor),
      floating("Ceil", numpy, ops::ceil),
      floating("Isfinite", numpy, ops::is_finite),
      floating("Relu", nn, ops::relu),
      floating("Relu6", nn, ops::relu6),
      floating("Sigmoid", nn, ops::sigmoid),
      floating("Silu", nn, ops::silu),
      floating("Softplus", nn, ops::softplus),
      floating("Softsign", nn, ops::softsign),
      floating("Selu", nn, ops::selu),
      floating("HardSigmoid", nn, ops::hard_sigmoid),
      floating("HardSilu", nn, ops::hard_silu),
      floating("HardTanh", nn, activations::hard_tanh),
      floating("LogSigmoid", nn, ops::log_sigmoid),
      floating("TanhShrink", nn, ops::tanh_shrink),
      floating("SparsePlus", nn, ops::sparse_plus),
      floating("SparseSigmoid", nn, ops::sparse_sigmoid),
      floating("Celu", "alpha", 1.0, activations::celu),
      floating("Elu", "alpha", 1.0, activations::elu),
      floating("LeakyRelu", "negative_slope", 0.2, ops::leaky_relu),
      floating("HardShrink", "threshold", 0.5, ops::hard_shrink),
      floating("SoftShrink", "threshold", 0.5, ops::soft_shrink),
      floating("Squareplus", "b", 4, ops::squareplus),
      binary("Add", ops::add),
      binary("Subtract", ops::sub),
      binary("Multiply", ops::mul),
      binary("Divide", quotient),
      binary("TrueDivide", quotient),
      binary("FloorDivide", ops::floor_div),
      binary("Mod", ops::remainder),
      binary("Power", ops::pow),
      binary("Maximum", ops::maximum),
      binary("Minimum", ops::minimum),
      binary("Equal", ops::equal),
      binary("NotEqual", ops::not_equal),
      binary("Less", ops::less),
      binary("LessEqual", ops::less_equal),
      binary("Greater", ops::greater),
      binary("GreaterEqual", ops::greater_equal),
      logical("LogicalAnd", ops::logical_and),
      logical("LogicalOr", ops::logical_or),
      {"LogicalNot",
       numpy,
       {"x"},
       Json::object(),
       [](const OperationCall& call) {
         return std::vector{ops::logical_not(to_bool(call.tensor("x")))};
       }},
      {"Gelu",
       nn,
       {"x"},
       {{"approximate", true}},
       [](const OperationCall& call) {
         return std::vector{ops::gelu(call.floating("x"), call.option<bool>("approximate"))};
       }},
      {"Threshold",
       nn,
       {"x"},
       {{"threshold", 0}, {"default_value", 0}},
       [](const OperationCall& call) {
         return std::vector{ops::threshold(call.floating("x"), call.option<double>("threshold"),
                                           call.option<double>("default_value"))};
       }},
      {"ReLU",
       "keras.src.activations.activations",
       {"x"},
       {{"negative_slope", 0.0}, {"max_value", nullptr}, {"threshold", 0.0}},
       relu},
      {"Round", numpy, {"x"}, {{"decimals", 0}}, rounded},
      {"Clip", numpy, {"x"}, {{"x_min", nullptr}, {"x_max", nullptr}}, clip},
      {"Where", numpy, {"condition", "x1", "x2"}, Json::object(), where},
      {"OnesLike",
       numpy,
       {"x"},
       {{"dtype", nullptr}},
       [](const OperationCall& call) { return std::vector{filled_like(call, 1)}; }},
      {"ZerosLike",
       numpy,
       {"x"},
       {{"dtype", nullptr}},
       [](const OperationCall& call) { return std::vector{filled_like(call, 0)}; }},
      {"Cast",
       core,
       {"x"},
       {{"dtype", "float32"}},
       [](const OperationCall& call) {
         return std::vector{ops::cast(call.tensor("x"), dtype_option(call))};
       }},
      {"ConvertToTensor",
       core,
       {"x"},
       {{"dtype", nullptr}, {"sparse", nullptr}, {"ragged", nullptr}},
       [](const OperationCall& call) {
         return std::vector{ops::cast(call.tensor("x"), dtype_option(call))};
       }},
  };
}

}  // namespace tessera::detail
