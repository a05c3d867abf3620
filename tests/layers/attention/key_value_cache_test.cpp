#include <tessera/framework/nn/key_value_cache.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/layers/attention/group_query_attention.hpp>
#include <tessera/layers/attention/multi_head_attention.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/error_line.hpp"

namespace key_value_cache_test {

using namespace tessera;
using namespace tessera::detail;
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
  const auto cache = std::make_shared<KeyValueCache>(8);
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

TEST_CASE("rows of a cache continue behind their own steps, and padding is overwritten") {
  const test::DTypeScope doubles("float64");
  const at::Tensor x = steps(7);
  for (const bool window : {false, true}) {
    for (const int64_t devices : {1, 2}) {
      CAPTURE(window, devices);
      const LayoutMap layouts(create_mesh({{"batch", devices}}));
      const Layout rows({"batch", unsharded, unsharded}, layouts.mesh());
      MultiHeadAttentionOptions options{.use_causal_mask = true};
      if (window) options.sliding_window = 2;
      const MultiHeadAttention layer(3, 2, options);
      layer->build({{-1, 7, 4}, {-1, 7, 4}});
      layer->place_weights(layouts);
      const auto called = [&](const at::Tensor& part, std::shared_ptr<KeyValueCache> cache) {
        const DTensor some = pack(part.contiguous(), rows);
        return layer(Inputs{some, some}, {.cache = std::move(cache)}).full();
      };
      const at::Tensor full = called(x, nullptr);
      const auto cache = std::make_shared<KeyValueCache>(8);
      // Row 0 has 4 steps and row 1 has 2, padded by others.
      at::Tensor prompts = x.narrow(1, 0, 4).clone();
      prompts[1].narrow(0, 2, 2).fill_(50);
      const at::Tensor y = called(prompts, cache);
      CHECK(test::difference(y[0], full[0].narrow(0, 0, 4), 1e-12) == "");
      CHECK(test::difference(y[1].narrow(0, 0, 2), full[1].narrow(0, 0, 2), 1e-12) == "");
      cache->set_lengths({4, 2});
      std::vector<int64_t> at = {4, 2};
      for (const int64_t count : {1, 2}) {
        const at::Tensor next =
            at::stack({x[0].narrow(0, at[0], count), x[1].narrow(0, at[1], count)});
        const at::Tensor more = called(next, cache);
        for (const int64_t row : {0, 1}) {
          CHECK(test::difference(more[row], full[row].narrow(0, at[size_t(row)], count), 1e-12) ==
                "");
          at[size_t(row)] += count;
        }
      }
      // Both rows go on as row 0, which is at step 5 again.
      cache->set_lengths({5, 3});
      cache->select_rows({0, 0});
      const at::Tensor same = called(x[0].narrow(0, 5, 1).repeat({2, 1, 1}), cache);
      for (const int64_t row : {0, 1}) {
        CHECK(test::difference(same[row], full[0].narrow(0, 5, 1), 1e-12) == "");
      }
    }
  }
}

TEST_CASE("further steps in a cache make no plans and stay in its memory") {
  const Layout replicated = Layout::replicated(create_mesh({{"batch", 1}}), 3);
  const MultiHeadAttention layer(2, 3, {.sliding_window = 3, .use_causal_mask = true});
  const auto cache = std::make_shared<KeyValueCache>(12);
  const at::Tensor x = steps(12).to(at::kFloat);
  const auto call = [&](int64_t first, int64_t count) {
    const DTensor some = pack(x.narrow(1, first, count).contiguous(), replicated);
    layer(Inputs{some, some}, {.cache = cache});
  };
  const auto memory = [&] {
    const DTensor none = pack(at::empty({2, 0, 2, 3}), Layout::replicated(replicated.mesh(), 4));
    const at::Tensor rows = at::zeros({2}, at::kLong);
    return cache
        ->written(*layer.layer(), "key", none,
                  {.first = pack(rows, Layout::replicated(replicated.mesh(), 1))})
        .blocks()[0]
        .const_data_ptr();
  };
  call(0, 3);
  call(3, 1);
  const void* const first = memory();
  const int64_t made = plan_stats().made;
  for (int64_t step = 4; step < 12; ++step) call(step, 1);
  CHECK(plan_stats().made == made);
  CHECK(memory() == first);
  CHECK_THAT(test::error_line([&] { call(0, 1); }),
             Contains("KeyValueCache] a row has at most 12 steps, the capacity. Received: 13 "
                      "steps. To fix: make a cache of a larger capacity"));
}

TEST_CASE("a cache refuses what does not fit") {
  CHECK_THAT(test::error_line([] { KeyValueCache(0); }), Contains("capacity must be at least 1"));
  KeyValueCache cache(3);
  CHECK_THAT(test::error_line([&] { cache.set_lengths({1, 4}); }), Contains("[0, 3]"));
  CHECK_THAT(test::error_line([&] { cache.select_rows({0, 2}); }), Contains("[0, 2)"));
}

TEST_CASE("layers of one call share positions, each in its batch's layout") {
  const Mesh mesh = create_mesh({{"batch", 2}});
  const at::Tensor x = steps(3).to(at::kFloat);
  const Layout rows({"batch", unsharded, unsharded}, mesh);
  const MultiHeadAttention first(2, 3), second(2, 3);
  KeyValueCache cache(9);
  cache.set_lengths({4, 1});
  const at::Tensor expected = at::tensor({4, 5, 6, 1, 2, 3}).reshape({2, 3});
  // In either order: the first one makes them.
  for (const bool sharded_first : {false, true}) {
    CAPTURE(sharded_first);
    cache.set_lengths({4, 1});
    for (const bool sharded : {sharded_first, !sharded_first}) {
      const Layout layout = sharded ? rows : Layout::replicated(mesh, 3);
      const LayerHandle& layer = sharded ? LayerHandle(first) : LayerHandle(second);
      const CachedSteps found = cache.next_steps(*layer.layer(), pack(x, layout));
      CHECK(found.positions.layout() == Layout::from_axes(mesh, {layout.axis(0), {}}));
      CHECK(at::equal(found.positions.full(), expected));
      int64_t end = 0;
      found.check_end([&](int64_t most) { end = most; });
      CHECK(end == 7);
    }
  }
}

TEST_CASE("a cache counts steps and leaves attention to later steps unchanged") {
  const Mesh mesh = create_mesh({{"batch", 1}});
  const DTensor x = pack(steps(3).to(at::kFloat), Layout::replicated(mesh, 3));
  const MultiHeadAttention layer(2, 3), other(2, 3, {.use_causal_mask = true});
  const auto cache = std::make_shared<KeyValueCache>(9);
  const auto positions = [&](const LayerHandle& of) {
    return cache->next_steps(*of.layer(), x).positions.full();
  };
  CHECK(at::equal(positions(layer)[1], at::arange(3)));
  CHECK(at::equal(positions(layer)[0], at::arange(3, 6)));
  CHECK(at::equal(positions(other)[0], at::arange(3)));
  const at::Tensor y = layer(Inputs{x, x}).full();
  layer(Inputs{x, x}, {.cache = cache});
  CHECK(at::equal(layer(Inputs{x, x}, {.cache = cache}).full(), y));
  other(Inputs{x, x}, {.cache = cache});
  const DTensor more_rows =
      pack(steps(2).to(at::kFloat).repeat({2, 1, 1}), Layout::replicated(mesh, 3));
  CHECK_THAT(test::error_line([&] {
               other(Inputs{more_rows, more_rows}, {.cache = cache});
             }),
             Contains("multi_head_attention") && Contains("make another cache"));
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
