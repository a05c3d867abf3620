#include <tessera/framework/text/internal/post_processor.hpp>

#include <optional>
#include <utility>

#include <tessera/framework/text/internal/component_json.hpp>

namespace tessera::detail {
namespace {

/// The steps of a post-processor; nothing for one that changes no tokens.
using PostStep = std::optional<PostProcessor>;

/// Reads ["[CLS]", 101] under `key`.
std::vector<int32_t> take_token_pair(JsonObject& json, const std::string& key) {
  const auto pair = json.take<Json>(key);
  const JsonPath path = json.path().key(key);
  if (!pair.is_array() || pair.size() != 2) json_fail(pair, path, "a token and its id");
  json_as<std::string>(pair[0], path.index(0));
  return {json_as<int32_t>(pair[1], path.index(1))};
}

PostStep bert_processing(JsonObject& json) {
  const std::vector<int32_t> sep = take_token_pair(json, "sep");
  const std::vector<int32_t> cls = take_token_pair(json, "cls");
  PostProcessor made;
  made.single = {{.ids = cls}, {.text = 0}, {.ids = sep}};
  made.pair = made.single;
  made.pair.push_back({.text = 1, .type_id = 1});
  made.pair.push_back({.ids = sep, .type_id = 1});
  return made;
}

PostStep roberta_processing(JsonObject& json) {
  const std::vector<int32_t> sep = take_token_pair(json, "sep");
  const std::vector<int32_t> cls = take_token_pair(json, "cls");
  // These change offsets of characters only.
  json.take_or("trim_offsets", true);
  json.take_or("add_prefix_space", true);
  PostProcessor made;
  made.single = {{.ids = cls}, {.text = 0}, {.ids = sep}};
  made.pair = made.single;
  made.pair.push_back({.ids = sep});
  made.pair.push_back({.text = 1});
  made.pair.push_back({.ids = sep});
  return made;
}

/// The ids of the special tokens of a template, by their names.
std::map<std::string, std::vector<int32_t>> take_special_tokens(JsonObject& json) {
  const auto object = json.take_or<Json>("special_tokens", Json::object());
  const JsonPath path = json.path().key("special_tokens");
  if (!object.is_object()) json_fail(object, path, "an object");
  std::map<std::string, std::vector<int32_t>> tokens;
  for (const auto& [name, value] : object.items()) {
    JsonObject token(value, path.key(name));
    token.take_or<std::string>("id", "");
    tokens[name] = token.take<std::vector<int32_t>>("ids");
    token.take<std::vector<std::string>>("tokens");
    token.finish();
  }
  return tokens;
}

std::vector<TemplatePart> take_template(
    JsonObject& json, const std::string& key,
    const std::map<std::string, std::vector<int32_t>>& special_tokens) {
  const auto list = json.take<Json>(key);
  const JsonPath path = json.path().key(key);
  if (!list.is_array()) json_fail(list, path, "a list");
  std::vector<TemplatePart> parts;
  for (size_t i = 0; i < list.size(); ++i) {
    JsonObject entry(list[i], path.index(i));
    const bool is_text = entry.has("Sequence");
    JsonObject value = entry.take_object(is_text ? "Sequence" : "SpecialToken");
    TemplatePart part{.type_id = value.take_or<int32_t>("type_id", 0)};
    const auto id = value.take<std::string>("id");
    if (is_text) {
      const bool known = id == "A" || (id == "B" && key == "pair");
      if (!known) json_fail(id, value.path().key("id"), "\"A\", or \"B\" in \"pair\"");
      part.text = id == "A" ? 0 : 1;
    } else {
      const auto found = special_tokens.find(id);
      if (found == special_tokens.end()) {
        json_fail(id, value.path().key("id"), "a key of \"special_tokens\"");
      }
      part.ids = found->second;
    }
    value.finish();
    entry.finish();
    parts.push_back(std::move(part));
  }
  return parts;
}

PostStep template_processing(JsonObject& json) {
  const auto special_tokens = take_special_tokens(json);
  PostProcessor made;
  made.single = take_template(json, "single", special_tokens);
  made.pair = take_template(json, "pair", special_tokens);
  return made;
}

PostStep byte_level_processing(JsonObject& json) {
  for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"}) {
    json.take_or(key, true);
  }
  return std::nullopt;
}

PostStep make_step(const Json& json, const JsonPath& path);

PostStep sequence_processing(JsonObject& json) {
  PostStep only;
  for (PostStep& step : make_components(json, "processors", make_step)) {
    if (!step) continue;
    if (only) {
      json_fail(json.path().text(), json.path().key("processors"),
                "at most one processor that adds tokens");
    }
    only = std::move(step);
  }
  return only;
}

PostStep make_step(const Json& json, const JsonPath& path) {
  static const ComponentMakers<PostStep> makers = {{"TemplateProcessing", template_processing},
                                                   {"BertProcessing", bert_processing},
                                                   {"RobertaProcessing", roberta_processing},
                                                   {"ByteLevel", byte_level_processing},
                                                   {"Sequence", sequence_processing}};
  return make_component(json, path, "post-processor", makers);
}

}  // namespace

PostProcessor make_post_processor(const Json& json, const JsonPath& path) {
  if (json.is_null()) return {};
  return make_step(json, path).value_or(PostProcessor{});
}

}  // namespace tessera::detail
