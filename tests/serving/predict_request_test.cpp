#include <tessera/framework/serving/http/predict_request.hpp>

#include <array>

#include <tessera/framework/base/json.hpp>

#include "tests/support/catch.hpp"

namespace predict_request_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

/// Returns status and text of the refusal of a body; 200 if it is accepted.
std::pair<int, std::string> refusal(const std::string& body, const PredictLimits& limits = {}) {
  try {
    parse_predict_request(body, limits);
  } catch (const RequestError& error) {
    return {error.status(), error.what()};
  }
  return {200, ""};
}

void check_refused(const std::string& body, const std::string& says) {
  CAPTURE(body.substr(0, 100));
  const auto [status, text] = refusal(body);
  CHECK(status == 400);
  CHECK_THAT(text, Contains(says));
  CHECK(text.find('\n') == std::string::npos);
  CHECK(text.size() < 700);
}

std::string repeat(const std::string& text, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

}  // namespace

TEST_CASE("texts are read in every format") {
  using Texts = std::vector<std::string>;
  for (const char* body :
       {R"({"instances": ["a b", "c"]})", R"({"instances": [{"text": "a b"}, {"input": "c"}]})",
        R"({"instances": ["a b", {"text": "c"}], "signature_name": ""})",
        R"({"signature_name": "serving_default", "inputs": ["a b", "c"]})",
        R"({"inputs": {"text": ["a b", "c"]}})"}) {
    CAPTURE(body);
    const PredictRequest request = parse_predict_request(body);
    CHECK(request.texts == Texts{"a b", "c"});
    CHECK(request.shape == Shape{2});
    CHECK(request.instances() == 2);
    CHECK(request.columnar == (std::string(body).find("inputs") != std::string::npos));
  }
  const PredictRequest odd = parse_predict_request(R"({"instances": ["", "\u0000\u00e9\n"]})");
  CHECK(odd.texts == Texts{"", std::string("\0\xc3\xa9\n", 4)});
  CHECK(odd.is_text());
}

TEST_CASE("a value that is no list is refused by its key") {
  check_refused(R"({"inputs": {"text": "a"}})", R"("text" is a list. Received: a text)");
  check_refused(R"({"instances": ["a"], "signature_name": 5})",
                R"("signature_name" is a text. Received: a number)");
}

TEST_CASE("numbers are read in every format") {
  for (const char* body : {R"({"instances": [[1, -2.5], [3e0, 4]]})",
                           R"({"instances": [{"input": [1, -2.5]}, {"input": [3, 4]}]})",
                           R"({"instances": [[1, -2.5], {"input": [3, 4]}]})",
                           R"({"inputs": {"input": [[1, -2.5], [3, 4]]}})"}) {
    CAPTURE(body);
    const PredictRequest request = parse_predict_request(body);
    CHECK(request.values == std::vector<float>{1, -2.5F, 3, 4});
    CHECK(request.shape == Shape{2, 2});
    CHECK_FALSE(request.is_text());
  }
  CHECK(parse_predict_request(R"({"instances": [1, {"input": 2}, 3]})").shape == Shape{3});
  CHECK(parse_predict_request("{\"instances\": [[[[1]],[[2]],[[3]]]]}").shape == Shape{1, 3, 1, 1});
}

TEST_CASE("bodies that are no predict request are refused") {
  check_refused("", "valid JSON");
  check_refused("{", "valid JSON");
  check_refused(R"({"instances": ["a"]} x)", "valid JSON");
  check_refused(R"({"instances": ["a"]}{})", "valid JSON");
  check_refused("{\"instances\": [\"\xff\"]}", "valid JSON");
  check_refused(std::string("{\"instances\": [\"a\0b\"]}", 23), "NUL");
  check_refused(R"({"instances": [1e400]})", "valid JSON");
  check_refused(R"({"instances": [NaN]})", "valid JSON");
  check_refused(R"({"instances": ["\ud800"]})", "valid JSON");
  check_refused("[]", "an object");
  check_refused("3", "an object");
  check_refused("null", "an object");
  check_refused("\"text\"", "an object");
  check_refused("{}", "neither");
  check_refused(R"({"instances": null})", "\"instances\" is a list");
  check_refused(R"({"instances": {}})", "\"instances\" is a list");
  check_refused(R"({"instances": "a"})", "\"instances\" is a list");
  check_refused(R"({"inputs": {}})", "empty object");
  check_refused(R"({"inputs": {"text": "a"}})", "a list");
  check_refused(R"({"inputs": {"texts": ["a"]}})", "write \"text\"");
  check_refused(R"({"inputs": {"text": ["a"], "input": ["b"]}})", "again");
  check_refused(R"({"inputs": [{"text": "a"}]})", "an object");
  check_refused(R"({"instance": ["a"]})", "write \"instances\"");
  check_refused(R"({"instances": ["a"], "instances": ["b"]})", "again");
  check_refused(R"({"instances": ["a"], "inputs": ["b"]})", "exclude");
  check_refused(R"({"instances": ["a"], "signature_name": "train"})", "\"train\"");
  check_refused(R"({"instances": ["a"], "signature_name": 3})", "a number");
}

