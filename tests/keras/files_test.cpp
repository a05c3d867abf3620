// Compares models written by Keras with Keras' outputs. write_cases.py writes them, and
// check_cases.py reads what is written here. The layer class my>Scale is also that of peer.py.
#include <cstdlib>
#include <filesystem>
#include <set>

#include <ATen/ATen.h>

#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/skip.hpp"

namespace files_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

namespace fs = std::filesystem;

/// A layer class of a user's own.
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

 private:
  void make_weights(const Shapes& inputs) override {
    gain_ = add_weight("gain", {single_input(inputs).back()}, "uniform");
  }
  DTensor call(const Inputs& inputs, const CallContext&) override {
    return inputs[0] * read(gain_) * factor_;
  }

  double factor_;
  Variable gain_;
};

void register_scale() {
  static const bool registered = [] {
    const auto make = [](JsonObject& config) {
      const LayerOptions options = take_layer_options(config);
      return make_layer<ScaleLayer>(config.take<double>("factor"), options);
    };
    register_layer("Scale", make, {.package = "my"});
    return true;
  }();
  CHECK(registered);
}

/// Returns the folder of the models; empty, and the test skipped, if there is none.
fs::path cases_folder() {
  const char* const folder = std::getenv("TESSERA_KERAS_CASES");
  if (folder && fs::exists(folder)) return folder;
  test::skip("Keras wrote no models: TESSERA_KERAS_CASES names no folder");
  return "";
}

/// Reads NAME.x0.npy, NAME.x1.npy and so on.
std::vector<at::Tensor> read_arrays(const fs::path& stem, char letter) {
  std::vector<at::Tensor> arrays;
  for (int i = 0; fs::exists(str(stem.string(), ".", letter, i, ".npy")); ++i) {
    arrays.push_back(datasets::load_npy(str(stem.string(), ".", letter, i, ".npy")));
  }
  return arrays;
}

/// Returns layouts that shard the last axis of all weights, vectors included.
LayoutMap shard_weights(const Mesh& mesh, const ModelHandle& model) {
  LayoutMap layouts(mesh);
  for (const Variable& weight : model->weights()) {
    if (weight.shape().size() < 2) continue;
    LayoutSpec spec(weight.shape().size(), unsharded);
    spec.back() = mesh.dims().back().first;
    layouts[weight.path()] = spec;
  }
  return layouts;
}

/// Returns the difference from Keras' outputs in units of 1e-5 of their scale; at most 1 is good.
double distance(const ModelHandle& model, const std::vector<at::Tensor>& x,
                const std::vector<at::Tensor>& y) {
  const Examples rows{.x = x, .y = {at::zeros({x[0].size(0)})}};
  const std::vector<at::Tensor> outputs =
      model.predict_all(TensorDataset(rows), {.batch_size = x[0].size(0)});
  if (outputs.size() != y.size()) return 1e9;
  double worst = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    if (outputs[i].sizes() != y[i].sizes()) return 1e9;
    const at::Tensor expected = y[i].to(at::kDouble);
    const double scale = std::max(1e-3, expected.abs().max().item<double>());
    const at::Tensor off = (outputs[i].to(at::kDouble) - expected).abs();
    worst = std::max(worst, off.max().item<double>() / scale / 1e-5);
  }
  return worst;
}

}  // namespace

TEST_CASE("models written by Keras give Keras' outputs on every mesh") {
  const fs::path folder = cases_folder();
  if (folder.empty()) return;
  register_scale();
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const fs::path& path = entry.path();
    if (path.extension() == ".keras" && path.stem().extension() != ".back") files.insert(path);
  }
  REQUIRE(!files.empty());
  for (const fs::path& file : files) {
    CAPTURE(file.filename().string());
    const fs::path stem = file.parent_path() / file.stem();
    const std::vector<at::Tensor> x = read_arrays(stem, 'x'), y = read_arrays(stem, 'y');
    try {
      const ModelHandle model = load_model(file);
      CHECK(distance(model, x, y) <= 1);
      const fs::path summary = stem.string() + ".summary.txt";
      if (fs::exists(summary)) {
        CHECK(summary_text(model.model(), {}, {80, false}) == test::read_file(summary));
      }
      const Mesh line = create_mesh({{"batch", 2}}, virtual_cpus(2));
      CHECK(distance(load_model(file, {.layouts = shard_weights(line, model)}), x, y) <= 1);
      const Mesh square = create_mesh({{"batch", 2}, {"model", 2}}, virtual_cpus(4));
      const ModelHandle cut = load_model(file, {.layouts = shard_weights(square, model)});
      CHECK(distance(cut, x, y) <= 1);
      cut.save(stem.string() + ".back.keras");
    } catch (const std::exception& error) {
      FAIL_CHECK(error.what());
    }
  }
}

TEST_CASE("a model with a layer class of one's own is written for Keras") {
  const fs::path folder = cases_folder();
  if (folder.empty()) return;
  register_scale();
  const Sequential model({Input({4}), Dense(3, {.name = "dense"}),
                          make_layer<ScaleLayer>(1.5, LayerOptions{.name = "scale"})});
  const fs::path stem = folder / "own" / "scale";
  fs::create_directories(stem.parent_path());
  const at::Tensor x = at::rand({5, 4}) - 0.5;
  model.save(stem.string() + ".keras");
  datasets::save_npy(stem.string() + ".x.npy", x);
  datasets::save_npy(stem.string() + ".y.npy", model.predict(x));
  const ModelHandle again = load_model(stem.string() + ".keras");
  CHECK(at::equal(again.predict(x), model.predict(x)));
}

}  // namespace files_test
