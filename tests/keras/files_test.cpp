// Compares models written by Keras with Keras' outputs. write_cases.py writes them, and
// check_cases.py reads what is written here.
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
  const char* const folder = std::getenv("TESSERA_KERAS_CASES");
  if (!folder || !fs::exists(folder)) {
    return test::skip("Keras wrote no models: TESSERA_KERAS_CASES names no folder");
  }
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

}  // namespace files_test
