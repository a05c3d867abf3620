#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/optimizers/muon.hpp>

#include "tests/optimizers/slots.hpp"
#include "tests/support/catch.hpp"

namespace muon_test {

using namespace tessera;
using namespace tessera::test;

TEST_CASE("a sharded matrix is gathered once for its Newton-Schulz iterations") {
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

TEST_CASE("Muon has a second moment only for variables that Adam updates") {
  const Mesh mesh = create_mesh({{"batch", 1}});
  const Layout replicated = Layout::replicated(mesh, 2);
  const Variable hidden = matrix("hidden/kernel", replicated),
                 table = matrix("Embedding_1/t", replicated);
  const Variable bias("hidden/bias", pack(at::ones({4}, at::kDouble), replicated.remove({0})));
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

}  // namespace muon_test
