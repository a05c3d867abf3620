// Tests training a model written by Keras with its images sharded over height and width.
#include <cstdlib>
#include <filesystem>
#include <regex>

#include <ATen/ATen.h>

#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/skip.hpp"

namespace spatial_training_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

namespace fs = std::filesystem;

struct Run {
  std::vector<double> losses;
  std::vector<at::Tensor> weights;
};

/// Loads a model in float64: in float32, rounding errors grow to tenths of the loss within three
/// steps because batch normalization sees only 18 positions per channel.
ModelHandle in_float64(const std::string& file) {
  const ModelHandle model = load_model(file);
  const std::regex policy("\"float32\"");
  const ModelHandle wide = model_from_json(
      std::regex_replace(model_to_json(model.model()), policy, "\"float64\""), file);
  std::vector<at::Tensor> weights = model.get_weights();
  for (at::Tensor& weight : weights) {
    if (weight.is_floating_point()) weight = weight.to(at::kDouble);
  }
  wide.set_weights(weights);
  return wide;
}

/// Trains three steps of SGD on the images in `stem`.x0.npy.
Run train(const fs::path& stem, const LayoutMap& layouts) {
  const at::Tensor x = datasets::load_npy(stem.string() + ".x0.npy").to(at::kDouble);
  const at::Tensor y = at::arange(x.size(0)).unsqueeze(1);
  const ModelHandle model = in_float64(stem.string() + ".keras");
  model.compile({.optimizer = SGD(1e-3),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .layouts = layouts});
  const History history =
      model.fit(x, y, {.batch_size = x.size(0), .epochs = 3, .verbose = 0, .shuffle = false});
  Run run{history.at("loss"), {}};
  for (const Variable& weight : model->weights()) run.weights.push_back(weight.value().full());
  return run;
}

}  // namespace

TEST_CASE("a model written by Keras trains on spatially sharded images as on one device",
          "[spatial]") {
  const char* const folder = std::getenv("TESSERA_KERAS_CASES");
  if (!folder || !fs::exists(folder)) {
    return test::skip("Keras wrote no models: TESSERA_KERAS_CASES names no folder");
  }
  int models = 0;
  // ResNet50 exists in the nightly run over all of keras.applications, which leaves this test out
  // for the others.
  for (const char* name : {"MobileNetV2", "ResNet50"}) {
    const fs::path stem = fs::path(folder) / name;
    if (!fs::exists(stem.string() + ".keras")) continue;
    CAPTURE(name);
    ++models;
    const Run expected = train(stem, LayoutMap(create_mesh({{"batch", 1}})));
    LayoutMap spatial(create_mesh({{"height", 2}, {"width", 2}}, virtual_cpus(4)));
    spatial.set_data("x", {unsharded, "height", "width", unsharded});
    spatial.set_data("y", {unsharded, unsharded});
    const Run run = train(stem, spatial);
    std::vector<std::string> wrong;
    for (size_t i = 0; i < expected.losses.size(); ++i) {
      UNSCOPED_INFO("loss " << i << ": " << run.losses[i] << ", one device " << expected.losses[i]);
      CHECK(run.losses[i] == Approx(expected.losses[i]).epsilon(1e-9));
    }
    CHECK(expected.losses.front() != expected.losses.back());
    REQUIRE(run.weights.size() == expected.weights.size());
    for (size_t w = 0; w < run.weights.size(); ++w) {
      CHECK(test::difference(run.weights[w], expected.weights[w], 1e-8, 1e-8) == "");
    }
  }
  CHECK(models > 0);
}

}  // namespace spatial_training_test