TEST_CASE("instances that do not fit together are refused with their index") {
  check_refused(R"({"instances": []})", "an empty list");
  check_refused(R"({"instances": [[]]})", "an empty list");
  check_refused(R"({"instances": ["a", 1]})", "instances[1]");
  check_refused(R"({"instances": [1, "a"]})", "instances[1]");
  check_refused(R"({"instances": [[1], "a"]})", "instances[1]");
  check_refused(R"({"instances": ["a", [1]]})", "instances[1]");
  check_refused(R"({"instances": [["a"]]})", "instances[0][0]");
  check_refused(R"({"instances": [[1, 2], [3]]})", "a list of 1 after one of 2");
  check_refused(R"({"instances": [[1, 2], [3, [4]]]})", "instances[1][1]");
  check_refused(R"({"instances": [1, [2]]})", "instances[1]");
  check_refused(R"({"instances": [[[1]], [2]]})", "instances[1][0]");
  check_refused(R"({"instances": [true]})", "Received: true");
  check_refused(R"({"instances": [[null]]})", "Received: null");
  check_refused(R"({"instances": [{}]})", "an empty object");
  check_refused(R"({"instances": [{"text": {"text": "a"}}]})", "an object");
  check_refused(R"({"instances": [{"text": "a", "input": "b"}]})", "again");
  check_refused(R"({"instances": [{"path": "/etc/passwd"}]})", "\"path\"");
  check_refused(R"({"instances": [[{"text": "a"}]]})", "an object");
  check_refused(R"({"instances": [[1e39]]})", "float32");
}

TEST_CASE("requests have limits") {
  CHECK(refusal(R"({"instances": ["a", "b"]})", {.instances = 2}).first == 200);
  CHECK(refusal(R"({"instances": ["a", "b", "c"]})", {.instances = 2}).first == 413);
  CHECK(refusal(R"({"instances": [[1],[2],[3]]})", {.instances = 2}).first == 413);
  CHECK(refusal(R"({"instances": [{"text":"a"},{"text":"b"},{"text":"c"}]})", {.instances = 2})
            .first == 413);
  check_refused(R"({"instances": )" + repeat("[", 9) + "1" + repeat("]", 9) + "}", "8 deep");
  check_refused(R"({"instances": )" + repeat("[", 100000), "8 deep");
  check_refused(repeat("{\"inputs\":", 100000), "every key must be known");
  check_refused(R"({"instances": [)" + repeat("{\"text\":", 100000), "an object");
  const std::string many = repeat("1,", 250000) + "1";
  CHECK(parse_predict_request(R"({"instances": [[)" + many + "]]}").shape == Shape{1, 250001});
}

TEST_CASE("answers are JSON with numbers that round-trip") {
  const std::array<float, 6> values{0.1F, 0.9F, 1e-30F, 1, -2.5F, 3e38F};
  const std::vector<std::string> labels{"a \"b\"", "c", "d"};
  const std::string text = predict_reply(values, {3, 2}, labels, false);
  CHECK(text ==
        "{\"predictions\": [[0.1, 0.9], [1e-30, 1], [-2.5, 3e+38]], "
        "\"labels\": [\"a \\\"b\\\"\",\"c\",\"d\"]}\n");
  const Json json = parse_json(text, "reply");
  CHECK(json["predictions"][0][1].get<float>() == 0.9F);
  CHECK(predict_reply(std::span(values).first(2), {2}, {}, true) == "{\"outputs\": [0.1, 0.9]}\n");
  CHECK(parse_json(error_reply("bad \xff \"x\"\n"), "error")["error"].is_string());
}

}  // namespace predict_request_test
