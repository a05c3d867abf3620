#include <tessera/framework/base/version.hpp>

#include <algorithm>

#include "tests/support/catch.hpp"

namespace version_test {

using namespace tessera;
using Catch::Matchers::Contains;
using Catch::Matchers::Matches;

TEST_CASE("the library knows its version and how it was built") {
  CHECK_THAT(version(), Matches("\\d+\\.\\d+\\.\\d+"));
  CHECK_THAT(detail::build_description(), Matches("(GCC|Clang) \\d+[^,]*, \\w+"));
  const auto options = detail::build_options();
  CHECK(options.size() == 15);
  for (const auto& [name, on] : options) {
    CHECK_THAT(name, Matches("[a-z0-9]+"));
    CHECK(std::count(options.begin(), options.end(), std::pair(name, on)) == 1);
  }
}

}  // namespace version_test
