#include <tessera/layers/pretrained/pretrained.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/io/format/safetensors.hpp>
#include <tessera/framework/io/internal/read_blocks.hpp>
#include <tessera/framework/io/internal/shards_to_save.hpp>
#include <tessera/framework/io/internal/torch_layout.hpp>
#include <tessera/framework/tensor/internal/safetensors_dtype.hpp>
#include <tessera/layers/pretrained/internal/language_model.hpp>
#include <tessera/layers/pretrained/internal/pretrained_file.hpp>

namespace tessera {

using namespace detail;

namespace {

/// A weight of a model, the tensor that has it, and how its axes are there.
struct PretrainedMatch {
  Variable weight;
  WeightSource source;
  size_t tensor;
  StoredAxes axes;
};

using TensorsByName = std::map<std::string, size_t>;

/// Returns the numbers of a file's tensors by their names.
TensorsByName tensors_by_name(const PretrainedFile& file) {
  TensorsByName tensors;
  for (size_t i = 0; i < file.tensors().size(); ++i) {
    const PretrainedTensor& tensor = file.tensors()[i];
    const auto [it, is_new] = tensors.emplace(tensor.name, i);
    if (is_new) continue;
    throw FileError(file.path(), "one tensor " + in_quotes(tensor.name),
                    in_quotes(file.tensors()[it->second].label) + " and " + in_quotes(tensor.label),
                    "get the file again");
  }
  return tensors;
}

PretrainedMatch matched(const PretrainedFile& file, const TensorsByName& tensors,
                        const Variable& weight, const WeightSource& source) {
  const auto found = tensors.find(source.name);
  if (found == tensors.end()) {
    throw FileError(file.path(), "the tensor " + in_quotes(source.name), "a file without it",
                    "get all files of the model again");
  }
  const PretrainedTensor& tensor = file.tensors()[found->second];
  Shape part = tensor.shape;
  if (!part.empty() && part.back() % source.parts == 0) part.back() /= source.parts;
  const auto axes = source.transpose ? StoredAxes::of_torch(part, weight.shape())
                                     : StoredAxes::in_order(part, weight.shape());
  const bool fits = axes && tensor.is_floating &&
                    (source.parts == 1 || part.back() * source.parts == tensor.shape.back());
  if (!fits) {
    throw FileError(file.path(),
                    str("a tensor ", in_quotes(tensor.label), " of floats for ",
                        in_quotes(weight.path()), " ", to_string(weight.shape())),
                    str(to_string(tensor.shape), " and ", tensor.dtype),
                    "get config.json and the weights again");
  }
  return {weight, source, found->second, *axes};
}

DTensor read_pretrained(const PretrainedFile& file, const PretrainedMatch& match) {
  const Variable& weight = match.weight;
  const WeightSource& source = match.source;
  const auto read_area = [&](const Rectangle& in_part) {
    Rectangle area = in_part;
    if (source.parts > 1) {
      const int64_t first = file.tensors()[match.tensor].shape.back() / source.parts * source.part;
      area.begin.back() += first;
      area.end.back() += first;
    }
    return file.read(match.tensor, area);
  };
  const ShardingPtr sharding = intern(weight.shape(), weight.dtype(), weight.layout());
  return read_blocks(sharding, [&](const std::vector<Interval>& intervals) {
    at::Tensor block = match.axes.read({tile_begin(intervals), tile_end(intervals)}, read_area);
    if (source.offset != 0) block = block.to(at::kDouble) + source.offset;
    return block.to(weight.dtype());
  });
}

/// Returns the configuration of a file; its scales of norms are those of the file.
LanguageModelConfig config_of_file(const PretrainedFile& file) {
  LanguageModelConfig config = language_model_config(file.config(), file.config_path());
  config.scale_offset -= file.scale_offset();
  config.has_pooler =
      std::any_of(file.tensors().begin(), file.tensors().end(),
                  [](const auto& each) { return each.name == "pooler.dense.weight"; });
  return config;
}

/// Returns a weight as Hugging Face's files have it: flat heads, and axes in PyTorch's order.
at::Tensor in_file(const std::string& path, const WeightSource& source, at::Tensor value) {
  const bool is_output = path.ends_with("attention_output/kernel");
  if (value.dim() == 3) value = is_output ? value.flatten(0, 1) : value.flatten(1);
  if (value.dim() == 2 && path.ends_with("/bias")) {
    value = value.flatten();
  }
  return source.transpose ? value.t() : value;
}

}  // namespace

ModelHandle load_pretrained(const std::string& path, const LoadPretrainedOptions& options) {
  const Mesh mesh = options.layouts.defined() ? options.layouts.mesh() : default_mesh();
  LanguageModelConfig config;
  std::optional<ModelHandle> model;
  std::unique_ptr<PretrainedFile> file;
  collectively(mesh, path, [&] {
    file = open_pretrained(path);
    config = config_of_file(*file);
    model = make_language_model(config, options.dtype, options.documents);
  });
  // Without a loss, as load_export() does: predictions run where the weights are.
  if (options.layouts.defined()) (*model)->compile({.layouts = options.layouts});
  std::vector<PretrainedMatch> matches;
  std::vector<DTensor> values;
  collectively(mesh, path, [&] {
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

std::vector<int64_t> pretrained_stop_tokens(const std::string& folder) {
  for (const char* name : {"generation_config.json", "config.json"}) {
    const std::string path = path_in(folder, name);
    if (!exists(path)) continue;
    const Json json = read_json_file(path);
    JsonObject object(json, JsonPath(path));
    const auto tokens = object.take_optional<Json>("eos_token_id");
    if (!tokens) continue;
    const JsonPath where = object.path().key("eos_token_id");
    if (tokens->is_array()) return json_as<std::vector<int64_t>>(*tokens, where);
    return {json_as<int64_t>(*tokens, where)};
  }
  return {};
}

void save_pretrained(const ModelHandle& model, const std::string& folder,
                     const SavePretrainedOptions& options) {
  const std::vector<Variable> weights = model->weights();
  const Mesh mesh = mesh_of(weights);
  const std::string config_path = path_in(folder, "config.json");
  const bool has_like = !options.like.empty();
  Json json;
  LanguageModelConfig config;
  std::vector<WeightSource> sources;
  collectively(mesh, folder, [&] {
    json = has_like ? open_pretrained(options.like)->config() : read_json_file(config_path);
    config = language_model_config(json, has_like ? options.like : config_path);
    for (const Variable& weight : weights) sources.push_back(weight_source(config, weight.path()));
  });
  std::map<std::string, std::vector<at::Tensor>> parts;
  for (size_t i = 0; i < weights.size(); ++i) {
    const at::Tensor full = weights[i].value().full();
    if (!is_first_rank(mesh)) continue;
    std::string name = sources[i].name;
    if (name != "lm_head.weight") name = name_prefix(config) + name;
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
    if (has_like) {
      make_folders(folder);
      for (const char* key : {"dtype", "torch_dtype"}) {
        if (json.contains(key)) json[key] = dtype_name(weights[0].dtype());
      }
      write_file_atomically(config_path, to_json_text(json) + "\n");
    }
    write_safetensors(path_in(folder, "model.safetensors"), std::move(tensors), {{"format", "pt"}});
  });
}

}  // namespace tessera
