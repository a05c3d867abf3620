#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/constants.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace constants_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

TEST_CASE("zeros_like, ones_like and full_like have the layout of their tensor") {
  const Mesh mesh = virtual_mesh({2, 2});
  const DTensor x = pack(at::randn({5, 4}, at::kDouble), Layout({"x", "y"}, mesh));
  for (const DTensor& y : {ops::zeros_like(x), ops::ones_like(x), ops::full_like(x, 2.5)}) {
    CHECK(y.layout() == x.layout());
    CHECK(y.dtype() == at::kDouble);
  }
  CHECK(difference(ops::full_like(x, 2, at::kInt).full(), at::full({5, 4}, 2, at::kInt)) == "");
  const DTensor pending =
      make_value(at::randn({4}), Layout::replicated(mesh, 1).with_partial(1, Reduce::sum), 1);
  CHECK(difference(ops::ones_like(pending).full(), at::ones({4})) == "");
  CHECK(!ops::ones_like(pending).layout().is_partial());
}

TEST_CASE("arange, linspace and eye are created in the default layout") {
  const Mesh mesh = virtual_mesh({2});
  const DefaultMeshScope scope(mesh);
  const Layout row({"x"}, mesh), rows({"x", unsharded}, mesh);
  CHECK(ops::arange(5).layout() == Layout::replicated(mesh, 1));
  const DTensor numbers = call_with_layout([] { return ops::arange(1, 11, 2); }, row);
  CHECK(numbers.layout() == row);
  CHECK(difference(numbers.full(), at::tensor({1, 3, 5, 7, 9}, at::kInt)) == "");
  const DTensor points = call_with_layout([] { return ops::linspace(0, 1, 5); }, row);
  CHECK(difference(points.full(), at::tensor({0.0F, 0.25F, 0.5F, 0.75F, 1.0F})) == "");
  const DTensor matrix = call_with_layout([] { return ops::eye(3); }, rows);
  CHECK(matrix.layout() == rows);
  CHECK(difference(matrix.full(), at::eye(3)) == "");
}

TEST_CASE("arange is int32 unless a number has a fraction") {
  CHECK(ops::arange(4).dtype() == at::kInt);
  CHECK(ops::arange(0, 2, 0.5).dtype() == at::kFloat);
  CHECK(ops::arange(0, 4, 1, at::kDouble).dtype() == at::kDouble);
  CHECK(ops::arange(3, 1).numel() == 0);
}

TEST_CASE("constants refuse invalid numbers") {
  CHECK_THROWS_AS(ops::arange(0, 4, 0), ConfigError);
  CHECK_THROWS_AS(ops::linspace(0, 1, -1), ConfigError);
  CHECK_THROWS_AS(ops::eye(-1), ShapeError);
  CHECK_THROWS_AS(ops::tri(2, -3), ShapeError);
}

}  // namespace constants_test
