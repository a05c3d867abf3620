#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/layers.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace recurrent_test {

using namespace tessera;
using Catch::Matchers::Contains;
using test::difference;

namespace {

at::Tensor drawn(const Shape& shape, uint64_t seed = 1) {
  return test::random_values({shape}, seed).to(at::kFloat);
}

DTensor batch(const at::Tensor& whole, int64_t devices = 1) {
  const Mesh mesh = create_mesh({{"batch", devices}}, virtual_cpus(devices));
  return pack(whole, Layout::batch_sharded(mesh, "batch", whole.dim()));
}

/// A layer of every kind with these options.
template <class Change>
std::vector<LayerHandle> of_every_kind(const Change& change) {
  const auto with = [&](auto options) {
    change(options);
    return options;
  };
  return {SimpleRNN(3, with(SimpleRNNOptions{})), LSTM(3, with(LSTMOptions{})),
          GRU(3, with(GRUOptions{})), GRU(3, with(GRUOptions{.reset_after = false}))};
}

CallContext training_step(int64_t step) {
  return {.training = true, .random = std::make_shared<RandomStream>(7, step)};
}

std::string error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a stateful layer goes on where the batch before it ended") {
  const at::Tensor x = drawn({4, 6, 2});
  for (const int64_t devices : {1, 3}) {
    const DefaultMeshScope mesh(batch(x, devices).mesh());
    for (const LayerHandle& whole : of_every_kind([](auto& o) { o.name = "same"; })) {
      CAPTURE(devices, whole->class_name());
      Json config = whole->config();
      config["stateful"] = true;
      const Json json = {{"class_name", whole->class_name()}, {"config", config}};
      const LayerHandle halves = layer_from_config(json, JsonPath("test"));
      const at::Tensor expected = whole(batch(x, devices)).full();
      auto& layer = static_cast<RecurrentLayer&>(*halves.layer());
      for (int turn = 0; turn < 2; ++turn) {
        halves(batch(x.narrow(1, 0, 2), devices));
        CHECK(difference(halves(batch(x.narrow(1, 2, 4), devices)).full(), expected, 1e-5, 1e-6) ==
              "");
        layer.reset_state();
      }
      halves(batch(x, devices));
      CHECK_THAT(error_of([&] { halves(batch(x.narrow(0, 0, 3), devices)); }),
                 Contains("stateful") && Contains("4 rows"));
      CHECK(halves->weights().size() == whole->weights().size());
    }
  }
}

TEST_CASE("dropout of inputs and states is the same at all steps and on all meshes") {
  const at::Tensor ones = at::ones({5, 3, 4});
  const auto layers = [](double inputs, double states) {
    return of_every_kind([&](auto& o) {
      o.dropout = inputs;
      o.recurrent_dropout = states;
      o.return_sequences = true;
      o.name = "same";
    });
  };
  for (const auto& [inputs, states] : {std::pair(0.5, 0.0), {0.0, 0.5}, {0.4, 0.3}}) {
    for (size_t kind = 0; kind < 4; ++kind) {
      CAPTURE(inputs, states, kind);
      const LayerHandle layer = layers(inputs, states)[kind];
      const at::Tensor plain = layer(batch(ones)).full();
      const at::Tensor first = layer(batch(ones), training_step(1)).full();
      CHECK(difference(first, plain, 1e-3) != "");
      CHECK(difference(layer(batch(ones), training_step(2)).full(), first, 1e-3) != "");
      CHECK(difference(layer(batch(ones), training_step(1)).full(), first) == "");
      const DefaultMeshScope mesh(batch(ones, 3).mesh());
      const LayerHandle apart = layers(inputs, states)[kind];
      CHECK(difference(apart(batch(ones, 3), training_step(1)).full(), first, 1e-5, 1e-6) == "");
    }
  }
}

