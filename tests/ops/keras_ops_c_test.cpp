// Functions of keras.ops that are composed of others, from golden/make_keras_ops_c.py.
#include <algorithm>
#include <limits>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/keras_core.hpp"
#include "tests/support/keras_ops.hpp"

namespace keras_ops_c_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using namespace tessera::test::keras_ops;

namespace {

#define ONE(name)                                                       \
  {                                                                     \
#name, [](const Values& x, const Json&) { return ops::name(x[0]); } \
  }
#define TWO(name)                                                             \
  {                                                                           \
#name, [](const Values& x, const Json&) { return ops::name(x[0], x[1]); } \
  }
#define NAN_REDUCTION(name)                                                                          \
  {                                                                                                  \
#name,                                                                                           \
        [](const Values& x,                                                                          \
           const Json&                                                                               \
               a) { return ops::name(holed(x), integers(a, "axis"), option(a, "keepdims", false)); } \
  }

/// Returns the first input, NaN where the last one, a mask, is true.
DTensor holed(const Values& x) {
  return ops::where(x.back(), std::numeric_limits<double>::quiet_NaN(), x[0]);
}

/// Returns an input by its keyword in Keras; undefined if it is not given.
DTensor given(const Values& x, const Json& a, const std::string& keyword) {
  if (!a.contains("given")) return {};
  const auto names = a.at("given").get<std::vector<std::string>>();
  const auto at = std::find(names.begin(), names.end(), keyword);
  if (at == names.end()) return {};
  return x[x.size() - names.size() + size_t(at - names.begin())];
}

/// Returns all elements of several results.
DTensor elements_of(const Values& results) {
  Values all;
  for (const DTensor& result : results) all.push_back(ops::ravel(result));
  return ops::concat(all);
}

Calls reductions() {
  return {NAN_REDUCTION(nansum),
          NAN_REDUCTION(nanmean),
          NAN_REDUCTION(nanmax),
          NAN_REDUCTION(nanmin),
          NAN_REDUCTION(nanprod),
          NAN_REDUCTION(nanstd),
          NAN_REDUCTION(nanvar),
          {"nancumsum",
           [](const Values& x, const Json& a) { return ops::nancumsum(holed(x), a.at("axis")); }},
          {"nancumprod",
           [](const Values& x, const Json& a) { return ops::nancumprod(holed(x), a.at("axis")); }},
          {"count_nonzero",
           [](const Values& x, const Json& a) {
             return ops::count_nonzero(x[0], integers(a, "axis"));
           }},
          {"average",
           [](const Values& x, const Json& a) {
             return ops::average(x[0], integers(a, "axis"), x.size() > 1 ? x[1] : DTensor());
           }},
          {"ptp",
           [](const Values& x, const Json& a) {
             return ops::ptp(x[0], integers(a, "axis"), option(a, "keepdims", false));
           }},
          {"diff",
           [](const Values& x, const Json& a) {
             return ops::diff(x[0], integer(a, "n", 1), integer(a, "axis", -1));
           }},
          {"trapezoid",
           [](const Values& x, const Json& a) {
             const int64_t axis = integer(a, "axis", -1);
             if (x.size() > 1) return ops::trapezoid(x[0], x[1], axis);
             return ops::trapezoid(x[0], option(a, "dx", 1.0), axis);
           }},
          {"in_top_k", [](const Values& x, const Json& a) {
             return ops::in_top_k(x[0], x[1], integer(a, "k", 1));
           }}};
}

Calls elementwise() {
  return {ONE(deg2rad),
          ONE(rad2deg),
          ONE(fabs),
          ONE(hard_tanh),
          ONE(hard_swish),
          ONE(swish),
          TWO(divide_no_nan),
          TWO(heaviside),
          TWO(logaddexp2),
          {"isposinf", [](const Values& x, const Json&) { return ops::isposinf(x[0] / x[1]); }},
          {"isneginf", [](const Values& x, const Json&) { return ops::isneginf(x[0] / x[1]); }},
          {"fmax", [](const Values& x, const Json&) { return ops::fmax(holed(x), x[1]); }},
          {"fmin", [](const Values& x, const Json&) { return ops::fmin(x[1], holed(x)); }},
          {"isclose",
           [](const Values& x, const Json& a) {
             return ops::isclose(x[0], x[1], option(a, "rtol", 1e-5), option(a, "atol", 1e-8));
           }},
          {"allclose",
           [](const Values& x, const Json& a) {
             return ops::allclose(x[0], x[1], option(a, "rtol", 1e-5), option(a, "atol", 1e-8));
           }},
          {"celu",
           [](const Values& x, const Json& a) { return ops::celu(x[0], option(a, "alpha", 1.0)); }},
          {"glu",
           [](const Values& x, const Json& a) { return ops::glu(x[0], integer(a, "axis", -1)); }},
          {"isin", [](const Values& x, const Json& a) {
             return ops::isin(x[0], x[1], option(a, "invert", false));
           }}};
}

using Split = Values (*)(const DTensor&, int64_t);
using SplitAt = Values (*)(const DTensor&, const std::vector<int64_t>&);

/// Calls one of two functions by what is split: sections or indices.
DTensor split_by(const Values& x, const Json& a, Split split, SplitAt split_at) {
  const Json& at = a.at("indices_or_sections");
  return elements_of(at.is_array() ? split_at(x[0], at.get<std::vector<int64_t>>())
                                   : split(x[0], at.get<int64_t>()));
}

Calls moves() {
  return {
      {"hstack", [](const Values& x, const Json&) { return ops::hstack(x); }},
      {"vstack", [](const Values& x, const Json&) { return ops::vstack(x); }},
      {"dstack", [](const Values& x, const Json&) { return ops::dstack(x); }},
      {"append", [](const Values& x,
                    const Json& a) { return ops::append(x[0], x[1], maybe_integer(a, "axis")); }},
      {"array_split",
       [](const Values& x, const Json& a) {
         return elements_of(
             ops::array_split(x[0], integer(a, "indices_or_sections", 1), integer(a, "axis", 0)));
       }},
      {"hsplit",
       [](const Values& x, const Json& a) { return split_by(x, a, ops::hsplit, ops::hsplit); }},
      {"vsplit",
       [](const Values& x, const Json& a) { return split_by(x, a, ops::vsplit, ops::vsplit); }},
      {"dsplit",
       [](const Values& x, const Json& a) { return split_by(x, a, ops::dsplit, ops::dsplit); }},
      {"meshgrid",
       [](const Values& x, const Json& a) {
         return elements_of(ops::meshgrid(x, text(a, "indexing")));
       }},
      {"diagflat",
       [](const Values& x, const Json& a) { return ops::diagflat(x[0], integer(a, "k", 0)); }}};
}

Calls products() {
  return {TWO(kron),
          {"cross", [](const Values& x,
                       const Json& a) { return ops::cross(x[0], x[1], integer(a, "axis", -1)); }},
          {"vander",
           [](const Values& x, const Json& a) {
             return ops::vander(x[0], maybe_integer(a, "N"), option(a, "increasing", false));
           }},
          {"dot_product_attention", [](const Values& x, const Json& a) {
             return ops::dot_product_attention(x[0], x[1], x[2], given(x, a, "bias"),
                                               given(x, a, "mask"), number(a, "scale"),
                                               option(a, "is_causal", false));
           }}};
}

/// Returns Keras' windows of two sizes over images.
std::vector<ops::WindowAxis> windows_of(const DTensor& x, const Json& a, const Shape& sizes) {
  std::vector<ops::WindowAxis> axes;
  for (size_t i = 0; i < 2; ++i) {
    ops::WindowAxis axis = {.size = sizes[i], .stride = integers(a, "strides")[i]};
    if (a.contains("dilation_rate")) axis.dilation = integers(a, "dilation_rate")[i];
    if (text(a, "padding") == "same") {
      const int64_t extent = x.size(int64_t(i) + 1);
      const int64_t last = (extent + axis.stride - 1) / axis.stride - 1;
      const int64_t padding = std::max<int64_t>(last * axis.stride + axis.reach() - extent, 0);
      axis.before = padding / 2;
      axis.after = padding - axis.before;
    }
    axes.push_back(axis);
  }
  return axes;
}

Calls windows() {
  return {{"average_pool",
           [](const Values& x, const Json& a) {
             return ops::average_pool(x[0], windows_of(x[0], a, integers(a, "pool_size")));
           }},
          {"adaptive_average_pool",
           [](const Values& x, const Json& a) {
             return ops::adaptive_average_pool(x[0], integers(a, "output_size"));
           }},
          {"depthwise_conv",
           [](const Values& x, const Json& a) {
             return ops::depthwise_conv(x[0], x[1], windows_of(x[0], a, x[1].shape()));
           }},
          {"separable_conv", [](const Values& x, const Json& a) {
             return ops::separable_conv(x[0], x[1], x[2], windows_of(x[0], a, x[1].shape()));
           }}};
}

ops::Axes axes_or_last(const Json& a) {
  return a.contains("axis") ? integers(a, "axis") : ops::Axes{-1};
}

Calls normalizations() {
  return {{"batch_normalization",
           [](const Values& x, const Json& a) {
             return ops::batch_normalization(x[0], x[1], x[2], integer(a, "axis", -1),
                                             given(x, a, "offset"), given(x, a, "scale"),
                                             option(a, "epsilon", 1e-3));
           }},
          {"layer_normalization",
           [](const Values& x, const Json& a) {
             const bool scales = x.size() > 1;
             return ops::layer_normalization(x[0], scales ? x[1] : DTensor(),
                                             scales ? x[2] : DTensor(), axes_or_last(a),
                                             option(a, "epsilon", 1e-7));
           }},
          {"rms_normalization", [](const Values& x, const Json& a) {
             return ops::rms_normalization(x[0], x.size() > 1 ? x[1] : DTensor(), axes_or_last(a),
                                           option(a, "epsilon", 1e-7));
           }}};
}

Calls cross_entropies() {
  return {{"binary_crossentropy",
           [](const Values& x, const Json& a) {
             return ops::binary_crossentropy(x[0], x[1], a.at("from_logits"));
           }},
          {"categorical_crossentropy",
           [](const Values& x, const Json& a) {
             return ops::categorical_crossentropy(x[0], x[1], a.at("from_logits"),
                                                  integer(a, "axis", -1));
           }},
          {"sparse_categorical_crossentropy", [](const Values& x, const Json& a) {
             return ops::sparse_categorical_crossentropy(x[0], x[1], a.at("from_logits"));
           }}};
}

Calls constants() {
  return {{"logspace",
           [](const Values&, const Json& a) {
             return ops::logspace(*number(a, "start"), *number(a, "stop"), integer(a, "num", 50),
                                  option(a, "endpoint", true), option(a, "base", 10.0));
           }},
          {"geomspace", [](const Values&, const Json& a) {
             return ops::geomspace(*number(a, "start"), *number(a, "stop"), integer(a, "num", 50),
                                   option(a, "endpoint", true));
           }}};
}

#undef ONE
#undef TWO
#undef NAN_REDUCTION

const Calls& calls() {
  static const Calls all = [] {
    Calls joined;
    for (const Calls& part : {reductions(), elementwise(), moves(), products(), windows(),
                              normalizations(), cross_entropies(), constants()}) {
      joined.insert(part.begin(), part.end());
    }
    return joined;
  }();
  return all;
}

}  // namespace

