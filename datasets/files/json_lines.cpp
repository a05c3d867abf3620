#include <tessera/datasets/files/json_lines.hpp>

#include <algorithm>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/json.hpp>

namespace tessera::detail {

namespace {

ChatMessage message_from_json(const Json& json, const JsonPath& path) {
  JsonObject object(json, path);
  ChatMessage message{object.take<std::string>("role"), object.take<std::string>("content")};
  const std::string& role = message.role;
  if (role == "system" || role == "user" || role == "assistant") return message;
  throw ConfigError(path.key("role").text(), "a role is system, user or assistant", in_quotes(role),
                    "leave the message out");
}

TrainingDocument document_from_json(const Json& json, const JsonPath& path) {
  JsonObject object(json, path);
  TrainingDocument document;
  if (object.has("messages")) {
    const auto messages = object.take<std::vector<Json>>("messages");
    for (size_t i = 0; i < messages.size(); ++i) {
      document.messages.push_back(message_from_json(messages[i], path.key("messages").index(i)));
    }
    const bool has_answer =
        std::any_of(document.messages.begin(), document.messages.end(),
                    [](const ChatMessage& message) { return message.role == "assistant"; });
    if (has_answer) return document;
    throw ConfigError(path.key("messages").text(), "a chat has a message of the role assistant",
                      str(messages.size(), " messages"), "leave the line out");
  }
  if (object.has("prompt") || object.has("completion")) {
    document.prompt = object.take<std::string>("prompt");
    document.text = object.take<std::string>("completion");
  } else if (object.has("text")) {
    document.text = object.take<std::string>("text");
  } else {
    json_fail(json, path, R"(an object with "text", "prompt" and "completion", or "messages")");
  }
  return document;
}

}  // namespace

std::vector<TrainingDocument> parse_json_lines(std::string_view text, const std::string& where) {
  std::vector<TrainingDocument> documents;
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const Json json = parse_json(line, where, number);
    documents.push_back(document_from_json(json, JsonPath(str(where, ":", number))));
    documents.back().line = number;
  }
  return documents;
}

}  // namespace tessera::detail
