#include <tessera/framework/text/tokenizer.hpp>

#include <map>
#include <thread>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/text/internal/normalizer.hpp>
#include <tessera/framework/text/internal/pre_tokenizer.hpp>
#include <tessera/framework/text/internal/token_decoder.hpp>
#include <tessera/framework/text/internal/unicode.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace tokenizer_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

using Ids = std::vector<int32_t>;

/// What `tokenizers` and SentencePiece made (golden/make_tokenizers.py).
const Json& golden() {
  static const Json json = read_json_file(test::golden_path("tokenizers.json").string());
  return json;
}

Tokenizer golden_tokenizer(const std::string& name) {
  return Tokenizer::from_json(to_json_text(golden()["tokenizers"][name]["json"]), name + ".json");
}

void check_same(const Encoding& encoding, const Json& expected) {
  CHECK(encoding.ids == expected["ids"].get<Ids>());
  CHECK(encoding.type_ids == expected["type_ids"].get<Ids>());
  CHECK(encoding.attention_mask == expected["attention_mask"].get<Ids>());
  CHECK(encoding.special_tokens_mask == expected["special_tokens_mask"].get<Ids>());
}

std::vector<std::string> texts_of(const std::string& name) {
  std::vector<std::string> texts;
  for (const Json& entry : golden()["tokenizers"][name]["cases"]) texts.push_back(entry["text"]);
  return texts;
}

std::vector<std::string> pieces_of(const PreTokenizing& pre_tokenizer, const std::string& text) {
  SplitText split{text, {{0, text.size(), true, -1}}};
  if (text.empty()) split.pieces.clear();
  pre_tokenizer.split(split);
  if (pre_tokenizer.byte_level) to_byte_characters(split);
  std::vector<std::string> pieces;
  for (const TextPiece& piece : split.pieces) {
    pieces.push_back(split.text.substr(piece.begin, piece.end - piece.begin));
  }
  return pieces;
}

/// A small valid tokenizer.json, to damage.
Json small_json() {
  return parse_json(R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 3, "content": "<s>", "special": true}],
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "Lowercase"}]},
    "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "\\s+"}, "behavior": "Removed"},
    "post_processor": null, "decoder": null,
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})",
                    "small");
}

