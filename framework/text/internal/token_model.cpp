#include <tessera/framework/text/internal/token_model.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

/// Returns a model's kind; old files do not name it.
std::string kind_of_model(const Json& json, const JsonPath& path) {
  if (!json.is_object()) json_fail(json, path, "an object");
  if (json.contains("type")) return json_as<std::string>(json["type"], path.key("type"));
  if (json.contains("merges")) return "BPE";
  if (json.contains("vocab") && json["vocab"].is_array()) return "Unigram";
  return json.contains("continuing_subword_prefix") ? "WordPiece" : "WordLevel";
}

const Json& required_key(const Json& json, const JsonPath& path, const std::string& key) {
  if (!json.contains(key)) json_fail(json, path, "the key " + in_quotes(key));
  return json[key];
}

/// Returns the object without its large lists, which readers of options would copy.
Json without_lists(const Json& json) {
  Json rest = Json::object();
  for (const auto& [key, value] : json.items()) {
    if (key != "vocab" && key != "merges" && key != "type") rest[key] = value;
  }
  return rest;
}

}  // namespace

std::unique_ptr<TokenModel> make_token_model(const Json& json, const JsonPath& path) {
  const std::string kind = kind_of_model(json, path);
  const std::array<std::string, 4> kinds = {"BPE", "WordPiece", "WordLevel", "Unigram"};
  if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
    throw ConfigError(path.key("type").text(), "a model that is implemented: " + quoted_list(kinds),
                      in_quotes(kind), suggestion(kind, kinds));
  }
  const Json rest = without_lists(json);
  JsonObject options(rest, path);
  const Json& vocabulary = required_key(json, path, "vocab");
  std::unique_ptr<TokenModel> model;
  if (kind == "BPE") {
    model = make_byte_pair_model(options, vocabulary, required_key(json, path, "merges"));
  } else if (kind == "WordPiece") {
    model = make_word_piece_model(options, vocabulary);
  } else if (kind == "WordLevel") {
    model = make_word_level_model(options, vocabulary);
  } else {
    model = make_unigram_model(options, vocabulary);
  }
  options.finish();
  return model;
}

std::vector<int32_t> byte_tokens(const Vocabulary& vocabulary) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::vector<int32_t> tokens;
  for (size_t byte = 0; byte < 256; ++byte) {
    const std::string token = {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
    tokens.push_back(vocabulary.id(token).value_or(-1));
  }
  return tokens;
}

bool append_byte_tokens(const std::vector<int32_t>& tokens, std::string_view text,
                        std::vector<int32_t>& ids) {
  const size_t before = ids.size();
  for (const char c : text) {
    const int32_t id = tokens[static_cast<unsigned char>(c)];
    if (id < 0) {
      ids.resize(before);
      return false;
    }
    ids.push_back(id);
  }
  return true;
}

std::optional<int32_t> take_token(JsonObject& json, const std::string& key,
                                  const Vocabulary& vocabulary) {
  const auto token = json.take_optional<std::string>(key);
  if (!token) return std::nullopt;
  const std::optional<int32_t> id = vocabulary.id(*token);
  if (!id) json_fail(*token, json.path().key(key), "a token of the vocabulary");
  return id;
}

}  // namespace tessera::detail
