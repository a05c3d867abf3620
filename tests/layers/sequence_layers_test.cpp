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

TEST_CASE("recurrent layers under every layout") {
  run_layer_test({.make = [] { return SimpleRNN(2, {.dropout = 0.2, .return_sequences = true}); },
                  .input = {{3, 4, 5}},
                  .output = {3, 4, 2},
                  .weights = {{"simple_rnn_cell/kernel", {5, 2}},
                              {"simple_rnn_cell/recurrent_kernel", {2, 2}},
                              {"simple_rnn_cell/bias", {2}}}});
  run_layer_test({.make = [] { return LSTM(2, {.kernel_regularizer = "l2"}); },
                  .input = {{3, 4, 5}},
                  .output = {3, 2},
                  .weights = {{"lstm_cell/kernel", {5, 8}},
                              {"lstm_cell/recurrent_kernel", {2, 8}},
                              {"lstm_cell/bias", {8}}},
                  .more_inputs = {{{3, 2}}, {{3, 2}}}});
  run_layer_test({.make = [] { return GRU(2, {.dropout = 0.1, .recurrent_dropout = 0.3}); },
                  .input = {{3, 4, 5}},
                  .output = {3, 2},
                  .weights = {{"gru_cell/kernel", {5, 6}},
                              {"gru_cell/recurrent_kernel", {2, 6}},
                              {"gru_cell/bias", {2, 6}}}});
}

TEST_CASE("layers of layers under every layout") {
  run_layer_test({.make = [] { return Bidirectional(SimpleRNN(2, {.use_bias = false})); },
                  .input = {{3, 4, 5}},
                  .output = {3, 4},
                  .weights = {{"forward_simple_rnn/simple_rnn_cell/kernel", {5, 2}},
                              {"forward_simple_rnn/simple_rnn_cell/recurrent_kernel", {2, 2}},
                              {"backward_simple_rnn/simple_rnn_cell/kernel", {5, 2}},
                              {"backward_simple_rnn/simple_rnn_cell/recurrent_kernel", {2, 2}}}});
  run_layer_test({.make = [] { return TimeDistributed(Dense(3, {.name = "dense"})); },
                  .input = {{3, 4, 5}},
                  .output = {3, 4, 3},
                  .weights = {{"dense/kernel", {5, 3}}, {"dense/bias", {3}}}});
}

TEST_CASE("attention under every layout") {
  run_layer_test({.make = [] { return AdditiveAttention({.dropout = 0.2}); },
                  .input = {{2, 3, 4}},
                  .output = {2, 3, 5},
                  .weights = {{"scale", {4}}},
                  .more_inputs = {{{2, 2, 5}}, {{2, 2, 4}}}});
  run_layer_test({.make = [] { return MultiHeadAttention(2, 3, {.dropout = 0.2,
                                                                .use_bias = false}); },
                  .input = {{2, 3, 4}},
                  .output = {2, 3, 4},
                  .weights = {{"query/kernel", {4, 2, 3}}, {"key/kernel", {5, 2, 3}},
                              {"value/kernel", {5, 2, 3}},
                              {"attention_output/kernel", {2, 3, 4}}},
                  .more_inputs = {{{2, 4, 5}}}});
}

}  // namespace sequence_layers_test
