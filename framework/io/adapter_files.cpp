#include <tessera/framework/io/adapter_files.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <re2/re2.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/io/format/safetensors.hpp>
#include <tessera/framework/io/internal/shards_to_save.hpp>
#include <tessera/framework/nn/internal/lora_layer.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/safetensors_dtype.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr const char* adapter_prefix = "base_model.model.";

/// Factors of a matrix (outputs, inputs) as PyTorch has them: a (rank, inputs), b (outputs, rank).
struct PeftFactors {
  at::Tensor a, b;
  double alpha = 0;
};

/// An adapter of a file, and the layer that it is for.
struct LoadedAdapter {
  LoraLayer* layer = nullptr;
  PeftFactors factors;
};

void add_lora_layers(const Layer& layer, std::vector<LoraLayer*>& layers) {
  for (const auto& inner : layer.sublayers()) {
    auto* const lora = dynamic_cast<LoraLayer*>(inner.get());
    const bool known = std::find(layers.begin(), layers.end(), lora) != layers.end();
    if (lora && !known) layers.push_back(lora);
    add_lora_layers(*inner, layers);
  }
}

AdapterModule module_of(const AdapterFileOptions& options, const std::string& path) {
  if (options.module_of) return options.module_of(path);
  std::string name = path;
  std::replace(name.begin(), name.end(), '/', '.');
  return {name};
}

/// Returns the ends of the names of A and B.
std::pair<std::string, std::string> factor_names(const LoraLayer& layer) {
  if (layer.adapted().path().ends_with("/embeddings")) {
    return {".lora_embedding_A", ".lora_embedding_B"};
  }
  return {".lora_A.weight", ".lora_B.weight"};
}

int64_t product_of(const Shape& shape, int64_t begin, int64_t end) {
  return numel(Shape(shape.begin() + begin, shape.begin() + end));
}

/// Returns an adapter as that of a matrix. Axes of the kernel that A has but that are outputs, such
/// as heads, become blocks of B, each with its own part of the rank.
PeftFactors peft_factors(const LoraLayer& layer, const at::Tensor& a, const at::Tensor& b) {
  const int64_t inputs = layer.input_axes();
  const Shape& kernel = layer.adapted().shape();
  if (inputs == 0) {
    throw ConfigError(layer.class_name() + " " + layer.path(),
                      "an adapter in a file is one of a matrix of inputs and outputs",
                      "a kernel " + to_string(kernel), "save the model's weights");
  }
  const int64_t blocks = product_of(kernel, inputs, a.dim() - 1);
  const at::Tensor rows = a.reshape({product_of(kernel, 0, inputs), -1}).t();
  const at::Tensor columns = b.reshape({b.size(0), -1}).t().contiguous();
  return {rows.contiguous(), at::kron(at::eye(blocks, columns.options()), columns).contiguous(),
          layer.alpha() * static_cast<double>(blocks)};
}

SafeTensor float_tensor(const std::string& name, const at::Tensor& tensor) {
  return {name,
          safetensors_dtype(tensor.scalar_type(), name),
          tensor.sizes().vec(),
          {static_cast<const std::byte*>(tensor.const_data_ptr()),
           static_cast<size_t>(tensor.nbytes())}};
}

Json number(double value) {
  return value == std::floor(value) ? Json(static_cast<int64_t>(value)) : Json(value);
}

Json adapter_config(const std::vector<std::pair<std::string, PeftFactors>>& adapters,
                    const std::string& base_model) {
  const PeftFactors& first = adapters.front().second;
  Json modules = Json::array(), ranks = Json::object(), alphas = Json::object();
  for (const auto& [name, factors] : adapters) {
    modules.push_back(name);
    if (factors.a.size(0) != first.a.size(0)) ranks[name] = factors.a.size(0);
    if (factors.alpha != first.alpha) alphas[name] = number(factors.alpha);
  }
  return {{"alpha_pattern", alphas},
          {"base_model_name_or_path", base_model.empty() ? Json() : Json(base_model)},
          {"bias", "none"},
          {"fan_in_fan_out", false},
          {"inference_mode", true},
          {"init_lora_weights", true},
          {"lora_alpha", number(first.alpha)},
          {"lora_dropout", 0.0},
          {"modules_to_save", nullptr},
          {"peft_type", "LORA"},
          {"r", first.a.size(0)},
          {"rank_pattern", ranks},
          {"target_modules", modules},
          {"task_type", nullptr},
          {"use_dora", false},
          {"use_rslora", false}};
}

