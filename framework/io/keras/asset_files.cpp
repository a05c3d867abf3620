#include <tessera/framework/io/keras/asset_files.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/io/keras/keras_tree.hpp>

namespace tessera::detail {
namespace {

constexpr const char* vocabulary_file = "vocabulary.txt";

/// Returns the folder of a layer's assets.
std::string folder_of(const KerasGroup& group) { return "assets" + group.path + "/"; }

}  // namespace

std::map<std::string, std::string> asset_files(const Layer& model, const std::string& path) {
  std::map<std::string, std::string> files;
  for (const KerasGroup& group : keras_tree(model)) {
    if (!group.layer) continue;
    for (const auto& [name, bytes] : group.layer->assets()) {
      if (name != vocabulary_file) {
        throw ConfigError(path, "a vocabulary without weights, as Keras stores it",
                          str(name, " of ", group.layer->class_name(), " ", group.name),
                          "pass `vocabulary` and `idf_weights` as options of the layer");
      }
      files[folder_of(group) + name] = bytes;
    }
  }
  return files;
}

void load_asset_files(const Layer& model, const ReadAsset& read) {
  for (const KerasGroup& group : keras_tree(model)) {
    if (!group.layer) continue;
    const auto bytes = read(folder_of(group) + vocabulary_file);
    if (bytes) const_cast<Layer*>(group.layer)->load_assets({{vocabulary_file, *bytes}});
  }
}

}  // namespace tessera::detail
