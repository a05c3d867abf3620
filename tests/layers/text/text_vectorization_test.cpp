#include <tessera/layers/text/text_vectorization.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/graph/input.hpp>
#include <tessera/framework/model/sequential.hpp>
#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/layers/core/dense.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"

namespace text_vectorization_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;

namespace {

using Texts = std::vector<std::string>;

const Texts corpus = {"the quick brown fox", "the lazy dog", "the the fox"};

TextVectorization adapted(const TextVectorizationOptions& options) {
  const TextVectorization layer(options);
  layer.adapt(corpus);
  return layer;
}

/// Returns the layer restored from its configuration and files.
LayerHandle restored(const LayerHandle& layer) {
  const Json json = parse_json(
      to_json_text({{"class_name", layer->class_name()}, {"config", layer->config()}}), "text");
  LayerHandle again = layer_from_config(json, JsonPath("text"));
  again->load_assets(layer->assets());
  return again;
}

at::Tensor transformed(const LayerHandle& layer, const Texts& texts) {
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  return dynamic_cast<const TextLayer&>(*layer.layer()).transform(views);
}

std::string refusal(const TextVectorizationOptions& options) {
  try {
    TextVectorization layer(options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

}  // namespace

TEST_CASE("TextVectorization reports its output before and after learning") {
  const TextVectorization layer({.output_mode = "count", .name = "words"});
  const auto& text_layer = dynamic_cast<const TextLayer&>(*layer.layer());
  CHECK_FALSE(text_layer.ready());
  CHECK(text_layer.text_shape() == Shape{-1});
  CHECK_THROWS_WITH(layer(corpus), Contains("[TextVectorization words]") && Contains("adapt()"));
  CHECK_THROWS_AS(layer.dataset(corpus), StateError);
  layer.adapt(corpus);
  CHECK(text_layer.ready());
  CHECK(text_layer.text_shape() == Shape{7});
  CHECK(layer.get_vocabulary() == Texts{"[UNK]", "the", "fox", "quick", "lazy", "dog", "brown"});
  CHECK(layer(corpus).scalar_type() == at::kFloat);
  CHECK_THROWS_WITH(layer->output_shape({{2, 3}}), Contains("texts"));
  CHECK(transformed(TextVectorization({.vocabulary = {"a"}}), {"a", "b a"})
            .equal(at::tensor({2, 0, 1, 2}, at::kLong).view({2, 2})));
  CHECK(layer(Texts{}).sizes() == at::IntArrayRef({0, 7}));
  CHECK(adapted({})(Texts{}).sizes() == at::IntArrayRef({0, 0}));
}

TEST_CASE("TextVectorization is restored from its configuration and files") {
  const TextVectorizationOptions none = {};
  const std::vector<TextVectorizationOptions> all = {
      none,
      {.max_tokens = 5,
       .standardize = nullptr,
       .split = "character",
       .ngrams = {1, 3},
       .output_mode = "tf_idf",
       .pad_to_max_tokens = true,
       .name = "t",
       .trainable = false},
      {.standardize = "lower", .ngrams = 2, .output_sequence_length = 3},
      {.vocabulary = {"the", "dog"}, .idf_weights = {}},
      {.output_mode = "tf_idf", .vocabulary = {"[UNK]", "fox"}, .idf_weights = {0.1, 1.0 / 3}},
      {.split = nullptr, .output_mode = "multi_hot"},
  };
  for (const TextVectorizationOptions& options : all) {
    const TextVectorization layer(options);
    if (options.vocabulary.empty()) layer.adapt(corpus);
    const LayerHandle again = restored(layer);
    CHECK(again->config() == layer->config());
    CHECK(again->assets() == layer->assets());
    CHECK(layer->assets().empty() == !options.vocabulary.empty());
    CHECK(difference(transformed(again, corpus), layer(corpus)) == "");
  }
  CHECK(restored(TextVectorization(none))->assets().empty());
}

TEST_CASE("TextVectorization writes Keras' configuration") {
  const TextVectorization layer({.max_tokens = 9, .ngrams = 2, .vocabulary = {"b"}, .name = "n"});
  CHECK(layer->config() == Json{{"name", "n"},
                                {"trainable", true},
                                {"dtype", "float32"},
                                {"max_tokens", 9},
                                {"standardize", "lower_and_strip_punctuation"},
                                {"split", "whitespace"},
                                {"ngrams", 2},
                                {"output_mode", "int"},
                                {"output_sequence_length", nullptr},
                                {"pad_to_max_tokens", false},
                                {"sparse", false},
                                {"ragged", false},
                                {"vocabulary", {"b"}},
                                {"idf_weights", nullptr},
                                {"encoding", "utf-8"}});
}

TEST_CASE("a vocabulary that JSON cannot represent goes to the files") {
  for (const std::string& odd : {std::string("\xff"), std::string("a\0b", 3)}) {
    const TextVectorization layer({.split = nullptr, .vocabulary = {"x\ny", odd}});
    CHECK(layer->config().at("vocabulary").is_null());
    CHECK(transformed(restored(layer), {odd, "x\ny"}).equal(layer(Texts{odd, "x\ny"})));
    CHECK_THROWS_AS(layer.adapt(corpus), StateError);
  }
}

TEST_CASE("TextVectorization refuses invalid options") {
  CHECK_THAT(refusal({.max_tokens = 2}), Contains("[TextVectorization, max_tokens]"));
  CHECK_THAT(refusal({.max_tokens = 1, .output_mode = "count", .name = "n"}),
             Contains("[TextVectorization n, max_tokens]"));
  CHECK_THAT(refusal({.max_tokens = int64_t{1} << 31}), Contains("2147483648"));
  CHECK_THAT(refusal({.standardize = "lowr"}), Contains("write \"lower\""));
  CHECK_THAT(refusal({.split = "whitspace"}), Contains("write \"whitespace\""));
  CHECK_THAT(refusal({.ngrams = 0}), Contains("Received: 0"));
  CHECK_THAT(refusal({.ngrams = {2, -1}}), Contains("Received: -1"));
  CHECK_THAT(refusal({.output_mode = "tfidf"}),
             Contains("write \"tf_idf\"") && !Contains("one_hot"));
  CHECK_THAT(refusal({.output_mode = "one_hot"}), Contains("output_mode"));
  CHECK_THAT(refusal({.output_mode = "count", .output_sequence_length = 2}), Contains("\"int\""));
  CHECK_THAT(refusal({.output_sequence_length = 0}), Contains("output_sequence_length"));
  CHECK_THAT(refusal({.pad_to_max_tokens = true}), Contains("max_tokens"));
  CHECK_THAT(refusal({.sparse = true}), Contains("dataset()"));
  CHECK_THAT(refusal({.ragged = true}), Contains("output_sequence_length"));
  CHECK_THAT(refusal({.encoding = "latin-1"}), Contains("latin-1"));
  CHECK_THAT(refusal({.vocabulary = {"a", "b", "a"}}), Contains("\"a\" twice"));
  CHECK_THAT(refusal({.vocabulary = {"a", ""}}), Contains("mask_token \"\" at index 1"));
  CHECK_THAT(refusal({.vocabulary = {"", "[UNK]"}}), Contains("not special"));
  CHECK_THAT(refusal({.max_tokens = 3, .vocabulary = {"a", "b"}}), Contains("Received: 4"));
  CHECK_THAT(refusal({.output_mode = "tf_idf", .vocabulary = {"a"}}), Contains("idf_weights"));
  CHECK_THAT(refusal({.vocabulary = {"a"}, .idf_weights = {1}}), Contains("leave them out"));
  CHECK_THAT(refusal({.output_mode = "tf_idf", .idf_weights = {1}}), Contains("vocabulary"));
  CHECK_THAT(refusal({.output_mode = "tf_idf", .vocabulary = {"a"}, .idf_weights = {1e99}}),
             Contains("finite"));
  const TextVectorization fixed({.vocabulary = {"a"}});
  CHECK_THROWS_AS(fixed.adapt(corpus), StateError);
  CHECK_THROWS_WITH(TextVectorization().adapt({"", " !"}), Contains("2 texts without any"));
  CHECK_THROWS_WITH(fixed->load_assets({{"vocabulary.txt", "b"}}), Contains("vocabulary.txt"));
  CHECK_THROWS_WITH(TextVectorization()->load_assets({{"vocabulary.txt", "a\na"}}),
                    Contains("[TextVectorization, vocabulary]"));
  CHECK_THROWS_AS(adapted({.output_mode = "tf_idf"})->load_assets({{"vocabulary.txt", "a"}}),
                  ConfigError);
}

TEST_CASE("reading a configuration of TextVectorization opens no file and runs nothing") {
  const auto from = [](const std::string& config) {
    const Json json =
        parse_json(R"({"class_name": "TextVectorization", "config": )" + config + "}", "m");
    layer_from_config(json, JsonPath("m"));
  };
  from("{}");
  CHECK_THROWS_WITH(from(R"({"vocabulary": "/etc/passwd"})"),
                    Contains("m: config.vocabulary") && Contains("opens no file"));
  CHECK_THROWS_WITH(from(R"({"vocabulary": []})"), Contains("m: config.vocabulary"));
  CHECK_THROWS_WITH(from(R"({"vocabulary": [1]})"), Contains("m: config.vocabulary[0]"));
  CHECK_THROWS_WITH(from(R"({"standardize": {"class_name": "function", "config": "f"}})"),
                    Contains("m: config.standardize"));
  CHECK_THROWS_WITH(from(R"({"split": 3})"), Contains("m: config.split"));
  CHECK_THROWS_WITH(from(R"({"ngrams": 1000000000000})"), Contains("ngrams"));
  CHECK_THROWS_WITH(from(R"({"ngrams": "2"})"), Contains("m: config.ngrams"));
  CHECK_THROWS_WITH(from(R"({"file": "x"})"), Contains("\"file\""));
  CHECK_THROWS_WITH(from(R"({"max_tokens": 9223372036854775807, "pad_to_max_tokens": true,
                             "output_mode": "count"})"),
                    Contains("max_tokens"));
}

TEST_CASE("TextVectorization calls user-defined functions") {
  const TextVectorization layer(
      {.standardize = [](std::string_view text) { return std::string(text) + ";End"; },
       .split =
           [](std::string_view text) {
             const size_t half = text.size() / 2;
             return Texts{std::string(text.substr(0, half)), "", std::string(text.substr(half))};
           },
       .vocabulary = {"ab", ";End", "a;", "End"}});
  CHECK(layer(Texts{"a", "ab"}).equal(at::tensor({4, 0, 5, 1, 0, 5}, at::kLong).view({2, 3})));
  CHECK_THROWS_WITH(layer->config(),
                    Contains("[TextVectorization, standardize]") && Contains("load_assets()"));
  const TextVectorization failing({.split = [](std::string_view text) -> Texts {
    if (text == "fail") throw ConfigError("mine", "no such text", "it", "leave it out");
    return {std::string(text)};
  }});
  CHECK_THROWS_WITH(failing.adapt(Texts(100, "fail")), Contains("mine"));
  failing.adapt({"a"});
  CHECK(failing.vocabulary_size() == 3);
}

TEST_CASE("counts are kept when the number of threads shrinks") {
  const int threads = at::get_num_threads();
  Texts many;
  for (int i = 0; i < 100; ++i) many.push_back(str("word", i));
  const TextVectorization layer;
  at::set_num_threads(4);
  layer.update_state(many);
  at::set_num_threads(1);
  layer.update_state({"another"});
  at::set_num_threads(threads);
  layer.finalize_state();
  CHECK(layer.vocabulary_size() == 103);
}

TEST_CASE("set_vocabulary replaces a vocabulary, and an invalid one changes nothing") {
  const TextVectorization layer = adapted({.output_mode = "tf_idf"});
  const auto before = layer.get_vocabulary();
  CHECK_THROWS_AS(layer.set_vocabulary({"a", "a"}, {1, 2}), ConfigError);
  CHECK_THROWS_AS(layer.set_vocabulary({"a"}, {1, 2}), ConfigError);
  CHECK(layer.get_vocabulary() == before);
  layer.set_vocabulary({"x", "y"}, {1, 4});
  CHECK(layer.idf_weights() == std::vector<float>{2.5, 1, 4});
  CHECK(layer(Texts{"y z y"}).equal(at::tensor({2.5f, 0.f, 8.f}).view({1, 3})));
  const TextVectorization fixed({.vocabulary = {"a"}});
  fixed.set_vocabulary({"b"});
  CHECK(fixed->config().at("vocabulary").is_null());
  CHECK(transformed(restored(fixed), {"b a"}).equal(at::tensor({2, 1}, at::kLong).view({1, 2})));
}

TEST_CASE("progress is reported in order, up to all texts") {
  std::vector<int64_t> told;
  const TextProgress progress = [&](int64_t done, int64_t total) {
    CHECK(total == 5000);
    told.push_back(done);
  };
  const Texts texts(5000, "a b");
  const TextVectorization layer;
  layer.adapt(texts, {.progress = progress});
  layer.dataset(texts, {.progress = progress});
  CHECK(told == std::vector<int64_t>{2048, 4096, 5000, 2048, 4096, 5000});
}

TEST_CASE("TextVectorization takes texts as string literals in a call") {
  const TextVectorization layer = adapted({});
  layer.adapt({"one two", "two"});
  CHECK(at::equal(layer({"two", "one"}), layer(Texts{"two", "one"})));
  CHECK_THROWS_WITH(layer.adapt(std::shared_ptr<const TextData>()), Contains("a null pointer"));
}

TEST_CASE("an error of TextVectorization in a model says where it belongs") {
  const Sequential model({TextVectorization({.name = "words"}), Dense(2)});
  CHECK_THROWS_WITH(model.build({-1, 3}),
                    Contains("[TextVectorization words]") && Contains("leave it out of the model"));
  const Input x({3});
  CHECK_THROWS_WITH(TextVectorization({.name = "words"})(x), Contains("[TextVectorization words]"));
}

}  // namespace text_vectorization_test
