#include <tessera/layers/pretrained/pretrained.hpp>

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/io/format/rectangle_runs.hpp>
#include <tessera/framework/io/format/safetensors.hpp>
#include <tessera/framework/io/format/safetensors_reader.hpp>
#include <tessera/framework/io/internal/read_blocks.hpp>
#include <tessera/framework/io/internal/shards_to_save.hpp>
#include <tessera/framework/io/internal/torch_layout.hpp>
#include <tessera/framework/nn/internal/placed_values.hpp>
#include <tessera/framework/tensor/internal/safetensors_dtype.hpp>
#include <tessera/layers/pretrained/internal/language_model.hpp>

namespace tessera {

using namespace detail;

namespace {

/// A weight of a model, the tensor that has it, and how its axes are there.
struct PretrainedMatch {
  Variable weight;
  WeightSource source;
  const StoredSafeTensor* tensor;
  StoredAxes axes;
};

using TensorsByName = std::map<std::string, const StoredSafeTensor*>;

/// Returns the tensors by their names without the prefixes that some files leave out.
TensorsByName tensors_by_name(const SafetensorsReader& file) {
  TensorsByName tensors;
  for (const StoredSafeTensor& tensor : file.tensors()) {
    std::string name = tensor.name;
    for (const std::string prefix : {"model.", "transformer."}) {
      if (name.starts_with(prefix)) name.erase(0, prefix.size());
    }
    const auto [it, is_new] = tensors.emplace(name, &tensor);
    if (is_new) continue;
    throw FileError(file.path(), "one tensor " + in_quotes(name),
                    in_quotes(it->second->name) + " and " + in_quotes(tensor.name),
                    "get the file again");
  }
  return tensors;
}

PretrainedMatch matched(const SafetensorsReader& file, const TensorsByName& tensors,
                        const Variable& weight, const WeightSource& source) {
  const auto found = tensors.find(source.name);
  if (found == tensors.end()) {
    throw FileError(file.path(), "the tensor " + in_quotes(source.name), "a file without it",
                    "get all files of the model again");
  }
  const StoredSafeTensor& tensor = *found->second;
  Shape part = tensor.shape;
  if (!part.empty() && part.back() % source.parts == 0) part.back() /= source.parts;
  const auto axes = source.transpose ? StoredAxes::of_torch(part, weight.shape())
                                     : StoredAxes::in_order(part, weight.shape());
  const auto dtype = safetensors_scalar_type(tensor.dtype);
  const bool fits = axes && dtype && at::isFloatingType(*dtype) &&
                    (source.parts == 1 || part.back() * source.parts == tensor.shape.back());
  if (!fits) {
    throw FileError(file.path(),
                    str("a tensor ", in_quotes(tensor.name), " of floats for ",
                        in_quotes(weight.path()), " ", to_string(weight.shape())),
                    str(to_string(tensor.shape), " and ", tensor.dtype),
                    "get config.json and the weights again");
  }
  return {weight, source, &tensor, *axes};
}

DTensor read_pretrained(const SafetensorsReader& file, const PretrainedMatch& match) {
  const Variable& weight = match.weight;
  const at::ScalarType stored = *safetensors_scalar_type(match.tensor->dtype);
  const WeightSource& source = match.source;
  const auto read_area = [&](const Rectangle& in_part) {
    Rectangle area = in_part;
    if (source.parts > 1) {
      const int64_t first = match.tensor->shape.back() / source.parts * source.part;
      area.begin.back() += first;
      area.end.back() += first;
    }
    at::Tensor block = at::empty(area.shape(), at::TensorOptions().dtype(stored));
    file.read(*match.tensor, area,
              {static_cast<std::byte*>(block.data_ptr()), static_cast<size_t>(block.nbytes())});
    return block;
  };
  const ShardingPtr sharding = intern(weight.shape(), weight.dtype(), weight.layout());
  return read_blocks(sharding, [&](const std::vector<Interval>& intervals) {
    at::Tensor block =
        match.axes.read({tile_begin(intervals), tile_end(intervals)}, read_area).to(weight.dtype());
    return source.offset == 0 ? block : block + source.offset;
  });
}

/// Returns a weight as Hugging Face's files have it: flat heads, and axes in PyTorch's order.
at::Tensor in_file(const std::string& path, const WeightSource& source, at::Tensor value) {
  const bool is_output = path.ends_with("attention_output/kernel");
  if (value.dim() == 3) value = is_output ? value.flatten(0, 1) : value.flatten(1);
  if (value.dim() == 2 && path.ends_with("/bias")) {
    value = value.flatten();
  }
  if (source.transpose) value = value.t();
  return source.offset == 0 ? value : value - source.offset;
}

}  // namespace

ModelHandle load_pretrained(const std::string& folder, const LoadPretrainedOptions& options) {
  const Mesh mesh = options.layouts.defined() ? options.layouts.mesh() : default_mesh();
  const std::string config_path = path_in(folder, "config.json");
  LanguageModelConfig config;
  std::optional<ModelHandle> model;
  std::optional<SafetensorsReader> file;
  collectively(mesh, folder, [&] {
    config = language_model_config(read_json_file(config_path), config_path);
    const std::string one = path_in(folder, "model.safetensors");
    file.emplace(exists(one) ? one : path_in(folder, "model.safetensors.index.json"));
    model = make_language_model(config, options.dtype);
  });
  if (options.layouts.defined()) place_layers(model->model(), options.layouts);
  std::vector<PretrainedMatch> matches;
  std::vector<DTensor> values;
  collectively(mesh, folder, [&] {
    if (is_first_rank(mesh)) file->verify();
    const TensorsByName tensors = tensors_by_name(*file);
    for (const Variable& weight : (*model)->weights()) {
      matches.push_back(matched(*file, tensors, weight, weight_source(config, weight.path())));
    }
    for (const PretrainedMatch& match : matches) values.push_back(read_pretrained(*file, match));
  });
  for (size_t i = 0; i < matches.size(); ++i) {
    matches[i].weight.assign(std::exchange(values[i], {}));
  }
  return *model;
}

void save_pretrained(const ModelHandle& model, const std::string& folder) {
  const std::vector<Variable> weights = model->weights();
  const Mesh mesh = mesh_of(weights);
  const std::string config_path = path_in(folder, "config.json");
  LanguageModelConfig config;
  std::vector<WeightSource> sources;
  collectively(mesh, folder, [&] {
    config = language_model_config(read_json_file(config_path), config_path);
    for (const Variable& weight : weights) sources.push_back(weight_source(config, weight.path()));
  });
  std::map<std::string, std::vector<at::Tensor>> parts;
  for (size_t i = 0; i < weights.size(); ++i) {
    const at::Tensor full = weights[i].value().full();
    if (!is_first_rank(mesh)) continue;
    std::string name = sources[i].name;
    if (name != "lm_head.weight")
      name = (config.model_type == "gpt2" ? "transformer." : "model.") + name;
    parts[name].push_back(in_file(weights[i].path(), sources[i], full.cpu()));
  }
  collectively(mesh, folder, [&] {
    if (!is_first_rank(mesh)) return;
    std::map<std::string, at::Tensor> whole;
    std::vector<SafeTensor> tensors;
    for (const auto& [name, list] : parts) {
      // Weights come in the order query, key, value, in which such a tensor has them.
      whole[name] = (list.size() == 1 ? list[0] : at::cat(list, -1)).contiguous();
      const at::Tensor& tensor = whole[name];
      tensors.push_back({name,
                         safetensors_dtype(tensor.scalar_type(), name),
                         tensor.sizes().vec(),
                         {static_cast<const std::byte*>(tensor.const_data_ptr()),
                          static_cast<size_t>(tensor.nbytes())}});
    }
    write_safetensors(path_in(folder, "model.safetensors"), std::move(tensors), {{"format", "pt"}});
  });
}

}  // namespace tessera
