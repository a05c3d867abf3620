#include "tests/support/difference.hpp"

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"

namespace difference_test {

using tessera::test::difference;

TEST_CASE("difference is empty within the tolerance only") {
  const at::Tensor expected = at::tensor({1.0, 2.0, 100.0}, at::kDouble);
  const at::Tensor actual = at::tensor({1.0, 2.0, 100.5}, at::kDouble);
  CHECK(difference(expected, expected) == "");
  CHECK(difference(actual, expected, 1e-2) == "");
  CHECK(difference(actual, expected, 0, 0.6) == "");
  CHECK(difference(actual, expected, 1e-3) == "element 2 of 3: got 100.5, expected 100 (1 differ)");
}

TEST_CASE("difference reports shape, dtype and NaN") {
  const at::Tensor a = at::zeros({2, 3}, at::kFloat);
  CHECK(difference(a, at::zeros({3, 2}, at::kFloat)) == "got [2, 3] Float, expected [3, 2] Float");
  CHECK(difference(a, at::zeros({2, 3}, at::kInt)) == "got [2, 3] Float, expected [2, 3] Int");
  const at::Tensor nan = at::full({2, 3}, NAN);
  CHECK(difference(nan, nan) == "");
  CHECK(difference(nan, a, 1, 1) == "element 0 of 6: got nan, expected 0 (6 differ)");
}

}  // namespace difference_test
