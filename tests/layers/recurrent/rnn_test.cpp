#include <tessera/layers/recurrent/rnn.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/internal/random_stream.hpp>
#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/core/dense.hpp>
#include <tessera/layers/recurrent/bidirectional.hpp>
#include <tessera/layers/recurrent/cells.hpp>
#include <tessera/layers/recurrent/recurrent.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/keras_layers.hpp"
#include "tests/support/layer_check.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace rnn_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;
using test::error_line;

namespace {

const Json& cases(const std::string& part) { return test::golden_part("keras_cells.json", part); }

/// MixingCell of make_keras_cells.py: two states of different extents, and another output.
class MixingCell final : public RNNCell {
 public:
  MixingCell(int64_t units, int64_t outputs, const LayerOptions& options = {})
      : RNNCell(options), units_(units), outputs_(outputs) {}
  std::string class_name() const override { return "MixingCell"; }
  Json config() const override {
    Json json = RNNCell::config();
    json["units"] = units_;
    json["outputs"] = outputs_;
    return json;
  }
  std::vector<int64_t> state_sizes() const override { return {units_, outputs_}; }
  int64_t output_size() const override { return outputs_; }
  bool can_be_replayed() const override { return true; }

 protected:
  void make_weights(const Shapes& inputs) override {
    kernel_ = add_weight("kernel", {inputs[0].back(), units_}, "glorot_uniform");
    recurrent_kernel_ = add_weight("recurrent_kernel", {units_, outputs_}, "glorot_uniform");
  }
  std::vector<DTensor> step(const DTensor& inputs, const std::vector<DTensor>& states,
                            const CallContext&) override {
    const DTensor h = ops::tanh(ops::matmul(inputs, read(kernel_)) + states[0]);
    const DTensor y = ops::matmul(h, read(recurrent_kernel_));
    return {y - states[1], h, y};
  }

 private:
  int64_t units_, outputs_;
  Variable kernel_, recurrent_kernel_;
};

[[maybe_unused]] const bool registered = [] {
  register_layer("MixingCell", [](JsonObject& config) {
    const LayerOptions options = take_layer_options(config);
    const auto units = config.take<int64_t>("units"), outputs = config.take<int64_t>("outputs");
    return make_layer<MixingCell>(units, outputs, options);
  });
  return true;
}();

/// A cell with a layer of its own inside, and no state but its output.
class DenseCell final : public RNNCell {
 public:
  std::string class_name() const override { return "DenseCell"; }
  std::vector<int64_t> state_sizes() const override { return {3}; }

 protected:
  std::vector<DTensor> step(const DTensor& inputs, const std::vector<DTensor>& states,
                            const CallContext&) override {
    const DTensor y = ops::tanh(inner_(inputs) + states[0]);
    return {y, y};
  }

 private:
  LayerHandle inner_ = track("inner", Dense(3));
};

/// A cell that returns no states.
class StatelessCell final : public RNNCell {
 public:
  std::string class_name() const override { return "StatelessCell"; }
  std::vector<int64_t> state_sizes() const override { return {2}; }

 protected:
  std::vector<DTensor> step(const DTensor& inputs, const std::vector<DTensor>&,
                            const CallContext&) override {
    return {inputs};
  }
};

at::Tensor drawn(const Shape& shape, uint64_t seed = 1) {
  return test::random_values({shape}, seed).to(at::kFloat);
}

DTensor batch(const at::Tensor& full, int64_t devices = 1) {
  const Mesh mesh = create_mesh({{"batch", devices}}, virtual_cpus(devices));
  return pack(full, Layout::batch_sharded(mesh, "batch", full.dim()));
}

CallContext training_step(int64_t step) {
  return {.training = true, .random = std::make_shared<RandomStream>(7, step)};
}

std::vector<std::string> paths_of(const LayerHandle& layer) {
  std::vector<std::string> paths;
  for (const Variable& weight : layer->weights()) paths.push_back(weight.path());
  return paths;
}

/// Each fused layer and an RNN of its cell.
std::vector<std::pair<LayerHandle, RNN>> pairs(bool sequences) {
  const RNNOptions loop = {.return_sequences = sequences};
  return {{SimpleRNN(3, {.return_sequences = sequences}), RNN(SimpleRNNCell(3), loop)},
          {LSTM(3, {.return_sequences = sequences}), RNN(LSTMCell(3), loop)},
          {GRU(3, {.return_sequences = sequences}), RNN(GRUCell(3), loop)},
          {GRU(3, {.return_sequences = sequences, .reset_after = false}),
           RNN(GRUCell(3, {.reset_after = false}), loop)}};
}

}  // namespace

TEST_CASE("SimpleRNNCell, GRUCell and LSTMCell match Keras on any mesh") {
  test::check_layers(cases("cells"));
}

TEST_CASE("RNN of each cell matches Keras on any mesh") { test::check_layers(cases("RNN")); }

TEST_CASE("RNN of stacked cells matches Keras on any mesh") {
  test::check_layers(cases("stacked"));
}

