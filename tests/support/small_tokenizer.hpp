#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/json.hpp>

namespace tessera::test {

/// Returns a tokenizer.json, as GPT-2's, whose tokens are the 256 bytes, by their number, then
/// `special` tokens, then the pairs of `merges`.
inline std::string small_tokenizer_json(
    const std::vector<std::string>& special,
    const std::vector<std::pair<std::string, std::string>>& merges = {}) {
  Json vocabulary = Json::object(), added = Json::array(), pairs = Json::array();
  char32_t other = 256;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool is_itself = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
    std::string token;
    detail::append_utf8(token, is_itself ? byte : other++);
    vocabulary[token] = static_cast<int>(byte);
  }
  int id = 256;
  for (const std::string& token : special) {
    added.push_back({{"id", id++},
                     {"content", token},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  for (const auto& [left, right] : merges) {
    vocabulary[left + right] = id++;
    pairs.push_back({left, right});
  }
  const Json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", false},
                           {"trim_offsets", true},
                           {"use_regex", true}};
  return to_json_text({{"version", "1.0"},
                       {"truncation", nullptr},
                       {"padding", nullptr},
                       {"added_tokens", added},
                       {"normalizer", nullptr},
                       {"pre_tokenizer", byte_level},
                       {"post_processor", nullptr},
                       {"decoder", byte_level},
                       {"model",
                        {{"type", "BPE"},
                         {"dropout", nullptr},
                         {"unk_token", nullptr},
                         {"continuing_subword_prefix", nullptr},
                         {"end_of_word_suffix", nullptr},
                         {"fuse_unk", false},
                         {"byte_fallback", false},
                         {"vocab", vocabulary},
                         {"merges", pairs}}}});
}

}  // namespace tessera::test
