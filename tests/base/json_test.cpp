#include <tessera/framework/base/json.hpp>

#include <cmath>
#include <limits>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/cpu_time.hpp"
#include "tests/support/files.hpp"

namespace json_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

/// Returns the text of the ConfigError that `action` throws; "" if it throws none.
template <class Action>
std::string config_error(Action&& action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string parse_error(const std::string& text) {
  return config_error([&] { parse_json(text, "a.json"); });
}

std::string repeat(const std::string& text, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += text;
  return out;
}

/// Returns the text of the ConfigError from reading `text` as a T.
template <class T>
std::string read_error(const std::string& text) {
  const Json json = parse_json(text, "a.json");
  return config_error([&] { json_as<T>(json, JsonPath("a.json").key("k")); });
}

}  // namespace

TEST_CASE("valid JSON keeps values and key order") {
  const Json json = parse_json(
      " {\"z\": [1, -2, 2.5, 1e3, true, false, null], \"a\": {\"text\": \"\\u00e9\\n\"}, "
      "\"big\": 18446744073709551615} ",
      "a.json");
  CHECK(json.dump() ==
        "{\"z\":[1,-2,2.5,1000.0,true,false,null],\"a\":{\"text\":\"\xc3\xa9\\n\"},"
        "\"big\":18446744073709551615}");
  CHECK(parse_json("3", "a").get<int>() == 3);
  CHECK(parse_json("\"\\u0000\"", "a").get<std::string>() == std::string(1, '\0'));
  CHECK(parse_json("[[],{},[{}]]", "a").dump() == "[[],{},[{}]]");
}

TEST_CASE("malformed JSON gives a one-line error with file, line and column") {
  CHECK_THAT(parse_error("{\n  \"a\": 1,\n  b: 2}"), StartsWith("[a.json:3:3] "));
  CHECK_THAT(parse_error("[\"\xc3\xa9\xc3\xa9\", x]"), StartsWith("[a.json:1:8] "));
  for (const std::string text :
       {"",         " ",         "{",       "[1,",         "[1,]",    "{\"a\":1,}", "{\"a\"}",
        "{a:1}",    "{'a':1}",   "[1] x",   "[1][2]",      "nul",     "NaN",        "[NaN]",
        "Infinity", "-Infinity", "01",      "+1",          "1.",      ".5",         "0x10",
        "\"a",      "\"a\nb\"",  "\"\\x\"", "\"\\ud800\"", "// c\n1", "[1 2]",      "\"\\u12\"",
        "]",        "tru"}) {
    CAPTURE(text);
    const std::string error = parse_error(text);
    CHECK_THAT(error, StartsWith("[a.json:"));
    CHECK(error.find('\n') == std::string::npos);
    CHECK(error.find("json.exception") == std::string::npos);
  }
}

TEST_CASE("the lines of malformed JSON count from the first one's number") {
  CHECK_THAT(config_error([] { parse_json("{", "a.json", 7); }), StartsWith("[a.json:7:"));
  CHECK_THAT(config_error([] { parse_json("[\n1\n2]", "a.json", 7); }), StartsWith("[a.json:9:"));
}

TEST_CASE("JSON nesting is limited to 64") {
  CHECK(parse_error(repeat("[", 64) + repeat("]", 64)).empty());
  CHECK_THAT(parse_error(repeat("[", 65) + repeat("]", 65)), StartsWith("[a.json:1:65] "));
  CHECK_THAT(parse_error(repeat("{\"a\":", 65) + "1" + repeat("}", 65)), Contains("64 deep"));
  CHECK_THAT(parse_error(repeat("[", 1000000)), Contains("64 deep"));
}

TEST_CASE("a JSON key may occur once") {
  CHECK_THAT(parse_error("{\"a\": 1,\n \"a\": 2}"), StartsWith("[a.json:2:4] "));
  CHECK_THAT(parse_error("[{\"b\": {\"c\": 1, \"c\": 1}}]"), Contains("\"c\" again"));
  CHECK_THAT(parse_error("{\"a\": 1, \"\\u0061\": 2}"), Contains("\"a\" again"));
  CHECK(parse_error("{\"a\": {\"a\": 1}, \"b\": {\"a\": 1}}").empty());
}

