#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/dtype_policy_map.hpp>
#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/dtype_scope.hpp"

namespace dtype_policy_map_test {

using namespace tessera;
using Catch::Matchers::Contains;

namespace {

DTypePolicyMap sample_map() {
  return DTypePolicyMap(
      "float32",
      {{"encoder/layer_0/dense", "bfloat16"}, {"encoder/.*", "float16"}, {"decoder", "bfloat16"}});
}

}  // namespace

TEST_CASE("a path's policy is that of its rule, of the one matching expression, or the default") {
  const DTypePolicyMap map = sample_map();
  CHECK(to_string(map.find("encoder/layer_0/dense")) == "bfloat16");
  CHECK(to_string(map.find("encoder/attention/query")) == "float16");
  CHECK(to_string(map.find("decoder")) == "bfloat16");
  CHECK(to_string(map.find("decoder/attention")) == "float32");
  CHECK(map.to_string() ==
        "float32; encoder/layer_0/dense: bfloat16; encoder/.*: float16; decoder: bfloat16");
}

TEST_CASE("invalid rules are refused in one line") {
  const auto make = [](const std::vector<std::pair<std::string, std::string>>& rules) {
    return DTypePolicyMap("float32", rules);
  };
  CHECK_THROWS_WITH(make({{"a", "float16"}, {"a", "float32"}}), Contains("\"a\" twice"));
  CHECK_THROWS_WITH(make({{"a(", "float16"}}), Contains("RE2") && Contains("\"a(\""));
  CHECK_THROWS_WITH(make({{"a", "float61"}}), Contains("float61"));
  CHECK_THROWS_WITH(make({{".*b", "float16"}, {"a.*", "float32"}}).find("ab"),
                    Contains("\".*b\" and \"a.*\" for \"ab\""));
}

TEST_CASE("layers take the policy of their path when a model names them") {
  const test::DTypeScope outer("float32");
  set_dtype_policy(DTypePolicyMap(
      "mixed_bfloat16", {{"block/.*", "float16"}, {"logits", "float32"}, {"dense", "float64"}}));
  CHECK(to_string(default_dtype_policy()) == "mixed_bfloat16");
  const Dense inner(4, {.name = "inner"}), own(4, {.name = "own", .dtype = "float32"});
  const Sequential block({inner, own}, {.name = "block"});
  const Dense unnamed(4), logits(2, {.name = "logits"});
  const Sequential model({Input({3}), block, unnamed, logits});
  model.build({-1, 3});
  const auto policy = [](const LayerHandle& layer) { return to_string(layer->dtype_policy()); };
  CHECK(policy(inner) == "float16");
  CHECK(policy(own) == "float32");
  CHECK(policy(unnamed) == "float64");
  CHECK(policy(logits) == "float32");
  CHECK(inner->config().at("dtype") == "float16");
  CHECK(inner->weights()[0].dtype() == at::kHalf);
  CHECK(unnamed->weights()[0].dtype() == at::kDouble);
  CHECK(model.predict(at::ones({5, 3})).scalar_type() == at::kFloat);
  // Layers that are created later take the default of that time.
  set_dtype_policy("mixed_bfloat16");
  CHECK(default_dtype_policy() == dtype_policy("mixed_bfloat16"));
  CHECK_THROWS_AS(set_dtype_policy("mixed_float8"), ConfigError);
  set_dtype_policy("float32");
  CHECK(policy(Dense(1, {.name = "logits"})) == "float32");
  CHECK(policy(inner) == "float16");
}

}  // namespace dtype_policy_map_test
