#include <tessera/layers/core/identity.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/layer_check.hpp"

namespace identity_test {

using namespace tessera;

TEST_CASE("Identity under every layout") {
  test::run_layer_test({.make = [] { return Identity(); }, .input = {{3, 2}}, .output = {3, 2}});
}

}  // namespace identity_test
