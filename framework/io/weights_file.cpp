#include <tessera/framework/io/weights_file.hpp>

#include <optional>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/io/format/safetensors.hpp>
#include <tessera/framework/io/internal/file_kind.hpp>
#include <tessera/framework/io/internal/safetensors_weights.hpp>
#include <tessera/framework/io/internal/shards_to_save.hpp>
#include <tessera/framework/io/keras/keras_output.hpp>
#include <tessera/framework/io/keras/keras_weights.hpp>
#include <tessera/framework/io/keras/weight_shards.hpp>
#include <tessera/framework/model/model.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/safetensors_dtype.hpp>

namespace tessera {

using namespace detail;

namespace {

std::string dtype_of(const Variable& weight) {
  return safetensors_dtype(weight.dtype(), weight.path());
}

void check_built(const Layer& model) {
  if (model.built()) return;
  throw StateError("weights", "the model is built", "a model whose weights are not known yet",
                   "call build() with an input shape first");
}

/// Bytes of a gigabyte in Keras' max_shard_size.
constexpr double gigabyte = 1 << 30;

/// Keras' maximum GiB of a file among several.
constexpr double keras_shard_size = 5;

bool is_keras_file(const std::string& path) {
  return path.ends_with(".h5") || path.ends_with(".hdf5") || path.ends_with(".weights.json");
}

/// Opens the weights in a file or model of Keras, by the first bytes and then by the name; nothing
/// for another file.
std::optional<KerasStore> open_keras_file(const std::string& path) {
  const std::string in_folder = path_in(path, "model.weights.h5");
  if (exists(in_folder)) return KerasStore(in_folder);
  const FileKind kind = file_kind(path);
  if (kind == FileKind::zip || (kind == FileKind::other && path.ends_with(".keras"))) {
    return archived_weights(ZipArchive(path));
  }
  if (kind == FileKind::hdf5 || is_keras_file(path)) return KerasStore(path);
  return std::nullopt;
}

void check_overwrite(const Mesh& mesh, const std::string& path, bool overwrite) {
  collectively(mesh, path, [&] {
    if (overwrite || !is_first_rank(mesh) || !exists(path)) return;
    throw FileError(path, "the file must not exist with overwrite = false", "an existing file",
                    "pass another path, or overwrite = true");
  });
}

void save_safetensors(const Layer& model, const std::string& path) {
  const std::vector<Variable> weights = model.weights();
  const Mesh mesh = mesh_of(weights);
  std::vector<at::Tensor> full_tensors;
  std::vector<SafeTensor> tensors;
  for (const Variable& weight : weights) {
    full_tensors.push_back(weight.value().full().contiguous());
    const at::Tensor& tensor = full_tensors.back();
    const auto* bytes = static_cast<const std::byte*>(tensor.const_data_ptr());
    tensors.push_back({weight.path(),
                       dtype_of(weight),
                       weight.shape(),
                       {bytes, static_cast<size_t>(tensor.nbytes())}});
  }
  collectively(mesh, path, [&] {
    if (!is_first_rank(mesh)) return;
    write_safetensors(path, tensors, {{"format", "tessera"}, {safetensors_checksum_key, ""}});
  });
}

}  // namespace

void save_weights(const Layer& model, const std::string& path, const SaveWeightsOptions& options) {
  check_built(model);
  const Mesh mesh = mesh_of(model.weights());
  check_overwrite(mesh, path, options.overwrite);
  if (path.ends_with(".keras")) {
    throw ConfigError(path, "a file of weights ends in .weights.h5, .weights.json or .safetensors",
                      in_quotes(path), "change the extension, or write the model with save()");
  }
  const bool in_several = path.ends_with(".weights.json");
  if (in_several != options.max_shard_size.has_value()) {
    throw ConfigError(
        path, "max_shard_size is for files that end in .weights.json, which require it",
        in_several ? "none" : str(*options.max_shard_size),
        in_several ? "pass max_shard_size" : "change the extension, or omit max_shard_size");
  }
  if (in_several) {
    write_shards(mesh, keras_output(model, true), path, *options.max_shard_size * gigabyte);
  } else if (is_keras_file(path)) {
    write_one_file(mesh, keras_output(model, true), path);
  } else {
    save_safetensors(model, path);
  }
}

void load_weights(Layer& model, const std::string& path, const LoadWeightsOptions& options) {
  check_built(model);
  std::optional<KerasStore> store;
  collectively(mesh_of(model.weights()), path, [&] { store = open_keras_file(path); });
  if (!store) return load_safetensors_weights(model, path, options);
  if (!options.rename.empty() || !options.transpose.empty()) {
    throw ConfigError(path, "rename and transpose are for safetensors files", "a file of Keras",
                      "omit them, or pass by_name to match layers by name");
  }
  load_keras_weights(model, *store, options);
}

bool detail::has_weights_extension(const std::string& path) {
  return path.ends_with(".weights.h5") || path.ends_with(".weights.json") ||
         path.ends_with(".safetensors");
}

std::optional<double> detail::default_shard_size(const std::string& path) {
  return path.ends_with(".weights.json") ? std::optional(keras_shard_size) : std::nullopt;
}

void Model::save_weights(const std::string& path, const SaveWeightsOptions& options) const {
  tessera::save_weights(*this, path, options);
}

void Model::load_weights(const std::string& path, const LoadWeightsOptions& options) {
  tessera::load_weights(*this, path, options);
}

}  // namespace tessera
