#include <tessera/framework/graph/internal/mask_sources.hpp>

#include <algorithm>

#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/graph/internal/call_arguments.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {
namespace {

/// Layers whose outputs have no mask, although they support masking.
const std::set<std::string> mask_ends = {"Dot", "GlobalAveragePooling1D"};

/// Layers whose output mask combines the masks of all inputs, if each has one.
const std::set<std::string> mask_merges = {"Add",     "Average",  "Maximum",
                                           "Minimum", "Multiply", "Subtract"};

/// Operations that Keras' layers compute masks with. OnesLike and ZerosLike use only the shape.
const std::set<std::string> mask_operations = {"Any",        "Concatenate", "ConvertToTensor",
                                               "ExpandDims", "LogicalOr",   "NotEqual",
                                               "OnesLike",   "ZerosLike"};

MaskSource source_of(const SymbolicTensor& tensor, std::optional<double> mask_value) {
  return {tensor.node().get(), tensor.index(), mask_value};
}

MaskSources joined_sources(const std::vector<MaskSources>& inputs) {
  MaskSources all;
  for (const MaskSources& one : inputs) all.insert(one.begin(), one.end());
  return all;
}

/// Appends the tensors among the arguments of a call, also those in lists.
void add_tensors(std::vector<TensorName>& list, const Json& json, const JsonPath& path) {
  if (is_tensor(json)) list.push_back(name_of_tensor(json, path));
  if (!json.is_array()) return;
  for (size_t i = 0; i < json.size(); ++i) add_tensors(list, json[i], path.index(i));
}

/// Returns the sources of the mask that the layer gives an output, from those of its inputs.
MaskSources sources_of_output(const Node& node, size_t output,
                              const std::vector<MaskSources>& inputs) {
  const Layer& layer = *node.layer;
  const std::string kind = layer.class_name();
  if (inputs.empty() || layer.is_model() || !layer.supports_masking()) return {};
  if (kind == "Embedding") return {source_of(node.inputs[0], 0)};
  if (kind == "Masking") {
    return {source_of(node.inputs[0], layer.config().at("mask_value").get<double>())};
  }
  if (mask_ends.contains(kind)) return {};
  if (kind == "Concatenate") return joined_sources(inputs);
  if (mask_merges.contains(kind)) {
    const bool some_without = std::any_of(inputs.begin(), inputs.end(),
                                          [](const MaskSources& one) { return one.empty(); });
    return some_without ? MaskSources() : joined_sources(inputs);
  }
  // A recurrent layer's last step and states have no mask, nor have attention scores.
  if (!is_recurrent(kind)) return output == 0 ? inputs[0] : MaskSources();
  const bool steps = node.shapes[output].size() == node.inputs[0].shape().size();
  return steps ? inputs[0] : MaskSources();
}

}  // namespace

void MaskFlow::add(const Node& node) {
  std::vector<MaskSources> inputs;
  for (size_t i = 0; i < node.arguments(); ++i) inputs.push_back(sources(node.inputs[i]));
  for (size_t i = 0; i < node.masked.size(); ++i) {
    inputs[node.masked[i]] = {source_of(node.inputs[node.arguments() + i], {})};
  }
  std::vector<MaskSources>& outputs = outputs_[&node];
  for (size_t o = 0; o < node.shapes.size(); ++o) {
    outputs.push_back(sources_of_output(node, o, inputs));
  }
}

const MaskSources& MaskFlow::sources(const SymbolicTensor& tensor) const {
  return outputs_.at(tensor.node().get())[tensor.index()];
}

void KerasMasks::add(const Json& json, const JsonPath& path) {
  JsonObject entry(json, path);
  const auto name = entry.take<std::string>("name");
  const auto kind = entry.take<std::string>("class_name");
  const Json calls = entry.take_or<Json>("inbound_nodes", Json::array());
  if (!mask_operations.contains(kind)) return;
  for (size_t i = 0; calls.is_array() && i < calls.size(); ++i) {
    const JsonPath at = path.key("inbound_nodes").index(i);
    JsonObject call(calls[i], at);
    const Json args = call.take<Json>("args");
    Call mask_call{{name, int64_t(i)}, {}, {}};
    const bool shape_alone = kind == "OnesLike" || kind == "ZerosLike";
    if (!shape_alone) add_tensors(mask_call.inputs, args, at.key("args"));
    if (kind == "NotEqual") {
      const bool with_number =
          mask_call.inputs.size() == 1 && args.size() == 2 && args[1].is_number();
      if (!with_number) continue;
      mask_call.mask_value = args[1].get<double>();
    }
    waiting_.push_back(std::move(mask_call));
  }
}

bool KerasMasks::run(const std::function<const SymbolicTensor*(const TensorName&)>& find) {
  const auto try_call = [&](const Call& call) {
    MaskSources all;
    for (const TensorName& input : call.inputs) {
      const SymbolicTensor* tensor = find(input);
      const MaskSources* input_sources = call.mask_value ? nullptr : sources(input);
      if (tensor == nullptr && input_sources == nullptr) return false;
      if (input_sources != nullptr) {
        all.insert(input_sources->begin(), input_sources->end());
      } else {
        all.insert(source_of(*tensor, call.mask_value));
      }
    }
    sources_[call.name] = std::move(all);
    return true;
  };
  return std::erase_if(waiting_, try_call) > 0;
}

const MaskSources* KerasMasks::sources(const TensorName& mask) const {
  const auto found = sources_.find({mask.layer, mask.call});
  return found == sources_.end() || mask.output != 0 ? nullptr : &found->second;
}

bool is_operation(const Json& json) {
  if (!json.is_object() || !json.contains("module") || !json["module"].is_string()) return false;
  const auto module = json["module"].get<std::string>();
  return module.starts_with("keras.src.ops") || module == "keras.src.activations.activations";
}

}  // namespace tessera::detail
