#include <tessera/framework/io/load_model.hpp>

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/io/internal/file_kind.hpp>
#include <tessera/framework/io/keras/asset_files.hpp>
#include <tessera/framework/io/keras/compile_config.hpp>
#include <tessera/framework/io/keras/keras_store.hpp>
#include <tessera/framework/io/keras/keras_weights.hpp>
#include <tessera/framework/io/keras/legacy_file.hpp>
#include <tessera/framework/model/config.hpp>
#include <tessera/framework/nn/config/registry.hpp>
#include <tessera/framework/nn/layer_registry.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr uint64_t max_config_bytes = uint64_t{1} << 28;

/// The files of a model: in an archive, in a folder, or all in one Keras 2 file.
struct ModelFiles {
  std::string where;  ///< names the configuration in errors
  Json config;
  std::string compiled_where;
  Json compiled;
  std::optional<KerasStore> weights;
  ReadAsset asset = [](const std::string&) { return std::nullopt; };
};

[[noreturn]] void fail_model(const std::string& path, const std::string& received) {
  throw FileError(path, "a model: config.json and model.weights.h5", received,
                  "pass what Model.save() of Keras or Tessera wrote");
}

/// Removes a key from a configuration and returns its value, null if absent.
Json take_key(Json& json, const char* key) {
  Json value = json.is_object() && json.contains(key) ? json[key] : Json();
  if (json.is_object()) json.erase(key);
  return value;
}

/// Takes the configuration, with the version in metadata.json, which decides how it is read.
/// Returns the version in a model's metadata; null if they are damaged or without one.
Json take_version(const std::string& metadata, const std::string& where) {
  try {
    Json json = parse_json(metadata, where);
    return take_key(json, "keras_version");
  } catch (const ConfigError&) {
    return nullptr;
  }
}

void take_config(ModelFiles& files, const std::string& path, const std::string& text,
                 const std::optional<std::string>& metadata) {
  files.where = path + ", config.json";
  files.config = parse_json(text, files.where);
  if (files.config.is_object() && metadata) {
    const Json version = take_version(*metadata, path + ", metadata.json");
    if (version.is_string()) files.config["keras_version"] = version;
  }
  files.compiled_where = files.where + ": compile_config";
  files.compiled = take_key(files.config, "compile_config");
}

ModelFiles open_archive(const std::string& path) {
  ModelFiles files;
  const auto opened = std::make_shared<const ZipArchive>(path);
  const ZipArchive& archive = *opened;
  const ZipMember* config = archive.find("config.json");
  if (!config) fail_model(path, "no config.json");
  files.asset = [opened](const std::string& name) -> std::optional<std::string> {
    const ZipMember* member = opened->find(name);
    if (!member) return std::nullopt;
    return opened->read(*member, max_config_bytes);
  };
  take_config(files, path, archive.read(*config, max_config_bytes), files.asset("metadata.json"));
  files.weights.emplace(archived_weights(archive));
  return files;
}

ModelFiles open_folder(const std::string& path) {
  ModelFiles files;
  for (const char* name : {"config.json", "model.weights.h5"}) {
    if (!exists(path_in(path, name))) fail_model(path, str("no ", name));
  }
  files.asset = [path](const std::string& name) -> std::optional<std::string> {
    if (!exists(path_in(path, name))) return std::nullopt;
    return read_file(path_in(path, name), max_config_bytes);
  };
  take_config(files, path, read_file(path_in(path, "config.json"), max_config_bytes),
              files.asset("metadata.json"));
  files.weights.emplace(path_in(path, "model.weights.h5"));
  return files;
}

ModelFiles open_legacy(const std::string& path) {
  ModelFiles files;
  files.weights.emplace(path);
  if (!files.weights->is_legacy()) {
    throw FileError(path, "a complete model, with layer_names", "none",
                    "build the model and load the file with load_weights()");
  }
  files.where = path + ", model_config";
  files.config = legacy_model_config(files.weights->legacy_file());
  files.compiled_where = path + ", training_config";
  files.compiled = legacy_compile_config(files.weights->legacy_file(), files.compiled_where);
  return files;
}

/// Opens a model by the first bytes of its file and then by its name: Keras up to 2.11 wrote HDF5
/// under names that end in ".keras" too.
ModelFiles open_model(const std::string& path) {
  if (leads_to_folder(path)) return open_folder(path);
  const FileKind kind = file_kind(path);
  const bool is_hdf5_name = path.ends_with(".h5") || path.ends_with(".hdf5");
  const bool is_hdf5 = kind == FileKind::hdf5 || (kind == FileKind::other && is_hdf5_name);
  return is_hdf5 ? open_legacy(path) : open_archive(path);
}

/// Returns the class of the layer that `json` configures; empty if it is no layer.
std::string kind_of(const Json& json) {
  const bool is_layer = json.is_object() && json.contains("class_name") &&
                        json["class_name"].is_string() && json.contains("config") &&
                        json["config"].is_object();
  return is_layer ? json["class_name"].get<std::string>() : "";
}

