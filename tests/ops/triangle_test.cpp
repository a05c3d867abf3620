#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include <limits>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/function_check.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace triangle_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

using at::Tensor;
using Triangle = DTensor (*)(const DTensor&, int64_t);

Function part(Triangle triangle, int64_t k) {
  return [=](const std::vector<DTensor>& in) { return triangle(in[0], k); };
}

}  // namespace

TEST_CASE("tril and triu follow the global diagonal, in every layout") {
  const Tensor x = at::randn({2, 5, 4}, at::kDouble), flags = at::ones({5, 4}, at::kBool);
  for (int64_t k : {-6, -2, 0, 1, 3, 9}) {
    INFO("k " << k);
    CHECK(wrong_values({x}, part(ops::tril, k), x.tril(k)) == "");
    CHECK(wrong_values({x}, part(ops::triu, k), x.triu(k)) == "");
    CHECK(wrong_values({flags}, part(ops::tril, k), flags.tril(k)) == "");
  }
  for (int64_t k : {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
    CHECK(wrong_values({x}, part(ops::tril, k), k < 0 ? at::zeros_like(x) : x) == "");
    CHECK(wrong_values({x}, part(ops::triu, k), k < 0 ? x : at::zeros_like(x)) == "");
  }
  CHECK(wrong_gradients({x[0]}, part(ops::tril, -1)) == "");
  CHECK(wrong_gradients({x[0]}, part(ops::triu, 1)) == "");
}

TEST_CASE("elements outside a triangle are 0, whatever they were, without communication") {
  const Mesh mesh = virtual_mesh({2, 2});
  const Tensor x = at::full({4, 4}, INFINITY);
  CommLog log;
  const CommLogScope scope(log);
  const DTensor y = ops::tril(pack(x, Layout({"x", "y"}, mesh)));
  CHECK(y.layout() == Layout({"x", "y"}, mesh));
  CHECK(log.to_string() == "");
  CHECK(difference(y.full(), x.tril()) == "");
}

TEST_CASE("triangles of a vector are refused") {
  const DTensor x = pack(at::ones({3}), Layout::replicated(virtual_mesh({1}), 1));
  CHECK_THROWS_WITH(ops::tril(x), Catch::Contains("[tril] x must have at least two axes"));
  CHECK_THROWS_AS(ops::triu(x), ShapeError);
}

}  // namespace triangle_test
