#include <tessera/framework/parameter_server/partitioner.hpp>
#include <tessera/framework/parameter_server/store/part_plan.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/initializers/constraints.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"

namespace partitioner_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::strategy;
using Catch::Matchers::Contains;

namespace {

Variable variable(const std::string& path, const Shape& shape, at::ScalarType dtype = at::kFloat,
                  const ConstraintHandle& constraint = {}) {
  VariableSpec spec{path, shape, dtype, {}};
  spec.constraint = constraint;
  return Variable(spec);
}

std::string rows_on(const PartPlan& plan, size_t of) {
  std::string text;
  for (const Part& part : plan.parts) {
    if (part.variable != of) continue;
    text += str(text.empty() ? "" : " ", part.rows.lo, "-", part.rows.hi, "@", part.server, "#",
                part.number);
  }
  return text;
}

}  // namespace

TEST_CASE("FixedShardsPartitioner gives TensorFlow's counts") {
  CHECK(FixedShardsPartitioner(2)({10, 3}, at::kFloat) == 2);
  CHECK(FixedShardsPartitioner(20)({10, 3}, at::kFloat) == 10);
  CHECK(FixedShardsPartitioner(1)({10}, at::kLong) == 1);
  CHECK(FixedShardsPartitioner(4)({0, 3}, at::kFloat) == 1);
}

TEST_CASE("MinSizePartitioner gives TensorFlow's counts") {
  CHECK(MinSizePartitioner(4, 2)({6, 1}, at::kFloat) == 2);
  CHECK(MinSizePartitioner(4, 10)({6, 1}, at::kFloat) == 6);
  CHECK(MinSizePartitioner(256 << 10, 100)({1024, 1024}, at::kFloat) == 16);
  CHECK(MinSizePartitioner(256 << 10, 10)({1024, 1024}, at::kFloat) == 10);
  CHECK(MinSizePartitioner()({1024, 1024}, at::kFloat) == 1);
  // A remainder counts as one more: ceil(24 / 10).
  CHECK(MinSizePartitioner(10, 100)({6, 1}, at::kFloat) == 3);
  CHECK(MinSizePartitioner(10, 100)({6, 1}, at::kDouble) == 5);
  CHECK(MinSizePartitioner(1, 100)({0, 3}, at::kFloat) == 1);
}

TEST_CASE("MaxSizePartitioner gives TensorFlow's counts") {
  CHECK(MaxSizePartitioner(4)({6, 1}, at::kFloat) == 6);
  CHECK(MaxSizePartitioner(4, 2)({6, 1}, at::kFloat) == 2);
  CHECK(MaxSizePartitioner(1024)({6, 1}, at::kFloat) == 1);
  // Two rows of 4 bytes fit into 11.
  CHECK(MaxSizePartitioner(11)({7, 1}, at::kFloat) == 4);
  CHECK(MaxSizePartitioner(11)({7, 1}, at::kDouble) == 7);
  // A larger row is not split.
  CHECK(MaxSizePartitioner(3)({5, 100}, at::kFloat) == 5);
  CHECK(MaxSizePartitioner(3)({0, 100}, at::kFloat) == 1);
}

TEST_CASE("partitioners refuse numbers below 1, by name") {
  CHECK_THROWS_WITH(FixedShardsPartitioner(0), Contains("num_shards"));
  CHECK_THROWS_WITH(MinSizePartitioner(0, 1), Contains("min_shard_bytes"));
  CHECK_THROWS_WITH(MinSizePartitioner(1, 0), Contains("max_shards"));
  CHECK_THROWS_WITH(MaxSizePartitioner(-1), Contains("max_shard_bytes"));
  CHECK_THROWS_WITH(MaxSizePartitioner(1, 0), Contains("max_shards"));
}

TEST_CASE("parts are distributed round-robin over the servers") {
  const std::vector<Variable> variables = {variable("a", {7, 2}), variable("b", {}),
                                           variable("c", {2})};
  const PartPlan plan = plan_parts(variables, FixedShardsPartitioner(3), 2);
  CHECK(rows_on(plan, 0) == "0-2@0#0 2-4@1#0 4-7@0#1");
  CHECK(rows_on(plan, 1) == "0-1@1#1");
  CHECK(rows_on(plan, 2) == "0-1@0#2 1-2@1#2");
  CHECK(plan.parts[2].shape == Shape{3, 2});
  CHECK(plan.parts[3].shape.empty());
  CHECK(plan.of_server(0).size() == 3);
  CHECK(plan.of_server(1)[2].variable == 2);
  CHECK(rows_on(plan_parts(variables, {}, 2), 0) == "0-7@0#0");
  CHECK(rows_on(plan_parts(variables, {}, 2), 1) == "0-1@1#0");
  CHECK(rows_on(plan_parts(variables, {}, 3, 2), 0) == "0-7@2#0");
  CHECK(rows_on(plan_parts(variables, {}, 3, 2), 1) == "0-1@0#0");
}

TEST_CASE("a plan is described in one line") {
  std::vector<Variable> variables = {variable("a/kernel", {3, 2}),
                                     variable("count", {}, at::kLong)};
  variables[1].set_trainable(false);
  CHECK(plan_parts(variables, FixedShardsPartitioner(2), 2).describe() ==
        "a/kernel F32 trained: (1, 2) on ps 0 (2, 2) on ps 1; count I64: () on ps 0");
}

TEST_CASE("what cannot be partitioned is refused by its path") {
  const std::vector<Variable> constrained = {variable("gain", {4}, at::kFloat, NonNeg())};
  CHECK_THROWS_WITH(plan_parts(constrained, FixedShardsPartitioner(2), 2), Contains("gain"));
  CHECK(plan_parts(constrained, FixedShardsPartitioner(1), 2).parts.size() == 1);
  const std::vector<Variable> any = {variable("x", {4})};
  for (int64_t count : {0, -1, 5}) {
    const auto wrong = [count](const Shape&, at::ScalarType) { return count; };
    CHECK_THROWS_WITH(plan_parts(any, wrong, 2), Contains("x"));
  }
}

}  // namespace partitioner_test
