#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>

namespace tessera::detail {

/// A part of the sequence that a model gets: a text's tokens, or special tokens.
struct TemplatePart {
  int text = -1;                  ///< 0 for the first text, 1 for the second; -1 for special tokens
  std::vector<int32_t> ids = {};  ///< special tokens
  int32_t type_id = 0;
};

/// How one text, or two, become the sequence that a model gets.
struct PostProcessor {
  std::vector<TemplatePart> single = {{.text = 0}};
  std::vector<TemplatePart> pair = {{.text = 0}, {.text = 1, .type_id = 1}};

  /// Returns the number of special tokens around one text, or two.
  int64_t special_tokens(bool is_pair) const {
    size_t count = 0;
    for (const TemplatePart& part : is_pair ? pair : single) count += part.ids.size();
    return static_cast<int64_t>(count);
  }
};

/// Makes a post-processor from its object in tokenizer.json; the default one from null. Throws
/// ConfigError naming the file, the path, and a kind that is not implemented.
PostProcessor make_post_processor(const Json& json, const JsonPath& path);

}  // namespace tessera::detail
