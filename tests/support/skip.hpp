#pragma once

#include <iostream>
#include <string>

#include "tests/support/catch.hpp"

namespace tessera::test {

/// Says why the test case that returns here is skipped, in a line that `./run test` looks for.
inline void skip(const std::string& reason) {
  std::cout << "skipped: \"" << Catch::getResultCapture().getCurrentTestName() << "\": " << reason
            << std::endl;
  // Without an assertion a test case fails.
  SUCCEED();
}

}  // namespace tessera::test
