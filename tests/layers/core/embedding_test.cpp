#include <tessera/layers/core/embedding.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"

namespace embedding_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;

namespace {

DTensor replicated(const at::Tensor& tensor) {
  return pack(tensor, Layout::replicated(default_mesh(), tensor.dim()));
}

}  // namespace

TEST_CASE("Embedding under every layout") {
  test::run_golden_layer_test({.make = [] { return Embedding(6, 3); },
                               .input = {{4, 5}, at::kLong, 0, 5},
                               .output = {4, 5, 3},
                               .weights = {{"embeddings", {6, 3}}}});
}

TEST_CASE("Embedding gathers the rows of its table, and masks 0 if asked to") {
  const at::Tensor ids = at::tensor({2, 0, 2}).reshape({1, 3});
  const LayerHandle layer = Embedding(3, 4, {.mask_zero = true});
  const DTensor y = layer(replicated(ids));
  const at::Tensor table = layer->weights()[0].value().full();
  CHECK(difference(y.full(), table.index_select(0, ids.flatten()).reshape({1, 3, 4})) == "");
  CHECK(y.mask().full().equal(ids.ne(0)));
  CHECK(difference(layer(replicated(ids + 0.5)).full(), y.full()) == "");
  CHECK_FALSE(Embedding(3, 4)(replicated(ids)).mask().defined());
}

TEST_CASE("Embedding refuses invalid arguments by name") {
  CHECK_THROWS_WITH(Embedding(0, 4, {.name = "e"}),
                    Contains("[Embedding e]") && Contains("Received: 0 and 4"));
  const LayerHandle layer = Embedding(3, 4, {.name = "e"});
  CHECK_THROWS_AS(layer(replicated(at::tensor({3}))), ConfigError);
  Json config = {{"class_name", "Embedding"}, {"config", layer->config()}};
  config["config"]["activity_regularizer"] = "l2";
  CHECK_THROWS_WITH(layer_from_config(config, JsonPath("layer.json")),
                    Contains("config.activity_regularizer") && Contains("null"));
}

}  // namespace embedding_test
