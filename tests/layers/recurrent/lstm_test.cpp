#include <tessera/layers/recurrent/recurrent.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/keras_layers.hpp"
#include "tests/support/layer_check.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace lstm_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;
using test::error_line;

namespace {

at::Tensor drawn(const Shape& shape) { return test::random_values({shape}, 1).to(at::kFloat); }

DTensor on_default(const at::Tensor& x) {
  return pack(x, Layout::replicated(default_mesh(), x.dim()));
}

}  // namespace

TEST_CASE("LSTM matches Keras on any mesh") {
  test::check_layers(test::golden_part("keras_sequences.json", "LSTM"));
}

TEST_CASE("LSTM under every layout") {
  test::run_golden_layer_test({.make = [] { return LSTM(2, {.kernel_regularizer = "l2"}); },
                               .input = {{3, 4, 5}},
                               .output = {3, 2},
                               .weights = {{"lstm_cell/kernel", {5, 8}},
                                           {"lstm_cell/recurrent_kernel", {2, 8}},
                                           {"lstm_cell/bias", {8}}},
                               .more_inputs = {{{3, 2}}, {{3, 2}}}});
}

TEST_CASE("an LSTM's forget gate starts with a bias of ones") {
  const auto bias = [](bool forget) {
    const LayerHandle layer =
        LSTM(2, {.bias_initializer = "random_normal", .unit_forget_bias = forget});
    layer->build({{-1, 3, 4}});
    return layer->weights()[2].value().full().clone();
  };
  CHECK(difference(bias(true).narrow(0, 2, 2), at::ones({2})) == "");
  CHECK(bias(true).narrow(0, 0, 2).abs().max().item<double>() > 0);
  CHECK(bias(true).narrow(0, 4, 4).abs().max().item<double>() < 0.9);
  CHECK(bias(false).abs().max().item<double>() < 0.9);
}

TEST_CASE("an LSTM takes sequences longer than one operation handles") {
  const at::Tensor x = drawn({2, 75, 3});
  const LayerHandle layer = LSTM(2, {.return_sequences = true});
  const at::Tensor full = layer(on_default(x)).full();
  const at::Tensor start = layer(on_default(x.narrow(1, 0, 40))).full();
  CHECK(difference(full.narrow(1, 0, 40), start, 1e-5, 1e-6) == "");
}

TEST_CASE("LSTM refuses invalid arguments in one line") {
  CHECK_THAT(error_line([] { LSTM(0, {.name = "rnn"}); }), Contains("[LSTM rnn]") && Contains("0"));
  CHECK_THAT(error_line([] { LSTM(int64_t{1} << 31); }), Contains("2147483648"));
  const auto call = [](const std::vector<Shape>& shapes) {
    return error_line([&] {
      Inputs inputs;
      for (const Shape& shape : shapes) inputs.push_back(on_default(drawn(shape)));
      LayerHandle(LSTM(3, {.name = "rnn"})).outputs(inputs);
    });
  };
  CHECK_THAT(call({{4, 5}}), Contains("[LSTM rnn]") && Contains("(4, 5)"));
  CHECK_THAT(call({{4, 5, 2}, {4, 3}}), Contains("2 inputs"));
  CHECK_THAT(call({{4, 5, 2}, {4, 3}, {4, 2}}), Contains("(4, 3)") && Contains("(4, 2)"));
  CHECK_THAT(call({{4, 0, 2}}), Contains("(4, 0, 2)"));
}

}  // namespace lstm_test
