// Functions of keras.ops, from golden/make_keras_ops_a.py.
#include <cmath>

#include <tessera/framework/ops/ops.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/keras_core.hpp"
#include "tests/support/keras_ops.hpp"

namespace keras_ops_a_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using namespace tessera::test::keras_ops;

namespace {

using Axes = std::vector<int64_t>;

#define ONE(name)                                                       \
  {                                                                     \
#name, [](const Values& x, const Json&) { return ops::name(x[0]); } \
  }
#define TWO(name)                                                             \
  {                                                                           \
#name, [](const Values& x, const Json&) { return ops::name(x[0], x[1]); } \
  }
#define REDUCTION(name)                                                                          \
  {                                                                                              \
#name,                                                                                       \
        [](const Values& x,                                                                      \
           const Json&                                                                           \
               a) { return ops::name(x[0], integers(a, "axis"), option(a, "keepdims", false)); } \
  }

std::optional<at::ScalarType> dtype(const Json& attributes) {
  if (!attributes.contains("dtype")) return std::nullopt;
  return attributes.at("dtype") == "int32" ? at::kInt : at::kFloat;
}

Calls elementwise() {
  return {ONE(exp2),
          ONE(expm1),
          ONE(square),
          ONE(sin),
          ONE(cos),
          ONE(tan),
          ONE(tanh),
          ONE(arctan),
          ONE(sinh),
          ONE(cosh),
          ONE(arcsinh),
          ONE(erf),
          ONE(erfc),
          ONE(floor),
          ONE(ceil),
          ONE(trunc),
          ONE(absolute),
          ONE(negative),
          ONE(log),
          ONE(log2),
          ONE(log10),
          ONE(log1p),
          ONE(sqrt),
          ONE(rsqrt),
          ONE(reciprocal),
          ONE(arcsin),
          ONE(arccos),
          ONE(arctanh),
          ONE(erfinv),
          ONE(arccosh),
          ONE(round),
          ONE(sign),
          ONE(logical_not),
          ONE(bitwise_not),
          ONE(bitwise_invert),
          {"isnan", [](const Values& x, const Json&) { return ops::isnan(x[0] / x[1]); }},
          {"isinf", [](const Values& x, const Json&) { return ops::isinf(x[0] / x[1]); }},
          {"isfinite", [](const Values& x, const Json&) { return ops::isfinite(x[0] / x[1]); }},
          {"nan_to_num", [](const Values& x, const Json& a) {
             return ops::nan_to_num(x[0] / x[1], option(a, "nan", 0.0), number(a, "posinf"),
                                    number(a, "neginf"));
           }}};
}

Calls pairs() {
  return {TWO(subtract),
          TWO(multiply),
          TWO(divide),
          TWO(true_divide),
          TWO(arctan2),
          TWO(hypot),
          TWO(logaddexp),
          TWO(power),
          TWO(mod),
          TWO(fmod),
          TWO(floor_divide),
          TWO(logical_and),
          TWO(logical_or),
          TWO(logical_xor),
          TWO(bitwise_and),
          TWO(bitwise_or),
          TWO(bitwise_xor),
          TWO(bitwise_left_shift),
          TWO(left_shift),
          TWO(bitwise_right_shift),
          TWO(right_shift),
          TWO(dot),
          TWO(inner),
          TWO(vdot),
          TWO(outer),
          {"tensordot", [](const Values& x, const Json& a) {
             if (!a.contains("axes")) return ops::tensordot(x[0], x[1]);
             const Json& summed = a.at("axes");
             if (!summed.is_array()) return ops::tensordot(x[0], x[1], summed.get<int64_t>());
             return ops::tensordot(x[0], x[1], summed[0].get<Axes>(), summed[1].get<Axes>());
           }}};
}

ops::NormOrder norm_order(const Json& attributes) {
  if (!attributes.contains("ord")) return {};
  const Json& order = attributes.at("ord");
  if (order == "fro") return "fro";
  if (order == "inf") return INFINITY;
  return order == "-inf" ? -INFINITY : order.get<double>();
}

Calls along_axes() {
  return {
      REDUCTION(std),
      REDUCTION(var),
      REDUCTION(amax),
      REDUCTION(amin),
      {"sort",
       [](const Values& x, const Json& a) { return ops::sort(x[0], integer(a, "axis", -1)); }},
      {"argsort",
       [](const Values& x, const Json& a) { return ops::argsort(x[0], integer(a, "axis", -1)); }},
      {"cumprod",
       [](const Values& x, const Json& a) { return ops::cumprod(x[0], integer(a, "axis", 0)); }},
      {"norm",
       [](const Values& x, const Json& a) {
         return ops::norm(x[0], norm_order(a), integers(a, "axis"), option(a, "keepdims", false));
       }},
      {"normalize", [](const Values& x, const Json& a) {
         return ops::normalize(x[0], integer(a, "axis", -1), integer(a, "order", 2),
                               option(a, "epsilon", 1e-7));
       }}};
}

DTensor repeat(const Values& x, const Json& a) {
  const Json& repeats = a.at("repeats");
  if (repeats.is_array()) return ops::repeat(x[0], repeats.get<Axes>(), maybe_integer(a, "axis"));
  return ops::repeat(x[0], repeats.get<int64_t>(), maybe_integer(a, "axis"));
}

Calls moves() {
  return {
      ONE(ravel),
      ONE(fliplr),
      ONE(flipud),
      {"repeat", repeat},
      {"swapaxes",
       [](const Values& x, const Json& a) {
         return ops::swapaxes(x[0], integer(a, "axis1", 0), integer(a, "axis2", 0));
       }},
      {"moveaxis",
       [](const Values& x, const Json& a) {
         return ops::moveaxis(x[0], integers(a, "source"), integers(a, "destination"));
       }},
      {"rot90",
       [](const Values& x, const Json& a) {
         const Axes plane = a.contains("axes") ? integers(a, "axes") : Axes{0, 1};
         return ops::rot90(x[0], integer(a, "k", 1), {plane[0], plane[1]});
       }},
      {"tile",
       [](const Values& x, const Json& a) { return ops::tile(x[0], integers(a, "repeats")); }},
      {"expand_dims", [](const Values& x,
                         const Json& a) { return ops::expand_dims(x[0], integer(a, "axis", 0)); }},
      {"squeeze",
       [](const Values& x, const Json& a) { return ops::squeeze(x[0], integers(a, "axis")); }},
      {"concatenate",
       [](const Values& x, const Json& a) { return ops::concatenate(x, integer(a, "axis", 0)); }},
      {"diag", [](const Values& x, const Json& a) { return ops::diag(x[0], integer(a, "k", 0)); }},
      {"diagonal",
       [](const Values& x, const Json& a) {
         return ops::diagonal(x[0], integer(a, "offset", 0), integer(a, "axis1", 0),
                              integer(a, "axis2", 1));
       }},
      {"trace", [](const Values& x, const Json& a) {
         return ops::trace(x[0], integer(a, "offset", 0), integer(a, "axis1", 0),
                           integer(a, "axis2", 1));
       }}};
}

DTensor arange(const Values&, const Json& a) {
  if (!a.contains("stop")) return ops::arange(*number(a, "start"));
  return ops::arange(*number(a, "start"), *number(a, "stop"), number(a, "step").value_or(1),
                     dtype(a));
}

Calls constants() {
  return {
      {"zeros_like",
       [](const Values& x, const Json& a) { return ops::zeros_like(x[0], dtype(a)); }},
      {"ones_like", [](const Values& x, const Json& a) { return ops::ones_like(x[0], dtype(a)); }},
      {"full_like",
       [](const Values& x, const Json& a) {
         return ops::full_like(x[0], *number(a, "fill_value"), dtype(a));
       }},
      {"full",
       [](const Values&, const Json& a) {
         return ops::full(integers(a, "shape"), *number(a, "fill_value"));
       }},
      {"zeros", [](const Values&, const Json& a) { return ops::zeros(integers(a, "shape")); }},
      {"ones", [](const Values&, const Json& a) { return ops::ones(integers(a, "shape")); }},
      {"arange", arange},
      {"linspace",
       [](const Values&, const Json& a) {
         return ops::linspace(*number(a, "start"), *number(a, "stop"), integer(a, "num", 50),
                              option(a, "endpoint", true));
       }},
      {"eye",
       [](const Values&, const Json& a) {
         return ops::eye(integer(a, "N", 0), maybe_integer(a, "M"), integer(a, "k", 0),
                         dtype(a).value_or(at::kFloat));
       }},
      {"tri",
       [](const Values&, const Json& a) {
         return ops::tri(integer(a, "N", 0), maybe_integer(a, "M"), integer(a, "k", 0),
                         dtype(a).value_or(at::kFloat));
       }},
      {"identity", [](const Values&, const Json& a) { return ops::identity(integer(a, "n", 0)); }}};
}

#undef ONE
#undef TWO
#undef REDUCTION

const Calls& calls() {
  static const Calls all = [] {
    Calls joined;
    for (const Calls& part : {elementwise(), pairs(), along_axes(), moves(), constants()}) {
      joined.insert(part.begin(), part.end());
    }
    return joined;
  }();
  return all;
}

}  // namespace

TEST_CASE("functions of keras.ops and their gradients match Keras in several layouts") {
  check_functions("keras_ops_a.json",
                  {"elementwise", "pairs", "along_axes", "norms", "moves", "diagonals", "products",
                   "constants"},
                  calls());
}

}  // namespace keras_ops_a_test
