// TextVectorization and StringLookup against Keras.
#include <ATen/ATen.h>

#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/layers/text/string_lookup.hpp>
#include <tessera/layers/text/text_vectorization.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/keras_core.hpp"

namespace keras_text_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

constexpr double tolerance = 1e-6;
using Documents = std::vector<std::vector<std::string>>;

const Json& goldens(const std::string& part) {
  static const Json all = read_json_file(golden_path("keras_text.json").string());
  return all.at(part);
}

std::vector<std::string> from_hex(const Json& list) {
  std::vector<std::string> texts;
  for (const Json& item : list) {
    const std::string digits = item.get<std::string>();
    std::string bytes;
    for (size_t i = 0; i < digits.size(); i += 2) {
      bytes.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
    }
    texts.push_back(bytes);
  }
  return texts;
}

std::string unlike(const at::Tensor& actual, const Json& golden) {
  return difference(actual, golden_tensor(golden, actual.scalar_type()), tolerance);
}

TextVectorization vectorization_of(const Json& config) {
  JsonObject object(config, JsonPath("golden"));
  TextVectorization layer = TextVectorization::from_config(object);
  object.finish();
  return layer;
}

StringLookup lookup_of(const Json& config) {
  JsonObject object(config, JsonPath("golden"));
  StringLookup layer = StringLookup::from_config(object);
  object.finish();
  return layer;
}

bool holds_lists(const Json& json) { return json.at(0).is_array(); }

template <class Call>
auto on_tokens(const Json& tokens, const Call& call) {
  return holds_lists(tokens) ? call(tokens.get<Documents>())
                             : call(tokens.get<std::vector<std::string>>());
}

}  // namespace

TEST_CASE("TextVectorization gives Keras' vocabulary, weights and rows") {
  REQUIRE(goldens("vectorization").size() == 50);
  for (const Json& golden : goldens("vectorization")) {
    CAPTURE(golden.at("config").dump());
    const TextVectorization layer = vectorization_of(golden.at("config"));
    if (!golden.at("corpus").is_null()) layer.adapt(from_hex(golden.at("corpus")));
    CHECK(layer.get_vocabulary(false) == from_hex(golden.at("tokens")));
    CHECK(layer.vocabulary_size() == golden.at("size").get<int64_t>());
    CHECK(unlike(layer(from_hex(golden.at("inputs"))), golden.at("output")) == "");
    if (!golden.contains("idf")) continue;
    CHECK(unlike(at::tensor(layer.idf_weights()), golden.at("idf")) == "");
  }
}

TEST_CASE("StringLookup gives Keras' vocabulary and indices, in both directions") {
  REQUIRE(goldens("lookup").size() == 85);
  for (const Json& golden : goldens("lookup")) {
    CAPTURE(golden.at("config").dump(), golden.at("inputs").dump());
    const StringLookup layer = lookup_of(golden.at("config"));
    const Json& corpus = golden.at("adapt");
    if (!corpus.is_null()) on_tokens(corpus, [&](const auto& texts) { layer.adapt(texts); });
    CHECK(layer.get_vocabulary() == golden.at("vocabulary").get<std::vector<std::string>>());
    CHECK(layer.get_vocabulary(false) == golden.at("tokens").get<std::vector<std::string>>());
    if (golden.at("config").at("invert").get<bool>()) {
      const auto rows = golden.at("inputs").get<std::vector<std::vector<int64_t>>>();
      std::vector<int64_t> flat;
      for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
      const at::Tensor indices = at::tensor(flat).view({static_cast<int64_t>(rows.size()), -1});
      CHECK(layer(indices) == golden.at("output").get<std::vector<std::string>>());
      continue;
    }
    const at::Tensor output =
        on_tokens(golden.at("inputs"), [&](const auto& tokens) { return layer(tokens); });
    CHECK(unlike(output, golden.at("output")) == "");
  }
}

TEST_CASE("learning from a stream or in steps equals learning at once") {
  for (const Json& golden : goldens("vectorization")) {
    if (golden.at("corpus").is_null()) continue;
    CAPTURE(golden.at("config").dump());
    const auto corpus = from_hex(golden.at("corpus"));
    const TextVectorization layer = vectorization_of(golden.at("config"));
    layer.adapt({"forgotten words", "forgotten"});
    size_t next = 0;
    layer.adapt(TextStream([&]() -> std::optional<std::vector<std::string>> {
      if (next >= corpus.size()) return std::nullopt;
      const size_t first = std::exchange(next, std::min(next + 3, corpus.size()));
      return std::vector<std::string>(corpus.begin() + static_cast<int64_t>(first),
                                      corpus.begin() + static_cast<int64_t>(next));
    }));
    CHECK(layer.get_vocabulary(false) == from_hex(golden.at("tokens")));
    CHECK(unlike(layer(from_hex(golden.at("inputs"))), golden.at("output")) == "");
    layer.update_state({"counted and dropped"});
    layer.reset_state();
    for (const std::string& text : corpus) layer.update_state(TextDataHandle({text}));
    layer.finalize_state();
    CHECK(layer.get_vocabulary(false) == from_hex(golden.at("tokens")));
  }
}

}  // namespace keras_text_test
