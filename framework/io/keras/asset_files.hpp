#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// What layers of a model have beside weights and configuration, as Keras' files name it:
/// "assets/layers/integer_lookup/vocabulary.txt", by its bytes. Throws ConfigError for weights of
/// tokens that were learned, which Keras keeps elsewhere.
std::map<std::string, std::string> asset_files(const Layer& model, const std::string& path);

/// The bytes of a file of a model, of that name; nothing if there is none.
using ReadAsset = std::function<std::optional<std::string>(const std::string& name)>;
/// Gives each layer its files. Throws ConfigError naming the layer.
void load_asset_files(const Layer& model, const ReadAsset& read);

}  // namespace tessera::detail
