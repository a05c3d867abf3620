#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/softmax.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/function_check.hpp"

namespace softmax_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

using Inputs = std::vector<DTensor>;

Function softmax_along(int64_t axis) {
  return [axis](const Inputs& x) { return ops::softmax(x[0], axis); };
}
Function log_softmax_along(int64_t axis) {
  return [axis](const Inputs& x) { return ops::log_softmax(x[0], axis); };
}

}  // namespace

TEST_CASE("softmax and log_softmax match ATen in every layout, with a sharded axis too") {
  const at::Tensor matrix = at::randn({3, 5}, at::kDouble),
                   cube = at::randn({2, 3, 4}, at::kDouble);
  CHECK(wrong_values({matrix}, softmax_along(-1), at::softmax(matrix, 1)) == "");
  CHECK(wrong_values({matrix}, softmax_along(0), at::softmax(matrix, 0)) == "");
  CHECK(wrong_values({cube}, softmax_along(1), at::softmax(cube, 1)) == "");
  CHECK(wrong_values({cube[0][0]}, softmax_along(0), at::softmax(cube[0][0], 0)) == "");
  CHECK(wrong_values({matrix}, log_softmax_along(-1), at::log_softmax(matrix, 1)) == "");
  CHECK(wrong_values({cube}, log_softmax_along(-2), at::log_softmax(cube, 1)) == "");
}

TEST_CASE("softmax stays finite for large values in every layout") {
  const at::Tensor x = at::tensor({1000.0, -1000.0, 998.0, 1000.0, 0.0}, at::kDouble).view({1, 5});
  CHECK(at::isfinite(at::log_softmax(x, 1)).all().item<bool>());
  CHECK(wrong_values({x}, softmax_along(1), at::softmax(x, 1)) == "");
  CHECK(wrong_values({x}, log_softmax_along(1), at::log_softmax(x, 1)) == "");
}

TEST_CASE("gradients of softmax and log_softmax match finite differences") {
  const at::Tensor matrix = at::randn({3, 5}, at::kDouble),
                   cube = at::randn({2, 3, 2}, at::kDouble);
  CHECK(wrong_gradients({matrix}, softmax_along(1)) == "");
  CHECK(wrong_gradients({cube}, softmax_along(1)) == "");
  CHECK(wrong_gradients({matrix}, log_softmax_along(1)) == "");
  CHECK(wrong_gradients({cube}, log_softmax_along(0)) == "");
}

TEST_CASE("a sharded softmax axis costs two small all-reduces and no all-gather") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}});
  const Layout layout({"batch", "model"}, mesh);
  const at::Tensor x = at::randn({4, 6});
  for (bool log : {false, true}) {
    CommLog comm;
    const CommLogScope scope(comm);
    const DTensor y = log ? ops::log_softmax(pack(x, layout)) : ops::softmax(pack(x, layout));
    CHECK(y.layout() == layout);
    CHECK(comm.count(CommOp::all_reduce, "model") == 2);
    CHECK(comm.entries().size() == 2);
    CHECK(comm.received() == 2 * received_bytes(CommOp::all_reduce, 2 * sizeof(float), 2));
  }
}

TEST_CASE("a replicated softmax axis costs nothing") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}});
  const Layout layout({"batch", "model", unsharded}, mesh);
  CommLog comm;
  const CommLogScope scope(comm);
  CHECK(ops::softmax(pack(at::randn({4, 6, 3}), layout)).layout() == layout);
  CHECK(comm.entries().empty());
}

TEST_CASE("softmax refuses integers and axes out of range") {
  const Mesh mesh = create_mesh({{"batch", 1}});
  const DTensor x = pack(at::ones({2}, at::kLong), Layout::replicated(mesh, 1));
  CHECK_THROWS_AS(ops::softmax(x), ConfigError);
  CHECK_THROWS_AS(ops::softmax(x, 1), ShapeError);
  CHECK_THROWS_AS(ops::log_softmax(x, -2), ShapeError);
}

}  // namespace softmax_test
