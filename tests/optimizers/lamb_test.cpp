#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/optimizers/lamb.hpp>

#include "tests/optimizers/slots.hpp"
#include "tests/support/catch.hpp"

namespace lamb_test {

using namespace tessera;
using namespace tessera::test;

TEST_CASE("trust ratios of all variables with one sharding cost one reduction") {
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

}  // namespace lamb_test
