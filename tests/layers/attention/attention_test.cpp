#include <tessera/layers/attention/attention.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/keras_layers.hpp"
#include "tests/support/layer_check.hpp"
#include "tests/support/op_names.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace attention_test {

using namespace tessera;
using Catch::Matchers::Contains;
using test::difference;
using test::error_line;

namespace {

/// Results of an Attention over 4 steps, some of whose values are masked.
struct Attended {
  at::Tensor y, gradient;
  bool fused = false;
};

Attended attended(const at::Tensor& mask, const AttentionOptions& options, const Mesh& mesh) {
  const Layout rows = Layout::batch_sharded(mesh, "x", 3);
  const at::ScalarType dtype = options.dtype == "float64" ? at::kDouble : at::kFloat;
  const auto value = [&](uint64_t seed) {
    return pack(test::random_values({{2, 4, 3}, dtype}, seed), rows);
  };
  const DTensor query = value(1), key = value(2);
  const DTensor v = value(3).with_mask(pack(mask, Layout::batch_sharded(mesh, "x", 2)));
  const LayerHandle layer = Attention(options);
  const test::OpNames names;
  GradientTape tape;
  tape.watch(query);
  const DTensor y = layer.outputs(Inputs{query, v, key})[0].with_mask({});
  const DTensor gradient = tape.gradient(ops::sum(y * y), query);
  return {y.full().clone(), gradient.full().clone(), names.has("attention")};
}

}  // namespace

TEST_CASE("a masked Attention is one operation, with the output of the one that returns scores") {
  const bool causal = GENERATE(false, true);
  const at::Tensor mask = at::tensor({1, 0, 1, 1, 1, 1, 0, 0}).view({2, 4}).to(at::kBool);
  for (const int64_t devices : {1, 2}) {
    CAPTURE(causal, devices);
    const Mesh mesh = test::virtual_mesh({devices});
    const Attended one = attended(mask, {.use_causal_mask = causal}, mesh);
    const Attended composed =
        attended(mask, {.use_causal_mask = causal, .return_attention_scores = true}, mesh);
    CHECK(one.fused);
    CHECK_FALSE(composed.fused);
    CHECK(difference(one.y, composed.y, 1e-6, 1e-6) == "");
    CHECK(difference(one.gradient, composed.gradient, 1e-6, 1e-6) == "");
  }
}

TEST_CASE("attention to nothing is the mean of the values, in float64 weighted by the scores") {
  const at::Tensor mask = at::tensor({1, 1, 1, 1, 0, 0, 0, 0}).view({2, 4}).to(at::kBool);
  const Mesh mesh = test::virtual_mesh({1});
  const at::Tensor values = test::random_values({{2, 4, 3}, at::kFloat}, 3);
  const Attended one = attended(mask, {}, mesh);
  CHECK(one.fused);
  CHECK(difference(one.y[1], values[1].mean(0).expand({4, 3}), 1e-6, 1e-6) == "");
  AttentionOptions options;
  options.dtype = "float64";
  const Attended wide = attended(mask, options, mesh);
  CHECK_FALSE(wide.fused);
  const Attended all = attended(at::ones({2, 4}, at::kBool), options, mesh);
  CHECK(difference(wide.y, all.y, 1e-6, 1e-6) == "");
}

TEST_CASE("Attention and AdditiveAttention match Keras on any mesh") {
  test::check_layers(test::golden_part("keras_sequences.json", "Attention"));
}

TEST_CASE("AdditiveAttention under every layout") {
  test::run_golden_layer_test({.make = [] { return AdditiveAttention({.dropout = 0.2}); },
                               .input = {{2, 3, 4}},
                               .output = {2, 3, 5},
                               .weights = {{"scale", {4}}},
                               .more_inputs = {{{2, 2, 5}}, {{2, 2, 4}}}});
}

TEST_CASE("Attention and AdditiveAttention refuse invalid arguments in one line") {
  CHECK_THAT(error_line([] { Attention({.dropout = 1.0, .name = "a"}); }),
             Contains("[Attention a, dropout]"));
  CHECK_THAT(
      error_line([] {
        LayerHandle(AdditiveAttention({.name = "a"}))(Inputs{ones({2, 3, 4}), ones({2, 5, 3})});
      }),
      Contains("[AdditiveAttention a]") && Contains("(2, 5, 3)"));
}

}  // namespace attention_test