bool takes_texts(const std::string& kind) {
  return kind == "TextVectorization" || kind == "StringLookup";
}

std::string name_in(const Json& layer) {
  const Json& config = layer["config"];
  const bool named = config.contains("name") && config["name"].is_string();
  return named ? config["name"].get<std::string>() : "";
}

/// Throws ConfigError for a layer that takes texts: texts are not tensors, so such a layer cannot
/// be part of a model.
void check_takes_tensors(const Json& json, const std::string& where) {
  const std::string kind = kind_of(json);
  if (takes_texts(kind)) {
    throw ConfigError(where, "a model that takes numbers",
                      str(kind, " ", in_quotes(name_in(json)), ", which takes texts"),
                      "save the model after it with Keras, and load this layer with "
                      "load_text_layer()");
  }
  if (!json.is_structured()) return;
  for (const Json& inner : json) check_takes_tensors(inner, where);
}

/// The configuration of a layer that takes texts, and the folder of its assets.
struct TextEntry {
  Json layer;
  std::string folder;
};

/// Finds the text layers of a model and of nested models. Asset folders are named after layer
/// classes.
void find_text_layers(const Json& model, const std::string& path, std::vector<TextEntry>& entries) {
  if (kind_of(model).empty() || !model["config"].contains("layers")) return;
  std::map<std::string, int64_t> counts;
  for (const Json& layer : model["config"]["layers"]) {
    const std::string kind = kind_of(layer), base = snake_case(kind);
    const int64_t number = counts[base]++;
    const std::string below = str(path, "/layers/", base) + (number == 0 ? "" : str("_", number));
    if (takes_texts(kind)) entries.push_back({layer, below});
    find_text_layers(layer, below, entries);
  }
}

/// Returns the text layer called `name`, or the only one. Throws FileError.
TextEntry text_layer_in(const Json& config, const std::string& path, const std::string& name) {
  std::vector<TextEntry> entries;
  find_text_layers(config, "assets", entries);
  std::vector<std::string> names;
  names.reserve(entries.size());
  for (const TextEntry& entry : entries) names.push_back(name_in(entry.layer));
  if (!name.empty()) {
    std::erase_if(entries, [&](const TextEntry& entry) { return name_in(entry.layer) != name; });
  }
  if (entries.size() == 1) return entries[0];
  throw FileError(
      path,
      name.empty() ? "one layer that takes texts" : "a layer that takes texts, " + in_quotes(name),
      names.empty() ? "none" : quoted_list(names),
      names.empty() ? "load the model with load_model()" : "pass one of these names");
}

/// Builds a model that is still unbuilt with the input shape that it was saved with.
void build_as_saved(const ModelHandle& model, const Json& build, const JsonPath& path) {
  if (model->built() || !build.is_object() || !build.contains("input_shape")) return;
  const Json& shape = build["input_shape"];
  if (!shape.is_array() || shape.empty()) return;
  Shape input;
  for (size_t a = 0; a < shape.size(); ++a) {
    const JsonPath at = path.key("input_shape").index(a);
    input.push_back(shape[a].is_null() ? -1 : json_as<int64_t>(shape[a], at));
  }
  model.build(input);
}

}  // namespace

ModelHandle load_model(const std::string& path, const LoadModelOptions& options) {
  const Mesh mesh = options.layouts.defined() ? options.layouts.mesh() : default_mesh();
  ModelFiles files;
  std::optional<ModelHandle> model;
  collectively(mesh, path, [&] {
    files = open_model(path);
    const Json build = take_key(files.config, "build_config");
    check_takes_tensors(files.config, files.where);
    model = model_from_config(files.config, files.where);
    load_asset_files(*(*model).layer(), files.asset);
    build_as_saved(*model, build, JsonPath(files.where).key("build_config"));
    if (!(*model)->built()) fail_model(path, "a model that was saved before it was built");
  });
  if (options.compile && files.compiled.is_object()) {
    compile_from_config(*model, files.compiled, JsonPath(files.compiled_where), options.layouts);
  } else if (options.layouts.defined()) {
    // Without a loss, as load_export() does: predictions run where the weights are.
    (*model)->compile({.layouts = options.layouts});
  }
  load_keras_weights(model->model(), *files.weights, {});
  return *model;
}

std::shared_ptr<TextLayer> load_text_layer(const std::string& path, const std::string& name) {
  const ModelFiles files = open_model(path);
  const TextEntry entry = text_layer_in(files.config, path, name);
  const LayerHandle made =
      layer_from_config(entry.layer, JsonPath(str(files.where, ", ", in_quotes(entry.folder))));
  auto layer = std::static_pointer_cast<TextLayer>(made.layer());
  const std::string file = entry.folder + "/vocabulary.txt";
  const std::optional<std::string> vocabulary = files.asset(file);
  if (vocabulary) layer->load_assets({{"vocabulary.txt", *vocabulary}});
  if (!layer->ready()) {
    throw FileError(path, "the vocabulary of " + in_quotes(name_in(entry.layer)),
                    "no " + in_quotes(file), "save the model after adapt()");
  }
  return layer;
}

}  // namespace tessera
