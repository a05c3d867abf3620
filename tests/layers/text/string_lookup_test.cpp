#include <tessera/layers/text/string_lookup.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/layer_registry.hpp>

#include "tests/support/catch.hpp"

namespace string_lookup_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

using Words = std::vector<std::string>;
using Documents = std::vector<Words>;

std::string refusal(const StringLookupOptions& options) {
  try {
    StringLookup layer(options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

}  // namespace

TEST_CASE("StringLookup finds tokens and, inverted, returns them") {
  const Words vocabulary = {"a", "b", "c"};
  const StringLookup layer({.mask_token = "", .vocabulary = vocabulary});
  const StringLookup inverse({.mask_token = "", .vocabulary = vocabulary, .invert = true});
  const Documents documents = {{"c", "", "a"}, {"b", "z", "b"}};
  const at::Tensor indices = layer(documents);
  CHECK(indices.equal(at::tensor({4, 0, 2, 3, 1, 3}, at::kLong).view({2, 3})));
  CHECK(inverse(indices) == Words{"c", "", "a", "b", "[UNK]", "b"});
  CHECK(inverse(at::tensor({2}, at::kInt)) == Words{"a"});
  CHECK(layer(Words{"a", "q"}).equal(at::tensor({2, 1}, at::kLong)));
  CHECK(layer.transform(Words{"a", "q"}).equal(at::tensor({2, 1}, at::kLong).view({2, 1})));
  CHECK(layer(Words{}).numel() == 0);
  CHECK(layer(Documents{}).numel() == 0);
}

TEST_CASE("StringLookup takes tokens as string literals in a call") {
  const StringLookup layer;
  layer.adapt({"a", "b", "b"});
  CHECK(layer.get_vocabulary() == Words{"[UNK]", "b", "a"});
  CHECK(at::equal(layer({"b", "c"}), at::tensor({1, 0}, at::kLong)));
}

TEST_CASE("StringLookup is restored from its configuration and files") {
  const std::vector<StringLookupOptions> all = {
      {.max_tokens = 8, .num_oov_indices = 2, .mask_token = "m", .oov_token = "?", .name = "n"},
      {.vocabulary = {"x", "y"}, .invert = true, .trainable = false},
      {.output_mode = "tf_idf", .pad_to_max_tokens = false},
  };
  for (const StringLookupOptions& options : all) {
    const StringLookup layer(options);
    if (options.vocabulary.empty()) layer.adapt(Documents{{"x", "y\n"}, {"x"}});
    const Json config = layer->config();
    JsonObject object(config, JsonPath("layer"));
    const StringLookup again = StringLookup::from_config(object);
    object.finish();
    again->load_assets(layer->assets());
    CHECK(again->config() == layer->config());
    CHECK(again->assets() == layer->assets());
    CHECK(again.get_vocabulary() == layer.get_vocabulary());
  }
}

TEST_CASE("StringLookup refuses invalid arguments") {
  CHECK_THAT(refusal({.num_oov_indices = -1, .name = "n"}),
             Contains("[StringLookup n, num_oov_indices]"));
  CHECK_THAT(refusal({.num_oov_indices = int64_t{1} << 40}), Contains("num_oov_indices"));
  CHECK_THAT(refusal({.max_tokens = 3, .num_oov_indices = 3}), Contains("the 3 indices"));
  CHECK_THAT(refusal({.invert = true, .output_mode = "count"}), Contains("output_mode"));
  CHECK_THAT(refusal({.mask_token = "m", .vocabulary = {"a", "m"}}), Contains("mask_token \"m\""));
  CHECK_THAT(refusal({.vocabulary = {"a", "[UNK]"}, .invert = true}), Contains("oov_token"));
  CHECK(StringLookup({.vocabulary = {"a", "[UNK]"}}).vocabulary_size() == 3);
  CHECK_THAT(refusal({.output_mode = "multihot"}), Contains("multi_hot"));
  CHECK_THAT(refusal({.sparse = true}), Contains("sparse"));
  const StringLookup layer({.vocabulary = {"a"}, .name = "n"});
  CHECK_THROWS_WITH(layer(Documents{{"a"}, {"a", "a"}}),
                    Contains("[StringLookup n]") && Contains("Received: 2"));
  CHECK_THROWS_WITH(layer(at::tensor({1})), Contains("invert"));
  const StringLookup inverse({.vocabulary = {"a"}, .invert = true});
  CHECK_THROWS_WITH(inverse(Words{"a"}), Contains("invert"));
  CHECK_THROWS_WITH(inverse.transform(Words{"a"}), Contains("invert"));
  CHECK_THROWS_WITH(inverse(at::tensor({1.0f})), Contains("integers"));
  CHECK_THROWS_AS(StringLookup()(Words{"a"}), StateError);
  const StringLookup closed({.num_oov_indices = 0, .vocabulary = {"a"}});
  CHECK_THROWS_WITH(closed(Words{"b"}), Contains("[StringLookup, lookup]") && Contains("\"b\""));
  const auto from = [](const std::string& config) {
    layer_from_config(
        parse_json(R"({"class_name": "StringLookup", "config": )" + config + "}", "m"),
        JsonPath("m"));
  };
  from(R"({"salt": null, "oov_method": "floormod", "vocabulary_size": 3})");
  CHECK_THROWS_WITH(from(R"({"salt": 1})"), Contains("salt"));
  CHECK_THROWS_WITH(from(R"({"vocabulary": "https://a/b"})"), Contains("opens no file"));
}

}  // namespace string_lookup_test