TEST_CASE("RNN of a user's own cell matches Keras on any mesh") {
  test::check_layers(cases("own"));
}

TEST_CASE("Bidirectional of RNN and ConvLSTM1D matches Keras on any mesh") {
  test::check_layers(cases("Bidirectional"));
}

TEST_CASE("RNN under every layout") {
  test::run_golden_layer_test(
      {.make = [] { return RNN(LSTMCell(2, {.kernel_regularizer = "l2", .name = "cell"})); },
       .input = {{3, 4, 5}},
       .output = {3, 2},
       .weights = {{"cell/kernel", {5, 8}}, {"cell/recurrent_kernel", {2, 8}}, {"cell/bias", {8}}},
       .more_inputs = {{{3, 2}}, {{3, 2}}}});
}

TEST_CASE("RNN of stacked cells with dropout under every layout") {
  test::run_golden_layer_test(
      {.make =
           [] {
             return RNN(
                 StackedRNNCells(
                     {GRUCell(2, {.dropout = 0.1, .recurrent_dropout = 0.3, .name = "first"}),
                      SimpleRNNCell(3, {.dropout = 0.2, .name = "second"})},
                     {.name = "stack"}),
                 {.return_sequences = true});
           },
       .input = {{3, 4, 5}},
       .output = {3, 4, 3},
       .weights = {{"stack/first/kernel", {5, 6}},
                   {"stack/first/recurrent_kernel", {2, 6}},
                   {"stack/first/bias", {2, 6}},
                   {"stack/second/kernel", {2, 3}},
                   {"stack/second/recurrent_kernel", {3, 3}},
                   {"stack/second/bias", {3}}}});
}

TEST_CASE("an RNN of a cell equals the fused layer of that cell, masked or not") {
  const at::Tensor x = drawn({4, 5, 2});
  at::Tensor mask = at::ones({4, 5}, at::kBool);
  mask[0].slice(0, 3).fill_(false);
  mask[1][2] = false;
  for (const bool masked : {false, true}) {
    for (const auto& [fused, loop] : pairs(masked)) {
      CAPTURE(fused->class_name(), masked);
      const DTensor in = masked ? batch(x).with_mask(batch(mask)) : batch(x);
      const at::Tensor expected = fused(in).full().clone();
      loop(in);
      for (size_t w = 0; w < fused->weights().size(); ++w) {
        Variable weight = loop->weights()[w];
        weight.assign(fused->weights()[w].value());
      }
      CHECK(difference(loop(in).full(), expected, 1e-5, 1e-6) == "");
    }
  }
}

TEST_CASE("the weights of cells have paths by the cells' names") {
  const RNN layer({LSTMCell(2), GRUCell(2), LSTMCell(2, {.use_bias = false})}, {.name = "loop"});
  layer->build({{-1, 3, 4}});
  const std::string stack = "loop/stacked_rnn_cells/";
  CHECK(paths_of(layer) ==
        std::vector<std::string>{stack + "lstm_cell/kernel", stack + "lstm_cell/recurrent_kernel",
                                 stack + "lstm_cell/bias", stack + "gru_cell/kernel",
                                 stack + "gru_cell/recurrent_kernel", stack + "gru_cell/bias",
                                 stack + "lstm_cell_1/kernel",
                                 stack + "lstm_cell_1/recurrent_kernel"});
  CHECK(layer->output_shapes({{-1, 3, 4}}) == Shapes{{-1, 2}});
  const RNN own(make_layer<DenseCell>(), {.return_state = true, .name = "own"});
  own->build({{-1, 3, 4}});
  CHECK(paths_of(own) ==
        std::vector<std::string>{"own/dense_cell/dense/kernel", "own/dense_cell/dense/bias"});
  CHECK(own->output_shapes({{-1, 3, 4}}) == Shapes{{-1, 3}, {-1, 3}});
}

TEST_CASE("an RNN may be replayed if its cells may") {
  CHECK(RNN(LSTMCell(2))->can_be_replayed());
  CHECK(RNN(make_layer<MixingCell>(2, 3))->can_be_replayed());
  CHECK_FALSE(RNN(make_layer<DenseCell>())->can_be_replayed());
  CHECK_FALSE(RNN({LSTMCell(2), make_layer<DenseCell>()})->can_be_replayed());
}

TEST_CASE("a stateful RNN resumes from the states of the previous batch") {
  const at::Tensor x = drawn({4, 6, 2});
  for (const int64_t devices : {1, 3}) {
    CAPTURE(devices);
    const DefaultMeshScope mesh(batch(x, devices).mesh());
    const auto made = [](bool stateful) {
      return RNN(StackedRNNCells({LSTMCell(3, {.name = "a"}), make_layer<MixingCell>(2, 4)}),
                 {.stateful = stateful, .name = "same"});
    };
    const RNN stateless = made(false), halves = made(true);
    const at::Tensor expected = stateless(batch(x, devices)).full();
    for (int turn = 0; turn < 2; ++turn) {
      halves(batch(x.narrow(1, 0, 2), devices));
      CHECK(difference(halves(batch(x.narrow(1, 2, 4), devices)).full(), expected, 1e-5, 1e-6) ==
            "");
      halves.reset_state();
    }
    halves(batch(x, devices));
    CHECK_THAT(error_line([&] { halves(batch(x.narrow(0, 0, 3), devices)); }),
               Contains("stateful") && Contains("4 rows"));
    CHECK(halves->weights().size() == stateless->weights().size());
  }
}

