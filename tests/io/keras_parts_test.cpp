#include <algorithm>

#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/io/format/hdf5_file.hpp>
#include <tessera/framework/nn/layer_registry.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/keras_layers.hpp"

namespace keras_parts_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

const Json& cases(const std::string& part) { return golden_part("keras_parts.json", part); }

const Json& named(const std::string& part, const std::string& name) {
  const Json& list = cases(part);
  return *std::find_if(list.begin(), list.end(),
                       [&](const Json& one) { return one.at("name") == name; });
}

ModelHandle model_of(const Json& golden) {
  const ModelHandle model = model_from_config(golden.at("model"));
  model.set_weights(input_tensors(golden.at("weights")));
  return model;
}

/// Returns the datasets of the written file, as make_keras_parts.py lists them.
Json datasets(const ModelHandle& model) {
  const TempFolder folder;
  model.save_weights(folder / "x.weights.h5");
  const Hdf5File file(folder / "x.weights.h5");
  Json list = Json::array();
  for (const Hdf5Dataset& one : file.datasets()) list.push_back({one.path, one.shape});
  std::sort(list.begin(), list.end());
  return list;
}

/// Checks outputs on a mesh, and in training last because that updates moving statistics.
void check_outputs(const ModelHandle& model, const Json& golden, const Mesh& mesh,
                   const LayoutMap& layouts) {
  CAPTURE(golden.at("name"), mesh.to_string());
  model->place_weights(layouts);
  const at::Tensor inputs = input_tensor(golden.at("x"));
  const DTensor x = pack(inputs, Layout::batch_sharded(mesh, "batch", inputs.dim()));
  for (const Json& output : golden.at("outputs")) CHECK(unlike(model(x).full(), output) == "");
  if (golden.at("outputs").size() > 1) return;
  CHECK(unlike(model(x, {.training = true}).full(), golden.at("training_output")) == "");
}

/// Returns layouts that shard the last axis of matrices if it is even.
LayoutMap shard_last_axes(const ModelHandle& model, const Mesh& mesh) {
  LayoutMap layouts(mesh);
  for (const Variable& weight : model->weights()) {
    if (weight.shape().size() != 2 || weight.shape()[1] % 2 != 0) continue;
    layouts[weight.path()] = {unsharded, "model"};
  }
  return layouts;
}

void check_part(const std::string& part) {
  for (const Json& golden : cases(part)) {
    CAPTURE(golden.at("name"));
    const Mesh one = create_mesh({{"batch", 1}}, virtual_cpus(1));
    const Mesh four = create_mesh({{"batch", 2}, {"model", 2}}, virtual_cpus(4));
    const ModelHandle model = model_of(golden);
    check_outputs(model_of(golden), golden, one, LayoutMap(one));
    check_outputs(model_of(golden), golden, four, shard_last_axes(model, four));
    CHECK(datasets(model) == golden.at("datasets"));
    const ModelHandle again = model_from_json(model.to_json());
    again.set_weights(input_tensors(golden.at("weights")));
    check_outputs(again, golden, one, LayoutMap(one));
  }
}

}  // namespace

TEST_CASE("layers used as activations compute and are written as in Keras") {
  check_part("activations");
  const ModelHandle model = model_of(named("activations", "dense"));
  const Json layers = model->config().at("layers");
  const Json& golden = named("activations", "dense").at("model").at("config").at("layers");
  for (const size_t i : {1, 2, 3}) {
    const Json& ours = layers[i].at("config").at("activation");
    const Json& theirs = golden[i].at("config").at("activation");
    for (const char* key : {"module", "class_name", "registered_name"}) {
      CHECK(ours.at(key) == theirs.at(key));
    }
    CHECK(ours.at("config").size() == theirs.at("config").size());
  }
  CHECK(model->weights()[2].path() == "dense/p_re_lu/alpha");

  // A layer as a program writes it; and a function as an object, as Keras writes functions of other
  // modules.
  const Sequential made({Input({6}), Dense(5, {.activation = PReLU()})});
  CHECK(made->weights()[2].path() == "dense/p_re_lu/alpha");
  CHECK(made->trainable_weights().size() == 3);
  const LayerHandle relu = layer_from_config(
      parse_json(R"({"class_name": "Dense", "config": {"units": 2, "activation": {"module":
                 "builtins", "class_name": "function", "config": "relu", "registered_name":
                 "function"}}})",
                 "dense"),
      JsonPath("dense"));
  CHECK(relu->config().at("activation") == "relu");
  CHECK_THROWS_WITH(
      layer_from_config(parse_json(R"({"class_name": "Dense", "config": {"units": 2, "activation":
                                   {"class_name": "LeakyRelu", "config": {}}}})",
                                   "dense"),
                        JsonPath("dense")),
      "[dense: config.activation] the layer class must be registered. Received: "
      "\"LeakyRelu\". To fix: write \"LeakyReLU\", or register your own class with "
      "register_layer().");
}

TEST_CASE("fixed batch sizes and states between calls work as in Keras") {
  check_part("batches");
  const ModelHandle model = model_of(named("batches", "plain"));
  CHECK(model->config().at("layers")[0].at("config").at("batch_shape") == Json({4, 3, 2}));
  CHECK_THROWS_WITH(
      model.predict(TensorDataset(at::zeros({5, 3, 2}), at::zeros({5, 1})), {.batch_size = 4}),
      Contains("the input must have shape (4, 3, 2). Received: (1, 3, 2)"));
  const Input fixed({3, 2}, {.batch_size = 4});
  CHECK(fixed.shape() == Shape{4, 3, 2});
  CHECK_THROWS_WITH(
      Input({3}, {.name = "x", .batch_size = 0}),
      Contains("[Input x] batch_size must be at least 1, or -1 for any. Received: 0"));
}

TEST_CASE("cells and ConvLSTM compute and are saved as in Keras, their states nested by cell") {
  check_part("cells");
  const Json& golden = named("cells", "stacked");
  const auto states = [](const Json& model) {
    const Json& call = model.at("config").at("layers")[2].at("inbound_nodes")[0];
    Json names = Json::array();
    for (const Json& state : call.at("kwargs").at("initial_state")) {
      names.push_back(state.is_array() ? static_cast<int64_t>(state.size()) : 0);
    }
    return names;
  };
  CHECK(states(golden.at("model")) == Json({2, 0}));
  CHECK(states(parse_json(model_of(golden).to_json(), "model")) == Json({2, 0}));
}

TEST_CASE("layers for volumes compute and are saved as in Keras") { check_part("volumes"); }

TEST_CASE("SpectralNormalization computes and is saved as in Keras, with a second kernel") {
  check_part("wrappers");
}

TEST_CASE("models in TimeDistributed compute and are saved as in Keras") {
  check_part("models");
  const Sequential inner({Dense(3), Dense(2)});
  const Sequential made({Input({4, 5}), TimeDistributed(inner)});
  CHECK(made->weights()[0].path() == "time_distributed/sequential/dense/kernel");
  CHECK(made->output_shape({{-1, 4, 5}}) == Shape{-1, 4, 2});
}

}  // namespace keras_parts_test