TEST_CASE("a dropped input is dropped at every step") {
  // The kernel adds the inputs; states do not count.
  const LayerHandle layer = SimpleRNN(1, {.activation = "linear",
                                          .kernel_initializer = "ones",
                                          .recurrent_initializer = "zeros",
                                          .dropout = 0.5,
                                          .return_sequences = true});
  const at::Tensor y = layer(batch(at::ones({64, 3, 4})), training_step(1)).full();
  CHECK(difference(y.select(1, 0), y.select(1, 2)) == "");
  for (const double sum : {0.0, 2.0, 4.0, 6.0, 8.0}) CHECK(y.eq(sum).any().item<bool>());
  CHECK(y.mean().item<double>() == Approx(4).margin(0.5));
}

TEST_CASE("an LSTM's forget gate starts with a bias of ones") {
  const auto bias = [](bool forget) {
    const LayerHandle layer = LSTM(2, {.bias_initializer = "random_normal",
                                       .unit_forget_bias = forget});
    layer->build({{-1, 3, 4}});
    return layer->weights()[2].value().full().clone();
  };
  CHECK(difference(bias(true).narrow(0, 2, 2), at::ones({2})) == "");
  CHECK(bias(true).narrow(0, 0, 2).abs().max().item<double>() > 0);
  CHECK(bias(true).narrow(0, 4, 4).abs().max().item<double>() < 0.9);
  CHECK(bias(false).abs().max().item<double>() < 0.9);
}

TEST_CASE("weights have Keras' paths") {
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

TEST_CASE("sequences of more steps than one operation takes") {
  const at::Tensor x = drawn({2, 75, 3});
  const LayerHandle layer = LSTM(2, {.return_sequences = true});
  const at::Tensor whole = layer(batch(x)).full();
  const at::Tensor start = layer(batch(x.narrow(1, 0, 40))).full();
  CHECK(difference(whole.narrow(1, 0, 40), start, 1e-5, 1e-6) == "");
  const LayerHandle reading = GRU(2, {.return_sequences = true, .go_backwards = true});
  const at::Tensor back = reading(batch(x)).full();
  CHECK(difference(back.narrow(1, 0, 5), reading(batch(x.narrow(1, 70, 5))).full(), 1e-5, 1e-6) ==
        "");
}

TEST_CASE("recurrent layers refuse what they cannot take, in one line") {
  CHECK_THAT(error_of([] { LSTM(0, {.name = "rnn"}); }), Contains("[LSTM rnn]") && Contains("0"));
  CHECK_THAT(error_of([] { LSTM(int64_t{1} << 31); }), Contains("2147483648"));
  CHECK_THAT(error_of([] { GRU(2, {.dropout = 1.0}); }), Contains("[GRU") && Contains("dropout"));
  CHECK_THAT(error_of([] { SimpleRNN(2, {.activation = "tan"}); }), Contains("\"tanh\""));
  const auto call = [](const std::vector<Shape>& shapes) {
    return error_of([&] {
      Inputs inputs;
      for (const Shape& shape : shapes) inputs.push_back(batch(drawn(shape)));
      LayerHandle(LSTM(3, {.name = "rnn"})).outputs(inputs);
    });
  };
  CHECK_THAT(call({{4, 5}}), Contains("[LSTM rnn]") && Contains("(4, 5)"));
  CHECK_THAT(call({{4, 5, 2}, {4, 3}}), Contains("2 inputs"));
  CHECK_THAT(call({{4, 5, 2}, {4, 3}, {4, 2}}), Contains("(4, 3)") && Contains("(4, 2)"));
  CHECK_THAT(call({{4, 0, 2}}), Contains("(4, 0, 2)"));
  CHECK_THAT(error_of([] { Bidirectional(LSTM(2, {.go_backwards = true}),
                                         {.backward_layer = LSTM(2, {.go_backwards = true})}); }),
             Contains("[Bidirectional") && Contains("go_backwards"));
  CHECK_THAT(error_of([] { Bidirectional(LSTM(2), {.backward_layer =
                                         GRU(2, {.return_state = true, .go_backwards = true})}); }),
             Contains("return_state"));
  CHECK_THAT(error_of([] { LayerHandle(TimeDistributed(Dense(2)))(batch(drawn({3, 4}))); }),
             Contains("[TimeDistributed") && Contains("(3, 4)"));
}

}  // namespace recurrent_test