TEST_CASE("dropout of a cell is the same at all steps and on all meshes") {
  const at::Tensor ones = at::ones({64, 3, 4});
  const auto made = [] {
    return RNN(SimpleRNNCell(1, {.activation = "linear",
                                 .kernel_initializer = "ones",
                                 .recurrent_initializer = "zeros",
                                 .dropout = 0.5}),
               {.return_sequences = true, .name = "same"});
  };
  const RNN layer = made();
  const at::Tensor y = layer(batch(ones), training_step(1)).full();
  CHECK(difference(y.select(1, 0), y.select(1, 2)) == "");
  for (const double sum : {0.0, 2.0, 4.0, 6.0, 8.0}) CHECK(y.eq(sum).any().item<bool>());
  CHECK(difference(layer(batch(ones), training_step(2)).full(), y, 1e-3) != "");
  CHECK(difference(layer(batch(ones)).full(), at::full({64, 3, 1}, 4.0)) == "");
  const DefaultMeshScope mesh(batch(ones, 3).mesh());
  const RNN apart = made();
  CHECK(difference(apart(batch(ones, 3), training_step(1)).full(), y, 1e-5, 1e-6) == "");
}

TEST_CASE("a configuration holds the cells as Keras writes them") {
  const Json config = Bidirectional(RNN({LSTMCell(2), GRUCell(3)}))->config();
  const Json& cell = config.at("layer").at("config").at("cell");
  CHECK(cell.at("module") == "keras.layers");
  CHECK(cell.at("class_name") == "StackedRNNCells");
  const Json& cells = cell.at("config").at("cells");
  REQUIRE(cells.size() == 2);
  CHECK(cells[0].at("class_name") == "LSTMCell");
  CHECK(cells[1].at("config").at("units") == 3);
  CHECK(config.at("backward_layer").at("config").at("go_backwards") == true);
}

TEST_CASE("RNN and its cells refuse invalid arguments in one line") {
  CHECK_THAT(error_line([] { RNN(Dense(2), {.name = "r"}); }),
             Contains("[RNN r]") && Contains("an RNNCell") && Contains("Received: Dense"));
  CHECK_THAT(error_line([] {
               StackedRNNCells({LSTMCell(2), Dense(2)});
             }),
             Contains("[StackedRNNCells") && Contains("Dense"));
  CHECK_THAT(error_line([] { StackedRNNCells(std::vector<LayerHandle>{}); }),
             Contains("at least one cell"));
  CHECK_THAT(error_line([] { RNN(make_layer<MixingCell>(0, 2)); }), Contains("(0, 2)"));
  CHECK_THAT(error_line([] { LSTMCell(0, {.name = "c"}); }), Contains("[LSTMCell c]"));
  CHECK_THAT(error_line([] { GRUCell(2, {.dropout = 1.0}); }),
             Contains("[GRUCell") && Contains("dropout"));
  CHECK_THAT(error_line([] { SimpleRNNCell(2, {.activation = "tan"}); }), Contains("\"tanh\""));
}

TEST_CASE("RNN refuses inputs that do not fit its cell") {
  const auto call = [](const RNN& layer, const std::vector<Shape>& shapes) {
    return error_line([&] {
      Inputs inputs;
      for (const Shape& shape : shapes) inputs.push_back(batch(drawn(shape)));
      layer.outputs(inputs);
    });
  };
  const RNN layer(LSTMCell(3), {.name = "r"});
  CHECK_THAT(call(layer, {{4, 5}}), Contains("[RNN r]") && Contains("(4, 5)"));
  CHECK_THAT(call(layer, {{4, 5, 2}, {4, 3}}), Contains("2 inputs"));
  CHECK_THAT(call(layer, {{4, 5, 2}, {4, 3}, {4, 2}}), Contains("(4, 3)") && Contains("(4, 2)"));
  CHECK_THAT(call(layer, {{4, 5, 2, 1}}), Contains("batch and features") && Contains("(4, 2, 1)"));
  layer(batch(drawn({4, 5, 2})));
  CHECK_THAT(call(layer, {{4, 5, 3}}), Contains("2 features") && Contains("(4, 3)"));
  CHECK_THAT(call(RNN(make_layer<StatelessCell>()), {{4, 5, 2}}),
             Contains("step() returns the output and 1 states"));
  CHECK_THAT(error_line([] {
               LayerHandle(LSTMCell(2))(batch(drawn({4, 5})));
             }),
             Contains("[LSTMCell") && Contains("1 inputs"));
}

}  // namespace rnn_test
