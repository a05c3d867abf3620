// Models that Hugging Face's `transformers` saved, with the outputs and losses of its own program:
// tests/golden/transformers.zip; and adapters that `peft` trained: peft.zip.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/io/format/safetensors.hpp>
#include <tessera/framework/io/format/zip_archive.hpp>
#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/language_model_layouts.hpp"

namespace transformers_golden_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

namespace fs = std::filesystem;

/// Writes the files of an archive in golden/, and returns the names of the models in it.
std::vector<std::string> unpack(const fs::path& folder,
                                const std::string& name = "transformers.zip") {
  std::vector<std::string> names;
  const ZipArchive archive(test::golden_path(name));
  for (const ZipMember& member : archive.members()) {
    const fs::path path = folder / member.name;
    fs::create_directories(path.parent_path());
    test::write_file(path, archive.read(member, 1 << 20));
    if (path.filename() == "config.json") names.push_back(path.parent_path().filename());
  }
  return names;
}

/// Returns a tensor of a file, int64, float32 or float64.
at::Tensor stored(const SafetensorsFile& file, const std::string& name) {
  const SafeTensor& tensor = file.at(name);
  const at::ScalarType dtype = tensor.dtype == "I64"   ? at::kLong
                               : tensor.dtype == "F64" ? at::kDouble
                                                       : at::kFloat;
  return at::from_blob(const_cast<std::byte*>(tensor.data.data()), tensor.shape,
                       at::TensorOptions(dtype))
      .clone();
}

/// Returns tensor parallelism: heads, hidden units and rows of the vocabulary over "model".
LayoutMap tensor_layouts(const MeshDims& dims, int64_t devices) {
  LayoutMap layouts(create_mesh(dims, virtual_cpus(devices)));
  test::shard_language_model(layouts);
  return layouts;
}

std::vector<LayoutMap> all_layouts() {
  return {LayoutMap(create_mesh({{"batch", 1}}, virtual_cpus(1))),
          LayoutMap(create_mesh({{"batch", 2}}, virtual_cpus(2))),
          tensor_layouts({{"model", 2}}, 2), tensor_layouts({{"batch", 2}, {"model", 3}}, 6)};
}

double largest(const at::Tensor& x) { return x.abs().max().item<double>(); }

/// Compares the outputs and the losses of three steps with those of transformers.
void check_model(const ModelHandle& model, const SafetensorsFile& expected,
                 const LayoutMap& layouts) {
  std::vector<at::Tensor> x = {stored(expected, "ids")};
  const bool is_bert = expected.find("mask") != nullptr;
  if (is_bert) {
    x.push_back(stored(expected, "mask"));
    x.push_back(stored(expected, "types"));
  }
  const at::Tensor outputs = stored(expected, "outputs");
  const at::Tensor found = model.predict(TensorDataset(Examples{.x = x}));
  CHECK(largest(found - outputs) <= 1e-5 * largest(outputs));
  const LossHandle loss = is_bert
                              ? LossHandle(MeanSquaredError())
                              : LossHandle(SparseCategoricalCrossentropy({.from_logits = true}));
  model.compile({.optimizer = SGD(0.01), .loss = loss, .layouts = layouts});
  const at::Tensor losses = stored(expected, "losses");
  for (int64_t step = 0; step < losses.numel(); ++step) {
    const Logs logs = model->train_on_batch(Examples{.x = x, .y = {stored(expected, "labels")}});
    const double theirs = losses[step].item<double>();
    const double ours = find_value(logs, "loss").value_or(0);
    INFO("loss of step " << step << ", " << ours << " and " << theirs);
    CHECK(std::abs(ours - theirs) <= 1e-5 * theirs);
  }
}

/// Compares the tensors of two files of adapters.
void check_adapters(const std::string& folder, const std::string& expected) {
  const std::string file = "/adapter_model.safetensors";
  const SafetensorsFile found(folder + file), theirs(expected + file);
  REQUIRE(found.tensors().size() == theirs.tensors().size());
  for (const SafeTensor& tensor : theirs.tensors()) {
    CAPTURE(tensor.name);
    REQUIRE(found.at(tensor.name).shape == tensor.shape);
    CHECK(largest(stored(found, tensor.name) - stored(theirs, tensor.name)) <= 1e-4);
  }
}

}  // namespace

