#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/device_memory.hpp>

#include <ATen/ATen.h>

#include "tests/autodiff/grid.hpp"
#include "tests/support/catch.hpp"

namespace reshard_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test::grid;

TEST_CASE("what was gathered and let go is gathered again, once for all that read it") {
  const at::Tensor x = numbers({4, 6}, 1), a = numbers({6, 3}, 2), b = numbers({6, 5}, 3);
  const DTensor input = pack(x, Layout({"batch", "model"}, mesh()));
  const DTensor left = variable(a, {nullptr, nullptr}), right = variable(b, {"model", nullptr});
  const Layout rows({"batch", nullptr}, mesh());
  CommLog log;
  const CommLogScope scope(log);
  for (const bool reshard : {false, true}) {
    CAPTURE(reshard);
    log.clear();
    GradientTape tape;
    tape.watch(input);
    DTensor y;
    {
      const DTensor whole = relayout(input, rows, reshard);
      const DTensor gathered = relayout(right, Layout::replicated(mesh(), 2), reshard);
      y = ops::sum(ops::square(ops::matmul(whole, left))) +
          ops::sum(ops::square(ops::matmul(whole, gathered)));
    }
    CHECK(log.count(CommOp::all_gather, "model") == 2);
    const std::vector<DTensor> gradients = tape.gradient(y, {input, left, right});
    CHECK(log.count(CommOp::all_gather, "model") == (reshard ? 4 : 2));
    const at::Tensor da = 2 * x.mm(a), db = 2 * x.mm(b);
    CHECK(same(gradients[0], da.mm(a.t()) + db.mm(b.t())) == "");
    CHECK(same(gradients[1], x.t().mm(da)) == "");
    CHECK(same(gradients[2], x.t().mm(db)) == "");
  }
}

TEST_CASE("a persistent tape gathers again each time, and an outer one goes through it") {
  const at::Tensor x = numbers({4, 6}, 1);
  const DTensor input = pack(x, Layout({"batch", "model"}, mesh()));
  GradientTape outer;
  outer.watch(input);
  GradientTape tape({.persistent = true});
  tape.watch(input);
  const DTensor whole = relayout(input, Layout({"batch", nullptr}, mesh()), true);
  const DTensor y = whole * whole * whole;
  CHECK(same(tape.gradient(y, input), 3 * x * x) == "");
  const DTensor slope = tape.gradient(y, input);
  CHECK(same(outer.gradient(slope, input), 6 * x) == "");
}

TEST_CASE("what no gradient reads is not gathered again") {
  const DTensor input = pack(numbers({4, 6}, 1), Layout({"batch", nullptr}, mesh()));
  const DTensor weight = variable(numbers({6, 4}, 2), {"model", nullptr});
  CommLog log;
  const CommLogScope scope(log);
  GradientTape tape;
  const DTensor whole = relayout(weight, Layout::replicated(mesh(), 2), true);
  // Only the input's gradient would need the weight.
  const DTensor y = ops::sum(ops::matmul(input, whole));
  tape.gradient(y, weight);
  CHECK(log.count(CommOp::all_gather, "model") == 1);
}

TEST_CASE("between forward and backward pass what was let go takes no memory") {
  const Mesh two = create_mesh({{"model", 2}});
  constexpr int64_t bytes = 256 * 256 * 8;
  const auto held = [&](bool reshard) {
    const DeviceMemory memory;
    const DTensor input = pack(at::ones({256, 256}, at::kDouble), Layout({nullptr, "model"}, two));
    GradientTape tape;
    tape.watch(input);
    DTensor y;
    for (int step = 0; step < 4; ++step) {
      const DTensor whole = relayout(input, Layout::replicated(two, 2), reshard);
      const DTensor sum = ops::sum(ops::square(whole));
      y = y.defined() ? y + sum : sum;
    }
    return memory.peak(0);
  };
  // One that is gathered at a time in place of four, and the same of the rest.
  CHECK(held(false) - held(true) == 3 * bytes);
}

}  // namespace reshard_test
