#include <tessera/framework/io/load_model.hpp>

#include <cstdlib>
#include <fstream>

#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/graph/internal/legacy_compile_config.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/skip.hpp"

namespace legacy_file_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

const Json& golden() {
  static const Json json = read_json_file(test::golden_path("keras_legacy.json"));
  return json;
}

std::string legacy_path(const std::string& name) {
  return test::golden_path("keras_legacy/" + name + ".h5");
}

/// Same as formula() of make_keras_legacy.py.
at::Tensor formula(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  const at::Tensor numbers = at::arange(count, at::kLong) * 37;
  return (numbers.remainder(101).to(at::kDouble) / 50 - 1).to(at::kFloat).reshape(shape);
}

at::Tensor tensor_of(const Json& json) {
  const auto values = json.at("values").get<std::vector<double>>();
  return at::tensor(values, at::kDouble).to(at::kFloat).reshape(json.at("shape").get<Shape>());
}

/// Returns the largest difference relative to the largest value.
double relative_difference(const at::Tensor& actual, const at::Tensor& expected) {
  if (actual.sizes() != expected.sizes()) return 1;
  return ((actual - expected).abs().max() / expected.abs().max()).item<double>();
}

std::vector<at::Tensor> outputs_of(const ModelHandle& model, const std::vector<at::Tensor>& inputs,
                                   const Mesh& mesh = default_mesh()) {
  Inputs values;
  for (const at::Tensor& input : inputs) {
    values.push_back(pack(input, Layout::replicated(mesh, input.dim())));
  }
  std::vector<at::Tensor> outputs;
  for (const DTensor& output : model->outputs(values)) outputs.push_back(output.full());
  return outputs;
}

std::vector<at::Tensor> inputs_of(const std::string& name) {
  std::vector<at::Tensor> inputs;
  for (const Json& json : golden().at(name).at("inputs")) {
    Shape shape = json.get<Shape>();
    shape.insert(shape.begin(), 2);
    inputs.push_back(formula(shape));
  }
  if (name.starts_with("words")) inputs = {(inputs[0].abs() * 4).floor()};
  return inputs;
}

void check_outputs(const std::string& name, const std::vector<at::Tensor>& outputs) {
  const Json& expected = golden().at(name).at("outputs");
  REQUIRE(outputs.size() == expected.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    CAPTURE(name, i);
    CHECK(relative_difference(outputs[i], tensor_of(expected[i])) < 1e-5);
  }
}

/// Returns the path of a published model in the packages that contain it, or "".
std::string published(const std::string& name) {
  const char* folder = std::getenv("TESSERA_KERAS_FILES");
  for (const char* subfolder : {"/fer/data/", "/spliceai/models/"}) {
    const std::string path = folder ? folder + (subfolder + name) : "";
    if (!path.empty() && std::ifstream(path).good()) return path;
  }
  return "";
}

}  // namespace

TEST_CASE("complete models of Keras 2 and Keras 3 in HDF5 compute what they did there") {
  for (const std::string name : {"sequences", "images", "words", "words_cut", "keras_3"}) {
    CAPTURE(name);
    const ModelHandle model = load_model(legacy_path(name));
    check_outputs(name, outputs_of(model, inputs_of(name)));
  }
}

TEST_CASE("weights of Keras 2 are read directly into shards") {
  const Mesh mesh = create_mesh({{"batch", 1}, {"model", 2}}, virtual_cpus(2));
  LayoutMap layouts(mesh);
  layouts["inner/dense_2/kernel"] = {unsharded, "model"};
  layouts["encoder/dense_1/kernel"] = {"model", unsharded};
  const ModelHandle model = load_model(legacy_path("sequences"), {.layouts = layouts});
  check_outputs("sequences", outputs_of(model, inputs_of("sequences"), mesh));
}

