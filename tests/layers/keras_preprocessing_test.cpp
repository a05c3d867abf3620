#include <ATen/ATen.h>

#include <tessera/framework/data/tensor_dataset.hpp>
#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/layers/layers.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/function_check.hpp"
#include "tests/support/keras_layers.hpp"

/// CategoryEncoding, CenterCrop, Discretization, FeatureSpace, HashedCrossing, Hashing,
/// IntegerLookup and Resizing against Keras.
namespace keras_preprocessing_test {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr const char* file = "keras_preprocessing.json";

LayerHandle made(const Json& golden) {
  return layer_from_config(golden.at("layer"), JsonPath("golden"));
}

/// Runs every case in every layout of the inputs; the tolerance is `part` of the largest number.
void check_cases(const Json& cases, double part) {
  REQUIRE(!cases.empty());
  for (const Json& golden : cases) {
    CAPTURE(golden.at("layer").dump());
    const std::vector<at::Tensor> inputs = input_tensors(golden.at("inputs"));
    const at::Tensor keras = input_tensor(golden.at("output"));
    const auto call = [&](const Inputs& in) { return made(golden)(in); };
    Inputs replicated;
    for (const at::Tensor& input : inputs) replicated.push_back(on_one_device(input));
    const DTensor alone = call(replicated);
    const bool pixels = keras.scalar_type() == at::kByte;
    CHECK((alone.dtype() == at::kByte) == pixels);
    const at::Tensor expected = keras.to(alone.dtype());
    const double scale = std::max(1.0, keras.to(at::kDouble).abs().max().item<double>());
    // A sum halfway between two integers may be rounded either way.
    CHECK(difference(alone.full().to(at::kDouble), expected.to(at::kDouble), 0,
                     pixels ? 1.0 : part * scale) == "");
    const at::Tensor own = pixels ? alone.full() : expected;
    CHECK(wrong_values(inputs, call, own, pixels ? 1.0 : part * scale) == "");
    check_plan(golden);
    check_config(golden);
  }
}

Table table_of(const Json& golden) {
  Table table;
  for (const auto& [name, values] : golden.items()) {
    if (values.is_array()) {
      table.add(name, values.get<std::vector<std::string>>());
    } else {
      table.add(name, input_tensor(values));
    }
  }
  return table;
}

FeatureSpace space_of(const Json& config) {
  JsonObject object(config, JsonPath("golden"));
  const FeatureSpace space = FeatureSpace::from_config(object);
  object.finish();
  return space;
}

/// Compares one tensor, or one for each feature, with Keras' result.
void check_features(const FeatureSpace& space, const Table& table, const Json& expected) {
  if (expected.contains("dtype")) {
    const at::Tensor features = space(table);
    CHECK(unlike(features, expected) == "");
    CHECK(features.size(1) == space.width());
    return;
  }
  const Table features = space.features(table);
  REQUIRE(features.names().size() == expected.size());
  for (const std::string& name : features.names()) {
    CAPTURE(name);
    CHECK(unlike(features[name].numbers(), expected.at(name)) == "");
  }
}

}  // namespace

TEST_CASE("images are resized and cropped as in Keras, on every mesh") {
  check_cases(golden_part(file, "images"), 1e-5);
}

TEST_CASE("categories equal Keras' exactly, on every mesh") {
  check_cases(golden_part(file, "categories"), 1e-7);
}

TEST_CASE("Discretization learns Keras' bins") {
  for (const Json& golden : golden_part(file, "learned_bins")) {
    CAPTURE(golden.at("layer").dump());
    const at::Tensor data = input_tensor(golden.at("data"));
    const Discretization layer({.num_bins = golden.at("num_bins").get<int64_t>(),
                                .epsilon = golden.at("epsilon").get<double>()});
    const auto batch = golden.at("batch").get<int64_t>();
    if (batch == 0) {
      layer.adapt(data);
    } else {
      layer.reset_state();
      for (const at::Tensor& part : data.split(batch)) layer.update_state(part);
      layer.finalize_state();
    }
    const LayerHandle keras = made(golden);
    CHECK(layer->config().at("bin_boundaries") == keras->config().at("bin_boundaries"));
    CHECK(Json(layer.bin_boundaries()) == keras->config().at("bin_boundaries"));
    for (const LayerHandle& each : {LayerHandle(layer), keras}) {
      const at::Tensor output = each(on_one_device(data)).full();
      CHECK(output.scalar_type() == at::kInt);
      CHECK(at::equal(output, input_tensor(golden.at("output"))));
    }
    check_config(golden);
  }
}