/// The keys of an untrusted adapter_config.json that say how A and B are applied.
class AdapterConfig {
 public:
  explicit AdapterConfig(const std::string& path) {
    const Json json = read_json_file(path);
    JsonObject config(json, JsonPath(path));
    const auto type = config.take<std::string>("peft_type");
    if (type != "LORA") json_fail(type, config.path().key("peft_type"), "\"LORA\"");
    for (const char* const key :
         {"bias", "modules_to_save", "use_dora", "lora_bias", "trainable_token_indices",
          "target_parameters", "use_qalora", "use_bdlora", "layer_replication", "megatron_config",
          "alora_invocation_tokens", "kasa_config", "arrow_config", "velora_config",
          "monteclora_config"}) {
      const Json value = config.take_or<Json>(key, Json());
      const bool unused = value.is_null() || value == false || value == "none" ||
                          (value.is_structured() && value.empty());
      if (!unused) json_fail(value, config.path().key(key), "null: this is not implemented");
    }
    alpha_ = config.take_or<double>("lora_alpha", 8);
    by_root_ = config.take_or<bool>("use_rslora", false);
    const Json alphas = config.take_or<Json>("alpha_pattern", Json::object());
    const JsonPath at = config.path().key("alpha_pattern");
    if (!alphas.is_object()) json_fail(alphas, at, "an object");
    for (const auto& [key, alpha] : alphas.items()) {
      patterns_.emplace_back("(?:.*\\.)?(?:" + key + ")", json_as<double>(alpha, at.key(key)));
    }
  }

  /// Returns what divided by the rank is the factor of a module's product.
  double alpha(const std::string& module, int64_t rank) const {
    double alpha = alpha_;
    for (const auto& [pattern, own] : patterns_) {
      if (!re2::RE2::FullMatch(module, re2::RE2(pattern, re2::RE2::Quiet))) continue;
      alpha = own;
      break;
    }
    return by_root_ ? alpha * std::sqrt(static_cast<double>(rank)) : alpha;
  }

 private:
  double alpha_ = 0;
  bool by_root_ = false;
  std::vector<std::pair<std::string, double>> patterns_;
};

at::Tensor float_value(const SafetensorsFile& file, const SafeTensor& tensor) {
  const auto dtype = safetensors_scalar_type(tensor.dtype);
  if (!dtype || !at::isFloatingType(*dtype) || tensor.shape.size() != 2) {
    throw FileError(file.path(), in_quotes(tensor.name) + " is a matrix of floats",
                    str(to_string(tensor.shape), " of ", tensor.dtype), "get the adapter again");
  }
  auto* const bytes = const_cast<std::byte*>(tensor.data.data());
  return at::from_blob(bytes, tensor.shape, at::TensorOptions().dtype(*dtype))
      .to(at::kFloat, false, true);
}

/// Reads the adapter of a layer, of which `a` and `b` are the tensors.
PeftFactors factors_of(const SafetensorsFile& file, const LoraLayer& layer,
                       const AdapterModule& module, const SafeTensor& a, const SafeTensor& b,
                       const AdapterConfig& config) {
  PeftFactors factors{float_value(file, a), float_value(file, b)};
  const Shape& kernel = layer.adapted().shape();
  const int64_t inputs = product_of(kernel, 0, layer.input_axes());
  const int64_t outputs = numel(kernel) / std::max<int64_t>(inputs, 1);
  const int64_t rank = factors.a.size(0);
  if (layer.input_axes() == 0 || rank == 0 || factors.a.size(1) != inputs ||
      factors.b.size(1) != rank || factors.b.size(0) != outputs * module.parts) {
    throw FileError(file.path(),
                    str("factors of ", in_quotes(layer.adapted().path()), " ", to_string(kernel)),
                    str(in_quotes(a.name), " ", to_string(a.shape), " and ", in_quotes(b.name), " ",
                        to_string(b.shape)),
                    "get the adapter of this model");
  }
  factors.b = factors.b.narrow(0, module.part * outputs, outputs);
  factors.alpha = config.alpha(module.name, rank);
  if (!layer.has_adapter()) return factors;
  const bool is_matrix = static_cast<int64_t>(layer.a().shape().size()) == layer.input_axes() + 1;
  if (is_matrix && layer.rank() == rank && layer.alpha() == factors.alpha) return factors;
  throw FileError(
      file.path(),
      str("an adapter of the rank, alpha and shapes of ", in_quotes(layer.a().path()), ": ",
          layer.rank(), ", ", layer.alpha(), " and ", to_string(layer.a().shape())),
      str(in_quotes(a.name), " of ", rank, ", ", factors.alpha, " and ", to_string(a.shape)),
      "load it into a model without adapters, or enable_lora() with as_matrix");
}

