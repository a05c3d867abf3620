#include <functional>

#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include "tests/gpu/meshes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/small_model.hpp"

namespace dtypes_test {

using namespace tessera;
using namespace tessera::detail;
using test::difference;

namespace {

/// Returns the weights after one step of a model whose layers have two dtypes.
std::vector<at::Tensor> trained(const Mesh& mesh, const OptimizerHandle& optimizer) {
  const Sequential model(
      {Dense(4, {.kernel_initializer = GlorotUniform({.seed = 1})}),
       Dense(5, {.kernel_initializer = GlorotUniform({.seed = 2}), .dtype = "float64"})});
  CompileOptions options = test::small_compile(LayoutMap(mesh));
  options.optimizer = optimizer;
  model.compile(options);
  model.fit(test::small_data(8), {.batch_size = 8, .verbose = 0});
  return test::full_weights(model);
}

}  // namespace

TEST_CASE("fused optimizers train variables of several dtypes on a GPU") {
  for (const auto& make : std::vector<std::function<OptimizerHandle()>>{
           [] { return Adam(0.1); }, [] { return AdamW(0.1); }, [] { return SGD(0.1); }}) {
    const std::vector<at::Tensor> expected = trained(create_mesh({{"batch", 1}}), make());
    const std::vector<at::Tensor> weights = trained(test::gpu_mesh({{"batch", 1}}), make());
    REQUIRE(weights.size() == 4);
    for (size_t w = 0; w < 4; ++w) {
      CHECK(weights[w].scalar_type() == (w < 2 ? at::kFloat : at::kDouble));
      CHECK(difference(weights[w], expected[w], 1e-4, 1e-4) == "");
    }
  }
}

TEST_CASE("integers are multiplied on a GPU") {
  const Mesh mesh = test::gpu_mesh({{"x", 2}});
  const at::Tensor x = at::arange(6).view({2, 3}), y = at::arange(6, 18).view({3, 4});
  const DTensor a = pack(x, Layout({"x", unsharded}, mesh));
  const DTensor b = pack(y, Layout({unsharded, unsharded}, mesh));
  const at::Tensor expected = x.matmul(y);
  for (const DTensor& product : {ops::matmul(a, b), ops::einsum("ij,jk->ik", {a, b})}) {
    CHECK(product.dtype() == at::kLong);
    CHECK(product.full().equal(expected));
  }
}

}  // namespace dtypes_test
