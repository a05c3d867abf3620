#include <tessera/layers/recurrent/time_distributed.hpp>

#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/core/dense.hpp>
#include <tessera/layers/recurrent/bidirectional.hpp>
#include <tessera/layers/recurrent/recurrent.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/keras_layers.hpp"
#include "tests/support/layer_check.hpp"

namespace time_distributed_test {

using namespace tessera;

TEST_CASE("TimeDistributed matches Keras on any mesh") {
  test::check_layers(test::golden_part("keras_sequences.json", "TimeDistributed"));
}

TEST_CASE("TimeDistributed under every layout") {
  test::run_golden_layer_test({.make = [] { return TimeDistributed(Dense(3, {.name = "dense"})); },
                               .input = {{3, 4, 5}},
                               .output = {3, 4, 3},
                               .weights = {{"dense/kernel", {5, 3}}, {"dense/bias", {3}}}});
}

TEST_CASE("a wrapped layer is written with the module in which Keras looks it up") {
  const Json config = TimeDistributed(Dense(2))->config();
  CHECK(config.at("layer").at("module") == "keras.layers");
  const Json both = Bidirectional(LSTM(2))->config();
  CHECK(both.at("layer").at("module") == "keras.layers");
  CHECK(both.at("backward_layer").at("module") == "keras.layers");
}

TEST_CASE("TimeDistributed refuses inputs without steps") {
  CHECK_THAT(test::error_line([] {
               LayerHandle(TimeDistributed(Dense(2)))(ones({3, 4}));
             }),
             Catch::Matchers::Contains("[TimeDistributed") && Catch::Matchers::Contains("(3, 4)"));
}

}  // namespace time_distributed_test
