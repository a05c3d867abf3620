#include <tessera/layers/activation/activation.hpp>

#include <limits>

#include <ATen/ATen.h>

#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"

namespace softmax_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;

TEST_CASE("Softmax under every layout") {
  test::run_layer_test({.make =
                            [] {
                              return Softmax({.axis = {1, 2}});
                            },
                        .input = {{3, 2, 3}},
                        .output = {3, 2, 3},
                        .config = {{"axis", {1, 2}}}});
}

TEST_CASE("Softmax skips masked elements, with the mask as second input or on the value") {
  const DTensor x = pack(at::randn({3, 4}), Layout::replicated(default_mesh(), 2));
  const at::Tensor bits = at::tensor({1, 0, 1, 1}).to(at::kBool);
  const at::Tensor expected = at::softmax(
      x.full().masked_fill(bits.logical_not(), -std::numeric_limits<float>::infinity()), -1);
  for (const at::ScalarType dtype : {at::kBool, at::kInt, at::kFloat}) {
    const DTensor mask = pack(bits.to(dtype), Layout::replicated(default_mesh(), 1));
    CHECK(difference(Softmax()({x, mask}).full(), expected, 1e-6) == "");
  }
  const DTensor with =
      x.with_mask(pack(bits.expand({3, 4}).contiguous(), Layout::replicated(default_mesh(), 2)));
  CHECK(difference(Softmax()(with).full(), expected, 1e-6) == "");
  CHECK(Softmax()(with).mask().defined());
}

TEST_CASE("Softmax refuses invalid arguments by name") {
  CHECK_THROWS_WITH(Softmax({.axis = {}}), Contains("at least one axis"));
  CHECK_THROWS_WITH(Softmax({.axis = {2}, .name = "s"})->build({{3, 4}}),
                    Contains("[Softmax s]") && Contains("2"));
  CHECK_THROWS_WITH(Softmax({.name = "s"})({ones({3, 4}), ones({3})}),
                    Contains("[Softmax s]") && Contains("(3, 4)") && Contains("Received: (3,)"));
}

}  // namespace softmax_test
