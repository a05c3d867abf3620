#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>

namespace tessera::detail {

/// Turns tokens into parts of a text, which are joined afterwards. Thread-safe.
using TokenDecoder = std::function<void(std::vector<std::string>& tokens)>;

/// Makes a decoder from its object in tokenizer.json; an empty one from null. Throws ConfigError
/// naming the file, the path, and a kind that is not implemented.
TokenDecoder make_token_decoder(const Json& json, const JsonPath& path);

}  // namespace tessera::detail
