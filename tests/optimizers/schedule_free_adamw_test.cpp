#include <tessera/optimizers/schedule_free_adamw.hpp>

#include "tests/optimizers/slots.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"

namespace schedule_free_adamw_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

TEST_CASE("schedule-free iterates begin as the weights, decayed or not") {
  const Mesh mesh = create_mesh({{"batch", 2}});
  for (const Layout& layout :
       {Layout::replicated(mesh, 2), Layout::batch_sharded(mesh, "batch", 2)}) {
    Variable weight = matrix("hidden/kernel", layout);
    const at::Tensor first = weight.value().full().clone();
    const ScheduleFreeAdamW optimizer(0.0, {.weight_decay = 0.5});
    optimizer->apply({weight.value()}, {weight});
    CHECK(difference(optimizer->variables_of(weight)[0].value().full(), first, 0) == "");
    // With a rate they move.
    Variable other = matrix("other/kernel", layout);
    const ScheduleFreeAdamW late(0.1);
    late->apply({other.value()}, {other});
    CHECK_FALSE(at::equal(late->variables_of(other)[0].value().full(), first));
  }
}

}  // namespace schedule_free_adamw_test
