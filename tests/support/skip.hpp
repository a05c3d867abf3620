#pragma once

#include <iostream>
#include <string>

#include "tests/support/catch.hpp"

namespace tessera::test {

/// Prints why the test case that returns here is skipped, in a line that `./run test` looks for.
inline void skip(const std::string& reason) {
  std::cout << "skipped: \"" << Catch::getResultCapture().getCurrentTestName() << "\": " << reason
            << std::endl;
  // A test case without an assertion would fail.
  SUCCEED();
}

}  // namespace tessera::test