TEST_CASE("models of transformers have its outputs and losses on several meshes") {
  const test::TempFolder folder;
  const std::vector<std::string> names = unpack(folder.path());
  REQUIRE(names.size() == 11);
  for (const std::string& name : names) {
    const SafetensorsFile expected(folder / (name + "/expected.safetensors"));
    for (const LayoutMap& layouts : all_layouts()) {
      INFO(name << " on " << layouts.mesh().describe());
      check_model(load_pretrained(folder / name, {.layouts = layouts}), expected, layouts);
    }
  }
}

TEST_CASE("models of transformers are saved with the tensors, names and bits of their files") {
  const test::TempFolder folder;
  for (const std::string& name : unpack(folder.path())) {
    const std::string path = folder / name, saved = folder / (name + "_saved");
    save_pretrained(load_pretrained(path), saved, {.like = path});
    const SafetensorsFile before(path + "/model.safetensors"), after(saved + "/model.safetensors");
    REQUIRE(after.tensors().size() == before.tensors().size());
    for (const SafeTensor& tensor : before.tensors()) {
      INFO(name << ", " << tensor.name);
      const SafeTensor& again = after.at(tensor.name);
      CHECK(again.dtype == tensor.dtype);
      CHECK(again.shape == tensor.shape);
      CHECK(std::ranges::equal(again.data, tensor.data));
    }
    CHECK(read_json_file(saved + "/config.json") == read_json_file(path + "/config.json"));
  }
}

TEST_CASE("a Mistral has the window of its configuration, of transformers' default, or none") {
  const test::TempFolder folder;
  unpack(folder.path());
  const std::string path = folder / "mistral/config.json";
  const auto window_of = [&](const Json& config) {
    test::write_file(path, to_json_text(config));
    const Json model = parse_json(load_pretrained(folder / "mistral").to_json(), "model");
    for (const Json& layer : model.at("config").at("layers")) {
      if (layer.at("name") == "block_0") return layer.at("config").at("sliding_window");
    }
    return Json();
  };
  Json config = read_json_file(path);
  CHECK(window_of(config) == 4);
  config["sliding_window"] = nullptr;
  CHECK(window_of(config).is_null());
  config.erase("sliding_window");
  CHECK(window_of(config) == 4096);
}

TEST_CASE("models of transformers are saved whole as Keras files, and loaded on any mesh") {
  const test::TempFolder folder;
  for (const std::string& name : unpack(folder.path())) {
    const SafetensorsFile expected(folder / (name + "/expected.safetensors"));
    const std::string path = folder / (name + ".keras");
    load_pretrained(folder / name).save(path);
    for (const LayoutMap& layouts : all_layouts()) {
      INFO(name << " on " << layouts.mesh().describe());
      check_model(load_model(path, {.layouts = layouts}), expected, layouts);
    }
  }
}

TEST_CASE("adapters of peft have its losses in 20 steps, and then its values, on several meshes") {
  const test::TempFolder folder;
  unpack(folder.path());
  unpack(folder.path(), "peft.zip");
  for (const std::string name : {"llama", "qwen3", "gemma2"}) {
    const std::string base = folder / name;
    const SafetensorsFile steps(base + "/steps.safetensors");
    const at::Tensor ids = stored(steps, "ids"), losses = stored(steps, "losses");
    REQUIRE(losses.numel() == 20);
    for (const LayoutMap& layouts : all_layouts()) {
      INFO(name << " on " << layouts.mesh().describe());
      const ModelHandle model = load_pretrained(base, {.layouts = layouts});
      load_pretrained_adapters(model, base, base + "/before");
      model.compile({.optimizer = Adam(0.01, {.epsilon = 1e-8, .epsilon_on_corrected_root = true}),
                     .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                     .layouts = layouts});
      for (int64_t step = 0; step < losses.numel(); ++step) {
        const at::Tensor x = ids[step].slice(1, 0, -1), y = ids[step].slice(1, 1);
        const Logs logs = model->train_on_batch(Examples{.x = {x}, .y = {y}});
        const double theirs = losses[step].item<double>();
        const double ours = find_value(logs, "loss").value_or(0);
        INFO("loss of step " << step << ", " << ours << " and " << theirs);
        CHECK(std::abs(ours - theirs) <= 1e-5 * theirs);
      }
      const test::TempFolder saved;
      save_pretrained_adapters(model, base, saved.path().string());
      check_adapters(saved.path().string(), base + "/after");
    }
  }
}

}  // namespace transformers_golden_test
