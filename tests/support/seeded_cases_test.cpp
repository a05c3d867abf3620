#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include "tests/support/catch.hpp"

TEST_CASE("a test case draws the same numbers in each run") {
  CHECK(at::equal(at::rand({3}), at::rand({3}, at::detail::createCPUGenerator(1))));
}
