#include <tessera/layers/transformer/position_embedding.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/nn/key_value_cache.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/layer_check.hpp"

namespace position_embedding_test {

using namespace tessera;
using at::Tensor;
using Catch::Matchers::Contains;

namespace {

DTensor on_one_device(const at::Tensor& x) {
  return pack(x, Layout::replicated(default_mesh(), x.dim()));
}

}  // namespace

TEST_CASE("PositionEmbedding under every layout") {
  for (const bool add : {false, true}) {
    CAPTURE(add);
    test::run_golden_layer_test({.make = [=] { return PositionEmbedding(4, {.add = add}); },
                                 .input = {{2, 3, 4}},
                                 .output = {2, 3, 4},
                                 .weights = {{"embeddings", {4, 4}}}});
  }
}

TEST_CASE("PositionEmbedding returns its rows for each step, or adds them") {
  const test::DTypeScope doubles("float64");
  const at::Tensor x = at::randn({2, 3, 4}, at::kDouble);
  const PositionEmbedding rows(5), sum(5, {.initializer = "uniform", .add = true});
  const at::Tensor y = rows(on_one_device(x)).full();
  const at::Tensor table = rows->weights()[0].value().full();
  CHECK(at::equal(y, table.narrow(0, 0, 3).expand({2, 3, 4})));
  const at::Tensor added = sum(on_one_device(x)).full();
  CHECK(at::equal(added, x + sum->weights()[0].value().full().narrow(0, 0, 3)));
  CHECK(rows->config().at("sequence_length") == 5);
  CHECK_FALSE(rows->config().contains("add"));
}

TEST_CASE("PositionEmbedding continues behind the steps of a cache") {
  const test::DTypeScope doubles("float64");
  const at::Tensor x = at::zeros({1, 5, 2}, at::kDouble);
  const PositionEmbedding layer(5, {.add = true});
  const at::Tensor all = layer(on_one_device(x)).full();
  const auto cache = std::make_shared<KeyValueCache>(8);
  int64_t first = 0;
  for (const int64_t count : {2, 1, 2}) {
    const at::Tensor part = x.narrow(1, first, count).contiguous();
    CHECK(at::equal(layer(on_one_device(part), {.cache = cache}).full(),
                    all.narrow(1, first, count)));
    first += count;
  }
  const DTensor one_more = on_one_device(at::zeros({1, 1, 2}, at::kDouble));
  CHECK_THROWS_WITH(layer(one_more, {.cache = cache}), Contains("at most sequence_length = 5"));
}

TEST_CASE("PositionEmbedding begins at 0 in each document") {
  const test::DTypeScope doubles("float64");
  const Tensor ids = at::tensor({4, 9, 4, 9, 1, 4, 1, 1, 1, 1}, at::kInt).view({2, 5});
  // Steps of a document need not be neighbors.
  const Tensor positions = at::tensor({0, 0, 1, 1, 0, 0, 0, 1, 2, 3}).view({2, 5});
  const DefaultMeshScope mesh(create_mesh({{"a", 2}, {"b", 2}}, virtual_cpus(4)));
  const PositionEmbedding layer(6);
  const Tensor x = at::zeros({2, 5, 3}, at::kDouble);
  for (const LayoutSpec& layout : std::vector<LayoutSpec>{
           {unsharded, unsharded}, {"a", unsharded}, {unsharded, "b"}, {"a", "b"}}) {
    const DTensor rows = pack(x, Layout({layout[0], layout[1], unsharded}, default_mesh()));
    const Tensor y = layer(Inputs{rows, pack(ids, Layout(layout, default_mesh()))}).full();
    CHECK(at::equal(y, layer->weights()[0].value().full().index({positions})));
  }
  const auto cache = std::make_shared<KeyValueCache>(8);
  CHECK_THROWS_WITH(layer(Inputs{on_one_device(x), on_one_device(ids)}, {.cache = cache}),
                    Contains("there is no key-value cache"));
}

TEST_CASE("PositionEmbedding refuses what has no positions") {
  CHECK_THROWS_WITH(PositionEmbedding(0, {.name = "p"}),
                    Contains("[PositionEmbedding p] sequence_length is at least 1"));
  CHECK_THROWS_WITH(PositionEmbedding(4)->build({{-1}}), Contains("(batch, steps, features)"));
}

}  // namespace position_embedding_test
