#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/function_check.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace cumsum_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

using at::Tensor;

Function along(int64_t axis, bool exclusive = false, bool reverse = false) {
  return
      [=](const std::vector<DTensor>& in) { return ops::cumsum(in[0], axis, exclusive, reverse); };
}

DTensor one_device(const Tensor& t) {
  return pack(t, Layout::replicated(virtual_mesh({1}), t.dim()));
}

}  // namespace

TEST_CASE("cumsum accumulates along any axis, from either end, in every layout") {
  const Tensor x = at::randn({3, 5, 2}, at::kDouble);
  for (int64_t axis : {0, 1, -1}) {
    const Tensor sums = x.cumsum(axis), back = x.flip(axis).cumsum(axis).flip(axis);
    INFO("axis " << axis);
    CHECK(wrong_values({x}, along(axis), sums) == "");
    CHECK(wrong_values({x}, along(axis, true), sums - x) == "");
    CHECK(wrong_values({x}, along(axis, false, true), back) == "");
    CHECK(wrong_values({x}, along(axis, true, true), back - x) == "");
  }
  CHECK(wrong_values({x[0][0].narrow(0, 0, 1)}, along(0, true), at::zeros({1}, at::kDouble)) == "");
  CHECK(wrong_values({at::empty({2, 0}, at::kDouble)}, along(1), at::empty({2, 0}, at::kDouble)) ==
        "");
}

TEST_CASE("gradients of cumsum accumulate from the other end") {
  const Tensor x = at::randn({3, 4}, at::kDouble);
  for (bool exclusive : {false, true}) {
    for (bool reverse : {false, true}) {
      CHECK(wrong_gradients({x}, along(1, exclusive, reverse)) == "");
    }
  }
}

TEST_CASE("cumsum keeps its dtype, and float16 and bfloat16 accumulate without loss") {
  const DTensor integers = ops::cumsum(one_device(at::tensor({1, 2, 3}, at::kInt)), 0);
  CHECK(difference(integers.full(), at::tensor({1, 3, 6}, at::kInt)) == "");
  // In bfloat16, 256 + 1 is 256.
  const Tensor ones = at::ones({300}, at::kBFloat16);
  const Tensor sums = ops::cumsum(one_device(ones), 0).full();
  CHECK(sums.scalar_type() == at::kBFloat16);
  CHECK(sums[299].item<float>() == 300);
  // An exclusive sum is not the inclusive sum minus the element.
  const Tensor large = at::tensor({1e30F, 1.0F, 2.0F});
  const Tensor before = ops::cumsum(one_device(large), 0, true, true).full();
  CHECK(difference(before, at::tensor({3.0F, 2.0F, 0.0F}), 0, 0) == "");
}

TEST_CASE("cumsum gathers its axis only, and a partial sum stays one") {
  const Mesh mesh = virtual_mesh({2, 2});
  const DTensor x = pack(at::randn({4, 6}), Layout({"x", "y"}, mesh));
  CommLog log;
  const CommLogScope scope(log);
  CHECK(ops::cumsum(x, 1).layout() == Layout({"x", unsharded}, mesh));
  CHECK(log.count(CommOp::all_gather, "y") == 1);
  CHECK(log.entries().size() == 1);
  log.clear();
  const Layout pending = Layout({"x", unsharded}, mesh).with_partial(2, Reduce::sum);
  CHECK(ops::cumsum(make_value(at::randn({4, 6}), pending, 0), 1).layout() == pending);
  CHECK(log.to_string() == "");
}

TEST_CASE("cumsum counts bools in int32") {
  const Tensor truth = at::ones({2, 300}, at::kBool);
  const Tensor counts = at::arange(1, 301, at::kInt).expand({2, 300});
  CHECK(wrong_values({truth}, along(1), counts) == "");
}

TEST_CASE("cumsum refuses axes out of range") {
  CHECK_THROWS_AS(ops::cumsum(one_device(at::ones({2, 3})), 2), ShapeError);
}

}  // namespace cumsum_test
