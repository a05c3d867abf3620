#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// Returns the assets of a model's layers, which are stored besides weights and configuration, by
/// their names in Keras' files: "assets/layers/integer_lookup/vocabulary.txt". Throws ConfigError
/// for learned token weights, which Keras stores elsewhere.
std::map<std::string, std::string> asset_files(const Layer& model, const std::string& path);

/// Reads a model's file by name; nothing if there is none.
using ReadAsset = std::function<std::optional<std::string>(const std::string& name)>;
/// Loads each layer's assets. Throws ConfigError naming the layer.
void load_asset_files(const Layer& model, const ReadAsset& read);

}  // namespace tessera::detail
