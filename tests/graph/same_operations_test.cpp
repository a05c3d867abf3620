// Every operation of ops that graphs have, too: called on DTensors, in a Functional model, and both
// in captured steps, it has the same values.
#include <functional>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/training/capture/step_capture.hpp>
#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/idx_files.hpp"

namespace same_operations_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

template <class T>
using List = std::vector<T>;

template <class T>
List<T> list_of(const T& one) {
  return {one};
}
template <class T>
List<T> list_of(const std::pair<T, T>& two) {
  return {two.first, two.second};
}
template <class T>
List<T> list_of(const List<T>& all) {
  return all;
}

/// An input: its shape, and its values.
struct Operand {
  /// Any values, positive ones, or bool; int64 indices below 3 whatever the dtype under test is.
  enum class Kind : uint8_t { any, positive, truth, index } kind = Kind::any;
  Shape shape = {4, 3, 2};
};

struct Case {
  std::string name;
  std::vector<Operand> inputs;
  std::function<List<DTensor>(const List<DTensor>&)> eager;
  std::function<List<SymbolicTensor>(const List<SymbolicTensor>&)> symbolic;
};

constexpr auto positive = Operand::Kind::positive;
constexpr auto truth = Operand::Kind::truth;
constexpr auto index_kind = Operand::Kind::index;

/// Makes a case of a generic function of a list of tensors.
template <class Function>
Case of(const std::string& name, const std::vector<Operand>& inputs, Function function) {
  return {name, inputs, [=](const auto& x) { return list_of(function(x)); },
          [=](const auto& x) { return list_of(function(x)); }};
}

