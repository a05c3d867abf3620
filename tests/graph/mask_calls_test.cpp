#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/keras_layers.hpp"

namespace mask_calls_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

const Json& cases(const std::string& part) { return golden_part("keras_mask_calls.json", part); }

ModelHandle model_of(const Json& golden) {
  const ModelHandle model = model_from_config(golden.at("model"));
  model.set_weights(input_tensors(golden.at("weights")));
  return model;
}

Inputs placed(const std::vector<at::Tensor>& full, const Mesh& mesh) {
  Inputs inputs;
  for (const at::Tensor& x : full) {
    inputs.push_back(pack(x, Layout::batch_sharded(mesh, "batch", x.dim())));
  }
  return inputs;
}

/// Checks outputs, in training too, and the losses and metrics of them.
void check_case(const Json& golden, const Mesh& mesh) {
  const std::vector<at::Tensor> x = input_tensors(golden.at("x"));
  const ModelHandle model = model_of(golden);
  std::vector<MetricHandle> metrics;
  for (const char* name : {"mean_squared_error", "root_mean_squared_error"}) {
    if (golden.at("logs").contains(name)) metrics.emplace_back(name);
  }
  model.compile({.optimizer = SGD(0.1),
                 .loss = LossChoice(loss_from_config(golden.at("loss"))),
                 .metrics = metrics,
                 .layouts = LayoutMap(mesh)});
  const TensorDataset data(Examples{.x = x, .y = {input_tensor(golden.at("y"))}});
  const Logs logs = model.evaluate(data, {.batch_size = 3, .verbose = 0});
  CHECK(logs.size() == golden.at("logs").size());
  for (const auto& [name, value] : logs) {
    CAPTURE(name);
    CHECK(value == Approx(golden.at("logs").at(name).get<double>()).epsilon(2e-5));
  }
  const Inputs inputs = placed(x, mesh);
  CHECK(unlike(model(inputs).full(), golden.at("output")) == "");
  CHECK(unlike(model(inputs, {.training = true}).full(), golden.at("training_output")) == "");
}

void check_cases(const std::string& part) {
  for (const Json& golden : cases(part)) {
    CAPTURE(golden.at("model").at("config").at("name").dump());
    for (const int64_t devices : {1, 2}) {
      check_case(golden, create_mesh({{"batch", devices}}, virtual_cpus(devices)));
    }
  }
}

/// Returns the masks of all calls in layer order, except query_mask, which Keras ignores.
Json masks_of(const Json& model) {
  Json all = Json::array();
  for (const Json& layer : model.at("config").at("layers")) {
    for (const Json& call : layer.at("inbound_nodes")) {
      for (const auto& [key, value] : call.at("kwargs").items()) {
        if (!key.ends_with("mask") || key == "query_mask" || value.is_null()) continue;
        const Json list = value.is_array() ? value : Json::array({value});
        for (const Json& one : list) {
          const Json name = one.is_null() ? one : one.at("config").at("keras_history");
          all.push_back({layer.at("name"), key, name});
        }
      }
    }
  }
  return all;
}

SymbolicTensor masked_lstm(const SymbolicTensor& x, const SymbolicTensor& m) {
  return LSTM(3, {.name = "lstm"})(x.with_mask(m));
}

}  // namespace

TEST_CASE("masks passed to calls have the same effect as in Keras") {
  CHECK(cases("given").size() >= 20);
  check_cases("given");
}

TEST_CASE("masks stop, and affect losses and metrics, where they do in Keras") {
  CHECK(cases("judged").size() == 8);
  check_cases("judged");
}

TEST_CASE("masks passed to calls are written as by Keras") {
  for (const Json& golden : cases("given")) {
    CAPTURE(golden.at("model").at("config").at("name").dump());
    const ModelHandle model = model_of(golden);
    const std::string text = model.to_json();
    const bool by_position = model->name() == "pooling_by_place";
    if (!by_position) CHECK(masks_of(parse_json(text, "model")) == masks_of(golden.at("model")));
    const ModelHandle again = model_from_json(text);
    CHECK(again.to_json() == text);
    again.set_weights(model.get_weights());
    const Inputs inputs = placed(input_tensors(golden.at("x")), default_mesh());
    CHECK(unlike(again(inputs).full(), golden.at("output")) == "");
  }
}

TEST_CASE("a model whose calls get masks trains equally in eager and replayed steps") {
  const Json& golden = cases("given")[0];
  const TensorDataset data(
      Examples{.x = input_tensors(golden.at("x")), .y = {input_tensor(golden.at("y"))}});
  const auto trained = [&](bool eager) {
    const ModelHandle model = model_of(golden);
    model.compile({.optimizer = SGD(0.1), .loss = "mse", .run_eagerly = eager});
    model.fit(data, {.batch_size = 3, .epochs = 5, .verbose = 0});
    CHECK((model.step_records().replayed > 0) == !eager);
    return model.get_weights();
  };
  const std::vector<at::Tensor> eager = trained(true), replayed = trained(false);
  for (size_t i = 0; i < eager.size(); ++i) CHECK(difference(replayed[i], eager[i]) == "");
}

