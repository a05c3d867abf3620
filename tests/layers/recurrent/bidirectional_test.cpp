#include <tessera/layers/recurrent/bidirectional.hpp>

#include <tessera/layers/recurrent/recurrent.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/keras_layers.hpp"
#include "tests/support/layer_check.hpp"

namespace bidirectional_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::error_line;

TEST_CASE("Bidirectional matches Keras on any mesh") {
  test::check_layers(test::golden_part("keras_sequences.json", "Bidirectional"));
}

TEST_CASE("Bidirectional under every layout") {
  test::run_golden_layer_test(
      {.make = [] { return Bidirectional(SimpleRNN(2, {.use_bias = false})); },
       .input = {{3, 4, 5}},
       .output = {3, 4},
       .weights = {{"forward_simple_rnn/simple_rnn_cell/kernel", {5, 2}},
                   {"forward_simple_rnn/simple_rnn_cell/recurrent_kernel", {2, 2}},
                   {"backward_simple_rnn/simple_rnn_cell/kernel", {5, 2}},
                   {"backward_simple_rnn/simple_rnn_cell/recurrent_kernel", {2, 2}}}});
}

TEST_CASE("the weights of both directions have Keras' paths") {
  const LayerHandle layer = Bidirectional(GRU(2), {.name = "both"});
  layer->build({{-1, 3, 4}});
  std::vector<std::string> paths;
  for (const Variable& weight : layer->weights()) paths.push_back(weight.path());
  std::vector<std::string> expected;
  for (const char* way : {"forward", "backward"}) {
    for (const char* weight : {"kernel", "recurrent_kernel", "bias"}) {
      expected.push_back(str("both/", way, "_gru/gru_cell/", weight));
    }
  }
  CHECK(paths == expected);
}

TEST_CASE("Bidirectional refuses incompatible layers") {
  CHECK_THAT(error_line([] {
               Bidirectional(LSTM(2, {.go_backwards = true}),
                             {.backward_layer = LSTM(2, {.go_backwards = true})});
             }),
             Contains("[Bidirectional") && Contains("go_backwards"));
  CHECK_THAT(error_line([] {
               Bidirectional(LSTM(2), {.backward_layer =
                                           GRU(2, {.return_state = true, .go_backwards = true})});
             }),
             Contains("return_state"));
}

}  // namespace bidirectional_test
