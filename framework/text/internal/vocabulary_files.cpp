#include <string_view>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/text/internal/tokenizer_pipeline.hpp>

namespace tessera::detail {
namespace {

constexpr uint64_t max_vocabulary_bytes = uint64_t{256} << 20;

/// Calls visit(line) for each line of a file, without its end.
template <class Visit>
void for_each_line(const std::string& path, const Visit& visit) {
  const std::string text = read_file(path, max_vocabulary_bytes);
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at);
    if (end == std::string::npos) end = text.size();
    std::string_view line = std::string_view(text).substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    visit(std::string(line));
    at = end + 1;
  }
}

Json added_token(const std::string& token, int32_t id) {
  return {{"id", id},        {"content", token},    {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

/// BERT's normalizer, by the tokenizer_config.json of a folder if that has one.
Json bert_normalizer_of(const std::string& folder) {
  Json normalizer = {{"type", "BertNormalizer"},
                     {"clean_text", true},
                     {"handle_chinese_chars", true},
                     {"strip_accents", nullptr},
                     {"lowercase", true}};
  const std::string path = folder + "/tokenizer_config.json";
  if (!exists(path)) return normalizer;
  const Json config = read_json_file(path);
  if (!config.is_object()) json_fail(config, JsonPath(path), "an object");
  const std::pair<const char*, const char*> keys[] = {
      {"do_lower_case", "lowercase"},
      {"tokenize_chinese_chars", "handle_chinese_chars"},
      {"strip_accents", "strip_accents"}};
  for (const auto& [theirs, ours] : keys) {
    if (config.contains(theirs) && !config[theirs].is_null()) {
      normalizer[ours] = json_as<bool>(config[theirs], JsonPath(path).key(theirs));
    }
  }
  return normalizer;
}

/// WordPiece with a token in each line of vocab.txt.
Json json_of_bert(const std::string& folder) {
  const std::string path = folder + "/vocab.txt";
  Json vocabulary = Json::object();
  Json added = Json::array();
  std::map<std::string, int32_t> special;
  int32_t id = 0;
  for_each_line(path, [&](const std::string& token) {
    for (const char* name : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
      if (token != name) continue;
      added.push_back(added_token(token, id));
      special[token] = id;
    }
    // Appended without a lookup, which would read all others. A later token replaces an equal one.
    vocabulary.get_ref<Json::object_t&>().emplace_back(token, id++);
  });
  for (const char* name : {"[UNK]", "[CLS]", "[SEP]"}) {
    if (!special.contains(name)) {
      throw ConfigError(path, str("a line ", name), "none", "pass the vocabulary of a BERT");
    }
  }
  return {{"added_tokens", added},
          {"normalizer", bert_normalizer_of(folder)},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"post_processor",
           {{"type", "BertProcessing"},
            {"sep", Json::array({"[SEP]", special["[SEP]"]})},
            {"cls", Json::array({"[CLS]", special["[CLS]"]})}}},
          {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
          {"model", {{"type", "WordPiece"}, {"unk_token", "[UNK]"}, {"vocab", vocabulary}}}};
}

/// Byte-level BPE with GPT-2's words.
Json json_of_gpt2(const std::string& folder) {
  const std::string path = folder + "/vocab.json";
  Json vocabulary = read_json_file(path);
  Json merges = Json::array();
  bool first = true;
  for_each_line(folder + "/merges.txt", [&](const std::string& line) {
    const bool is_version = first && line.starts_with("#version");
    first = false;
    if (!is_version && !line.empty()) merges.push_back(line);
  });
  if (!vocabulary.is_object()) json_fail(vocabulary, JsonPath(path), "an object");
  Json added = Json::array();
  const std::string end_of_text = "<|endoftext|>";
  if (vocabulary.contains(end_of_text)) {
    const auto id = json_as<int32_t>(vocabulary[end_of_text], JsonPath(path).key(end_of_text));
    added.push_back(added_token(end_of_text, id));
  }
  return {{"added_tokens", added},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}}};
}

}  // namespace

std::string tokenizer_json_of_folder(const std::string& folder) {
  if (exists(folder + "/vocab.json") && exists(folder + "/merges.txt")) {
    return to_json_text(json_of_gpt2(folder), -1);
  }
  if (exists(folder + "/vocab.txt")) return to_json_text(json_of_bert(folder), -1);
  return "";
}

}  // namespace tessera::detail
