#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/pipelined_steps.hpp"
#include "tests/support/small_model.hpp"

namespace staged_step_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Contains;

namespace {

using Operand = StepGraph::Operand;
using Kind = Operand::Kind;

constexpr int64_t rows = 24;

struct Staged {
  StepGraph graph;
  StagedStep step;
  std::vector<int32_t> results;
};

/// Divides a training step of a model on a mesh of such dimensions.
Staged staged(const Sequential& model, const CompileOptions& options, const Examples& examples,
              const MeshDims& dims, int64_t microbatches, const StagesByPath& stages,
              int32_t count) {
  const Mesh mesh = create_mesh(dims);
  CompileOptions compiled = options;
  compiled.layouts = LayoutMap(mesh);
  model.compile(compiled);
  model.build(examples.x[0].sizes().vec());
  MeshDims of_rows = dims;
  of_rows.insert(of_rows.begin(), {microbatch_dim, microbatches});
  const Mesh rows_mesh = create_mesh(of_rows);
  const Batch batch = pack_in_microbatches(examples, compiled.layouts, rows_mesh);
  RecordedStep recorded = recorded_step(model, batch, rows_mesh);
  StagedStep step =
      divide_into_stages(recorded.graph, 0, stages_of(recorded.graph.variables, stages), count);
  return {std::move(recorded.graph), std::move(step), std::move(recorded.results)};
}

Examples rows_of_data(bool weighted = false) {
  std::vector<int64_t> all(rows);
  for (int64_t r = 0; r < rows; ++r) all[size_t(r)] = r;
  return small_data(rows, 1, weighted).get(all);
}

const StagesByPath one_layer_each = {{"hidden_1", 0}, {"hidden_2", 1}, {"logits", 2}};

Staged staged_mlp(int64_t microbatches, bool weighted = false) {
  return staged(small_model(), small_compile(LayoutMap(create_mesh({{"batch", 2}}))),
                rows_of_data(weighted), {{"batch", 2}}, microbatches, one_layer_each, 3);
}

/// Counts nodes by stage and turn.
std::map<std::pair<int32_t, NodeTurn>, int64_t> counts(const StagedStep& step) {
  std::map<std::pair<int32_t, NodeTurn>, int64_t> all;
  for (const StagedStep::Node& node : step.nodes) ++all[{node.stage, node.turn}];
  return all;
}

/// Whether a node has every operand at its turn, or where it is made.
void check_order(const Staged& all) {
  std::vector<int64_t> makers(all.graph.values.size(), -1);
  for (size_t n = 0; n < all.graph.nodes.size(); ++n) {
    for (int32_t out : all.graph.nodes[n].out) makers[size_t(out)] = int64_t(n);
  }
  for (size_t n = 0; n < all.graph.nodes.size(); ++n) {
    const StagedStep::Node& here = all.step.nodes[n];
    CAPTURE(n, all.graph.nodes[n].name(), all.graph.nodes[n].place);
    CHECK(here.stage >= 0);
    CHECK(here.stage < all.step.stages);
    for (const Operand& in : all.graph.nodes[n].in) {
      if (in.kind != Kind::value || makers[size_t(in.number)] < 0) continue;
      const StagedStep::Node& made = all.step.nodes[size_t(makers[size_t(in.number)])];
      const bool summed = all.step.values[size_t(in.number)].summed;
      if (here.turn == NodeTurn::before) CHECK(made.turn == NodeTurn::before);
      if (!runs_in_turns(here.turn)) continue;
      CHECK(made.turn != NodeTurn::after);
      CHECK_FALSE(summed);
      // The forward pass goes to later stages, the backward pass to earlier ones.
      if (here.turn == NodeTurn::forward) CHECK(made.stage <= here.stage);
      const bool gradient = made.turn != NodeTurn::forward && made.turn != NodeTurn::before;
      if (here.turn != NodeTurn::forward && gradient) CHECK(made.stage >= here.stage);
    }
  }
}

}  // namespace