TEST_CASE("composed functions of keras.ops and their gradients match Keras in several layouts") {
  check_functions("keras_ops_c.json",
                  {"reductions", "elementwise", "moves", "products", "windows", "normalizations",
                   "cross_entropies", "constants"},
                  calls());
}

TEST_CASE("reductions without NaN of nothing but NaN are those of nothing") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const DTensor x = pack(at::full({2, 3}, nan, at::kDouble));
  const auto value = [](const DTensor& y) { return y.full().item<double>(); };
  CHECK(value(ops::nansum(x)) == 0);
  CHECK(value(ops::nanprod(x)) == 1);
  for (const DTensor& y :
       {ops::nanmean(x), ops::nanmax(x), ops::nanmin(x), ops::nanvar(x), ops::nanstd(x)}) {
    CHECK(value(y) != value(y));
  }
}

TEST_CASE("composed functions of keras.ops name what does not fit") {
  const DTensor x = ones({2, 3}), row = ones({3});
  CHECK_THROWS_AS(ops::average(x, {0}, row), ShapeError);
  CHECK_THROWS_AS(ops::diff(x, -1), ConfigError);
  CHECK_THROWS_AS(ops::trapezoid(x, row, 0), ShapeError);
  CHECK_THROWS_AS(ops::array_split(x, 0), ShapeError);
  CHECK_THROWS_AS(ops::meshgrid({row, row}, "yx"), ConfigError);
  CHECK_THROWS_AS(ops::cross(x, x, 0), ShapeError);
  CHECK_THROWS_AS(ops::vander(x), ShapeError);
  CHECK_THROWS_AS(ops::logspace(0, 1, -1), ConfigError);
  CHECK_THROWS_AS(ops::geomspace(-1, 1), ConfigError);
  CHECK_THROWS_AS(ops::glu(row), ShapeError);
  CHECK_THROWS_AS(ops::celu(x, 0), ConfigError);
  CHECK_THROWS_AS(ops::batch_normalization(x, row, row, 0), ShapeError);
  CHECK_THROWS_AS(ops::binary_crossentropy(row, x), ShapeError);
  CHECK_THROWS_AS(ops::categorical_crossentropy(row, x), ShapeError);
}

}  // namespace keras_ops_c_test
