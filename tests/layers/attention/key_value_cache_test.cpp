#include <tessera/framework/nn/key_value_cache.hpp>

#include <ATen/ATen.h>

#include <tessera/layers/attention/group_query_attention.hpp>
#include <tessera/layers/attention/multi_head_attention.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/error_line.hpp"

namespace key_value_cache_test {

using namespace tessera;
using Catch::Matchers::Contains;

namespace {

at::Tensor steps(int64_t count) {
  return at::linspace(-1, 1, 2 * count * 4, at::kDouble).mul(7).sin().reshape({2, count, 4});
}

/// Checks that a layer called on 7 steps at once gives the same output as on 3, 1, 2 and 1 of them
/// with a cache.
void check_pieces(const LayerHandle& layer, const LayoutMap& layouts, const at::Tensor& mask = {}) {
  const at::Tensor x = steps(7);
  const Mesh& mesh = layouts.mesh();
  const Layout rows({"batch", unsharded, unsharded}, mesh);
  const auto part = [&](int64_t first, int64_t count) {
    const DTensor some = pack(x.narrow(1, first, count).contiguous(), rows);
    if (!mask.defined()) return some;
    return some.with_mask(
        pack(mask.narrow(1, first, count).contiguous(), Layout({"batch", unsharded}, mesh)));
  };
  layer->build({{-1, 7, 4}, {-1, 7, 4}});
  layer->place_weights(layouts);
  const at::Tensor full = layer(Inputs{part(0, 7), part(0, 7)}).full();
  const auto cache = std::make_shared<KeyValueCache>();
  int64_t first = 0;
  for (const int64_t count : {3, 1, 2, 1}) {
    CAPTURE(first);
    const DTensor some = part(first, count);
    const at::Tensor y = layer(Inputs{some, some}, {.cache = cache}).full();
    CHECK(test::difference(y, full.narrow(1, first, count), 1e-12) == "");
    first += count;
  }
}

}  // namespace

TEST_CASE("attention of new steps with a cache equals that of all steps") {
  const test::DTypeScope doubles("float64");
  const std::vector<LayerHandle (*)()> layers = {
      [] { return LayerHandle(MultiHeadAttention(3, 2, {.use_causal_mask = true})); },
      [] {
        return LayerHandle(MultiHeadAttention(
            3, 2, {.sliding_window = 2, .use_gate = true, .use_causal_mask = true}));
      },
      [] { return LayerHandle(GroupQueryAttention(2, 6, 3, {.use_causal_mask = true})); },
      [] {
        return LayerHandle(
            GroupQueryAttention(2, 6, 2, {.sliding_window = 3, .use_causal_mask = true}));
      }};
  const at::Tensor mask =
      at::tensor({1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1}).to(at::kBool).reshape({2, 7});
  for (size_t i = 0; i < layers.size(); ++i) {
    for (const bool cut : {false, true}) {
      CAPTURE(i, cut);
      LayoutMap layouts(create_mesh({{"batch", 2}, {"model", 3}}));
      if (cut) {
        layouts[".*(query|key|value|gate)/kernel"] = {unsharded, "model", unsharded};
        layouts[".*attention_output/kernel"] = {"model", unsharded, unsharded};
      }
      check_pieces(layers[i](), layouts);
      check_pieces(layers[i](), layouts, mask);
    }
  }
}

TEST_CASE("a cache counts steps and leaves attention to later steps unchanged") {
  const Mesh mesh = create_mesh({{"batch", 1}});
  const DTensor x = pack(steps(3).to(at::kFloat), Layout::replicated(mesh, 3));
  const MultiHeadAttention layer(2, 3), other(2, 3, {.use_causal_mask = true});
  const auto cache = std::make_shared<KeyValueCache>();
  CHECK(cache->first_step(*layer.layer(), 3) == 0);
  CHECK(cache->first_step(*layer.layer(), 1) == 3);
  CHECK(cache->first_step(*other.layer(), 1) == 0);
  const at::Tensor y = layer(Inputs{x, x}).full();
  layer(Inputs{x, x}, {.cache = cache});
  CHECK(at::equal(layer(Inputs{x, x}, {.cache = cache}).full(), y));
  other(Inputs{x, x}, {.cache = cache});
  const DTensor more_rows =
      pack(steps(2).to(at::kFloat).repeat({2, 1, 1}), Layout::replicated(mesh, 3));
  CHECK_THAT(test::error_line([&] {
               other(Inputs{more_rows, more_rows}, {.cache = cache});
             }),
             Contains("multi_head_attention") && Contains("concat"));
  const DTensor pictures = pack(at::ones({1, 2, 2, 4}), Layout::replicated(mesh, 4));
  const MultiHeadAttention planes(
      2, 3, {.attention_axes = {1}, .use_causal_mask = true, .name = "planes"});
  CHECK_THAT(test::error_line([&] {
               planes(Inputs{pictures, pictures}, {.cache = cache});
             }),
             Contains("[MultiHeadAttention planes]") && Contains("(batch, steps, features)"));
  const GroupQueryAttention scored(
      3, 2, 1, {.use_causal_mask = true, .return_attention_scores = true, .name = "scored"});
  CHECK_THAT(test::error_line([&] {
               scored.outputs(Inputs{x, x}, {.cache = cache});
             }),
             Contains("[GroupQueryAttention scored]") && Contains("return_attention_scores"));
}

}  // namespace key_value_cache_test
