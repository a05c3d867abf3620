#include <tessera/framework/nn/layer_registry.hpp>

#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"

namespace layer_registry_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

class ScaleLayer final : public Layer {
 public:
  ScaleLayer(double factor, const LayerOptions& options) : Layer(options), factor_(factor) {}
  std::string class_name() const override { return "Scale"; }
  Json config() const override {
    Json json = Layer::config();
    json["factor"] = factor_;
    return json;
  }
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override { return inputs[0] * factor_; }

 private:
  double factor_;
};

LayerHandle read(const Json& json) { return layer_from_config(json, JsonPath("model.json")); }

}  // namespace

TEST_CASE("a user-defined layer is restored from its configuration") {
  const auto make = [](JsonObject& config) {
    const LayerOptions options = take_layer_options(config);
    return make_layer<ScaleLayer>(config.take<double>("factor"), options);
  };
  const Json json = {{"class_name", "Scale"}, {"config", {{"factor", 3}, {"name", "mine"}}}};
  CHECK_THROWS_WITH(read(json), Contains("\"Scale\""));
  register_layer("Scale", make);
  const LayerHandle layer = read(json);
  CHECK(layer->name() == "mine");
  CHECK(test::difference(layer(ones({2, 2})).full(), at::full({2, 2}, 3.f)) == "");
  CHECK(read({{"class_name", "Scale"}, {"config", layer->config()}})->config() == layer->config());
  CHECK_THROWS_WITH(read({{"class_name", "Scale"}, {"config", Json::object()}}),
                    Contains("[model.json: config]") && Contains("\"factor\""));
  CHECK_THROWS_WITH(register_layer("Scale", make), Contains("[register_layer]"));
  CHECK_THROWS_WITH(register_layer("Dense", make), Contains("\"Dense\""));
}

TEST_CASE("a user-defined layer is named in files as Python registers it") {
  class Own final : public Layer {
   public:
    Own(std::string name, const LayerOptions& options) : Layer(options), name_(std::move(name)) {}
    std::string class_name() const override { return name_; }

   private:
    std::string name_;
  };
  const auto factory = [](const char* name) {
    return [name](JsonObject& config) { return make_layer<Own>(name, take_layer_options(config)); };
  };
  register_layer("Packaged", factory("Packaged"), {.package = "my"});
  register_layer("Packaged", factory("Packaged"), {.package = "other"});
  register_layer("Plain", factory("Plain"));
  CHECK_THROWS_WITH(register_layer("Packaged", factory("Packaged"), {.package = "my"}),
                    Contains("\"my>Packaged\" twice"));
  CHECK_THROWS_WITH(register_layer("my>Packaged", factory("Packaged")),
                    Contains("{.package = \"my\"}"));
  CHECK_THROWS_WITH(register_layer("Dense", factory("Dense"), {.package = "my"}),
                    Contains("those of the library"));
  const auto names = [](const Json& json) {
    const Json written = layer_json(*read(json).layer());
    CHECK(written["class_name"] == json["class_name"]);
    return std::pair(written["module"], written["registered_name"]);
  };
  const Json config = {{"name", "mine"}};
  CHECK(names({{"class_name", "Plain"}, {"config", config}}) ==
        std::pair<Json, Json>{nullptr, "Plain"});
  CHECK(names({{"class_name", "Packaged"}, {"config", config}}) ==
        std::pair<Json, Json>{nullptr, "my>Packaged"});
  CHECK(names({{"module", "lib.layers"},
               {"class_name", "Packaged"},
               {"config", config},
               {"registered_name", "other>Packaged"}}) ==
        std::pair<Json, Json>{"lib.layers", "other>Packaged"});
  // As earlier versions wrote it.
  CHECK(names({{"module", "keras.layers"},
               {"class_name", "Plain"},
               {"config", config},
               {"registered_name", nullptr}}) == std::pair<Json, Json>{nullptr, "Plain"});
  // A class that nobody registered is none of Keras'.
  CHECK(layer_json(*make_layer<Own>("Unknown", LayerOptions()).layer())["registered_name"] ==
        "Unknown");
}

TEST_CASE("every built-in layer is known by its class name") {
  const std::vector<std::string> names = layer_class_names();
  CHECK(std::is_sorted(names.begin(), names.end()));
  for (const char* name : {"Activation", "Add", "Average", "Concatenate", "Dense", "Dot", "Dropout",
                           "Flatten", "Maximum", "Minimum", "Multiply", "Normalization", "Permute",
                           "RepeatVector", "Rescaling", "Reshape", "Subtract"}) {
    CHECK(std::count(names.begin(), names.end(), name) == 1);
  }
}

TEST_CASE("layers are also read by Keras' other names") {
  const auto class_of = [](const char* name, const Json& config = Json::object()) {
    return read({{"class_name", name}, {"config", config}})->class_name();
  };
  CHECK(class_of("MaxPool1D") == "MaxPooling1D");
  CHECK(class_of("AvgPool3D", {{"pool_size", 2}}) == "AveragePooling3D");
  CHECK(class_of("GlobalMaxPool2D") == "GlobalMaxPooling2D");
  CHECK(class_of("GlobalAvgPool3D") == "GlobalAveragePooling3D");
  const Json convolution = {{"filters", 2}, {"kernel_size", 3}};
  CHECK(class_of("Convolution2D", convolution) == "Conv2D");
  CHECK(class_of("Convolution3DTranspose", convolution) == "Conv3DTranspose");
  CHECK(class_of("SeparableConvolution1D", convolution) == "SeparableConv1D");
}

TEST_CASE("keys that Keras writes beside class and configuration are skipped") {
  const Json json = {{"module", "keras.layers"},
                     {"class_name", "Flatten"},
                     {"config",
                      {{"name", "flat"},
                       {"trainable", false},
                       {"dtype",
                        {{"module", "keras"},
                         {"class_name", "DTypePolicy"},
                         {"config", {{"name", "mixed_bfloat16"}}},
                         {"registered_name", nullptr}}},
                       {"data_format", "channels_last"}}},
                     {"registered_name", nullptr},
                     {"build_config", {{"input_shape", {nullptr, 3}}}},
                     {"name", "flat"},
                     {"inbound_nodes", Json::array()}};
  const LayerHandle layer = read(json);
  CHECK(layer->config() == Json{{"name", "flat"},
                                {"trainable", false},
                                {"dtype", "mixed_bfloat16"},
                                {"data_format", "channels_last"}});
  CHECK(read({{"class_name", "Flatten"}, {"config", Json::object()}})->name().empty());
}

}  // namespace layer_registry_test
