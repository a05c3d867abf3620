#include <tessera/tessera.hpp>

#include <cstdlib>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"

namespace config_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;

namespace {

ModelHandle graph() {
  const Input a({4}, {.name = "a"}), b({4}, {.name = "b"});
  const Dense shared(
      4, {.activation = "tanh", .kernel_initializer = HeNormal({.seed = 7}), .name = "shared"});
  const Sequential block({Input({4}), Dense(3, {.name = "inner"}), Dropout(0.5)},
                         {.name = "block"});
  const SymbolicTensor sum = Add()({shared(a), shared(b)});
  const SymbolicTensor left = Dense(2, {.use_bias = false, .name = "left"})(block(sum));
  const SymbolicTensor right = Concatenate({.name = "right"})({sum, a, b});
  return Functional({a, b}, {left, right}, {.name = "graph"});
}

ModelHandle chain() {
  return Sequential({Input({2, 3}), Flatten(), Dense(4, {.activation = "relu"}), RepeatVector(2),
                     Permute({2, 1})},
                    {.name = "chain"});
}

/// A layer as an activation, a model as a layer, batches of a fixed size.
ModelHandle nested() {
  const Sequential step({Input({4}), Dense(3, {.activation = LeakyReLU(), .name = "slopes"})},
                        {.name = "step"});
  return Sequential({Input({3, 4}, {.batch_size = 3}), TimeDistributed(step), Flatten(), Dense(2)},
                    {.name = "parts"});
}

std::vector<at::Tensor> run(const ModelHandle& model, const std::vector<at::Tensor>& x) {
  Inputs inputs;
  for (const at::Tensor& one : x) {
    inputs.push_back(pack(one, Layout::replicated(default_mesh(), one.dim())));
  }
  std::vector<at::Tensor> outputs;
  for (const DTensor& y : model.outputs(inputs)) outputs.push_back(y.full().clone());
  return outputs;
}

}  // namespace

TEST_CASE("a model's configuration rebuilds it", "[config]") {
  const at::Tensor x = at::rand({3, 4}), y = at::rand({3, 4});
  const std::vector<std::pair<ModelHandle, std::vector<at::Tensor>>> models = {
      {graph(), {x, y}}, {chain(), {at::rand({3, 2, 3})}}, {nested(), {at::rand({3, 3, 4})}}};
  for (const auto& [model, inputs] : models) {
    const std::string text = model_to_json(model.model());
    CAPTURE(text);
    const ModelHandle again = model_from_json(text);
    CHECK(model_to_json(again.model()) == text);
    CHECK(again->name() == model->name());
    CHECK(again->count_params() == model->count_params());
    // Equal paths draw equal weights.
    const std::vector<at::Tensor> expected = run(model, inputs), actual = run(again, inputs);
    REQUIRE(actual.size() == expected.size());
    for (size_t i = 0; i < expected.size(); ++i) CHECK(difference(actual[i], expected[i]) == "");
    CHECK(model_to_json(clone_model(model).model()) == text);
    CHECK_FALSE(clone_model(model).weights()[0].is(model.weights()[0]));
  }
}

// Hidden: tests/scripts/read_model_json.py has Keras read what it writes.
TEST_CASE("writes models for Keras", "[.model_json_sample]") {
  const char* folder = std::getenv("TESSERA_SAMPLE_FOLDER");
  REQUIRE(folder);
  const auto list = [](const std::vector<at::Tensor>& tensors) {
    Json all = Json::array();
    for (const at::Tensor& tensor : tensors) {
      const at::Tensor flat = tensor.reshape(-1).to(at::kDouble).contiguous();
      all.push_back({{"shape", tensor.sizes().vec()},
                     {"values", std::vector<double>(flat.data_ptr<double>(),
                                                    flat.data_ptr<double>() + flat.numel())}});
    }
    return all;
  };
  const std::vector<std::pair<ModelHandle, std::vector<at::Tensor>>> models = {
      {graph(), {at::rand({3, 4}), at::rand({3, 4})}},
      {chain(), {at::rand({3, 2, 3})}},
      {nested(), {at::rand({3, 3, 4})}}};
  for (const auto& [model, inputs] : models) {
    const Json sample = {{"json", model.to_json()},
                         {"inputs", list(inputs)},
                         {"outputs", list(run(model, inputs))},
                         {"weights", list(model.get_weights())}};
    test::write_file(std::filesystem::path(folder) / (model->name() + ".json"),
                     to_json_text(sample, -1));
  }
  SUCCEED();
}

