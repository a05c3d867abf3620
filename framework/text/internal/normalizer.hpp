#pragma once

#include <functional>
#include <string>

#include <tessera/framework/base/json.hpp>

namespace tessera::detail {

/// Changes valid UTF-8 before it is split. Thread-safe.
using Normalizer = std::function<void(std::string& text)>;

/// Makes a normalizer from its object in tokenizer.json; an empty one from null. Throws ConfigError
/// naming the file, the path, and a kind that is not implemented.
Normalizer make_normalizer(const Json& json, const JsonPath& path);

}  // namespace tessera::detail
