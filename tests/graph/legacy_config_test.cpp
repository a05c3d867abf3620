#include <tessera/framework/graph/internal/legacy_config.hpp>

#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/layer_registry.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace legacy_config_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;

namespace {

Json layer_of(const std::string& name, Json config) {
  return {{"class_name", name}, {"config", std::move(config)}};
}

/// Returns a Sequential of these layers as Keras of a version wrote it, whose first layer has a
/// batch shape.
Json chain(const std::string& version, std::vector<Json> layers, const Json& shape) {
  layers[0]["config"]["batch_input_shape"] = shape;
  Json json = layer_of("Sequential", {{"name", "s"}, {"layers", layers}});
  if (!version.empty()) json["keras_version"] = version;
  return json;
}

/// Returns a Functional model of Keras 2 with one input "x" of 4 features, one layer "z" and the
/// call of "z".
Json graph_of(const std::string& kind, const Json& config, const Json& call) {
  const Json input = {{"class_name", "InputLayer"},
                      {"name", "x"},
                      {"config", {{"name", "x"}, {"batch_input_shape", {nullptr, 4}}}},
                      {"inbound_nodes", Json::array()}};
  Json own = config;
  own["name"] = "z";
  const Json layer = {
      {"class_name", kind}, {"name", "z"}, {"config", own}, {"inbound_nodes", Json::array({call})}};
  return {{"class_name", "Functional"},
          {"keras_version", "2.9.0"},
          {"config",
           {{"name", "m"},
            {"layers", Json::array({input, layer})},
            {"input_layers", Json::array({Json::array({"x", 0, 0})})},
            {"output_layers", Json::array({Json::array({"z", 0, 0})})}}}};
}

/// Returns a model's output on a mesh.
at::Tensor output_of(const Json& json, const at::Tensor& x, const Mesh& mesh) {
  const ModelHandle model = model_from_config(json, "m");
  return model->outputs({pack(x, Layout({"x", unsharded}, mesh))})[0].full();
}

at::Tensor input() { return at::linspace(-4, 4, 24, at::kFloat).reshape({6, 4}); }

std::string error_of(const Json& json) {
  try {
    model_from_config(json, "m");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("hard_sigmoid of Keras 1 and 2 is min(max(0.2 x + 0.5, 0), 1)") {
  const at::Tensor x = input();
  for (const std::string version : {"1.2.1", "2.0.5", "2.15.0", "", "3.0.0"}) {
    const Json json =
        chain(version, {layer_of("Activation", {{"activation", "hard_sigmoid"}})}, {nullptr, 4});
    const double slope = version == "3.0.0" ? 1.0 / 6 : 0.2;
    const at::Tensor expected = (x * slope + 0.5).clamp(0, 1);
    for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{1}, {2}, {3}}) {
      CAPTURE(version, sizes);
      CHECK(test::difference(output_of(json, x, test::virtual_mesh(sizes)), expected, 0, 1e-6) ==
            "");
    }
  }
}

TEST_CASE("hard_sigmoid of Keras 2 is found in wrappers, cells and activations of layers") {
  const Json dense =
      layer_of("Dense", {{"name", "d"}, {"units", 2}, {"activation", "hard_sigmoid"}});
  const Json rnn = layer_of("LSTM", {{"name", "r"},
                                     {"units", 2},
                                     {"activation", "hard_sigmoid"},
                                     {"recurrent_activation", "hard_sigmoid"},
                                     {"return_sequences", true}});
  const Json model = chain("2.2.4",
                           {layer_of("Bidirectional", {{"name", "b"}, {"layer", rnn}}),
                            layer_of("TimeDistributed", {{"name", "t"}, {"layer", dense}})},
                           {nullptr, 5, 3});
  const ModelHandle read = model_from_config(model, "m");
  const std::string text = read.to_json();
  CHECK(text.find("\"hard_sigmoid\"") == std::string::npos);
  // It is read again from a configuration of today.
  CHECK(model_from_json(text).to_json() == text);
  CHECK_THAT(text, Contains("tessera>hard_sigmoid_2"));
}

TEST_CASE("cells and ConvLSTM of Keras 2 are read") {
  const Json lstm = layer_of("LSTMCell", {{"name", "l"},
                                          {"units", 2},
                                          {"recurrent_activation", "hard_sigmoid"},
                                          {"implementation", 2}});
  const Json gru = layer_of("GRUCell", {{"name", "g"}, {"units", 2}, {"implementation", 1}});
  const Json stack =
      layer_of("StackedRNNCells", {{"name", "s"}, {"cells", Json::array({lstm, gru})}});
  const Json loop = layer_of("RNN", {{"name", "r"}, {"cell", stack}, {"time_major", false}});
  const ModelHandle read = model_from_config(chain("2.4.0", {loop}, {nullptr, 5, 3}), "m");
  const Json config = read.layers()[0]->config();
  const Json& cells = config.at("cell").at("config").at("cells");
  REQUIRE(cells.size() == 2);
  CHECK(cells[1].at("config").at("reset_after") == false);
  CHECK_THAT(cells[0].dump(), Contains("tessera>hard_sigmoid_2"));
  CHECK(read->output_shape({{-1, 5, 3}}) == Shape{-1, 2});
  const Json images = layer_of("ConvLSTM2D", {{"name", "c"},
                                              {"filters", 2},
                                              {"kernel_size", {3, 3}},
                                              {"recurrent_activation", "hard_sigmoid"},
                                              {"time_major", false}});
  const Json of_images = chain("2.4.0", {images}, {nullptr, 3, 5, 6, 1});
  CHECK_THAT(model_from_config(of_images, "m").to_json(), Contains("tessera>hard_sigmoid_2"));
}

TEST_CASE("Python's numbers stand for bools and integers in configurations of layers") {
  const auto same = [](const Json& layer, const Json& plain) {
    const auto config = [](const Json& json) {
      return layer_from_config(json, JsonPath("layer"))->config();
    };
    CHECK(config(layer) == config(plain));
  };
  same(layer_of("Dense", {{"name", "d"}, {"units", 5.0}, {"use_bias", 0}}),
       layer_of("Dense", {{"name", "d"}, {"units", 5}, {"use_bias", false}}));
  same(layer_of("BatchNormalization", {{"name", "b"}, {"scale", 1}, {"center", 0.0}}),
       layer_of("BatchNormalization", {{"name", "b"}, {"scale", true}, {"center", false}}));
  same(layer_of("Conv2D", {{"name", "c"}, {"filters", 4.0}, {"kernel_size", {3.0, 1}}}),
       layer_of("Conv2D", {{"name", "c"}, {"filters", 4}, {"kernel_size", {3, 1}}}));
  same(layer_of("LSTM", {{"name", "l"}, {"units", 2}, {"return_sequences", 1}, {"unroll", 0}}),
       layer_of("LSTM", {{"name", "l"}, {"units", 2}, {"return_sequences", true}}));
  const Json old = layer_of("LSTM", {{"name", "l"}, {"units", 2}, {"time_major", 0}});
  CHECK(error_of(chain("2.4.0", {old}, {nullptr, 5, 3})).empty());
  CHECK_THAT(error_of(chain("2.4.0", {layer_of("Dense", {{"units", 5.5}})}, {nullptr, 4})),
             Contains("config.layers[0].config.units]") && Contains("Received: 5.5"));
  CHECK_THAT(
      error_of(chain("2.4.0", {layer_of("Dense", {{"units", 5}, {"use_bias", 2}})}, {nullptr, 4})),
      Contains("config.layers[0].config.use_bias]") && Contains("Received: 2"));
}

TEST_CASE("unknown layers in files are named by their index there, without spelling advice") {
  const Json dense = layer_of("Dense", {{"units", 4}});
  for (const std::string name : {"InstanceNormalization", "QDense", "Dens"}) {
    const Json own = layer_of(name, {{"name", "n"}, {"trainable", true}});
    CHECK(error_of(chain("2.4.0", {dense, own}, {nullptr, 4})) ==
          "[m: config.layers[1]] the layer class must be registered. Received: \"" + name +
              "\". To fix: register your own class with register_layer().");
    CHECK_THAT(error_of(chain("2.4.0", {own, dense}, {nullptr, 4})), Contains("config.layers[0]]"));
  }
  CHECK_THAT(error_of(chain("", {layer_of("Dens", Json::object())}, {nullptr, 4})),
             Contains("write \"Dense\""));
  CHECK_THAT(error_of(chain("", {layer_of("InstanceNormalization", Json::object())}, {nullptr, 4})),
             EndsWith("To fix: register your own class with register_layer()."));
}

TEST_CASE("configurations that get_config() returned are read without their class") {
  const Json dense =
      layer_of("Dense", {{"name", "d"}, {"units", 2}, {"batch_input_shape", {nullptr, 4}}});
  const Json full = layer_of("Sequential", {{"name", "s"}, {"layers", Json::array({dense})}});
  const std::string text = model_from_config(full, "m").to_json();
  CHECK(model_from_config(full["config"], "m").to_json() == text);
  CHECK(model_from_config(Json::array({dense}), "m")->weights()[0].shape() == Shape{4, 2});
  const Json graph =
      graph_of("Dense", {{"units", 3}}, Json::array({Json::array({"x", 0, 0, Json::object()})}));
  CHECK(model_from_config(graph["config"], "m").to_json() ==
        model_from_config(graph, "m").to_json());
}

TEST_CASE("layers of Keras 1 are read by their names today") {
  const Json none = nullptr;
  const ModelHandle model = model_from_config(
      chain(
          "1.2.1",
          {layer_of("Convolution2D",
                    {{"name", "c"},
                     {"nb_filter", 3},
                     {"nb_row", 3},
                     {"nb_col", 2},
                     {"init", "uniform"},
                     {"activation", "relu"},
                     {"border_mode", "same"},
                     {"subsample", {2, 2}},
                     {"dim_ordering", "tf"},
                     {"W_regularizer", {{"name", "WeightRegularizer"}, {"l1", 0.0}, {"l2", 0.5}}},
                     {"b_regularizer", none},
                     {"activity_regularizer", none},
                     {"W_constraint", {{"name", "MaxNorm"}, {"m", 2}, {"axis", 0}}},
                     {"b_constraint", none},
                     {"bias", true},
                     {"input_dtype", "float32"}}),
           layer_of("BatchNormalization", {{"name", "b"},
                                           {"mode", 0},
                                           {"axis", 3},
                                           {"momentum", 0.9},
                                           {"epsilon", 1e-3},
                                           {"gamma_init", "one"},
                                           {"beta_init", "zero"}}),
           layer_of("Dropout", {{"name", "o"}, {"p", 0.25}}), layer_of("Flatten", {{"name", "f"}}),
           layer_of("Dense", {{"name", "d"},
                              {"output_dim", 5},
                              {"input_dim", none},
                              {"init", "glorot_uniform"},
                              {"activation", "linear"},
                              {"bias", false}})},
          {nullptr, 8, 6, 2}),
      "m");
  const Json layers = model->config().at("layers");
  const Json conv = layers[1].at("config");
  CHECK(conv.at("kernel_size") == Json({3, 2}));
  CHECK(conv.at("strides") == Json({2, 2}));
  CHECK(conv.at("padding") == "same");
  CHECK(conv.at("kernel_regularizer").at("config").at("l2") == 0.5);
  CHECK(conv.at("kernel_constraint").at("config").at("max_value") == 2);
  CHECK(layers[3].at("config").at("rate") == 0.25);
  CHECK(layers[5].at("config").at("use_bias") == false);
  CHECK(model->output_shape({{-1, 8, 6, 2}}) == Shape{-1, 5});

  const ModelHandle rnn =
      model_from_config(chain("1.0.8",
                              {layer_of("Embedding", {{"name", "e"},
                                                      {"input_dim", 9},
                                                      {"output_dim", 4},
                                                      {"input_length", 5},
                                                      {"init", "uniform"},
                                                      {"W_regularizer", none},
                                                      {"W_constraint", none},
                                                      {"mask_zero", true},
                                                      {"weights", none},
                                                      {"dropout", 0.0}}),
                               layer_of("GRU", {{"name", "g"},
                                                {"output_dim", 3},
                                                {"init", "glorot_uniform"},
                                                {"inner_init", "orthogonal"},
                                                {"activation", "tanh"},
                                                {"inner_activation", "hard_sigmoid"},
                                                {"dropout_W", 0.5},
                                                {"dropout_U", 0.0},
                                                {"consume_less", "cpu"}})},
                              {nullptr, 5}),
                        "m");
  const Json gru = rnn->config().at("layers")[2].at("config");
  CHECK(gru.at("units") == 3);
  CHECK(gru.at("dropout") == 0.5);
  CHECK(gru.at("reset_after") == false);
  CHECK(gru.at("recurrent_activation").at("config") == "tessera>hard_sigmoid_2");
  CHECK_THAT(
      error_of(chain("1.2.1", {layer_of("BatchNormalization", {{"mode", 1}})}, {nullptr, 4})),
      Contains("config.layers[0].config.mode] the value must be 0. Received: 1"));
  CHECK_THAT(error_of(chain("1.2.1", {layer_of("Merge", {{"mode", "sqrt"}})}, {nullptr, 4})),
             Contains("config.layers[0].config.mode]"));
}

TEST_CASE("functions of TensorFlow in models of Keras 2 compute as in TensorFlow, on every mesh") {
  struct Case {
    std::string function;
    Json call;
    at::Tensor expected;
  };
  const at::Tensor x = input();
  const Json none = nullptr;
  const auto of_x = [](const Json& kwargs) { return Json::array({"x", 0, 0, kwargs}); };
  const Json tensor = Json::array({"x", 0, 0});
  const std::vector<Case> cases = {
      {"math.multiply", of_x({{"y", 2.0}, {"name", none}}), x * 2},
      {"__operators__.add", of_x({{"y", tensor}, {"name", none}}), x + x},
      {"math.subtract", Json::array({"_CONSTANT_VALUE", -1, 3.0, {{"y", tensor}}}), 3 - x},
      {"math.subtract", of_x({{"y", {1.0, 2.0, 3.0, 4.0}}}), x - at::tensor({1.F, 2.F, 3.F, 4.F})},
      {"math.truediv", of_x({{"y", 4.0}}), x / 4},
      {"nn.relu", of_x({{"name", none}}), x.relu()},
      {"nn.gelu", of_x({{"approximate", false}}), at::gelu(x)},
      {"nn.leaky_relu", of_x({{"alpha", 0.5}}), at::leaky_relu(x, 0.5)},
      {"math.sigmoid", of_x(Json::object()), x.sigmoid()},
      {"nn.softmax", of_x({{"axis", -1}}), x.softmax(-1)},
      {"math.reduce_mean", of_x({{"axis", 1}, {"keepdims", true}}), x.mean(1, true)},
      {"math.reduce_max", of_x({{"axis", {1}}, {"keepdims", false}}), x.amax(1)},
      {"reshape", of_x({{"shape", {-1, 2, 2}}}), x.reshape({-1, 2, 2})},
      {"expand_dims", of_x({{"axis", -1}}), x.unsqueeze(-1)},
      {"concat", Json::array({of_x({{"axis", -1}}), of_x({{"axis", -1}})}), at::cat({x, x}, -1)},
      {"clip_by_value", of_x({{"clip_value_min", -1.0}, {"clip_value_max", 2.0}}), x.clamp(-1, 2)},
      {"cast", of_x({{"dtype", "float32"}}), x},
      {"math.maximum", of_x({{"y", 0.5}}), x.clamp_min(0.5)},
      {"math.square", of_x(Json::object()), x * x},
  };
  for (const Case& each : cases) {
    const Json json = graph_of(
        "TFOpLambda", {{"trainable", true}, {"dtype", "float32"}, {"function", each.function}},
        each.call);
    for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{1}, {2}, {3}}) {
      CAPTURE(each.function, sizes);
      CHECK(test::difference(output_of(json, x, test::virtual_mesh(sizes)), each.expected, 0,
                             1e-6) == "");
    }
  }
  const Json slice = {{"start", 1}, {"stop", none}, {"step", 2}};
  const Json all = {{"start", none}, {"stop", none}, {"step", none}};
  const Json sliced = graph_of("SlicingOpLambda", {{"function", "__operators__.getitem"}},
                               of_x({{"slice_spec", Json::array({all, slice})}}));
  CHECK(output_of(sliced, x, test::virtual_mesh({2})).equal(x.slice(1, 1, 4, 2)));
}

TEST_CASE("other functions of TensorFlow are refused by name") {
  const Json call = Json::array({"x", 0, 0, Json::object()});
  CHECK(error_of(graph_of("TFOpLambda", {{"function", "image.resize"}}, call)) ==
        "[m: config.layers[1]] layers must be those of Keras 3. Received: \"z\", a TFOpLambda of "
        "\"image.resize\". To fix: replace this TensorFlow operation by a layer.");
  const Json sorted = Json::array({"x", 0, 0, {{"y", 1.0}, {"order", "C"}}});
  CHECK_THAT(error_of(graph_of("TFOpLambda", {{"function", "math.multiply"}}, sorted)),
             Contains("config.layers[1].inbound_nodes[0].order]"));
  const Json alone = Json::array({"x", 0, 0, Json::object()});
  CHECK_THAT(error_of(graph_of("TFOpLambda", {{"function", "math.multiply"}}, alone)),
             Contains("an object with \"y\""));
}

}  // namespace legacy_config_test
