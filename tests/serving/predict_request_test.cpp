#include <tessera/framework/serving/http/number_lists.hpp>
#include <tessera/framework/serving/http/predict_reply.hpp>
#include <tessera/framework/serving/http/predict_request.hpp>

#include <array>
#include <cstring>
#include <optional>
#include <random>

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

TEST_CASE("lists of numbers are read quickly as the general parser reads them") {
  // A further key leaves a body to the general parser.
  const std::string key = R"("signature_name": "")";
  const auto check_same = [&](const std::string& list) {
    CAPTURE(list.substr(0, 200));
    for (const std::string name : {"instances", "inputs"}) {
      const std::string body = "\n{ \"" + name + "\" : " + list;
      const std::string ordinary = body + ", " + key + "}";
      const PredictLimits limits = {.instances = 400};
      const std::optional<PredictRequest> fast = parse_number_lists(body + " }\t", limits);
      CHECK_FALSE(parse_number_lists(ordinary, limits));
      const auto [status, text] = refusal(ordinary, limits);
      CHECK(fast.has_value() == (status == 200));
      if (!fast || status != 200) continue;
      const PredictRequest expected = parse_predict_request(ordinary, limits);
      CHECK(fast->shape == expected.shape);
      CHECK(fast->columnar == expected.columnar);
      REQUIRE(fast->values.size() == expected.values.size());
      CHECK(std::memcmp(fast->values.data(), expected.values.data(),
                        expected.values.size() * sizeof(float)) == 0);
    }
  };
  for (const char* list :
       {"[[1,-2.5],[3e0, 4]]", "[1, 2,3 ]", "[[[[1]],[[2]],[[3]]]]", "[0]", "[-0]", "[-0.0]",
        "[0.1, 1E5, 1e-5, 1e+05]", "[16777217, 9007199254740993, 123456789012345678901234567890]",
        "[0.1e23, 3.4028234e38, 1.17549435e-38, 1e-45, 0.30000000000000004, 7.2057594037927933e16]",
        "[123456789.1234567890123456789e-12, 1e22, 1e23]", "[[[[[[[[1]]]]]]]]"}) {
    check_same(list);
    CHECK(refusal(str("{\"instances\": ", list, "}")).first == 200);
  }
  for (const char* list : {"[01]",
                           "[+1]",
                           "[.5]",
                           "[1.]",
                           "[-]",
                           "[1e]",
                           "[1e+]",
                           "[NaN]",
                           "[0x1]",
                           "[1e39]",
                           "[]",
                           "[[]]",
                           "[1,]",
                           "[,1]",
                           "[1 2]",
                           "[1",
                           "1",
                           "[[1], 2]",
                           "[1, [2]]",
                           "[[1, 2], [3]]",
                           "[[1], [[2]]]",
                           "[[[[[[[[[1]]]]]]]]]",
                           "[1e400]",
                           "[--1]"}) {
    check_same(list);
    CHECK(refusal(str("{\"instances\": ", list, "}")).first == 400);
  }
  std::mt19937_64 random(1);
  for (int digits = 1; digits < 25; ++digits) {
    std::string list;
    for (int i = 0; i < 300; ++i) {
      std::string number = random() % 2 ? "-" : "";
      number += static_cast<char>('1' + random() % 9);
      const auto point = random() % static_cast<uint64_t>(digits);
      for (int d = 1; d < digits; ++d) {
        if (point > 0 && static_cast<uint64_t>(d) == point) number += '.';
        number += static_cast<char>('0' + random() % 10);
      }
      if (random() % 3 == 0) number += str("e", static_cast<int64_t>(random() % 60) - 45);
      list += (list.empty() ? "[" : ",") + number;
    }
    check_same(list + "]");
  }
  check_same("[" + repeat("1,", 400) + "1]");
  CHECK_FALSE(parse_number_lists(R"({"instances": [1]} x)", {}));
  const std::array<std::string, 2> two{"a", "b"};
  CHECK_FALSE(parse_number_lists(R"({"instances": [1]})", {.inputs = two}));
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
  check_refused(R"({"instances": [1, true]})", "Received: true among numbers");
  check_refused(R"({"instances": [false, 0]})", "Received: a number among true and false");
  check_refused(R"({"instances": ["a", true]})", "a value among texts");
  check_refused(R"({"instances": [[null]]})", "Received: null");
  check_refused(R"({"instances": [{}]})", "an empty object");
  check_refused(R"({"instances": [{"text": {"text": "a"}}]})", "an object");
  check_refused(R"({"instances": [{"text": "a", "input": "b"}]})", "again");
  check_refused(R"({"instances": [{"path": "/etc/passwd"}]})", "\"path\"");
  check_refused(R"({"instances": [[{"text": "a"}]]})", "an object");
  check_refused(R"({"instances": [[1e39]]})", "float32");
}

TEST_CASE("true and false are no numbers") {
  const PredictRequest request = parse_predict_request(R"({"instances": [[true], [false]]})");
  CHECK(request.is_bool);
  CHECK(request.values == std::vector<float>{1, 0});
  CHECK(request.shape == Shape{2, 1});
  CHECK_FALSE(parse_predict_request(R"({"instances": [1, 0]})").is_bool);
}