TEST_CASE("legacy weight files are read in order or by name") {
  const ModelHandle original = load_model(legacy_path("images"));
  const std::string weights = legacy_path("images_weights");
  set_random_seed(3);
  const ModelHandle other = clone_model(original);
  set_random_seed(0);
  CHECK(relative_difference(outputs_of(other, inputs_of("images"))[0],
                            tensor_of(golden().at("images").at("outputs")[0])) > 0.01);
  other.load_weights(weights);
  check_outputs("images", outputs_of(other, inputs_of("images")));

  const Sequential smaller({Input({6}), Dense(3, {.name = "scores"}), Dense(2, {.name = "new"})});
  CHECK_THROWS_WITH(smaller.load_weights(weights),
                    "[" + weights +
                        "] the 2 layers with weights of \"sequential\". Received: 7. "
                        "To fix: load a file of the same model, or pass skip_mismatch or by_name.");
  CHECK_THROWS_WITH(smaller.load_weights(weights, {.by_name = true}),
                    Contains("is \"scores/kernel\" of shape (6, 3)") && Contains("(4, 3) of F32"));
  const at::Tensor before = smaller->weights()[0].value().full().clone();
  smaller.load_weights(weights, {.skip_mismatch = true, .by_name = true});
  CHECK(smaller->weights()[0].value().full().equal(before));
  const Sequential fits({Input({4}), Dense(3, {.name = "scores"}), Dense(2, {.name = "new"})});
  fits.load_weights(weights, {.by_name = true});
  const Variable scores = original->weights()[original->weights().size() - 2];
  CHECK(fits->weights()[0].value().full().equal(scores.value().full()));

  CHECK_THROWS_WITH(load_model(weights), Contains("] a complete model, with its model_config"));
}

TEST_CASE("configurations of Keras 2 are read like current ones") {
  const auto model = [](const std::string& text) { return model_from_json(text, "old"); };
  // A Sequential written as a list with its Input in the first layer; a GRU from before
  // reset_after.
  const ModelHandle gru = model(R"({"class_name": "Sequential", "keras_version": "2.0.5",
      "config": [{"class_name": "GRU", "config": {"name": "g", "units": 2, "implementation": 1,
       "dtype": "float32", "batch_input_shape": [null, 5, 3],
       "kernel_initializer": {"class_name": "VarianceScaling",
       "config": {"scale": 1.0, "mode": "fan_avg", "distribution": "normal", "seed": null,
       "dtype": "float32"}}}},
      {"class_name": "LeakyReLU", "config": {"alpha": {"type": "ndarray", "value": 0.25}}},
      {"class_name": "Dense", "config": {"units": 2, "activation": {"class_name": "LeakyReLU",
       "config": {"alpha": 0.5}}}}]})");
  const Json activation = gru->config().at("layers")[3].at("config").at("activation");
  CHECK(activation.at("config").at("negative_slope") == 0.5);
  CHECK(gru->weights()[2].shape() == Shape{6});
  CHECK(gru->config().at("layers")[0].at("config").at("batch_shape") == Json({nullptr, 5, 3}));
  CHECK(gru->config().at("layers")[2].at("config").at("negative_slope") == 0.25);
  const Json initializer = gru->config().at("layers")[1].at("config").at("kernel_initializer");
  CHECK(initializer.at("config").at("distribution") == "truncated_normal");

  // A nested model, whose calls are counted from 1.
  const std::string inner = R"({"class_name": "Model", "name": "inner", "config": {"name": "inner",
      "layers": [{"class_name": "InputLayer", "name": "i", "inbound_nodes": [],
                  "config": {"name": "i", "batch_input_shape": [null, 4], "dtype": "float32",
                             "sparse": false}},
                 {"class_name": "Dense", "name": "d", "inbound_nodes": [[["i", 0, 0, {}]]],
                  "config": {"name": "d", "units": 4, "activation": "tanh"}}],
      "input_layers": [["i", 0, 0]], "output_layers": [["d", 0, 0]]},
      "inbound_nodes": [[["x", 0, 0, {}]], [["inner", 1, 0, {}]]]})";
  const auto outer = [&](const std::string& layers, const std::string& output) {
    return model(R"({"class_name": "Model", "config": {"name": "outer", "layers": [
        {"class_name": "InputLayer", "name": "x", "inbound_nodes": [],
         "config": {"name": "x", "batch_input_shape": [null, 4], "dtype": "float32"}}, )" +
                 layers + R"(], "input_layers": [["x", 0, 0]], "output_layers": [)" + output +
                 "]}}");
  };
  const ModelHandle twice = outer(inner, R"(["inner", 2, 0])");
  const at::Tensor x = formula({2, 4});
  const at::Tensor kernel = twice->weights()[0].value().full();
  CHECK(test::difference(outputs_of(twice, {x})[0], x.matmul(kernel).tanh().matmul(kernel).tanh(),
                         0, 1e-6) == "");
  const auto of_class = [](const std::string& name, const std::string& config) {
    return R"({"class_name": ")" + name + R"(", "name": "z", "config": {"name": "z")" + config +
           R"(}, "inbound_nodes": [[["x", 0, 0, {}]]]})";
  };
  CHECK_THROWS_WITH(outer(of_class("TFOpLambda", ""), R"(["z", 0, 0])"),
                    "[old: config.layers[1]] layers must be those of Keras 3. Received: \"z\", a "
                    "TFOpLambda. To fix: replace this TensorFlow operation by a layer.");
  CHECK_THROWS_WITH(outer(of_class("CuDNNGRU", ""), R"(["z", 0, 0])"),
                    Contains("\"z\", a CuDNNGRU. To fix: make it a GRU with Keras 2 first"));
  const std::string turned = of_class("LSTM", R"(, "units": 2, "time_major": true)");
  CHECK_THROWS_WITH(outer(turned, R"(["z", 0, 0])"),
                    "[old: config.layers[1].config.time_major] the value must be false in \"z\": "
                    "Keras 3 supports no other value. Received: true. To fix: correct the value.");
  const std::string plus_2 = R"({"class_name": "Add", "name": "z", "config": {"name": "z"},
      "inbound_nodes": [[["x", 0, 0, {}], ["_CONSTANT_VALUE", -1, 2, {}]]]})";
  CHECK_THROWS_WITH(outer(plus_2, R"(["z", 0, 0])"),
                    Contains("[old: config.layers[1].inbound_nodes[0][1]] the value must be a "
                             "tensor: constants are not supported. Received: 2."));
}

