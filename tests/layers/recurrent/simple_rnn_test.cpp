#include <tessera/framework/nn/internal/random_stream.hpp>
#include <tessera/layers/recurrent/recurrent.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/keras_layers.hpp"
#include "tests/support/layer_check.hpp"

namespace simple_rnn_test {

using namespace tessera;
using namespace tessera::detail;

TEST_CASE("SimpleRNN matches Keras on any mesh") {
  test::check_layers(test::golden_part("keras_sequences.json", "SimpleRNN"));
}

TEST_CASE("SimpleRNN under every layout") {
  test::run_golden_layer_test(
      {.make = [] { return SimpleRNN(2, {.dropout = 0.2, .return_sequences = true}); },
       .input = {{3, 4, 5}},
       .output = {3, 4, 2},
       .weights = {{"simple_rnn_cell/kernel", {5, 2}},
                   {"simple_rnn_cell/recurrent_kernel", {2, 2}},
                   {"simple_rnn_cell/bias", {2}}}});
}

TEST_CASE("a dropped input is dropped at every step") {
  // The kernel adds the inputs; the states have no effect.
  const LayerHandle layer = SimpleRNN(1, {.activation = "linear",
                                          .kernel_initializer = "ones",
                                          .recurrent_initializer = "zeros",
                                          .dropout = 0.5,
                                          .return_sequences = true});
  const DTensor x = pack(at::ones({64, 3, 4}), Layout::replicated(default_mesh(), 3));
  const CallContext training{.training = true, .random = std::make_shared<RandomStream>(7, 1)};
  const at::Tensor y = layer(x, training).full();
  CHECK(test::difference(y.select(1, 0), y.select(1, 2)) == "");
  for (const double sum : {0.0, 2.0, 4.0, 6.0, 8.0}) CHECK(y.eq(sum).any().item<bool>());
  CHECK(y.mean().item<double>() == Approx(4).margin(0.5));
}

TEST_CASE("SimpleRNN refuses an unknown activation") {
  CHECK_THAT(test::error_line([] { SimpleRNN(2, {.activation = "tan"}); }),
             Catch::Matchers::Contains("\"tanh\""));
}

}  // namespace simple_rnn_test
