#include <tessera/tessera.hpp>

#include <cmath>
#include <filesystem>
#include <set>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/seed_scope.hpp"

/// Models whose sequence axis is sharded, also outside attention.
namespace ring_training_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

constexpr int64_t length = 40, vocabulary = 203, width = 24;

/// Six query heads; every other block shares two key and value heads.
Functional small_gpt() {
  const SymbolicTensor words = Input({length}, {.dtype = "int64"});
  SymbolicTensor x = Embedding(vocabulary, width)(words);
  for (const bool shared : {false, true}) {
    const SymbolicTensor seen = LayerNormalization({.epsilon = 1e-6})(x);
    x = x + (shared ? GroupQueryAttention(4, 6, 2, {.use_causal_mask = true})({seen, seen})
                    : MultiHeadAttention(6, 4, {.use_causal_mask = true})({seen, seen}));
    x = x + Dense(width)(Dense(20, {.activation = "relu"})(x));
  }
  return Functional({words}, {Dense(vocabulary)(x)});
}

CompileOptions training(const LayoutMap& layouts) {
  return {.optimizer = Adam(1e-3),
          .loss = SparseCategoricalCrossentropy({.from_logits = true}),
          .layouts = layouts};
}

Examples batch(int64_t step) {
  const at::Tensor row = at::arange(6, at::kLong).unsqueeze(1) + 6 * (step % 4);
  const at::Tensor at = at::arange(length + 1, at::kLong);
  const at::Tensor words = at::remainder(row * 31 + at * at * 7 + at * row, vocabulary);
  return {.x = {words.narrow(1, 0, length).contiguous()},
          .y = {words.narrow(1, 1, length).contiguous()}};
}

LayoutMap ring_file(const MeshDims& dims) {
  const LayoutFile file = read_layout_file(
      (std::filesystem::path(TESSERA_TEST_DIR).parent_path() / "apps/gpt/layouts/ring.json")
          .string());
  return make_layout_map(file, create_mesh(dims));
}

/// Returns the losses of 30 steps in float64: the first ones eager, the others replayed.
std::vector<double> losses(const LayoutMap& layouts) {
  const DTypeScope doubles("float64");
  const SeedScope seed(7);
  const Functional model = small_gpt();
  model.compile(training(layouts));
  std::vector<double> all;
  for (int64_t step = 0; step < 30; ++step) {
    all.push_back(model.train_on_batch(batch(step)).front().second);
  }
  return all;
}

}  // namespace

TEST_CASE("a model with ring attention trains as on one device") {
  const std::vector<double> reference = losses(LayoutMap(create_mesh({{"batch", 1}})));
  REQUIRE(reference.back() < reference.front());
  for (const MeshDims& dims :
       {MeshDims{{"batch", 2}, {"model", 4}}, MeshDims{{"batch", 1}, {"model", 3}},
        MeshDims{{"batch", 1}, {"model", 5}}}) {
    const std::vector<double> cut = losses(ring_file(dims));
    double worst = 0;
    for (size_t i = 0; i < cut.size(); ++i) {
      worst = std::max(worst, std::abs(cut[i] / reference[i] - 1));
    }
    CAPTURE(to_string(dims), worst);
    CHECK(worst < 1e-12);
  }
}

TEST_CASE(
    "a plan has a real step's ring steps, in order, and no other collective of the sequence") {
  const LayoutMap layouts = ring_file({{"batch", 2}, {"model", 4}});
  const Functional model = small_gpt();
  model.compile(training(layouts));
  const auto ring_of = [](const std::vector<CommEntry>& entries) {
    std::string text;
    for (const CommEntry& entry : entries) {
      if (entry.op != CommOp::collective_permute) continue;
      text += str(entry.place, " ", entry.bytes, " over ", entry.dims, "\n");
    }
    return text;
  };
  const StepPlan plan = model.plan(TensorDataset(batch(0)), {.batch_size = 6});
  CommLog log;
  for (int64_t step = 0; step < 4; ++step) {
    // Eager first, then replayed.
    log.clear();
    const CommLogScope scope(log);
    model.train_on_batch(batch(step));
    CHECK(ring_of(log.entries()) == ring_of(plan.collectives));
  }
  // For each of two attentions: 3 hops, 3 and 4 backward, and the zigzag exchanges before and
  // after.
  CHECK(log.count(CommOp::collective_permute) == 2 * (3 + 7 + 4));
  CHECK(log.count(CommOp::collective_permute, "model") == 2 * (3 + 7 + 4));
  // All-reduces of gradients and losses.
  for (const CommEntry& entry : log.entries()) {
    CHECK((entry.op == CommOp::collective_permute || entry.op == CommOp::all_reduce));
  }
}

}  // namespace ring_training_test