TEST_CASE("compile configurations of Keras 2 are read like current ones") {
  const Json training = parse_json(R"({"loss": {"class_name": "BinaryCrossentropy", "config":
      {"reduction": "auto", "name": "b", "from_logits": true, "fn": "binary_crossentropy"}},
      "metrics": [[{"class_name": "MeanMetricWrapper",
                    "config": {"name": "acc", "fn": "accuracy"}}]],
      "sample_weight_mode": null, "loss_weights": null, "optimizer_config": {"class_name":
      "Custom>Adam", "config": {"lr": 0.5, "decay": 0.25, "epsilon": null, "jit_compile": true}}})",
                                   "training");
  CHECK(to_keras_3_compile_config(training, JsonPath("training")) == parse_json(R"({
      "loss": {"class_name": "BinaryCrossentropy", "config": {"name": "b", "from_logits": true}},
      "metrics": [["accuracy"]], "loss_weights": null, "optimizer": {"class_name": "Adam", "config":
      {"learning_rate": {"class_name": "InverseTimeDecay", "config": {"initial_learning_rate": 0.5,
       "decay_steps": 1, "decay_rate": 0.25}}}}})",
                                                                                "today"));
}

TEST_CASE("emotion_model.hdf5, written by Keras 2.0.5, computes the same as in Keras") {
  const std::string path = published("emotion_model.hdf5");
  if (path.empty()) return test::skip("there is no emotion_model.hdf5 in TESSERA_KERAS_FILES");
  const Json& expected = golden().at("emotion_model.hdf5");
  const ModelHandle model = load_model(path);
  const at::Tensor y = outputs_of(model, {formula(expected.at("input").get<Shape>())})[0];
  CHECK(relative_difference(y, tensor_of(expected.at("output"))) < 1e-5);
}

TEST_CASE("the five models of spliceai compute the same as in Keras, sharded too") {
  if (published("spliceai5.h5").empty()) {
    return test::skip("there is no spliceai5.h5 in TESSERA_KERAS_FILES");
  }
  for (int i = 1; i <= 5; ++i) {
    const std::string name = str("spliceai", i, ".h5");
    CAPTURE(name);
    const Json& expected = golden().at(name);
    const ModelHandle model = load_model(published(name));
    const at::Tensor y = outputs_of(model, {formula(expected.at("input").get<Shape>())})[0];
    CHECK(relative_difference(y, tensor_of(expected.at("output"))) < 1e-5);
  }
  // 15,000 positions, each of which depends on 5,000 on both sides.
  const at::Tensor x = formula({1, 15000, 4});
  const at::Tensor one = outputs_of(load_model(published("spliceai1.h5")), {x})[0];
  CHECK(one.sizes().vec() == Shape{1, 5000, 3});
  const Mesh mesh = create_mesh({{"space", 4}}, virtual_cpus(4));
  const ModelHandle cut = load_model(published("spliceai1.h5"), {.layouts = LayoutMap(mesh)});
  const Layout positions({unsharded, "space", unsharded}, mesh);
  const DTensor y = cut.layer()->outputs({pack(x, positions)})[0];

  CHECK(relative_difference(y.full(), one) < 1e-6);
}

}  // namespace legacy_file_test
