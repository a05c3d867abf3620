// The loop over time that SimpleRNN, LSTM and GRU share.
#include <ATen/ATen.h>

#include <tessera/framework/nn/internal/random_stream.hpp>
#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/recurrent/recurrent.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace recurrent_layer_test {

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

/// Returns a layer of every kind with these options.
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

}  // namespace

TEST_CASE("a stateful layer resumes from the state of the previous batch") {
  const at::Tensor x = drawn({4, 6, 2});
  for (const int64_t devices : {1, 3}) {
    const DefaultMeshScope mesh(batch(x, devices).mesh());
    for (const LayerHandle& stateless : of_every_kind([](auto& o) { o.name = "same"; })) {
      CAPTURE(devices, stateless->class_name());
      Json config = stateless->config();
      config["stateful"] = true;
      const Json json = {{"class_name", stateless->class_name()}, {"config", config}};
      const RecurrentHandle halves(layer_from_config(json, JsonPath("test")).layer());
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
}

TEST_CASE("a stateful layer keeps the final states of a call with initial states") {
  const at::Tensor x = drawn({4, 6, 2}), h = drawn({4, 3}, 2);
  const LayerHandle stateless = SimpleRNN(3, {.name = "same"});
  const SimpleRNN stateful(3, {.stateful = true, .name = "same"});
  const at::Tensor expected = stateless(Inputs{batch(x), batch(h)}).full();
  stateful(Inputs{batch(x.narrow(1, 0, 2)), batch(h)});
  CHECK(difference(stateful(batch(x.narrow(1, 2, 4))).full(), expected, 1e-5, 1e-6) == "");
  // After reset_state(), a batch may have another number of rows.
  stateful.reset_state();
  const DTensor fewer = batch(x.narrow(0, 0, 3));
  CHECK(difference(stateful(fewer).full(), stateless(fewer).full(), 1e-5, 1e-6) == "");
}

TEST_CASE("zero_output_for_mask does not change the last output") {
  const at::Tensor x = drawn({4, 5, 2});
  at::Tensor mask = at::ones({4, 5}, at::kBool);
  mask[0].slice(0, 3).fill_(false);
  mask[1].slice(0, 0, 2).fill_(false);
  mask[2][2] = false;
  for (const int64_t devices : {1, 2, 3}) {
    const DefaultMeshScope mesh(batch(x, devices).mesh());
    for (const bool backwards : {false, true}) {
      const auto layers = [&](bool zeros) {
        return of_every_kind([&](auto& o) {
          o.go_backwards = backwards;
          o.return_state = true;
          o.zero_output_for_mask = zeros;
          o.name = "same";
        });
      };
      for (size_t kind = 0; kind < 4; ++kind) {
        CAPTURE(devices, backwards, kind);
        const DTensor masked = batch(x, devices).with_mask(batch(mask, devices));
        const auto last = [&](bool zeros) {
          return layers(zeros)[kind].outputs({masked})[0].full().clone();
        };
        CHECK(difference(last(true), last(false)) == "");
        CHECK(difference(last(true), layers(true)[kind].outputs({masked})[1].full()) == "");
      }
    }
  }
}

TEST_CASE("masked steps are skipped with an initial state too") {
  const at::Tensor x = drawn({4, 5, 2}), state = drawn({4, 3}, 2);
  at::Tensor mask = at::ones({4, 5}, at::kBool);
  mask.slice(1, 3).fill_(false);
  for (const int64_t devices : {1, 2, 3}) {
    const DefaultMeshScope mesh(batch(x, devices).mesh());
    for (const LayerHandle& layer : of_every_kind([](auto& o) { o.name = "same"; })) {
      CAPTURE(devices, layer->class_name());
      const auto last = [&](const DTensor& steps) {
        Inputs inputs = {steps, batch(state, devices)};
        if (layer->class_name() == "LSTM") inputs.push_back(batch(state, devices));
        return layer.outputs(inputs)[0].full().clone();
      };
      const DTensor masked = batch(x, devices).with_mask(batch(mask, devices));
      const at::Tensor expected = last(batch(x.narrow(1, 0, 3).contiguous(), devices));
      CHECK(difference(last(masked), expected, 1e-6, 1e-6) == "");
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

}  // namespace recurrent_layer_test