std::string error_of(const Json& json) {
  try {
    Tokenizer::from_json(to_json_text(json), "t.json").encode("ab");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("tokenizers of all kinds encode and decode as Hugging Face's") {
  for (const auto& [name, entry] : golden()["tokenizers"].items()) {
    const Tokenizer tokenizer = golden_tokenizer(name);
    for (const Json& expected : entry["cases"]) {
      const auto text = expected["text"].get<std::string>();
      INFO(name << ": " << text);
      const Encoding encoding = tokenizer.encode(text);
      check_same(encoding, expected);
      CHECK(tokenizer.decode(encoding.ids) == expected["decoded"]);
      CHECK(tokenizer.decode(encoding.ids, {.skip_special_tokens = false}) == expected["all"]);
      CHECK(tokenizer.encode(text, {.add_special_tokens = false}).ids ==
            expected["plain"].get<Ids>());
    }
    for (const Json& expected : entry["pairs"]) {
      INFO(name << ": " << expected["first"] << " and " << expected["second"]);
      check_same(tokenizer.encode(expected["first"].get<std::string>(),
                                  expected["second"].get<std::string>()),
                 expected);
    }
  }
}

TEST_CASE("a batch is padded, and the same for any number of threads") {
  for (const auto& [name, entry] : golden()["tokenizers"].items()) {
    INFO(name);
    const Tokenizer tokenizer = golden_tokenizer(name);
    std::vector<std::string> texts = texts_of(name);
    texts.resize(entry["batch"].size());
    const std::vector<Encoding> batch = tokenizer.encode_batch(texts);
    for (size_t i = 0; i < batch.size(); ++i) check_same(batch[i], entry["batch"][i]);

    std::vector<std::string> many;
    for (int i = 0; i < 20; ++i) {
      for (const std::string& text : texts_of(name)) many.push_back(text + std::to_string(i % 3));
    }
    const std::vector<Encoding> one = tokenizer.encode_batch(many, {.threads = 1});
    const std::vector<Encoding> three = tokenizer.encode_batch(many, {.threads = 3});
    REQUIRE(one.size() == many.size());
    bool same = true;
    for (size_t i = 0; i < one.size(); ++i) {
      same = same && one[i].ids == three[i].ids && one[i].attention_mask == three[i].attention_mask;
    }
    CHECK(same);
  }
}

TEST_CASE("pre-tokenizers split as Hugging Face's") {
  for (const Json& entry : golden()["pre_tokenizers"]) {
    const PreTokenizing made = make_pre_tokenizer(entry["config"], JsonPath("golden"));
    for (const Json& pair : entry["pieces"]) {
      INFO(entry["config"] << " of " << pair[0]);
      CHECK(pieces_of(made, pair[0]) == pair[1].get<std::vector<std::string>>());
    }
  }
}

TEST_CASE("normalizers change texts as Hugging Face's") {
  for (const Json& entry : golden()["normalizers"]) {
    const Normalizer made = make_normalizer(entry["config"], JsonPath("golden"));
    for (const Json& pair : entry["texts"]) {
      INFO(entry["config"]["type"] << " of " << pair[0]);
      auto text = pair[0].get<std::string>();
      made(text);
      CHECK(text == pair[1]);
    }
  }
}

TEST_CASE("decoders join tokens as Hugging Face's") {
  for (const Json& entry : golden()["decoders"]) {
    const TokenDecoder made = make_token_decoder(entry["config"], JsonPath("golden"));
    for (const Json& pair : entry["tokens"]) {
      INFO(entry["config"] << " of " << pair[0]);
      auto tokens = pair[0].get<std::vector<std::string>>();
      made(tokens);
      std::string text;
      for (const std::string& token : tokens) text += token;
      CHECK(text == pair[1]);
    }
  }
}

TEST_CASE("models of SentencePiece are read by its library") {
  Tokenizer tokenizer = [] {
    try {
      return load_tokenizer(test::golden_path("tokenizer.model").string());
    } catch (const ConfigError& error) {
      // Built without it.
      CHECK_THAT(error.what(), Contains("tokenizer.json"));
      return golden_tokenizer("bert");
    }
  }();
  if (tokenizer.vocabulary_size() != 420) return;
  for (const Json& expected : golden()["sentence_piece"]) {
    INFO(expected["text"]);
    const Ids ids = tokenizer.encode(expected["text"].get<std::string>()).ids;
    CHECK(ids == expected["ids"].get<Ids>());
    CHECK(tokenizer.decode(ids) == expected["decoded"]);
  }
  CHECK(tokenizer.token_id("</s>") == 2);
  CHECK(tokenizer.token(2) == "</s>");
  CHECK(!tokenizer.token_id("no such token"));
  CHECK(!tokenizer.token(420));
  CHECK_THROWS_AS(tokenizer.to_json(), StateError);
}

TEST_CASE("a damaged model of SentencePiece is a FileError") {
  const test::TempFolder folder;
  const std::string path = folder / "tokenizer.model";
  test::write_file(path, "no model");
  // A library without SentencePiece refuses every model.
  CHECK_THROWS_WITH(load_tokenizer(path), Contains("tokenizer.model"));
}

TEST_CASE("folders with vocab.txt or vocab.json and merges.txt are read") {
  const test::TempFolder folder;
  for (const std::string name : {"bert", "gpt2"}) {
    const Json& json = golden()["tokenizers"][name]["json"];
    std::map<int32_t, std::string> tokens;
    for (const auto& [token, id] : json["model"]["vocab"].items()) tokens[id] = token;
    if (name == "bert") {
      std::string lines;
      for (const auto& [id, token] : tokens) lines += token + "\n";
      test::write_file(folder / "vocab.txt", lines);
    } else {
      test::write_file(folder / "vocab.json", to_json_text(json["model"]["vocab"]));
      std::string lines = "#version: 0.2\n";
      for (const Json& pair : json["model"]["merges"]) {
        lines += pair[0].get<std::string>() + " " + pair[1].get<std::string>() + "\n";
      }
      test::write_file(folder / "merges.txt", lines);
    }
    const Tokenizer tokenizer = load_tokenizer(folder.path().string());
    Tokenizer expected = golden_tokenizer(name);
    expected.set_padding(std::nullopt);
    CHECK(tokenizer.encode("The quick brown fox").ids ==
          expected.encode("The quick brown fox").ids);
  }
  test::write_file(folder / "tokenizer.json", to_json_text(small_json()));
  CHECK(load_tokenizer(folder.path().string()).vocabulary_size() == 4);
  const test::TempFolder empty;
  CHECK_THROWS_AS(load_tokenizer(empty.path().string()), FileError);
  CHECK_THROWS_AS(load_tokenizer(empty / "absent.json"), FileError);
  // The case of letters is in another file.
  test::write_file(empty / "vocab.txt", "[UNK]\n[CLS]\n[SEP]\nA\na\n");
  CHECK(load_tokenizer(empty.path().string()).encode("A").ids == Ids{1, 4, 2});
  test::write_file(empty / "tokenizer_config.json", R"({"do_lower_case": false})");
  CHECK(load_tokenizer(empty.path().string()).encode("A").ids == Ids{1, 3, 2});
}

TEST_CASE("tokens are found by id and by text, and the JSON is kept") {
  const Tokenizer tokenizer = Tokenizer::from_json(to_json_text(small_json()), "t.json");
  CHECK(tokenizer.vocabulary_size() == 4);
  CHECK(tokenizer.token_id("ab") == 2);
  CHECK(tokenizer.token_id("<s>") == 3);
  CHECK(!tokenizer.token_id("c"));
  CHECK(tokenizer.token(1) == "b");
  CHECK(!tokenizer.token(4));
  CHECK(tokenizer.encode("AB b <s>a").ids == Ids{2, 1, 3, 0});
  CHECK(tokenizer.decode(Ids{2, 3, 9, 0}) == "ab a");
  CHECK(Tokenizer::from_json(tokenizer.to_json()).encode("ab").ids == Ids{2});
}

TEST_CASE("invalid UTF-8 is encoded as U+FFFD") {
  const Tokenizer tokenizer = golden_tokenizer("gpt2");
  CHECK(tokenizer.encode("a\xFFz\xC3").ids == tokenizer.encode("a\xEF\xBF\xBDz\xEF\xBF\xBD").ids);
}

TEST_CASE("truncation and padding can be replaced, and are checked") {
  Tokenizer tokenizer = golden_tokenizer("bert");
  tokenizer.set_truncation(Truncation{.max_length = 5});
  tokenizer.set_padding(Padding{.direction = "left", .multiple_of = 4, .pad_id = 9});
  const Encoding encoding = tokenizer.encode("the quick brown fox");
  REQUIRE(encoding.ids.size() == 8);
  CHECK(encoding.ids[2] == 9);
  CHECK(encoding.ids[3] == 2);
  CHECK(encoding.attention_mask == Ids{0, 0, 0, 1, 1, 1, 1, 1});
  CHECK_THROWS_AS(tokenizer.set_truncation(Truncation{.max_length = -1}), ConfigError);
  CHECK_THROWS_AS(tokenizer.set_truncation(Truncation{.strategy = "longest"}), ConfigError);
  CHECK_THROWS_AS(tokenizer.set_padding(Padding{.multiple_of = 0}), ConfigError);
  CHECK_THROWS_AS(tokenizer.set_padding(Padding{.direction = "both"}), ConfigError);
  tokenizer.set_truncation(Truncation{.max_length = 4, .strategy = "only_second"});
  CHECK_THROWS_AS(tokenizer.encode("the quick brown fox"), ConfigError);
}

TEST_CASE("what is not implemented is refused by name, with file and path") {
  Json json = small_json();
  json["pre_tokenizer"] = {{"type", "Sequence"},
                           {"pretokenizers", Json::array({{{"type", "UnicodeScripts"}}})}};
  CHECK_THAT(error_of(json), Contains("t.json: pre_tokenizer.pretokenizers[0].type") &&
                                 Contains("\"UnicodeScripts\""));
  json = small_json();
  json["normalizer"]["normalizers"][0]["type"] = "Uppercase";
  CHECK_THAT(error_of(json),
             Contains("t.json: normalizer.normalizers[0].type") && Contains("\"Uppercase\""));
  json = small_json();
  json["decoder"] = {{"type", "CTC"}};
  CHECK_THAT(error_of(json), Contains("t.json: decoder.type") && Contains("\"CTC\""));
  json = small_json();
  json["post_processor"] = {{"type", "Other"}};
  CHECK_THAT(error_of(json), Contains("t.json: post_processor.type") && Contains("\"Other\""));
  json = small_json();
  json["model"]["type"] = "Characters";
  CHECK_THAT(error_of(json), Contains("t.json: model.type") && Contains("\"Characters\""));
  json = small_json();
  json["model"]["dropout"] = 0.1;
  CHECK_THAT(error_of(json), Contains("t.json: model.dropout"));
  json = small_json();
  json["more"] = 1;
  CHECK_THAT(error_of(json), Contains("t.json: more"));
  json = small_json();
  json["normalizer"]["normalizers"][0]["locale"] = "tr";
  CHECK_THAT(error_of(json), Contains("normalizer.normalizers[0]") && Contains("locale"));
}

TEST_CASE("damaged files are ConfigErrors that name file and path") {
  CHECK(error_of(small_json()) == "no error");
  const auto damaged = [](const auto& change) {
    Json json = small_json();
    change(json);
    return error_of(json);
  };
  CHECK_THAT(damaged([](Json& j) { j["model"]["merges"][0] = "a c"; }),
             Contains("t.json: model.merges[0]"));
  CHECK_THAT(damaged([](Json& j) { j["model"]["merges"][0] = 7; }),
             Contains("t.json: model.merges[0]"));
  CHECK_THAT(damaged([](Json& j) { j["model"]["vocab"]["b"] = 0; }),
             Contains("t.json: model.vocab.b"));
  CHECK_THAT(damaged([](Json& j) { j["model"]["vocab"]["b"] = -1; }),
             Contains("t.json: model.vocab.b"));
  CHECK_THAT(damaged([](Json& j) { j["model"].erase("vocab"); }), Contains("\"vocab\""));
  CHECK_THAT(damaged([](Json& j) { j.erase("model"); }), Contains("t.json: model"));
  CHECK_THAT(damaged([](Json& j) { j["model"]["unk_token"] = "?"; }),
             Contains("t.json: model.unk_token"));
  CHECK_THAT(damaged([](Json& j) { j["added_tokens"][0]["id"] = -3; }),
             Contains("t.json: added_tokens[0].id"));
  CHECK_THAT(damaged([](Json& j) { j["pre_tokenizer"]["pattern"]["Regex"] = "(a"; }),
             Contains("t.json: pre_tokenizer.pattern.Regex"));
  CHECK_THAT(damaged([](Json& j) { j["pre_tokenizer"]["behavior"] = "Some"; }),
             Contains("t.json: pre_tokenizer.behavior"));
  CHECK_THAT(damaged([](Json& j) {
               j["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "AAAA"}};
             }),
             Contains("t.json: normalizer.precompiled_charsmap"));
  CHECK_THAT(damaged([](Json& j) {
               j["truncation"] = {{"max_length", -4}};
             }),
             Contains("max_length"));
  CHECK_THAT(damaged([](Json& j) {
               j["padding"] = {{"strategy", "All"}};
             }),
             Contains("t.json: padding.strategy"));
  CHECK_THROWS_AS(Tokenizer::from_json("{\"model\":", "t.json"), ConfigError);
  CHECK_THROWS_AS(Tokenizer::from_json("[]", "t.json"), ConfigError);
}

TEST_CASE("a pattern that steps back too often is an error, and callouts are refused") {
  Json json = small_json();
  json["pre_tokenizer"]["pattern"]["Regex"] = "(a+)+$";
  const Tokenizer tokenizer = Tokenizer::from_json(to_json_text(json), "t.json");
  CHECK_THROWS_WITH(tokenizer.encode(std::string(40, 'a') + "!"),
                    Contains("t.json: pre_tokenizer.pattern.Regex"));
  CHECK(tokenizer.encode("ab").ids == Ids{2});
  json["pre_tokenizer"]["pattern"]["Regex"] = "(?{x})a";
  CHECK_THAT(error_of(json), Contains("t.json: pre_tokenizer.pattern.Regex"));
  json["pre_tokenizer"]["pattern"]["Regex"] = std::string(20000, 'a');
  CHECK_THAT(error_of(json), Contains("a pattern has at most"));
}

TEST_CASE("one tokenizer may be used by several threads at once") {
  const Tokenizer tokenizer = golden_tokenizer("deepseek");
  const std::vector<std::string> texts = texts_of("deepseek");
  std::vector<Ids> expected;
  for (const std::string& text : texts) expected.push_back(tokenizer.encode(text).ids);
  std::vector<int> wrong(4);
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < wrong.size(); ++t) {
      threads.emplace_back([&, t] {
        for (size_t i = 0; i < texts.size(); ++i) {
          const size_t at = (i + t * 7) % texts.size();
          wrong[t] += tokenizer.encode(texts[at]).ids != expected[at];
        }
      });
    }
  }
  CHECK(wrong == std::vector<int>(4));
}

TEST_CASE("a grapheme cluster includes marks that utf8proc does not know") {
  CHECK(grapheme_length("\u00a0\u0301x") == 4);
  CHECK(grapheme_length("\u00a0\u1adbx") == 5);
  CHECK(grapheme_length("\n\u1adbx") == 1);
  CHECK(grapheme_length("\u00a0x") == 2);
}

}  // namespace tokenizer_test