#define ONE(name) of(#name, {{}}, [](const auto& x) { return ops::name(x[0]); })
#define TWO(name) \
  of(#name, {{}, {.kind = positive}}, [](const auto& x) { return ops::name(x[0], x[1]); })
#define REDUCTION(name)                                                \
  of(#name, {{}}, [](const auto& x) { return ops::name(x[0], {1}); }), \
      of(#name " kept", {{}},                                          \
         [](const auto& x) {                                           \
           return ops::name(x[0], {0, 2}, true);                       \
         }),                                                           \
      of(#name " of all", {{}}, [](const auto& x) { return ops::name(x[0]); })

std::vector<Case> elementwise() {
  return {
      ONE(neg),
      ONE(abs),
      ONE(sign),
      ONE(exp),
      ONE(expm1),
      ONE(log),
      ONE(log1p),
      ONE(sqrt),
      ONE(rsqrt),
      ONE(square),
      ONE(reciprocal),
      ONE(sin),
      ONE(cos),
      ONE(tanh),
      ONE(erf),
      ONE(sigmoid),
      ONE(relu),
      ONE(softplus),
      ONE(floor),
      ONE(ceil),
      ONE(round),
      ONE(is_finite),
      ONE(logical_not),
      ONE(relu6),
      ONE(hard_sigmoid),
      ONE(hard_silu),
      ONE(log_sigmoid),
      ONE(selu),
      ONE(silu),
      ONE(softsign),
      ONE(sparse_plus),
      ONE(sparse_sigmoid),
      ONE(tanh_shrink),
      ONE(stop_gradient),
      ONE(elu),
      ONE(leaky_relu),
      ONE(hard_shrink),
      ONE(soft_shrink),
      ONE(squareplus),
      TWO(add),
      TWO(sub),
      TWO(mul),
      TWO(div),
      TWO(maximum),
      TWO(minimum),
      TWO(pow),
      TWO(floor_div),
      TWO(remainder),
      TWO(equal),
      TWO(not_equal),
      TWO(less),
      TWO(less_equal),
      TWO(greater),
      TWO(greater_equal),
      TWO(logical_and),
      TWO(logical_or),
      of("gelu", {{}}, [](const auto& x) { return ops::gelu(x[0], true); }),
      of("threshold", {{}}, [](const auto& x) { return ops::threshold(x[0], 1, 0.5); }),
      of("clip", {{}}, [](const auto& x) { return ops::clip(x[0], -1, 1); }),
      of("where", {{.kind = truth}, {}, {.kind = positive}},
         [](const auto& x) { return ops::where(x[0], x[1], x[2]); }),
      of("cast", {{}}, [](const auto& x) { return ops::cast(x[0], at::kFloat); }),
      of("operators", {{}, {.kind = positive}},
         [](const auto& x) { return (x[0] + x[1]) * x[1] - x[0]; }),
      of("quotient", {{}, {.kind = positive}}, [](const auto& x) { return x[0] / x[1]; }),
      of("minus", {{}}, [](const auto& x) { return -x[0]; }),
      of("numbers", {{}}, [](const auto& x) { return (x[0] + 2.0) * 3.0 - 1.0; }),
      of("fractions", {{}}, [](const auto& x) { return (x[0] * 0.5 + 1.5) / 4.0; }),
  };
}

std::vector<Case> along_axes() {
  return {
      REDUCTION(sum),
      REDUCTION(mean),
      REDUCTION(max),
      REDUCTION(min),
      REDUCTION(prod),
      REDUCTION(all),
      REDUCTION(any),
      REDUCTION(logsumexp),
      REDUCTION(variance),
      ONE(softmax),
      ONE(log_softmax),
      ONE(sparsemax),
      ONE(argmax),
      ONE(argmin),
      of("softmax over 1", {{}}, [](const auto& x) { return ops::softmax(x[0], 1); }),
      of("argmax over 1", {{}}, [](const auto& x) { return ops::argmax(x[0], 1); }),
      of("argmin over 0", {{}}, [](const auto& x) { return ops::argmin(x[0], 0); }),
      of("cumsum", {{}}, [](const auto& x) { return ops::cumsum(x[0], 1); }),
      of("top_k", {{.shape = {4, 5}}}, [](const auto& x) { return ops::top_k(x[0], 3); }),
      of("matmul", {{.shape = {4, 3, 2}}, {.shape = {4, 2, 5}}},
         [](const auto& x) { return ops::matmul(x[0], x[1]); }),
      of("einsum", {{.shape = {4, 3, 2}}, {.shape = {4, 2, 5}}},
         [](const auto& x) {
           return ops::einsum("bij,bjk->bki", std::vector{x[0], x[1]});
         }),
      of("gather", {{}, {.kind = index_kind, .shape = {4, 2}}},
         [](const auto& x) { return ops::gather(x[0], x[1], 1); }),
      of("take_along_axis", {{}, {.kind = index_kind, .shape = {4, 2, 2}}},
         [](const auto& x) { return ops::take_along_axis(x[0], x[1], 1); }),
      of("one_hot", {{.kind = index_kind, .shape = {4, 2}}},
         [](const auto& x) { return ops::one_hot(x[0], 4); }),
  };
}

std::vector<Case> moving() {
  return {
      ONE(transpose),
      ONE(flip),
      ONE(tril),
      ONE(triu),
      ONE(unstack),
      of("reshape", {{}},
         [](const auto& x) {
           return ops::reshape(x[0], {-1, 6});
         }),
      of("expand_dims", {{}}, [](const auto& x) { return ops::expand_dims(x[0], -1); }),
      of("squeeze", {{.shape = {4, 1, 2}}}, [](const auto& x) { return ops::squeeze(x[0], {1}); }),
      of("broadcast_to", {{.shape = {4, 1}}},
         [](const auto& x) {
           return ops::broadcast_to(x[0], {4, 3});
         }),
      of("concat", {{}, {.kind = positive}},
         [](const auto& x) {
           return ops::concat(std::vector{x[0], x[1]}, 1);
         }),
      of("stack", {{}, {.kind = positive}},
         [](const auto& x) {
           return ops::stack(std::vector{x[0], x[1]}, 1);
         }),
      of("split", {{}}, [](const auto& x) { return ops::split(x[0], 3, 1); }),
      of("tile", {{}},
         [](const auto& x) {
           return ops::tile(x[0], {1, 2, 1});
         }),
      of("flip of 1", {{}}, [](const auto& x) { return ops::flip(x[0], {1}); }),
      of("roll", {{}},
         [](const auto& x) {
           return ops::roll(x[0], {1, -1}, {1, 2});
         }),
      of("roll of all", {{}}, [](const auto& x) { return ops::roll(x[0], {5}); }),
      of("slice", {{}}, [](const auto& x) { return ops::slice(x[0], 1, 1, 2); }),
      of("pad", {{}}, [](const auto& x) { return ops::pad(x[0], 1, 1, 2, 1); }),
  };
}

#undef ONE
#undef TWO
#undef REDUCTION

/// Returns an input's values for a seed: several are true, and quotients and powers are defined.
at::Tensor values_of(const Operand& input, at::ScalarType dtype, int64_t seed) {
  const int64_t count = c10::multiply_integers(input.shape);
  const at::Tensor n = (at::arange(count) * 7 + seed * 5).remainder(11).reshape(input.shape);
  switch (input.kind) {
    case Operand::Kind::index:
      return n.remainder(3);
    case Operand::Kind::truth:
      return n.remainder(2).to(at::kBool);
    case Operand::Kind::positive:
      return (n.remainder(3) + 1).to(dtype);
    case Operand::Kind::any:
      break;
  }
  if (dtype == at::kBool) return n.gt(3);
  return at::isFloatingType(dtype) ? (n.to(dtype) - 5) * 0.37 : (n - 5).to(dtype);
}

std::string name_of(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kInt:
      return "int32";
    case at::kLong:
      return "int64";
    default:
      return "bool";
  }
}

List<DTensor> placed(const List<at::Tensor>& values, const Mesh& mesh) {
  List<DTensor> list;
  for (const at::Tensor& x : values) {
    list.push_back(pack(x, Layout::batch_sharded(mesh, "batch", x.dim())));
  }
  return list;
}

List<at::Tensor> inputs_of(const Case& one, at::ScalarType dtype, int64_t seed) {
  List<at::Tensor> list;
  for (const Operand& input : one.inputs) list.push_back(values_of(input, dtype, seed++));
  return list;
}

Functional model_of(const Case& one, const List<at::Tensor>& values) {
  List<SymbolicTensor> inputs;
  for (const at::Tensor& x : values) {
    const Shape shape = x.sizes().vec();
    inputs.push_back(Input(Shape(shape.begin() + 1, shape.end()),
                           {.dtype = name_of(x.scalar_type()), .batch_size = shape[0]}));
  }
  return Functional(inputs, one.symbolic(inputs));
}

/// Compares the values. A graph has Keras' dtypes: integers may become float32, indices are int32.
void check_same(const List<DTensor>& actual, const List<DTensor>& expected) {
  REQUIRE(actual.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const at::Tensor x = actual[i].full(), y = expected[i].full();
    if (y.is_floating_point()) CHECK(x.scalar_type() == y.scalar_type());
    CHECK(difference(x.to(at::kDouble), y.to(at::kDouble), 1e-6, 1e-6) == "");
  }
}

/// Returns the results of a function in a replayed step that was captured with other values.
List<DTensor> replayed(const Functional& model, const List<DTensor>& before,
                       const List<DTensor>& inputs,
                       const std::function<List<DTensor>(const List<DTensor>&)>& function) {
  const EnvironmentScope never("TESSERA_STEP_PASSES", "never");
  StepCapture capture(make_arena());
  const auto run = [&](const List<DTensor>& x) {
    return capture.run(model.model(), {x, {}, {}, x[0].size(0)}, {}, 0, false,
                       [&] { return function(x); });
  };
  run(before);
  run(before);
  const List<DTensor> results = run(inputs);
  CHECK(capture.records().why == "");
  CHECK(capture.records().replayed == 1);
  return results;
}

/// Returns whether the operation takes this dtype when it is called on DTensors.
bool check_case(const Case& one, at::ScalarType dtype) {
  const DTypeScope policy(dtype == at::kDouble ? "float64" : "float32");
  const List<at::Tensor> first = inputs_of(one, dtype, 1), second = inputs_of(one, dtype, 8);
  for (const int64_t devices : {1, 2, 3}) {
    const Mesh mesh = create_mesh({{"batch", devices}}, virtual_cpus(devices));
    const List<DTensor> before = placed(first, mesh), inputs = placed(second, mesh);
    List<DTensor> expected;
    try {
      expected = one.eager(inputs);
    } catch (const Error&) {
      return false;
    }
    const Functional model = model_of(one, second);
    check_same(model.outputs(inputs), expected);
    check_same(replayed(model, before, inputs, one.eager), expected);
    check_same(replayed(model, before, inputs, [&](const auto& x) { return model.outputs(x); }),
               expected);
  }
  return true;
}

void check_cases(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kInt, at::kBool}) {
      CAPTURE(one.name, name_of(dtype));
      const bool taken = check_case(one, dtype);
      const bool logical = one.name.starts_with("logical") || one.name.starts_with("all") ||
                           one.name.starts_with("any");
      CHECK((taken || (logical ? dtype != at::kBool : !at::isFloatingType(dtype))));
    }
  }
}

}  // namespace

TEST_CASE("elementwise operations are the same on DTensors, in graphs and in replayed steps") {
  check_cases(elementwise());
}

TEST_CASE("operations along axes are the same on DTensors, in graphs and in replayed steps") {
  check_cases(along_axes());
}

TEST_CASE(
    "operations that move elements are the same on DTensors, in graphs and in replayed "
    "steps") {
  check_cases(moving());
}

}  // namespace same_operations_test