TEST_CASE("models written by Keras are read", "[config]") {
  const Json golden = read_json_file(test::golden_path("keras_models.json").string());
  CHECK(golden.size() >= 4);
  for (const auto& [name, one] : golden.items()) {
    CAPTURE(name);
    const ModelHandle model = model_from_json(one.at("json").get<std::string>(), name);
    std::vector<std::string> paths;
    for (const Variable& weight : model.weights()) paths.push_back(weight.path());
    CHECK(Json(paths) == one.at("paths"));
    CHECK(model.count_params() == one.at("params"));
    Json shapes = Json::array();
    for (const Shape& shape : model->output_shapes(model->input_shapes())) {
      shapes.push_back(Json::array());
      for (int64_t extent : shape) shapes.back().push_back(extent < 0 ? Json() : Json(extent));
    }
    CHECK(shapes == one.at("output_shapes"));
  }
}

TEST_CASE("configurations that are no model's are refused with their JSON path", "[config]") {
  const Json good = serialize_layer(graph().model());
  const auto refused = [&](const std::function<void(Json&)>& change, const std::string& part) {
    Json bad = good;
    change(bad);
    CHECK_THROWS_AS(model_from_config(bad), ConfigError);
    CHECK_THROWS_WITH(model_from_config(bad), Contains(part));
  };
  refused([](Json& j) { j = 3; }, "[config]");
  refused([](Json& j) { j.erase("class_name"); }, "class_name");
  refused([](Json& j) { j.erase("config"); }, "must have a \"config\"");
  refused([](Json& j) { j["class_name"] = "Functonal"; }, "Functonal");
  refused([](Json& j) { j = serialize_layer(*Dense(3).layer()); }, "a layer, Dense");
  refused([](Json& j) { j["config"]["layers"] = 1; }, "config.layers");
  refused([](Json& j) { j["config"]["depth"] = 1; }, "depth");
  refused([](Json& j) { j["config"].erase("input_layers"); }, "input_layers");
  refused([](Json& j) { j["config"]["output_layers"][0][0] = "nothing"; }, "output_layers[0]");
  refused([](Json& j) { j["config"]["output_layers"][0][1] = 7; }, "output_layers[0]");
  refused([](Json& j) { j["config"]["output_layers"][0][2] = -1; }, "output_layers[0]");
  refused([](Json& j) { j["config"]["output_layers"] = {"left", 0}; }, "output_layers");
  refused(
      [](Json& j) {
        j["config"]["layers"][1]["config"]["batch_shape"] = {0, 3};
      },
      "layers[1].config.batch_shape[0]");
  refused(
      [](Json& j) {
        j["config"]["layers"][1]["config"]["batch_shape"] = {nullptr, int64_t{1} << 40};
      },
      "batch_shape[1]");
  refused([](Json& j) { j["config"]["output_layers"] = Json::array(); }, "[config, Functional]");
  refused([](Json& j) { j["config"]["layers"][1]["name"] = "a"; }, "two layers named \"a\"");
  refused([](Json& j) { j["config"]["layers"][2]["config"]["units"] = -4; }, "-4");
  refused([](Json& j) { j["config"]["layers"][2]["config"]["unit"] = 4; }, "\"unit\"");
  refused([](Json& j) { j["config"]["layers"][2]["inbound_nodes"] = 1; }, "inbound_nodes");
  refused([](Json& j) { j["config"]["layers"][2]["inbound_nodes"][0].erase("args"); }, "args");
  refused(
      [](Json& j) {
        auto& tensor = j["config"]["layers"][2]["inbound_nodes"][0]["args"][0];
        tensor["config"]["keras_history"][0] = "left";
      },
      "tensors that no call outputs");
  refused(
      [](Json& j) {
        j["config"]["layers"][2]["inbound_nodes"][0]["kwargs"] = {{"mask", "x"}};
      },
      "kwargs.mask");
  CHECK_THROWS_WITH(model_from_json("{\"class_name\": "), Contains("[config:1:"));
  Json deep = good;
  for (int i = 0; i < 40; ++i) {
    deep = {{"class_name", "Sequential"}, {"config", {{"name", "s"}, {"layers", {deep}}}}};
  }
  CHECK_THROWS_WITH(model_from_config(deep), Contains("32 deep"));
}