TEST_CASE("JSON numbers beyond float64, NUL and bad UTF-8 are errors") {
  CHECK_THAT(parse_error("[1e400]"), Contains("1e400"));
  CHECK_THAT(parse_error("[-1e400]"), StartsWith("[a.json:1:"));
  CHECK_THAT(parse_error(std::string("[1]\0", 4)), StartsWith("[a.json:1:4] "));
  CHECK_THAT(parse_error(std::string("[\"a\0b\"]", 7)), Contains("NUL"));
  for (const std::string bad :
       {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xc3", "\xe2\x82", "\x80"}) {
    CHECK_THAT(parse_error("[\"" + bad + "\"]"), StartsWith("[a.json:1:"));
    CHECK_THAT(parse_error("[" + bad + "]"), StartsWith("[a.json:1:"));
  }
}

TEST_CASE("a JSON object of many keys reads in linear time") {
  const auto seconds = [](size_t keys) {
    std::string text = "{";
    for (size_t i = 0; i < keys; ++i) text += str(i > 0 ? "," : "", "\"", i, "\":", i);
    text += "}";
    return test::cpu_seconds([&] { CHECK(parse_json(text, "a").size() == keys); });
  };
  // Comparing each key with all before it would take 64 times as long.
  CHECK(seconds(64'000) < 32 * seconds(8'000));
}

TEST_CASE("integers are read without wrapping or rounding") {
  CHECK(json_as<int64_t>(-1, JsonPath("a")) == -1);
  CHECK(json_as<uint64_t>(parse_json("18446744073709551615", "a"), JsonPath("a")) == UINT64_MAX);
  CHECK(json_as<int64_t>(parse_json("-9223372036854775808", "a"), JsonPath("a")) == INT64_MIN);
  for (const char* text :
       {"-1", "1.5", "1.0", "1e2", "18446744073709551616", "true", "\"1\"", "null", "[]", "{}"}) {
    CAPTURE(text);
    CHECK_THAT(read_error<uint64_t>(text), StartsWith("[a.json: k] "));
  }
  CHECK_THAT(read_error<int64_t>("9223372036854775808"), Contains("9223372036854775808."));
  CHECK_THAT(read_error<int>("2147483648"), Contains("[-2147483648, 2147483647]"));
  CHECK(read_error<int>("2147483647").empty());
}

TEST_CASE("other types are read strictly") {
  CHECK(json_as<double>(3, JsonPath("a")) == 3.0);
  CHECK(json_as<float>(0.5, JsonPath("a")) == 0.5f);
  CHECK_THAT(read_error<float>("1e300"), Contains("float32"));
  CHECK_THAT(read_error<double>("\"0.1\""), Contains("a number. Received: \"0.1\"."));
  CHECK_THAT(read_error<bool>("1"), Contains("true or false. Received: 1."));
  CHECK_THAT(read_error<std::string>("[1]"), Contains("a list of 1"));
  CHECK_THAT(read_error<std::vector<int>>("[1, 2.5]"), StartsWith("[a.json: k[1]] "));
  CHECK_THAT(read_error<std::vector<int>>("{}"), Contains("a list. Received: an object"));
  using Names = std::vector<std::optional<std::string>>;
  const Names names = json_as<Names>(parse_json("[\"batch\", null]", "a"), JsonPath("a"));
  CHECK(names == Names{"batch", std::nullopt});
}

TEST_CASE("values of Python programs may be 0 or 1 for a bool and 5.0 for an integer") {
  const JsonPath path = JsonPath("a.json").key("k").from_python();
  const auto read = [&](const char* text, auto value) {
    return json_as<decltype(value)>(parse_json(text, "a"), path.index(0));
  };
  CHECK(read("1", false));
  CHECK(read("1.0", false));
  CHECK_FALSE(read("0", true));
  CHECK(read("5.0", 0) == 5);
  CHECK(read("-5e0", int64_t{0}) == -5);
  CHECK(read("7", uint64_t{0}) == 7);
  CHECK(JsonObject(parse_json("{\"a\": 1}", "a"), path).take<bool>("a"));
  for (const char* text : {"2", "-1", "0.5", "\"1\"", "null", "[]"}) {
    CAPTURE(text);
    CHECK_THAT(config_error([&] { read(text, true); }), Contains("true or false"));
  }
  for (const char* text : {"5.5", "true", "1e300", "-1.0", "\"1\""}) {
    CAPTURE(text);
    CHECK_THAT(config_error([&] { read(text, uint64_t{0}); }), StartsWith("[a.json: k[0]] "));
  }
  CHECK_THAT(config_error([&] { read("3e9", 0); }), Contains("[-2147483648, 2147483647]"));
}

TEST_CASE("an object reader accepts known keys and names unknown ones") {
  const Json json = parse_json(
      "{\"match\": \"hidden/kernel\", \"epochs\": 3, \"seed\": null, \"inner\": {\"x\": [1, 2]}}",
      "a.json");
  JsonObject object(json, JsonPath("a.json"));
  CHECK(object.take<std::string>("match") == "hidden/kernel");
  CHECK(object.take_optional<int>("epochs") == 3);
  CHECK_FALSE(object.take_optional<int>("seed").has_value());
  CHECK(object.take_or<int>("batch", 7) == 7);
  CHECK_THAT(config_error([&] { object.finish(); }),
             StartsWith("[a.json] ") && Contains("\"inner\""));
  JsonObject inner = object.take_object("inner");
  CHECK(inner.take<std::vector<int>>("x") == std::vector<int>{1, 2});
  CHECK_NOTHROW(inner.finish());
  CHECK_NOTHROW(object.finish());
  CHECK_THAT(config_error([&] { inner.take<int>("y"); }),
             StartsWith("[a.json: inner] ") && Contains("\"y\" is required"));
  CHECK_THAT(config_error([&] { inner.take<int>("x"); }), StartsWith("[a.json: inner.x] "));
  CHECK_THAT(config_error([&] { JsonObject(json["epochs"], JsonPath("a.json").key("epochs")); }),
             Contains("an object. Received: 3"));
}

TEST_CASE("an unknown key's error suggests the nearest known one") {
  const Json json = parse_json("{\"lernin_rate\": 1}", "a.json");
  JsonObject object(json, JsonPath("a.json"));
  object.take_optional<double>("learning_rate");
  object.take_optional<double>("epochs");
  CHECK_THAT(config_error([&] { object.finish(); }),
             Contains("Received: \"lernin_rate\". To fix: write \"learning_rate\"."));
}

TEST_CASE("JSON text reads back as the same values") {
  for (double value : {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, 0.30000000000000004, 2.5, 1e22,
                       123456789.123456789, -0.0}) {
    const std::string text = to_json_text(Json{{"v", value}});
    CHECK(parse_json(text, "a")["v"].get<double>() == value);
  }
  CHECK(to_json_text(Json{{"b", 1}, {"a", {1, 2}}}, -1) == "{\"b\":1,\"a\":[1,2]}");
  CHECK(to_json_text(Json(std::nan(""))) == "null");
  CHECK(to_json_text(Json("\xff")) == "\"\xef\xbf\xbd\"");
}

TEST_CASE("a JSON file is named in errors") {
  const test::TempFolder folder;
  const std::string path = (folder / "layouts.json").string();
  test::write_file(path, "{\n \"mesh\": {,}}");
  CHECK_THAT(config_error([&] { read_json_file(path); }), Contains("layouts.json:2:11] "));
  test::write_file(path, "{\"mesh\": 1}");
  CHECK(read_json_file(path)["mesh"] == 1);
  CHECK_THROWS_AS(read_json_file(path + "x"), FileError);
}

}  // namespace json_test