TEST_CASE("IntegerLookup learns Keras' vocabulary") {
  for (const Json& golden : golden_part(file, "learned_integers")) {
    CAPTURE(golden.at("layer").dump());
    const Json& config = golden.at("layer").at("config");
    const auto optional = [&](const char* key) {
      return config.at(key).is_null() ? std::nullopt : std::optional(config.at(key).get<int64_t>());
    };
    const IntegerLookup layer({.max_tokens = optional("max_tokens"),
                               .num_oov_indices = config.at("num_oov_indices").get<int64_t>(),
                               .mask_token = optional("mask_token"),
                               .output_mode = config.at("output_mode").get<std::string>()});
    const at::Tensor data = input_tensor(golden.at("data"));
    for (const bool by_rows : {false, true}) {
      if (by_rows) {
        layer.adapt(TensorDataset(data));
      } else {
        layer.adapt(data);
      }
      CHECK(Json(layer.get_vocabulary()) == golden.at("vocabulary"));
      CHECK(unlike(layer(on_one_device(data)).full(), golden.at("output")) == "");
    }
    // Restores from the files that accompany the configuration.
    const LayerHandle loaded = made(golden);
    loaded->load_assets(layer->assets());
    CHECK(unlike(loaded(on_one_device(data)).full(), golden.at("output")) == "");
    CHECK(loaded->assets() == layer->assets());
  }
}

TEST_CASE("Hashing puts texts into Keras' bins") {
  for (const Json& golden : golden_part(file, "text_hashing")) {
    const Json& config = golden.at("layer").at("config");
    CAPTURE(config.dump());
    HashingOptions options{.output_mode = config.at("output_mode").get<std::string>()};
    if (config.at("mask_value").is_string()) {
      options.mask_value = config.at("mask_value").get<std::string>();
    }
    if (!config.at("salt").is_null()) options.salt = config.at("salt").get<std::vector<int64_t>>();
    const Hashing layer(config.at("num_bins").get<int64_t>(), options);
    const at::Tensor bins = layer(golden.at("texts").get<std::vector<std::string>>());
    CHECK(at::equal(bins.to(at::kDouble), input_tensor(golden.at("output")).to(at::kDouble)));
    check_config(golden);
  }
}

TEST_CASE("HashedCrossing puts texts and numbers into Keras' bins") {
  for (const Json& golden : golden_part(file, "text_crossing")) {
    const Json& config = golden.at("layer").at("config");
    CAPTURE(config.dump());
    const HashedCrossing layer(config.at("num_bins").get<int64_t>(),
                               {.output_mode = config.at("output_mode").get<std::string>()});
    const auto texts = golden.at("texts").get<std::vector<std::string>>();
    const std::vector<std::string> reversed(texts.rbegin(), texts.rend());
    const at::Tensor bins = layer({texts, input_tensor(golden.at("numbers")), reversed});
    CHECK(at::equal(bins.to(at::kDouble), input_tensor(golden.at("output")).to(at::kDouble)));
  }
}

TEST_CASE("FeatureSpace makes Keras' features, also after its configuration's round trip") {
  for (const Json& golden : golden_part(file, "feature_spaces")) {
    CAPTURE(golden.at("config").dump());
    const Table table = table_of(golden.at("table"));
    const FeatureSpace space = space_of(golden.at("config"));
    space.adapt(table);
    check_features(space, table, golden.at("output"));
    // The learned state is in the configuration, so another program gets it too.
    space.adapt(table);
    check_features(space, table, golden.at("output"));
    const Json config = space.config();
    CHECK(config.at("crosses") == golden.at("config").at("crosses"));
    check_features(space_of(config), table, golden.at("output"));
    CHECK(space_of(config).config() == config);
  }
}

}  // namespace keras_preprocessing_test
