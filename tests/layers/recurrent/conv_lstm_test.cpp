#include <tessera/layers/recurrent/conv_lstm.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/internal/random_stream.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/keras_layers.hpp"
#include "tests/support/layer_check.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace conv_lstm_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;
using test::error_line;

namespace {

at::Tensor drawn(const Shape& shape, uint64_t seed = 1) {
  return test::random_values({shape}, seed).to(at::kFloat);
}

DTensor batch(const at::Tensor& full, int64_t devices = 1) {
  const Mesh mesh = create_mesh({{"batch", devices}}, virtual_cpus(devices));
  return pack(full, Layout::batch_sharded(mesh, "batch", full.dim()));
}

}  // namespace

TEST_CASE("ConvLSTM1D, 2D and 3D match Keras on any mesh") {
  test::check_layers(test::golden_part("keras_cells.json", "ConvLSTM"));
}

TEST_CASE("ConvLSTM1D under every layout") {
  test::run_golden_layer_test(
      {.make =
           [] {
             return ConvLSTM1D(2, 3, {.padding = "same", .dropout = 0.1, .recurrent_dropout = 0.2});
           },
       .input = {{3, 2, 5, 3}},
       .output = {3, 5, 2},
       .weights = {{"conv_lstm_cell/kernel", {3, 3, 8}},
                   {"conv_lstm_cell/recurrent_kernel", {3, 2, 8}},
                   {"conv_lstm_cell/bias", {8}}}});
}

TEST_CASE("ConvLSTM2D under every layout") {
  test::run_golden_layer_test({.make = [] { return ConvLSTM2D(2, 2, {.return_sequences = true}); },
                               .input = {{2, 2, 5, 4, 3}},
                               .output = {2, 2, 4, 3, 2},
                               .weights = {{"conv_lstm_cell/kernel", {2, 2, 3, 8}},
                                           {"conv_lstm_cell/recurrent_kernel", {2, 2, 2, 8}},
                                           {"conv_lstm_cell/bias", {8}}},
                               .more_inputs = {{{2, 4, 3, 2}}, {{2, 4, 3, 2}}}});
}

TEST_CASE("a ConvLSTM2D with channels first is one with channels last of transposed images") {
  const at::Tensor x = drawn({2, 3, 5, 4, 2});
  const auto made = [](const char* format) {
    return ConvLSTM2D(3, 2, {.data_format = format, .return_sequences = true, .name = "same"});
  };
  const at::Tensor last = made("channels_last")(batch(x)).full();
  const at::Tensor first =
      made("channels_first")(batch(x.permute({0, 1, 4, 2, 3}).contiguous())).full();
  CHECK(first.sizes().vec() == Shape{2, 3, 3, 4, 3});
  CHECK(difference(first.permute({0, 1, 3, 4, 2}), last, 1e-5, 1e-6) == "");
}

TEST_CASE("a stateful ConvLSTM1D resumes from the states of the previous batch") {
  const at::Tensor x = drawn({4, 6, 5, 2});
  for (const int64_t devices : {1, 3}) {
    CAPTURE(devices);
    const DefaultMeshScope mesh(batch(x, devices).mesh());
    const ConvLSTM1D stateless(3, 2, {.name = "same"});
    const ConvLSTM1D halves(3, 2, {.stateful = true, .name = "same"});
    const at::Tensor expected = stateless(batch(x, devices)).full();
    for (int turn = 0; turn < 2; ++turn) {
      halves(batch(x.narrow(1, 0, 2).contiguous(), devices));
      const DTensor rest = batch(x.narrow(1, 2, 4).contiguous(), devices);
      CHECK(difference(halves(rest).full(), expected, 1e-5, 1e-6) == "");
      halves.reset_state();
    }
  }
}

TEST_CASE("dropout of a ConvLSTM1D differs by step of training, not by mesh") {
  const at::Tensor x = drawn({5, 3, 4, 2});
  const auto made = [] {
    return ConvLSTM1D(2, 2, {.dropout = 0.4, .recurrent_dropout = 0.3, .name = "same"});
  };
  const auto step = [](int64_t number) {
    return CallContext{.training = true, .random = std::make_shared<RandomStream>(7, number)};
  };
  const ConvLSTM1D layer = made();
  const at::Tensor plain = layer(batch(x)).full(), first = layer(batch(x), step(1)).full();
  CHECK(difference(first, plain, 1e-3) != "");
  CHECK(difference(layer(batch(x), step(2)).full(), first, 1e-3) != "");
  CHECK(difference(layer(batch(x), step(1)).full(), first) == "");
  const DefaultMeshScope mesh(batch(x, 3).mesh());
  CHECK(difference(made()(batch(x, 3), step(1)).full(), first, 1e-5, 1e-6) == "");
}

TEST_CASE("ConvLSTM refuses invalid arguments in one line") {
  CHECK_THAT(error_line([] { ConvLSTM2D(0, 2); }), Contains("[ConvLSTM2D") && Contains("filters"));
  CHECK_THAT(error_line([] { ConvLSTM2D(2, {1, 2, 3}); }), Contains("kernel_size"));
  CHECK_THAT(error_line([] { ConvLSTM1D(2, 2, {.padding = "causal"}); }), Contains("\"same\""));
  CHECK_THAT(error_line([] { ConvLSTM1D(2, 2, {.data_format = "first"}); }),
             Contains("data_format"));
  CHECK_THAT(error_line([] {
               ConvLSTM2D(2, 2, {.strides = {1, 2}, .dilation_rate = 2, .name = "c"});
             }),
             Contains("[ConvLSTM2D c]") && Contains("(1, 2) and dilation_rate (2, 2)"));
  CHECK_THAT(error_line([] { ConvLSTM3D(2, 2, {.dropout = 1.0}); }), Contains("dropout"));
  const auto call = [](const Shapes& shapes) {
    return error_line([&] {
      Inputs inputs;
      for (const Shape& shape : shapes) inputs.push_back(batch(drawn(shape)));
      LayerHandle(ConvLSTM1D(3, 2, {.name = "c"})).outputs(inputs);
    });
  };
  CHECK_THAT(call({{4, 5, 2}}), Contains("[ConvLSTM1D c]") && Contains("(4, 5, 2)"));
  CHECK_THAT(call({{4, 5, 3, 2}, {4, 2, 3}}), Contains("2 inputs"));
  CHECK_THAT(call({{4, 5, 3, 2}, {4, 2, 3}, {4, 3, 3}}), Contains("(4, 2, 3)"));
  CHECK_THAT(call({{4, 5, 1, 2}}), Contains("a window of 2"));
}

}  // namespace conv_lstm_test
