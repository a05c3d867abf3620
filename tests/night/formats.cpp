#include "tests/night/formats.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/datasets/files/idx.hpp>
#include <tessera/datasets/files/image.hpp>
#include <tessera/datasets/read_array.hpp>
#include <tessera/datasets/read_csv.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/write_file.hpp>
#include <tessera/framework/io/checkpoint_manager.hpp>
#include <tessera/framework/mesh/layout_file.hpp>
#include <tessera/framework/model/config.hpp>
#include <tessera/tessera.hpp>

#include "apps/gpt/saved_model.hpp"
#include "tests/support/checkpoint_model.hpp"

namespace tessera::test {

using namespace detail;

void Content::add(std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) {
    hash_ = (hash_ ^ static_cast<uint64_t>(byte)) * 1099511628211U;
  }
}

void Content::add(const std::string& text) {
  add(std::as_bytes(std::span(text)));
  add(std::as_bytes(std::span("\x01", 1)));
}

void Content::add(const at::Tensor& tensor) {
  const at::Tensor values = tensor.contiguous();
  add(detail::str(tensor.scalar_type(), tensor.sizes()));
  add({static_cast<const std::byte*>(values.const_data_ptr()), values.nbytes()});
}

void Content::add(const Table& table) {
  for (const std::string& name : table.names()) {
    add(name);
    if (!table[name].is_text()) {
      add(table[name].numbers());
      continue;
    }
    for (const std::string& text : table[name].texts()) add(text);
  }
}

void Content::add(const ModelHandle& model) {
  std::vector<Variable> variables = model->weights();
  if (model->optimizer()) {
    for (const Variable& variable : model->optimizer()->variables()) variables.push_back(variable);
  }
  for (const Variable& variable : variables) {
    add(variable.path());
    add(variable.value().full());
  }
}

namespace {

/// A model whose files are small enough to change each of their bits.
ModelHandle tiny_model() {
  const Input x({3});
  const SymbolicTensor hidden = Dense(2, {.activation = "relu", .name = "first"})(x);
  const ModelHandle model = Functional({x}, {Dense(1, {.name = "second"})(hidden)});
  model.compile({.optimizer = Adam(), .loss = "mse"});
  return model;
}

ModelHandle filled_model(int64_t variant) {
  ModelHandle model = tiny_model();
  fill(model, variant);
  return model;
}

/// A model that returns `variant` times the sum of its three inputs.
ModelHandle sum_model(int64_t variant) {
  const Input x({3});
  const ModelHandle model = Functional({x}, {Dense(1, {.use_bias = false, .name = "sum"})(x)});
  model.compile({.loss = "mse"});
  model.set_weights({at::full({3, 1}, variant, at::kFloat)});
  return model;
}

at::Tensor numbers(int64_t rows, int64_t columns) {
  return at::arange(rows * columns, at::kFloat).reshape({rows, columns}) / 100;
}

void read_weights(const std::string& path, Content& content) {
  const ModelHandle model = tiny_model();
  model.load_weights(path);
  content.add(model);
}

void write_weights(const std::string& path, int64_t variant) {
  filled_model(variant).save_weights(path);
}

void read_model(const std::string& path, Content& content) {
  const ModelHandle model = load_model(path);
  content.add(model.to_json());
  content.add(model);
}

void read_checkpoint(const std::string& path, Content& content) {
  const ModelHandle model = filled_model(0);
  Checkpoint(model).restore(path);
  content.add(model);
}

void read_backup(const std::string& path, Content& content) {
  const ModelHandle model = filled_model(0);
  CheckpointManager(Checkpoint(model), path).restore_latest();
  content.add(model);
}

/// Trains for `variant` epochs, of which an earlier backup may hold some.
void write_backup(const std::string& path, int64_t variant) {
  set_random_seed(1);
  tiny_model().fit(numbers(8, 3), numbers(8, 1),
                   {.batch_size = 4,
                    .epochs = variant,
                    .verbose = 0,
                    .callbacks = {BackupAndRestore(path, {.delete_checkpoint = false})}});
}

void read_exported(const std::string& path, Content& content) {
  const ExportedModel exported = load_export(path);
  content.add(exported.model);
  content.add(str(exported.activation, exported.step));
  for (const std::string& label : exported.labels) content.add(label);
}

/// Evaluates a model on batches that the file keeps; writes the file where it is missing.
Logs evaluate_cached(const std::string& path) {
  const DataPipeline data = DataPipeline(numbers(8, 3), numbers(8, 1)).cache(path).batch(4);
  return filled_model(1).evaluate(data, {.verbose = 0});
}

void read_cache(const std::string& path, Content& content) {
  for (const auto& [name, value] : evaluate_cached(path)) {
    content.add(name);
    content.add(std::as_bytes(std::span(&value, 1)));
  }
}

void read_layouts(const std::string& path, Content& content) {
  const LayoutFile file = read_layout_file(path);
  const MeshDims dims = file.mesh.value_or(MeshDims{{"batch", 2}, {"model", 2}});
  // A larger mesh is refused for its number of devices.
  int64_t devices = 1;
  for (const auto& [name, size] : dims) devices = std::clamp<int64_t>(size * devices, 1, 64);
  const Mesh mesh = create_mesh(dims, virtual_cpus(devices));
  content.add(to_json_text(to_json(make_layout_map(file, mesh))));
}

void read_picture(const std::string& path, Content& content) {
  const Image image = read_image(path, 3);
  content.add(str(image.height, "x", image.width));
  content.add(std::as_bytes(std::span(image.pixels)));
}

void read_digits(const std::string& path, Content& content) {
  const IdxArray array = read_idx(path, uint64_t{1} << 24);
  content.add(to_string(array.shape));
  content.add(std::as_bytes(std::span(array.data)));
}

constexpr gpt::ModelSize tiny_gpt = {.blocks = 1,
                                     .heads = 1,
                                     .head_dim = 2,
                                     .width = 2,
                                     .hidden = 2,
                                     .length = 2,
                                     .vocabulary = 4,
                                     .dropout = 0};

ModelHandle built_gpt(const gpt::ModelSize& size) {
  const Functional model = gpt::gpt_model(size);
  model.compile({.layouts = LayoutMap(create_mesh({{"batch", 1}}))});
  return model;
}

void read_gpt(const std::string& path, Content& content) {
  const gpt::SavedModel saved = gpt::read_model_folder(path);
  const ModelHandle model = built_gpt(saved.size);
  gpt::load_weights_of(model, saved);
  content.add(model);
  content.add(to_json_text(to_json(saved.size)) + saved.dtype);
  for (const std::string& word : saved.vocabulary) content.add(word);
}

void write_gpt(const std::string& path, int64_t variant) {
  set_random_seed(variant);
  gpt::save_model_folder(built_gpt(tiny_gpt),
                         {.size = tiny_gpt, .vocabulary = {"", "[UNK]", "a", "film"}}, path);
}

Image small_picture(int64_t variant) {
  Image image{.height = 9, .width = 7, .channels = 3, .pixels = std::vector<uint8_t>(9 * 7 * 3)};
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    image.pixels[i] = static_cast<uint8_t>(i * static_cast<size_t>(variant));
  }
  return image;
}

