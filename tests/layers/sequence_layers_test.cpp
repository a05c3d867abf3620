#include <tessera/layers/layers.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/layer_check.hpp"

namespace sequence_layers_test {

using namespace tessera;

namespace {

/// The golden files hold the configurations; here they come back as they were written.
void run_layer_test(test::LayerTest layer) {
  const test::DTypeScope double_precision("float64");
  layer.config = layer.make()->config();
  for (const char* common : {"name", "trainable", "dtype"}) layer.config.erase(common);
  test::run_layer_test(layer);
}

}  // namespace

TEST_CASE("layer, group and RMS normalization under every layout") {
  run_layer_test({.make = [] { return LayerNormalization(); },
                  .input = {{3, 5}},
                  .output = {3, 5},
                  .weights = {{"gamma", {5}}, {"beta", {5}}}});
  run_layer_test({.make = [] { return LayerNormalization({.axis = {2, 1}, .center = false}); },
                  .input = {{2, 3, 4}},
                  .output = {2, 3, 4},
                  .weights = {{"gamma", {3, 4}}}});
  run_layer_test({.make = [] { return RMSNormalization({.axis = {1}}); },
                  .input = {{2, 3, 4}},
                  .output = {2, 3, 4},
                  .weights = {{"scale", {3}}}});
  run_layer_test({.make = [] { return GroupNormalization({.groups = 3}); },
                  .input = {{2, 5, 6}},
                  .output = {2, 5, 6},
                  .weights = {{"gamma", {6}}, {"beta", {6}}}});
}

TEST_CASE("EinsumDense under every layout") {
  run_layer_test({.make = [] { return EinsumDense("abc,cde->abde", {-1, 2, 3},
                                                  {.bias_axes = "de"}); },
                  .input = {{2, 3, 4}},
                  .output = {2, 3, 2, 3},
                  .weights = {{"kernel", {4, 2, 3}}, {"bias", {2, 3}}}});
}

}  // namespace sequence_layers_test
