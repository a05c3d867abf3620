#include <tessera/layers/normalization/normalization.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/layer_check.hpp"

namespace rms_normalization_test {

using namespace tessera;
using Catch::Matchers::Contains;

TEST_CASE("RMSNormalization under every layout") {
  test::run_golden_layer_test({.make = [] { return RMSNormalization({.axis = {1}}); },
                               .input = {{2, 3, 4}},
                               .output = {2, 3, 4},
                               .weights = {{"scale", {3}}}});
}

TEST_CASE("RMSNormalization with add_unit_offset multiplies by 1 + scale, under every layout") {
  test::run_layer_test(
      {.make = [] { return RMSNormalization({.axis = {1}, .add_unit_offset = true}); },
       .input = {{2, 3, 4}},
       .output = {2, 3, 4},
       .weights = {{"scale", {3}}},
       .config = {{"axis", 1}, {"epsilon", 1e-6}, {"add_unit_offset", true}}});
  const RMSNormalization layer({.add_unit_offset = true, .dtype = "bfloat16"}), plain;
  const at::Tensor x = at::tensor({3.0F, -4.0F}).view({1, 2});
  const auto on_mesh = [](const at::Tensor& y) {
    return pack(y, Layout::replicated(default_mesh(), y.dim()));
  };
  CHECK(at::equal(layer(on_mesh(x)).full().to(at::kFloat),
                  plain(on_mesh(x)).full().to(at::kBFloat16).to(at::kFloat)));
  // In bfloat16, 1 + scale would be 1, and 1.4 · (1 + scale) less by 2^-7.
  layer->weights()[0].assign(on_mesh(at::full({2}, 0.00390625, at::kBFloat16)));
  const at::Tensor row = at::tensor({7.0F, 1.0F}).view({1, 2});
  CHECK(layer(on_mesh(row)).full()[0][0].item<double>() == 1.40625);
  // Keras' layer lacks the key, which is written only if it is true.
  CHECK(!plain->config().contains("add_unit_offset"));
}

TEST_CASE("RMSNormalization refuses invalid arguments by name") {
  CHECK_THROWS_WITH(RMSNormalization({.axis = {}, .name = "r"}), Contains("[RMSNormalization r]"));
  CHECK_THROWS_WITH(RMSNormalization({.axis = {2}, .name = "r"})->build({{3, 4}}),
                    Contains("[RMSNormalization r]") && Contains("axis 2"));
}

}  // namespace rms_normalization_test
