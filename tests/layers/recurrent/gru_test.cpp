#include <tessera/layers/recurrent/recurrent.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/keras_core.hpp"
#include "tests/support/keras_layers.hpp"
#include "tests/support/layer_check.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace gru_test {

using namespace tessera;
using namespace tessera::detail;

TEST_CASE("GRU matches Keras on any mesh") {
  test::check_layers(test::golden_part("keras_sequences.json", "GRU"), [](size_t row) {
    return test::other_than_keras("keras_sequences.json", "GRU", row);
  });
}

TEST_CASE("GRU under every layout") {
  test::run_golden_layer_test(
      {.make = [] { return GRU(2, {.dropout = 0.1, .recurrent_dropout = 0.3}); },
       .input = {{3, 4, 5}},
       .output = {3, 2},
       .weights = {{"gru_cell/kernel", {5, 6}},
                   {"gru_cell/recurrent_kernel", {2, 6}},
                   {"gru_cell/bias", {2, 6}}}});
}

TEST_CASE("a backward GRU gives its outputs in the order in which it reads") {
  const at::Tensor x = test::random_values({{2, 75, 3}}, 1).to(at::kFloat);
  const LayerHandle layer = GRU(2, {.return_sequences = true, .go_backwards = true});
  const auto call = [&](const at::Tensor& steps) {
    return layer(pack(steps, Layout::replicated(default_mesh(), 3))).full();
  };
  CHECK(test::difference(call(x).narrow(1, 0, 5), call(x.narrow(1, 70, 5)), 1e-5, 1e-6) == "");
}

TEST_CASE("GRU refuses a dropout of 1") {
  CHECK_THAT(test::error_line([] { GRU(2, {.dropout = 1.0}); }),
             Catch::Matchers::Contains("[GRU") && Catch::Matchers::Contains("dropout"));
}

}  // namespace gru_test
