#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
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

TEST_CASE("a gathered tensor that was released is gathered again once for all its readers") {
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
      const DTensor replicated = relayout(input, rows, reshard);
      const DTensor gathered = relayout(right, Layout::replicated(mesh(), 2), reshard);
      y = ops::sum(ops::square(ops::matmul(replicated, left))) +
          ops::sum(ops::square(ops::matmul(replicated, gathered)));
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

TEST_CASE("values gathered in one exchange are gathered again in one, for those that are read") {
  const at::Tensor x = numbers({4, 6}, 1), a = numbers({6, 3}, 2), b = numbers({3}, 3);
  const DTensor input = pack(x, Layout({"batch", nullptr}, mesh()));
  const DTensor kernel = variable(a, {"model", nullptr}), bias = variable(b, {"model"});
  const std::vector<Layout> whole = {Layout::replicated(mesh(), 2), Layout::replicated(mesh(), 1)};
  CommLog log;
  const CommLogScope scope(log);
  for (const bool reshard : {false, true}) {
    CAPTURE(reshard);
    log.clear();
    GradientTape tape;
    tape.watch(input);
    DTensor y;
    {
      const std::vector<DTensor> gathered = ops::relayout({kernel, bias}, whole, reshard);
      y = ops::sum(ops::square(ops::matmul(input, gathered[0]) + gathered[1]));
    }
    CHECK(log.count(CommOp::all_gather, "model") == 1);
    CHECK(log.entries()[0].bytes == 8 * (6 * 3 + 3));
    const std::vector<DTensor> gradients = tape.gradient(y, {input, kernel, bias});
    CHECK(log.count(CommOp::all_gather, "model") == (reshard ? 2 : 1));
    const at::Tensor dy = 2 * (x.mm(a) + b);
    CHECK(same(gradients[0], dy.mm(a.t())) == "");
    CHECK(same(gradients[1], x.t().mm(dy)) == "");
    CHECK(same(gradients[2], dy.sum(0)) == "");
  }
  CHECK_THROWS_AS(ops::relayout({kernel, bias}, {whole[0]}), ConfigError);
  CHECK(ops::relayout(std::vector<DTensor>(), {}).empty());
}

TEST_CASE("a persistent tape gathers again each time, also under an outer tape") {
  const at::Tensor x = numbers({4, 6}, 1);
  const DTensor input = pack(x, Layout({"batch", "model"}, mesh()));
  GradientTape outer;
  outer.watch(input);
  GradientTape tape({.persistent = true});
  tape.watch(input);
  const DTensor replicated = relayout(input, Layout({"batch", nullptr}, mesh()), true);
  const DTensor y = replicated * replicated * replicated;
  CHECK(same(tape.gradient(y, input), 3 * x * x) == "");
  const DTensor slope = tape.gradient(y, input);
  CHECK(same(outer.gradient(slope, input), 6 * x) == "");
}

TEST_CASE("a tensor that no gradient reads is not gathered again") {
  const DTensor input = pack(numbers({4, 6}, 1), Layout({"batch", nullptr}, mesh()));
  const DTensor weight = variable(numbers({6, 4}, 2), {"model", nullptr});
  CommLog log;
  const CommLogScope scope(log);
  GradientTape tape;
  const DTensor replicated = relayout(weight, Layout::replicated(mesh(), 2), true);
  // Only the gradient of the input would need the gathered weight.
  const DTensor y = ops::sum(ops::matmul(input, replicated));
  tape.gradient(y, weight);
  CHECK(log.count(CommOp::all_gather, "model") == 1);
}

TEST_CASE("released tensors take no memory between the forward and backward passes") {
  const Mesh two = create_mesh({{"model", 2}});
  constexpr int64_t bytes = 256 * 256 * 8;
  const auto held = [&](bool reshard) {
    const DeviceMemory memory;
    const DTensor input = pack(at::ones({256, 256}, at::kDouble), Layout({nullptr, "model"}, two));
    GradientTape tape;
    tape.watch(input);
    DTensor y;
    for (int step = 0; step < 4; ++step) {
      const DTensor replicated = relayout(input, Layout::replicated(two, 2), reshard);
      const DTensor sum = ops::sum(ops::square(replicated));
      y = y.defined() ? y + sum : sum;
    }
    return memory.peak(0);
  };
  // One gathered tensor at a time instead of four; everything else is the same.
  CHECK(held(false) - held(true) == 3 * bytes);
}

}  // namespace reshard_test
