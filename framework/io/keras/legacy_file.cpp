#include <tessera/framework/io/keras/legacy_file.hpp>

#include <algorithm>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/io/keras/keras_1_weights.hpp>
#include <tessera/framework/io/keras/keras_weights.hpp>

namespace tessera::detail {
namespace {

/// Returns a text attribute; empty if there is none.
std::string text_of(const Hdf5Group& group, const char* name) {
  const bool is_text = group.attributes.contains(name) && group.attributes[name].is_string();
  return is_text ? group.attributes[name].get<std::string>() : "";
}

bool has_list(const Hdf5Group& group, const std::string& name) {
  return group.attributes.contains(name) || group.attributes.contains(name + "0");
}

/// Returns the texts of a list attribute, which is split into "name0", "name1" and so on if it is
/// long. An empty list has another type.
std::vector<std::string> texts_of(const Hdf5Group& group, const std::string& name) {
  std::vector<std::string> texts;
  const auto append = [&](const Json& list) {
    for (const Json& text : list) {
      if (text.is_string()) texts.push_back(text.get<std::string>());
    }
  };
  if (group.attributes.contains(name)) append(group.attributes[name]);
  for (size_t i = 0; group.attributes.contains(str(name, i)); ++i) {
    append(group.attributes[str(name, i)]);
  }
  return texts;
}

/// Returns a layer's weights in these files' order: trainable ones first.
std::vector<Variable> legacy_order(std::vector<Variable> list) {
  std::stable_partition(list.begin(), list.end(),
                        [](const Variable& weight) { return weight.trainable(); });
  return list;
}

/// A layer with weights in the file.
struct LegacyLayer {
  std::string name;
  std::vector<KerasData> data;
};

std::vector<LegacyLayer> layers_of(const Hdf5File& file, const std::string& root) {
  std::vector<LegacyLayer> layers;
  for (const std::string& name : texts_of(*file.find_group(root), "layer_names")) {
    std::vector<KerasData> data = listed_data(file, str(root, "/", name));
    if (!data.empty()) layers.push_back({name, std::move(data)});
  }
  return layers;
}

}  // namespace

std::optional<std::string> legacy_weights(const Hdf5File& file) {
  for (const char* path : {"", "/model_weights"}) {
    const Hdf5Group* group = file.find_group(path);
    if (group && has_list(*group, "layer_names")) return path;
  }
  return std::nullopt;
}

std::vector<KerasData> listed_data(const Hdf5File& file, const std::string& group) {
  const Hdf5Group* listed_group = file.find_group(group);
  if (!listed_group) {
    throw FileError(file.path(), "a group for each listed layer", "no " + in_quotes(group),
                    "save the model again");
  }
  std::vector<KerasData> list;
  for (const std::string& name : texts_of(*listed_group, "weight_names")) {
    const Hdf5Dataset* dataset = file.find(str(group, "/", name));
    if (!dataset) {
      throw FileError(file.path(), "the data of each listed weight",
                      "no " + in_quotes(str(group, "/", name)), "save the model again");
    }
    list.push_back({&file, dataset});
  }
  return list;
}

Json legacy_model_config(const Hdf5File& file) {
  const Hdf5Group* root = file.find_group("");
  const std::string text = root ? text_of(*root, "model_config") : "";
  if (text.empty()) {
    throw FileError(
        file.path(), "a complete model, with its model_config", "none",
        "build the model and load the file with load_weights() (with convert: give --model), or "
        "save it with save()");
  }
  Json config = parse_json(text, file.path() + ", model_config");
  if (config.is_object()) config["keras_version"] = text_of(*root, "keras_version");
  return config;
}

Json legacy_compile_config(const Hdf5File& file, const std::string& where) {
  const Hdf5Group* root = file.find_group("");
  const std::string text = root ? text_of(*root, "training_config") : "";
  if (text.empty()) return nullptr;
  return parse_json(text, where);
}

std::vector<KerasMatch> match_legacy_weights(const Layer& model, const Hdf5File& file,
                                             const LoadWeightsOptions& options,
                                             std::vector<std::string>& skipped) {
  const std::string root = legacy_weights(file).value();
  const std::vector<LegacyLayer> saved = layers_of(file, root);
  std::vector<std::pair<std::string, std::vector<Variable>>> layers;
  for (const auto& layer : model.sublayers()) {
    std::vector<Variable> weights = legacy_order(layer->weights());
    if (!weights.empty()) layers.emplace_back(layer->name(), std::move(weights));
  }
  if (!options.by_name && saved.size() != layers.size()) {
    throw FileError(file.path(),
                    str("the ", layers.size(), " layers with weights of ", in_quotes(model.name())),
                    str(saved.size()), other_keras_model);
  }
  std::vector<KerasMatch> matches;
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto& [name, weights] = layers[i];
    auto it = saved.begin() + int64_t(i);
    if (options.by_name) {
      it = std::find_if(saved.begin(), saved.end(),
                        [&, &expected = name](const LegacyLayer& l) { return l.name == expected; });
      if (it == saved.end()) continue;
    }
    add_matches({file.path(), str(root, "/", it->name), name}, weights,
                data_of_keras_1(weights, it->data), options.skip_mismatch, matches, skipped);
  }
  const std::string top = root + "/top_level_model_weights";
  if (!model.own_weights().empty() && file.find_group(top)) {
    add_matches({file.path(), top, model.name()}, legacy_order(model.own_weights()),
                listed_data(file, top), options.skip_mismatch, matches, skipped);
  }
  return matches;
}

}  // namespace tessera::detail
