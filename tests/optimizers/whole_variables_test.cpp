// Optimizers whose update of an element depends on elements that lie elsewhere.
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/optimizers/optimizers.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"

namespace whole_variables_test {

using namespace tessera;
using test::difference;

namespace {

using Names = std::vector<std::string>;

Variable matrix(const std::string& path, const Layout& layout) {
  const at::Tensor value = at::linspace(-1, 2, 24, at::kDouble).reshape({6, 4});
  return Variable(path, pack(value, layout));
}

Names slot_names(const OptimizerHandle& optimizer, const Variable& variable) {
  Names names;
  for (const Variable& slot : optimizer->slots(variable)) {
    names.push_back(slot.path().substr(slot.path().rfind('/') + 1));
  }
  return names;
}

}  // namespace

TEST_CASE("trust ratios of all variables that are cut alike cost one reduction") {
  const Mesh mesh = create_mesh({{"batch", 4}});
  const Layout rows = Layout::batch_sharded(mesh, "batch", 2);
  const std::vector<Variable> weights = {matrix("a/kernel", rows), matrix("b/kernel", rows)};
  const Lamb lamb(0.1);
  lamb->build(weights);
  CommLog log;
  const CommLogScope scope(log);
  lamb->apply({weights[0].value(), weights[1].value()}, weights);
  CHECK(log.entries().size() == 1);
  CHECK(log.count(CommOp::all_reduce, "batch") == 1);
}

TEST_CASE("a matrix that is cut is gathered once for its Newton-Schulz iterations") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}});
  const Variable weight = matrix("hidden/kernel", Layout({"batch", "model"}, mesh));
  const Muon muon(0.1);
  muon->build({weight});
  CommLog log;
  const CommLogScope scope(log);
  muon->apply({weight.value()}, {weight});
  CHECK(log.entries().size() <= 2);
  for (const CommEntry& entry : log.entries()) CHECK(entry.op == CommOp::all_gather);
}

TEST_CASE("Muon has a second moment of what Adam updates only") {
  const Mesh mesh = create_mesh({{"batch", 1}});
  const Layout whole = Layout::replicated(mesh, 2);
  const Variable hidden = matrix("hidden/kernel", whole), table = matrix("Embedding_1/t", whole);
  const Variable bias("hidden/bias", pack(at::ones({4}, at::kDouble), whole.remove({0})));
  const auto names = [&](const MuonOptions& options, const Variable& variable) {
    const Muon muon(0.1, options);
    muon->build({variable});
    return slot_names(muon, variable);
  };
  const Names one = {"momentum"}, both = {"momentum", "velocity"};
  CHECK(names({}, hidden) == one);
  CHECK(names({}, bias) == both);
  CHECK(names({}, table) == both);
  CHECK(names({.exclude_embeddings = false}, table) == one);
  CHECK(names({.exclude_layers = {"other", "dd.n/"}}, hidden) == both);
}

TEST_CASE("Adafactor keeps means of rows and columns where their variable's slots lie") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}});
  Variable weight("conv/kernel", pack(at::ones({5, 6, 4}), Layout::replicated(mesh, 3)));
  weight.place({weight.shape(), weight.layout(), std::nullopt,
                Layout({"batch", unsharded, "model"}, mesh)});
  const Adafactor adafactor;
  adafactor->build({weight});
  CHECK(slot_names(adafactor, weight) == Names{"r", "c", "velocity"});
  const std::vector<Variable>& slots = adafactor->slots(weight);
  CHECK(slots[0].shape() == Shape{5, 6});
  CHECK(slots[0].layout() == Layout({"batch", unsharded}, mesh));
  CHECK(slots[1].shape() == Shape{5, 4});
  CHECK(slots[1].layout() == Layout({"batch", "model"}, mesh));
  const Variable bias("conv/bias", pack(at::ones({4}), Layout::replicated(mesh, 1)));
  adafactor->build({bias});
  CHECK(slot_names(adafactor, bias) == Names{"velocity"});
  // Means stay where they are.
  adafactor->apply({weight.value()}, {weight});
  CHECK(slots[0].value().layout() == Layout({"batch", unsharded}, mesh));
  CHECK(difference(slots[0].value().full(), at::ones({5, 6}), 1e-6) == "");
}

TEST_CASE("schedule-free iterates begin as the weights, decayed or not") {
  const Mesh mesh = create_mesh({{"batch", 2}});
  for (const Layout& layout :
       {Layout::replicated(mesh, 2), Layout::batch_sharded(mesh, "batch", 2)}) {
    Variable weight = matrix("hidden/kernel", layout);
    const at::Tensor first = weight.value().full().clone();
    const ScheduleFreeAdamW optimizer(0.0, {.weight_decay = 0.5});
    optimizer->apply({weight.value()}, {weight});
    CHECK(difference(optimizer->slots(weight)[0].value().full(), first, 0) == "");
    // With a rate they move.
    Variable other = matrix("other/kernel", layout);
    const ScheduleFreeAdamW late(0.1);
    late->apply({other.value()}, {other});
    CHECK_FALSE(at::equal(late->slots(other)[0].value().full(), first));
  }
}

TEST_CASE("parts of variables are refused by what needs the whole") {
  const Mesh mesh = create_mesh({{"batch", 1}});
  const Variable whole = matrix("hidden/kernel", Layout::replicated(mesh, 2));
  const Variable part("hidden/kernel",
                      pack(at::ones({2, 4}, at::kDouble), Layout::replicated(mesh, 2)));
  for (const OptimizerHandle& optimizer :
       {OptimizerHandle(Lamb()), OptimizerHandle(Muon()), OptimizerHandle(Adafactor())}) {
    CHECK_THROWS_WITH(optimizer->build_part(part, whole),
                      Catch::StartsWith("[" + optimizer->class_name() + "]") &&
                          Catch::Contains("(2, 4) of hidden/kernel (6, 4)"));
  }
  CHECK_NOTHROW(Lamb()->build_part(whole, whole));
  CHECK_THROWS_AS(Adafactor()->build_part(whole, whole), ConfigError);
  CHECK_THROWS_AS(ScheduleFreeAdamW()->build_part(whole, whole), ConfigError);
  CHECK_NOTHROW(Lion()->build_part(part, whole));
}

}  // namespace whole_variables_test
