#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/function_check.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace top_k_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

using at::Tensor;
using Inputs = std::vector<DTensor>;

Function values_of(int64_t k) {
  return [k](const Inputs& in) { return ops::top_k(in[0], k).first; };
}

Function indices_of(int64_t k) {
  return [k](const Inputs& in) { return ops::top_k(in[0], k).second; };
}

}  // namespace

TEST_CASE("top_k returns the largest elements first, with their indices, in every layout") {
  const Tensor x = random_values({{4, 2, 5}, at::kDouble, -1, 1, /*distinct=*/true}, 3);
  for (int64_t k : {1, 2, 5}) {
    const auto [values, indices] = at::topk(x, k, -1, /*largest=*/true, /*sorted=*/true);
    INFO("k " << k);
    CHECK(wrong_values({x}, values_of(k), values) == "");
    CHECK(wrong_values({x}, indices_of(k), indices) == "");
  }
}

TEST_CASE("equal elements keep their order, and NaN comes first") {
  const Tensor x = at::tensor({2, 3, 3, 1, 3, 2}, at::kLong).view({1, 6}).repeat({3, 1});
  const Tensor indices = at::tensor({1, 2, 4, 0, 5}, at::kLong);
  CHECK(wrong_values({x}, indices_of(5), indices.expand({3, 5})) == "");
  // Long enough for every sorting algorithm of the kernels.
  const Tensor equal = at::zeros({2, 5000});
  CHECK(wrong_values({equal}, indices_of(100), at::arange(100).expand({2, 100}), 0) == "");
  const Tensor odd = at::tensor({1.0F, INFINITY, NAN, 2.0F}).view({1, 4});
  CHECK(wrong_values({odd}, indices_of(3), at::tensor({2, 1, 3}, at::kLong).view({1, 3}), 0) == "");
}

TEST_CASE("the gradient of top_k goes to the selected elements") {
  const Tensor x = random_values({{3, 6}, at::kDouble, -1, 1, /*distinct=*/true}, 4);
  CHECK(wrong_gradients({x}, values_of(3)) == "");
  CHECK(wrong_gradients({x[0]}, values_of(6)) == "");
}

TEST_CASE("rows of top_k stay sharded, and its gradient stays in the shards of a sharded axis") {
  const Mesh mesh = virtual_mesh({2, 2});
  const DTensor x = pack(at::randn({4, 6}), Layout({"x", unsharded}, mesh));
  CommLog log;
  const CommLogScope scope(log);
  const auto [values, indices] = ops::top_k(x, 2);
  CHECK(values.layout() == x.layout());
  CHECK(indices.layout() == x.layout());
  CHECK(indices.dtype() == at::kLong);
  CHECK(log.to_string() == "");
  const DTensor cut = pack(at::randn({4, 6}), Layout({"x", "y"}, mesh));
  GradientTape tape;
  tape.watch(cut);
  const DTensor y = ops::top_k(cut, 2).first;
  CHECK(log.count(CommOp::all_gather, "y") == 1);
  log.clear();
  CHECK(tape.gradient(y, cut).layout() == cut.layout());
  CHECK(log.to_string() == "");
}

TEST_CASE("top_k refuses k of 0 and k above the extent") {
  const Mesh mesh = virtual_mesh({1});
  const DTensor x = pack(at::ones({2, 3}), Layout::replicated(mesh, 2));
  for (int64_t k : {-1, 0, 4}) CHECK_THROWS_AS(ops::top_k(x, k), ShapeError);
  CHECK_THROWS_WITH(ops::top_k(x, 4),
                    Catch::Contains("[top_k]") && Catch::Contains("Received: (2, 3)"));
  CHECK_THROWS_AS(ops::top_k(pack(at::ones({}), Layout::replicated(mesh, 0)), 1), ShapeError);
}

}  // namespace top_k_test
