#include <functional>
#include <optional>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>

#include "tests/apps/gpt_layouts.hpp"
#include "tests/apps/gpt_sample.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/op_names.hpp"
#include "tests/support/seed_scope.hpp"

namespace gpt_remat_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::gpt;
using namespace tessera::test;
using Catch::Contains;

namespace {

const RematRule full{.match = "block_\\d+"};
const RematRule matmuls{.match = "block_\\d+", .policy = {.save = {"matmuls"}}};
const RematRule collectives{.match = "block_\\d+", .policy = {.collectives = true}};

/// Trains five steps, of which the last three are replayed. Returns losses and metrics, then
/// weights.
std::vector<at::Tensor> trained(const ModelSize& size, const LayoutMap& layouts,
                                const std::vector<RematRule>& remat, bool eager = false) {
  const SeedScope seed(7);
  const Functional model = gpt_model(size);
  CompileOptions options = gpt_training(layouts);
  options.remat = remat;
  options.run_eagerly = eager;
  model.compile(options);
  const at::Tensor rows = gpt_words(40, size);
  std::vector<at::Tensor> all;
  for (int64_t step = 0; step < 5; ++step) {
    for (const auto& [name, value] : model.train_on_batch(gpt_batch(rows, 8 * step, 8))) {
      all.push_back(at::scalar_tensor(value, at::kDouble));
    }
  }
  if (!eager) CHECK(model.step_records().replayed == 3);
  for (const Variable& weight : model.weights()) all.push_back(weight.value().full().clone());
  return all;
}

void check_equal(const std::vector<at::Tensor>& actual, const std::vector<at::Tensor>& expected) {
  REQUIRE(actual.size() == expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    CAPTURE(i);
    CHECK(at::equal(actual[i], expected[i]));
  }
}

}  // namespace

TEST_CASE("gpt: rematerialized blocks train to the same bits") {
  for (const std::string file : {"data", "megatron", "fsdp", "ring", "experts"}) {
    CAPTURE(file);
    ModelSize size = odd_gpt(file != "fsdp");
    size.blocks = 2;
    size.dropout = 0.1;
    size.experts = experts_of(file) > 0 ? 4 : 0;
    const LayoutMap layouts = layouts_of(file);
    const std::vector<at::Tensor> saved = trained(size, layouts, {});
    check_equal(trained(size, layouts, {full}), saved);
    check_equal(trained(size, layouts, {matmuls}), saved);
    check_equal(trained(size, layouts, {collectives}), saved);
    check_equal(trained(size, layouts, {full}, true), saved);
  }
}

TEST_CASE("gpt: rules of remat come from layouts files, and match a layer") {
  const Mesh mesh = create_mesh({{"batch", 2}});
  const Json json = {{"remat", {{{"match", "block_\\d+"}, {"save", {"einsum"}}}}}};
  const LayoutMap layouts = make_layout_map(layout_file_from_json(json, "file"), mesh);
  REQUIRE(layouts.remat_rules().size() == 1);
  CHECK(layouts.remat_rules()[0] == RematRule{"block_\\d+", {.save = {"einsum"}}});
  CHECK(to_json(layouts)["remat"] == json["remat"]);
  const Functional model = gpt_model(odd_gpt(true));
  CompileOptions options = gpt_training(layouts);
  options.remat = {{.match = "blocks_\\d+"}};
  CHECK_THROWS_WITH(model.compile(options), Contains("blocks_") && Contains("block_1"));
  const Json bad = {{"remat", {{{"match", "a"}, {"save", "most"}}}}};
  CHECK_THROWS_WITH(layout_file_from_json(bad, "file"), Contains("remat[0].save"));
}

TEST_CASE("gpt: a forward pass over rematerialized blocks keeps their inputs") {
  const auto peak = [](int64_t blocks, const std::vector<RematRule>& remat) {
    const SeedScope seed(7);
    const DeviceMemory memory;
    ModelSize size = odd_gpt(true);
    size.blocks = blocks;
    size.width = 48;
    size.vocabulary = 16;
    size.length = 64;
    const Functional model = gpt_model(size);
    CompileOptions options = gpt_training(LayoutMap(create_mesh({{"batch", 1}})));
    options.remat = remat;
    model.compile(options);
    const Batch batch =
        pack_batch(gpt_batch(gpt_words(32, size), 0, 32), LayoutMap(create_mesh({{"batch", 1}})));
    for (const Variable& weight : model.weights()) weight.value();
    const int64_t before = memory.peak(0);
    {
      GradientTape tape;
      model(batch.x[0], {.training = true});
    }
    return memory.peak(0) - before;
  };
  const int64_t input = 4 * 32 * 64 * 48;
  for (const int64_t blocks : {8, 16}) {
    const int64_t saved = peak(blocks, {}), again = peak(blocks, {full});
    const int64_t interior = saved - peak(blocks - 1, {});
    CAPTURE(blocks, input, interior, saved, again);
    CHECK(again - peak(blocks - 1, {full}) <= input * 105 / 100);
    CHECK(again <= blocks * input + interior * 115 / 100);
    CHECK(saved > blocks * input + interior * blocks / 2);
  }
}

}  // namespace gpt_remat_test