TEST_CASE("each layer of a pipeline has nodes for both gradients", "[pipeline]") {
  for (const int64_t microbatches : {1, 4}) {
    CAPTURE(microbatches);
    const Staged all = staged_mlp(microbatches);
    check_order(all);
    auto nodes = counts(all.step);
    for (int32_t stage = 0; stage < 3; ++stage) {
      CAPTURE(stage);
      CHECK(nodes[{stage, NodeTurn::forward}] > 0);
      CHECK(nodes[{stage, NodeTurn::weight_gradient}] > 0);
    }
    for (int32_t stage = 1; stage < 3; ++stage) {
      CAPTURE(stage);
      CHECK(nodes[{stage, NodeTurn::input_gradient}] > 0);
    }
  }
}

TEST_CASE("activations go on by one transfer, and gradients return by one", "[pipeline]") {
  const Staged all = staged_mlp(4);
  std::vector<std::pair<int32_t, int32_t>> moves;
  for (const StagedStep::Transfer& transfer : all.step.transfers) {
    CHECK(transfer.in_turns);
    CHECK(transfer.value.kind == Kind::value);
    moves.emplace_back(transfer.from, transfer.to);
  }
  CHECK(moves == std::vector<std::pair<int32_t, int32_t>>{{0, 1}, {1, 2}, {2, 1}, {1, 0}});
}

TEST_CASE("every gradient of a weight is a sum over microbatches, and so is the loss",
          "[pipeline]") {
  const Staged all = staged_mlp(4);
  std::set<int32_t> summed;
  for (int32_t v = 0; v < std::ssize(all.step.values); ++v) {
    if (all.step.values[size_t(v)].summed) summed.insert(v);
  }
  // Six weights, the loss, and the sums of the metric.
  const StepGraph::Node* update = nullptr;
  for (const StepGraph::Node& node : all.graph.nodes) {
    if (node.effect && node.in.size() == 6) update = &node;
  }
  REQUIRE(update);
  for (const Operand& gradient : update->in) CHECK(summed.contains(gradient.number));
  for (int32_t result : all.results) {
    CHECK((summed.contains(result) || all.step.values[size_t(result)].in_turns == false));
  }
}

TEST_CASE("the sum of the sample weights is computed once, of all rows", "[pipeline]") {
  const Sequential model = small_model();
  CompileOptions options = small_compile(LayoutMap(create_mesh({{"batch", 2}})));
  options.loss = SparseCategoricalCrossentropy(
      {.from_logits = true, .reduction = Reduction::mean_with_sample_weight});
  const Staged all =
      staged(model, options, rows_of_data(true), {{"batch", 2}}, 4, one_layer_each, 3);
  check_order(all);
  const auto of_all_rows =
      std::count_if(all.step.nodes.begin(), all.step.nodes.end(),
                    [](const StagedStep::Node& node) { return node.all_rows; });
  CHECK(of_all_rows > 0);
}

TEST_CASE("a layer that reads all rows of a batch is refused by name", "[pipeline]") {
  const Sequential model({Dense(6, {.name = "first"}), BatchNormalization({.name = "moments"}),
                          Dense(5, {.name = "logits"})});
  const CompileOptions options = {.optimizer = SGD(0.1),
                                  .loss = SparseCategoricalCrossentropy({.from_logits = true})};
  Examples examples = rows_of_data();
  examples.x[0] = examples.x[0].to(at::kFloat);
  CHECK_THROWS_WITH(staged(model, options, examples, {{"batch", 2}}, 4, {{"logits", 1}}, 2),
                    Contains("moments") && Contains("LayerNormalization"));
  const Staged one = staged(model, options, examples, {{"batch", 2}}, 1, {{"logits", 1}}, 2);
  check_order(one);
}

}  // namespace staged_step_test
