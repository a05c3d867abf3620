#include <tessera/datasets/files/json_lines.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"

namespace json_lines_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

TEST_CASE("JSON Lines: texts, completions and chats, with their lines") {
  const auto documents = parse_json_lines(
      "{\"text\": \"na\\u00efve\\n\"}\r\n"
      "\n \t\n"
      "{\"completion\": \" b\", \"prompt\": \"a\", \"id\": [1]}\n"
      "{\"prompt\": \"p\", \"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}, "
      "{\"role\": \"assistant\", \"content\": \"Ho\", \"weight\": 1}]}",
      "a.jsonl");
  REQUIRE(documents.size() == 3);
  CHECK(documents[0].text == "naïve\n");
  CHECK(documents[0].prompt == "");
  CHECK(documents[0].messages.empty());
  CHECK(documents[1].prompt == "a");
  CHECK(documents[1].text == " b");
  REQUIRE(documents[2].messages.size() == 2);
  CHECK(documents[2].messages[1].role == "assistant");
  CHECK(documents[2].messages[1].content == "Ho");
  CHECK(documents[2].text == "");
  CHECK(documents[0].line == 1);
  CHECK(documents[1].line == 4);
  CHECK(documents[2].line == 5);
  CHECK(parse_json_lines("\n\n", "a.jsonl").empty());
}

TEST_CASE("JSON Lines: errors name file, line and key") {
  const auto error = [](const std::string& line) {
    return test::error_line(
        [&] { parse_json_lines("{\"text\": \"a\"}\n" + line + "\n", "a.jsonl"); });
  };
  CHECK_THAT(error("{\"text\": "), Contains("[a.jsonl:2:") && Contains("valid JSON"));
  CHECK_THAT(error("{\"text\": \"a\"} {}"), Contains("[a.jsonl:2:"));
  CHECK_THAT(error("{\"text\": \"\xFF\"}"), Contains("[a.jsonl:2:"));
  CHECK_THAT(error("[1]"), Contains("[a.jsonl:2]"));
  CHECK_THAT(error("{\"txt\": \"a\"}"), Contains("[a.jsonl:2]") && Contains("\"messages\""));
  CHECK_THAT(error("{\"text\": 1}"), Contains("[a.jsonl:2: text]"));
  CHECK_THAT(error("{\"prompt\": \"a\"}"), Contains("a.jsonl:2") && Contains("completion"));
  CHECK_THAT(error("{\"messages\": []}"), Contains("[a.jsonl:2: messages]"));
  CHECK_THAT(error("{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}"),
             Contains("the role assistant"));
  CHECK_THAT(error("{\"messages\": [{\"role\": \"tool\", \"content\": \"a\"}]}"),
             Contains("[a.jsonl:2: messages[0].role]") && Contains("Received: \"tool\""));
  CHECK_THAT(error("{\"messages\": [{\"role\": \"user\", \"content\": null}]}"),
             Contains("[a.jsonl:2: messages[0].content]"));
}

}  // namespace json_lines_test