TEST_CASE("masks that layers compute in Keras' JSON are propagated automatically") {
  check_cases("made");
  for (const Json& golden : cases("made")) {
    CHECK(masks_of(parse_json(model_of(golden).to_json(), "model")).empty());
  }
}

TEST_CASE("a mask has the same effect in a Functional model as in an eager call") {
  const Input x({4, 2}, {.name = "x"}), m({4}, {.dtype = "bool", .name = "m"});
  const Functional model({x, m}, {masked_lstm(x, m)});
  const DTensor steps = pack(at::rand({3, 4, 2}), Layout::replicated(default_mesh(), 3));
  const at::Tensor which = at::ones({3, 4}, at::kBool);
  which[1].slice(0, 1).fill_(false);
  const DTensor mask = pack(which, Layout::replicated(default_mesh(), 2));
  const LayerHandle lstm = model.get_layer("lstm");
  const at::Tensor expected = lstm(steps.with_mask(mask)).full();
  CHECK(difference(model(Inputs{steps, mask}).full(), expected) == "");
  CHECK_FALSE(lstm(steps).full().allclose(expected));
}

TEST_CASE("each input of a MultiHeadAttention has a mask of its own") {
  const Input x({4, 3}, {.name = "x"}), y({4, 3}, {.name = "y"});
  const Input m({4}, {.dtype = "bool", .name = "m"});
  const MultiHeadAttention heads(2, 2, {.name = "heads"});
  at::Tensor which = at::ones({2, 4}, at::kBool);
  which[0][1] = false;
  const Inputs inputs = placed({at::rand({2, 4, 3}), at::rand({2, 4, 3}), which}, default_mesh());
  const std::vector<SymbolicTensor> calls[] = {
      {x.with_mask(m), y}, {x, y.with_mask(m)}, {x, y, y.with_mask(m)}};
  for (size_t i = 0; i < 3; ++i) {
    const Functional model({x, y, m}, {heads(calls[i])});
    Inputs masked = {inputs[0], inputs[1], inputs[1]};
    masked[i] = masked[i].with_mask(inputs[2]);
    const DTensor expected = heads(masked);
    CHECK(difference(model(inputs).full(), expected.full()) == "");
    CHECK(model(inputs).mask().defined() == (i == 0));
    const ModelHandle again = model_from_json(model.to_json());
    CHECK(again.to_json() == model.to_json());
    again.set_weights(model.get_weights());
    CHECK(difference(again(inputs).full(), expected.full()) == "");
  }
}

TEST_CASE("a list of masks for only one input, which drops the others' masks, is refused") {
  const Input ids({4}, {.dtype = "int32", .name = "ids"}), m({4}, {.dtype = "bool", .name = "m"});
  const SymbolicTensor words = Embedding(5, 3, {.mask_zero = true, .name = "words"})(ids);
  const SymbolicTensor plain = Embedding(5, 3, {.name = "plain"})(ids);
  const Attention scores({.name = "scores"});
  CHECK_THROWS_WITH(Functional({ids, m}, {scores({words, plain.with_mask(m)})}).to_json(),
                    Contains("[Attention scores]") && Contains("input 0 with only its own mask"));
  const Functional model({ids, m}, {scores({plain, words.with_mask(m)})}, {.name = "model"});
  Json json = parse_json(model.to_json(), "model");
  CHECK(model_from_config(json).to_json() == model.to_json());
  for (Json& layer : json["config"]["layers"]) {
    if (layer["name"] == "scores")
      std::swap(layer["inbound_nodes"][0]["args"][0][0], layer["inbound_nodes"][0]["args"][0][1]);
  }
  CHECK_THROWS_WITH(model_from_config(json), Contains("kwargs.mask[0]"));
}

TEST_CASE("unused masks are refused in one line") {
  const Input x({4, 2}, {.name = "x"}), m({4}, {.dtype = "bool", .name = "m"});
  CHECK_THROWS_WITH(Flatten({.name = "flat"})(x.with_mask(m)),
                    Contains("[Flatten flat]") && Contains("does not support masking"));
  CHECK_THROWS_WITH(x.with_mask(SymbolicTensor()), Contains("empty SymbolicTensor"));
  const SymbolicTensor y = Dense(2)(x);
  CHECK_THROWS_WITH(Functional({x, m}, {y.with_mask(m)}), Contains("an output with_mask()"));
  CHECK_THROWS_WITH(Functional({x}, {masked_lstm(x, m)}), Contains("another Input"));
  Json json = serialize_layer(Functional({x, m}, {masked_lstm(x, m)}).model());
  Json& call = json["config"]["layers"].back()["inbound_nodes"][0];
  call["kwargs"]["mask"]["config"]["keras_history"][0] = "nothing";
  CHECK_THROWS_WITH(model_from_config(json), Contains("\"lstm\" on tensors that no call outputs"));
  call["kwargs"] = {{"flags", true}};
  CHECK_THROWS_WITH(model_from_config(json),
                    Contains("kwargs.flags") && Contains("\"flags\" of LSTM"));
}

}  // namespace mask_calls_test