std::vector<LoadedAdapter> read_adapters(const std::string& folder,
                                         const std::vector<LoraLayer*>& layers,
                                         const AdapterFileOptions& options) {
  const AdapterConfig config(path_in(folder, "adapter_config.json"));
  const SafetensorsFile file(path_in(folder, "adapter_model.safetensors"));
  std::vector<LoadedAdapter> adapters;
  std::set<std::string> used;
  std::vector<std::string> names;
  for (LoraLayer* const layer : layers) {
    const AdapterModule module = module_of(options, layer->path());
    const auto ends = factor_names(*layer);
    const SafeTensor* const a = file.find(adapter_prefix + module.name + ends.first);
    const SafeTensor* const b = file.find(adapter_prefix + module.name + ends.second);
    names.push_back(adapter_prefix + module.name + ends.first);
    if (!a || !b) continue;
    used.insert({a->name, b->name});
    adapters.push_back({layer, factors_of(file, *layer, module, *a, *b, config)});
    if (!layer->has_adapter()) layer->check_adapter(1, {.as_matrix = true});
  }
  for (const SafeTensor& tensor : file.tensors()) {
    if (used.contains(tensor.name)) continue;
    throw FileError(file.path(), "tensors of adapters of layers of the model",
                    in_quotes(tensor.name), suggestion(tensor.name, names));
  }
  return adapters;
}

}  // namespace

void save_adapters(const Layer& model, const std::string& folder,
                   const AdapterFileOptions& options) {
  std::vector<LoraLayer*> layers;
  add_lora_layers(model, layers);
  std::erase_if(layers, [](const LoraLayer* layer) { return !layer->has_adapter(); });
  if (layers.empty()) {
    throw StateError("save_adapters", "the model has adapters", "a model without",
                     "call enable_lora() first");
  }
  const Mesh mesh = mesh_of(model.weights());
  std::vector<std::pair<at::Tensor, at::Tensor>> values;
  for (const LoraLayer* layer : layers) {
    values.emplace_back(layer->a().value().full().cpu(), layer->b().value().full().cpu());
  }
  collectively(mesh, folder, [&] {
    std::vector<std::pair<std::string, PeftFactors>> adapters;
    std::vector<SafeTensor> tensors;
    adapters.reserve(layers.size());
    for (size_t i = 0; i < layers.size(); ++i) {
      const LoraLayer& layer = *layers[i];
      const AdapterModule module = module_of(options, layer.path());
      if (module.parts != 1) {
        throw ConfigError(layer.class_name() + " " + layer.path(),
                          "an adapter in a file is one of a whole module",
                          str("part ", module.part, " of ", in_quotes(module.name)),
                          "enable_lora() for other layers, or save the model's weights");
      }
      adapters.emplace_back(module.name, peft_factors(layer, values[i].first, values[i].second));
      const PeftFactors& factors = adapters.back().second;
      const auto ends = factor_names(layer);
      tensors.push_back(float_tensor(adapter_prefix + module.name + ends.first, factors.a));
      tensors.push_back(float_tensor(adapter_prefix + module.name + ends.second, factors.b));
    }
    if (!is_first_rank(mesh)) return;
    if (!make_folders(folder)) {
      throw FileError(folder, "a folder that can be made", "none", "choose another path");
    }
    write_safetensors(path_in(folder, "adapter_model.safetensors"), std::move(tensors),
                      {{"format", "pt"}});
    write_file_atomically(path_in(folder, "adapter_config.json"),
                          to_json_text(adapter_config(adapters, options.base_model)) + "\n");
  });
}

void load_adapters(Layer& model, const std::string& folder, const AdapterFileOptions& options) {
  if (!model.built()) {
    throw StateError("load_adapters", "the model is built",
                     "a model whose weights are not known yet",
                     "call build() with an input shape first");
  }
  std::vector<LoraLayer*> layers;
  add_lora_layers(model, layers);
  std::vector<LoadedAdapter> adapters;
  collectively(mesh_of(model.weights()), folder,
               [&] { adapters = read_adapters(folder, layers, options); });
  bool is_new = false;
  for (const auto& [layer, factors] : adapters) {
    if (!layer->has_adapter()) {
      layer->make_adapter(factors.a.size(0), {.alpha = factors.alpha, .as_matrix = true});
      is_new = true;
    }
    Variable a = layer->a(), b = layer->b();
    const auto assign = [](Variable& weight, const at::Tensor& value) {
      const auto rank = static_cast<int64_t>(weight.shape().size());
      weight.assign(pack(value.reshape(weight.shape()).contiguous(),
                         Layout::replicated(weight.layout().mesh(), rank)));
    };
    assign(a, factors.a.t());
    assign(b, factors.b.t());
  }
  if (is_new) train_adapters_only(model);
}

}  // namespace tessera
