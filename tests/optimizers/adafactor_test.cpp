#include <tessera/optimizers/adafactor.hpp>

#include "tests/optimizers/slots.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"

namespace adafactor_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

TEST_CASE("Adafactor keeps row and column averages in the layout of their variable's slots") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}});
  Variable weight("conv/kernel", pack(at::ones({5, 6, 4}), Layout::replicated(mesh, 3)));
  weight.place(
      {weight.shape(), weight.layout(), std::nullopt, Layout({"batch", unsharded, "model"}, mesh)});
  const Adafactor adafactor;
  adafactor->build({weight});
  CHECK(slot_names(adafactor, weight) == Names{"r", "c", "velocity"});
  const std::vector<Variable> slots = adafactor->variables_of(weight);
  CHECK(slots[0].shape() == Shape{5, 6});
  CHECK(slots[0].layout() == Layout({"batch", unsharded}, mesh));
  CHECK(slots[1].shape() == Shape{5, 4});
  CHECK(slots[1].layout() == Layout({"batch", "model"}, mesh));
  const Variable bias("conv/bias", pack(at::ones({4}), Layout::replicated(mesh, 1)));
  adafactor->build({bias});
  CHECK(slot_names(adafactor, bias) == Names{"velocity"});
  // The averages keep their layout.
  adafactor->apply({weight.value()}, {weight});
  CHECK(slots[0].value().layout() == Layout({"batch", unsharded}, mesh));
  CHECK(difference(slots[0].value().full(), at::ones({5, 6}), 1e-6) == "");
}

}  // namespace adafactor_test