void write_picture(const std::string& path, int64_t variant) {
  write_image(path, small_picture(variant));
}

std::vector<Format> model_formats() {
  return {
      {"keras", "model.keras", read_model,
       [](const auto& path, int64_t variant) { filled_model(variant).save(path); }},
      {"weights_h5", "model.weights.h5", read_weights, write_weights},
      {"safetensors", "model.safetensors", read_weights, write_weights},
      {"checkpoint", "checkpoint", read_checkpoint,
       [](const auto& path, int64_t variant) { Checkpoint(filled_model(variant)).save(path); }},
      {"backup", "backup", read_backup, write_backup},
      {"export", "export", read_exported,
       [](const auto& path, int64_t variant) {
         export_model(sum_model(variant), path, {.sample = numbers(2, 3), .step = variant});
       }},
      {"gpt", "gpt", read_gpt, write_gpt},
      {"legacy_h5", "model.h5", read_model},
      {"json", "model.json",
       [](const auto& path, Content& content) {
         content.add(model_from_json(read_file(path), path).to_json());
       },
       [](const auto& path, int64_t) { write_file(path, tiny_model().to_json()); }},
  };
}

std::vector<Format> data_formats() {
  return {
      {"cache", "cache", read_cache, [](const auto& path, int64_t) { evaluate_cached(path); }},
      {"npy", "array.npy",
       [](const auto& path, Content& content) { content.add(datasets::load_npy(path)); },
       [](const auto& path, int64_t variant) {
         datasets::save_npy(path, numbers(3, 5) * variant);
       }},
      {"npz", "arrays.npz",
       [](const auto& path, Content& content) { content.add(datasets::load_npz(path)); },
       [](const auto& path, int64_t variant) {
         datasets::save_npz(path, {{"x", numbers(4, 3) * variant}, {"y", numbers(4, 1)}});
       }},
      {"csv", "table.csv",
       [](const auto& path, Content& content) { content.add(datasets::read_csv(path)); }},
      {"idx", "digits-idx3-ubyte", read_digits},
      {"idx_gz", "digits-idx3-ubyte.gz", read_digits},
      {"png", "picture.png", read_picture, write_picture},
      {"jpeg", "picture.jpg", read_picture, write_picture},
      {"webp", "picture.webp", read_picture},
      {"bmp", "picture.bmp", read_picture},
      {"gif", "picture.gif", read_picture},
      {"layouts", "layouts.json", read_layouts},
  };
}

}  // namespace

const std::vector<Format>& formats() {
  static const std::vector<Format> all = [] {
    std::vector<Format> list = model_formats();
    for (const auto& more : {data_formats(), arrow_formats()}) {
      list.insert(list.end(), more.begin(), more.end());
    }
    return list;
  }();
  return all;
}

}  // namespace tessera::test