TEST_CASE("contradicting calls of one layer are refused, and the call is named", "[config]") {
  const Input x({4, 3}, {.name = "x"});
  const MultiHeadAttention attention(2, 2, {.use_causal_mask = true, .name = "heads"});
  const SymbolicTensor once = attention({x, x});
  const Functional model({x}, {attention({once, x})});
  Json json = serialize_layer(model.model());
  CHECK(model_from_config(json).to_json() == model.to_json());
  Json& calls = json["config"]["layers"][1]["inbound_nodes"];
  REQUIRE(calls.size() == 2);
  CHECK(calls[1]["kwargs"].erase("use_causal_mask") == 1);
  CHECK_THROWS_AS(model_from_config(json), ConfigError);
  CHECK_THROWS_WITH(model_from_config(json), Contains("layers[1].inbound_nodes[1]") &&
                                                 Contains("the same use_causal_mask") &&
                                                 Contains("\"heads\" with false in this call"));
  calls[1]["kwargs"]["use_causal_mask"] = 3;
  CHECK_THROWS_WITH(model_from_config(json), Contains("inbound_nodes[1].kwargs.use_causal_mask"));
}

TEST_CASE("inputs that are no dense tensors are refused", "[config]") {
  for (const std::string kind : {"sparse", "ragged", "optional"}) {
    Json json = serialize_layer(graph().model());
    Json& input = json["config"]["layers"][0];
    REQUIRE(input["class_name"] == "InputLayer");
    input["config"][kind] = false;
    CHECK(model_from_config(json)->name() == "graph");
    input["config"][kind] = true;
    CHECK_THROWS_WITH(model_from_config(json), Contains("layers[0].config." + kind));
  }
}

TEST_CASE("a Sequential without an Input is built for the shape Keras built it for", "[config]") {
  Json json = serialize_layer(Sequential({Dense(3, {.name = "only"})}, {.name = "s"}).model());
  CHECK_FALSE(model_from_config(json)->built());
  json["config"]["build_input_shape"] = {32, 5};
  const ModelHandle model = model_from_config(json);
  CHECK(model.weights()[0].shape() == Shape{5, 3});
  json["config"]["build_input_shape"] = {nullptr, 0};
  CHECK_THROWS_WITH(model_from_config(json), Contains("build_input_shape[1]"));
}

TEST_CASE("an unrolled layer computes the same as any other", "[config]") {
  const DTensor x = pack(at::rand({2, 3, 2}), Layout::replicated(default_mesh(), 3));
  const auto run_unrolled = [&](bool unroll) {
    const LayerHandle layer = LSTM(3, {.unroll = unroll, .name = "lstm"});
    CHECK(layer->config().at("unroll") == unroll);
    return layer(x).full().clone();
  };
  CHECK(difference(run_unrolled(true), run_unrolled(false)) == "");
}

TEST_CASE("a user-defined class cannot be cloned unless registered", "[config]") {
  class Mine final : public Layer {
   public:
    Mine() : Layer({.name = "mine"}) {}
    std::string class_name() const override { return "Mine"; }
    Shape output_shape(const Shapes& inputs) const override { return inputs[0]; }

   protected:
    DTensor call(const Inputs& inputs, const CallContext&) override { return inputs[0]; }
  };
  const Sequential model({Input({3}), make_layer<Mine>()});
  CHECK_THROWS_WITH(clone_model(model), Contains("\"Mine\""));
}

}  // namespace config_test
