#include <tessera/framework/text/internal/token_decoder.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <tessera/framework/text/internal/component_json.hpp>
#include <tessera/framework/text/internal/unicode.hpp>

namespace tessera::detail {
namespace {

constexpr const char* replacement_character = "\xEF\xBF\xBD";

/// Replaces all occurrences of a text that is not empty.
void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

/// Returns the bytes that the characters of a token stand for; the token if one stands for none.
std::string bytes_of_token(const std::string& token) {
  std::string bytes;
  for (size_t at = 0; at < token.size();) {
    const int byte = byte_of_character(next_character(token, at));
    if (byte < 0) return token;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

/// Whether the bytes at `at` begin a character of UTF-8 that is cut off, and how many they are: the
/// "maximal subpart", for which readers of UTF-8 write one replacement character.
size_t invalid_length(std::string_view text, size_t at) {
  for (size_t length = std::min<size_t>(3, text.size() - at); length > 1; --length) {
    // It is a beginning if some continuation makes it a character.
    for (const char* rest : {"\x80", "\x90", "\xA0", "\x80\x80", "\x90\x80", "\xA0\x80",
                             "\x80\x80\x80", "\x90\x80\x80"}) {
      const std::string whole = std::string(text.substr(at, length)) + rest;
      if (utf8_length(whole) == whole.size()) return length;
    }
  }
  return 1;
}

/// Replaces each maximal subpart of invalid UTF-8 by U+FFFD.
std::string lossy_utf8(std::string_view bytes) {
  std::string out;
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = utf8_length(bytes.substr(at, 4));
    if (length > 0) {
      out += bytes.substr(at, length);
      at += length;
    } else {
      out += replacement_character;
      at += invalid_length(bytes, at);
    }
  }
  return out;
}

void decode_byte_level(std::vector<std::string>& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) bytes += bytes_of_token(token);
  tokens = {is_valid_utf8(bytes) ? std::move(bytes) : lossy_utf8(bytes)};
}

/// Removes the spaces that splitting at punctuation leaves in English texts.
void clean_up(std::string& token) {
  constexpr std::array<std::pair<const char*, const char*>, 11> replacements = {{
      {" .", "."},
      {" ?", "?"},
      {" !", "!"},
      {" ,", ","},
      {" ' ", "'"},
      {" n't", "n't"},
      {" 'm", "'m"},
      {" do not", " don't"},
      {" 's", "'s"},
      {" 've", "'ve"},
      {" 're", "'re"},
  }};
  for (const auto& [from, to] : replacements) replace_all(token, from, to);
}

TokenDecoder word_piece_decoder(JsonObject& json) {
  return [prefix = json.take_or<std::string>("prefix", "##"),
          cleans = json.take_or("cleanup", true)](std::vector<std::string>& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0 && tokens[i].starts_with(prefix)) {
        tokens[i].erase(0, prefix.size());
      } else if (i > 0) {
        tokens[i].insert(0, " ");
      }
      if (cleans) clean_up(tokens[i]);
    }
  };
}

TokenDecoder metaspace_decoder(JsonObject& json) {
  const std::string mark = take_character(json, "replacement");
  json.take_or<std::string>("str_rep", "");
  const bool adds = json.take_or("add_prefix_space", true);
  const auto scheme = json.take_or<std::string>("prepend_scheme", adds ? "always" : "never");
  json.take_or("split", true);
  return [=](std::vector<std::string>& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      replace_all(tokens[i], mark, i == 0 && scheme != "never" ? "" : " ");
    }
  };
}

/// Returns the byte of a token such as "<0x0A>"; -1 for another token.
int byte_of_token(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  const auto digit = [&](size_t at) {
    const char c = token[at];
    if (c >= '0' && c <= '9') return c - '0';
    const int letter = (c | 0x20) - 'a';
    return letter >= 0 && letter < 6 ? letter + 10 : -1;
  };
  return digit(3) < 0 || digit(4) < 0 ? -1 : digit(3) * 16 + digit(4);
}

void decode_byte_tokens(std::vector<std::string>& tokens) {
  std::vector<std::string> out;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (is_valid_utf8(bytes)) {
      out.push_back(bytes);
    } else {
      out.insert(out.end(), bytes.size(), replacement_character);
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const int byte = byte_of_token(token); byte >= 0) {
      bytes += static_cast<char>(byte);
    } else {
      flush();
      out.push_back(std::move(token));
    }
  }
  flush();
  tokens = std::move(out);
}

void fuse(std::vector<std::string>& tokens) { tokens = {join(tokens, "")}; }

TokenDecoder strip_decoder(JsonObject& json) {
  const std::string content = take_character(json, "content");
  const auto start = json.take_or<uint64_t>("start", 0);
  const auto stop = json.take_or<uint64_t>("stop", 0);
  return [=](std::vector<std::string>& tokens) {
    for (std::string& token : tokens) {
      for (uint64_t i = 0; i < start && token.starts_with(content); ++i) {
        token.erase(0, content.size());
      }
      for (uint64_t i = 0; i < stop && token.ends_with(content); ++i) {
        token.resize(token.size() - content.size());
      }
    }
  };
}

TokenDecoder replace_decoder(JsonObject& json) {
  MatchFinder find = take_pattern(json);
  return [find, content = json.take<std::string>("content")](std::vector<std::string>& tokens) {
    for (std::string& token : tokens) replace_matches(find, content, token);
  };
}

TokenDecoder byte_pair_decoder(JsonObject& json) {
  const auto suffix = json.take_or<std::string>("suffix", "</w>");
  if (suffix.empty()) json_fail(suffix, json.path().key("suffix"), "a text that is not empty");
  return [=](std::vector<std::string>& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      replace_all(tokens[i], suffix, i + 1 == tokens.size() ? "" : " ");
    }
  };
}

TokenDecoder sequence_decoder(JsonObject& json) {
  return [steps = make_components(json, "decoders", make_token_decoder)](
             std::vector<std::string>& tokens) {
    for (const TokenDecoder& step : steps) {
      if (step) step(tokens);
    }
  };
}

}  // namespace

TokenDecoder make_token_decoder(const Json& json, const JsonPath& path) {
  if (json.is_null()) return nullptr;
  static const ComponentMakers<TokenDecoder> makers = {
      {"ByteLevel",
       [](JsonObject& object) -> TokenDecoder {
         for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"}) {
           object.take_or(key, true);
         }
         return decode_byte_level;
       }},
      {"WordPiece", word_piece_decoder},
      {"Metaspace", metaspace_decoder},
      {"ByteFallback", [](JsonObject&) -> TokenDecoder { return decode_byte_tokens; }},
      {"Fuse", [](JsonObject&) -> TokenDecoder { return fuse; }},
      {"Strip", strip_decoder},
      {"Replace", replace_decoder},
      {"BPEDecoder", byte_pair_decoder},
      {"Sequence", sequence_decoder}};
  return make_component(json, path, "decoder", makers);
}

}  // namespace tessera::detail