TEST_CASE("a text may be bytes in base64") {
  for (const char* body :
       {R"({"instances": [{"b64": "AGY="}, "c"]})", R"({"inputs": [{"b64": "AGY="}, "c"]})",
        R"({"instances": [{"text": {"b64": "AGY="}}, {"text": "c"}]})",
        R"({"inputs": {"text": [{"b64": "AGY="}, {"b64": "Yw=="}]}})"}) {
    CAPTURE(body);
    const PredictRequest request = parse_predict_request(body);
    CHECK(request.texts == std::vector<std::string>{std::string("\0f", 2), "c"});
    CHECK(request.shape == Shape{2});
  }
  check_refused(R"({"instances": [{"b64": "AGY"}]})", "base64");
  check_refused(R"({"instances": [{"b64": 3}]})", "a number");
  check_refused(R"({"instances": [{"b64": ["AGY="]}]})", "a list");
  check_refused(R"({"instances": [{"b64": {"b64": "AGY="}}]})", "an object");
  check_refused(R"({"instances": [{"b64": "AGY=", "b64": "AGY="}]})", "again");
  check_refused(R"({"instances": [{"b64": "AGY=", "text": "a"}]})", "an object");
  check_refused(R"({"instances": [{"text": "a", "b64": "AGY="}]})", "\"b64\"");
  check_refused(R"({"instances": [[{"b64": "AGY="}]]})", "an object");
  check_refused(R"({"inputs": [{}]})", "an empty object");
  check_refused(R"({"inputs": {"text": {"b64": "AGY="}}})", "a list");
}

TEST_CASE("the only input may be called by its own name") {
  const std::vector<std::string> names{"input_layer"};
  const PredictLimits limits{.inputs = names};
  for (const char* body : {R"({"instances": [{"input_layer": [1, 2]}, {"input": [3, 4]}, [5, 6]]})",
                           R"({"inputs": {"input_layer": [[1, 2], [3, 4], [5, 6]]}})"}) {
    CAPTURE(body);
    const PredictRequest request = parse_predict_request(body, limits);
    CHECK(request.values == std::vector<float>{1, 2, 3, 4, 5, 6});
    CHECK(request.shape == Shape{3, 2});
    CHECK(request.inputs() == 1);
  }
  const auto [status, text] = refusal(R"({"inputs": {"input_layers": [1]}})", limits);
  CHECK(status == 400);
  CHECK_THAT(text, Contains("write \"input_layer\""));
}

TEST_CASE("several inputs are read by their names, in any order") {
  const std::vector<std::string> names{"a", "words", "c"};
  const PredictLimits limits{.instances = 3, .inputs = names};
  for (const char* body :
       {R"({"instances": [{"a": [1, 2], "words": "x", "c": true},
                          {"c": false, "words": {"b64": "eQ=="}, "a": [3, 4]}]})",
        R"({"inputs": {"words": ["x", "y"], "a": [[1, 2], [3, 4]], "c": [true, false]}})"}) {
    CAPTURE(body);
    const PredictRequest request = parse_predict_request(body, limits);
    REQUIRE(request.inputs() == 3);
    CHECK(request.instances() == 2);
    CHECK(request.input(0).values == std::vector<float>{1, 2, 3, 4});
    CHECK(request.input(0).shape == Shape{2, 2});
    CHECK(request.input(1).texts == std::vector<std::string>{"x", "y"});
    CHECK(request.input(1).shape == Shape{2});
    CHECK(request.input(2).values == std::vector<float>{1, 0});
    CHECK(request.input(2).is_bool);
    CHECK(request.input(2).shape == Shape{2});
  }
  const auto refused = [&](const std::string& body, const std::string& says) {
    CAPTURE(body);
    const auto [status, text] = refusal(body, limits);
    CHECK(status == 400);
    CHECK_THAT(text, Contains(says));
  };
  refused(R"({"instances": [{"a": 1, "c": 2}]})", "none called \"words\"");
  refused(R"({"inputs": {"a": [1], "c": [2]}})", "none called \"words\"");
  refused(R"({"instances": [{"a": 1, "a": 2}]})", "\"a\" again");
  refused(R"({"instances": [{"a": 1, "input": 2}]})",
          "every key must be known. Received: \"input\"");
  refused(R"({"instances": [{"a": 1, "word": 2}]})", "write \"words\"");
  refused(R"({"instances": [[1, 2]]})", "are given by name. Received: a value without a name");
  refused(R"({"instances": ["x"]})", "are given by name");
  refused(R"({"instances": [{"b64": "eQ=="}]})", "\"b64\"");
  refused(R"({"inputs": [1]})", "are given by name. Received: a list");
  refused(R"({"instances": [{}]})", "inputs are named \"a\", \"words\"");
  refused(R"({"inputs": {"a": [1, 2], "words": ["x"], "c": [1]}})",
          "the same number of rows. Received: 1 after 2");
  refused(
      R"({"instances": [{"a": [1], "words": "x", "c": 1}, {"a": [1, 2], "words": "x", "c": 1}]})",
      "a list of 2 after one of 1");
  refused(R"({"instances": [{"a": 1, "words": "x", "c": 1}, {"a": "y", "words": "x", "c": 1}]})",
          "a text among numbers");
  const std::string row = R"({"a": 1, "words": "x", "c": 1})";
  CHECK(refusal("{\"instances\": [" + repeat(row + ",", 2) + row + "]}", limits).first == 200);
  CHECK(refusal("{\"instances\": [" + repeat(row + ",", 3) + row + "]}", limits).first == 413);
}

TEST_CASE("an answer of several outputs names them, by row or by column") {
  const std::vector<float> ones{1, 2}, pairs{3, 4, 5, 6};
  const std::vector<PredictOutput> outputs{{"one", ones, {2}}, {"pa\"ir", pairs, {2, 2}}};
  CHECK(predict_reply(outputs, {}, false) ==
        "{\"predictions\": [{\"one\": 1, \"pa\\\"ir\": [3, 4]}, "
        "{\"one\": 2, \"pa\\\"ir\": [5, 6]}]}\n");
  CHECK(predict_reply(outputs, {}, true) ==
        "{\"outputs\": {\"one\": [1, 2], \"pa\\\"ir\": [[3, 4], [5, 6]]}}\n");
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
