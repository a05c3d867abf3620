#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/grouped_matmul.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/function_check.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace grouped_matmul_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using at::Tensor;
using Catch::Matchers::Contains;

namespace {

DTensor product(const std::vector<DTensor>& in) { return ops::grouped_matmul(in[0], in[1], in[2]); }

}  // namespace

TEST_CASE("grouped_matmul multiplies each row by the matrix of its group in every layout") {
  const Tensor x = at::randn({2, 4, 3}, at::kDouble), kernels = at::randn({4, 3, 5}, at::kDouble);
  // Group 2 has no rows.
  const Tensor groups = at::tensor({3, 0, 0, 1, 1, 3, 0, 3}, at::kLong).view({2, 4});
  const Tensor expected = at::einsum(
      "rsd,rsdo->rso", {x, kernels.index_select(0, groups.flatten()).view({2, 4, 3, 5})});
  CHECK(wrong_values({x, kernels, groups}, product, expected) == "");
  CHECK(wrong_gradients({x, kernels, groups}, product) == "");
}

TEST_CASE("sharded groups of grouped_matmul are not gathered to replicated rows") {
  const Mesh mesh = virtual_mesh({2});
  const DTensor x = pack(at::randn({6, 3}, at::kDouble), Layout::replicated(mesh, 2));
  const DTensor groups =
      pack(at::tensor({1, 0, 3, 2, 2, 0}, at::kLong), Layout::replicated(mesh, 1));
  const DTensor kernels =
      pack(at::randn({4, 3, 2}, at::kDouble), Layout({"x", unsharded, unsharded}, mesh));
  CommLog log;
  const CommLogScope scope(log);
  const DTensor y = ops::grouped_matmul(x, kernels, groups);
  CHECK(log.to_string() == "");
  CHECK(y.layout().is_partial());
}

TEST_CASE("grouped_matmul refuses shapes and groups that do not fit") {
  const Mesh mesh = virtual_mesh({1});
  const auto value = [&](const Tensor& t) { return pack(t, Layout::replicated(mesh, t.dim())); };
  const DTensor x = value(at::ones({2, 3})), kernels = value(at::ones({4, 3, 5}));
  CHECK_THROWS_WITH(
      ops::grouped_matmul(x, value(at::ones({4, 2, 5})), value(at::zeros({2}, at::kLong))),
      Contains("kernels (E, d, o)"));
  CHECK_THROWS_WITH(ops::grouped_matmul(x, kernels, value(at::zeros({3}, at::kLong))),
                    Contains("groups (…)"));
  CHECK_THROWS_WITH(ops::grouped_matmul(x, kernels, value(at::tensor({0, 4}, at::kLong))),
                    Contains("groups") && Contains("4"));
}

}  // namespace grouped_matmul_test
