#pragma once

#include <iostream>
#include <sstream>
#include <string>

namespace tessera::test {

using namespace detail;

/// Captures std::cout during its lifetime.
class StandardOutput {
 public:
  StandardOutput() : before_(std::cout.rdbuf(text_.rdbuf())) {}
  ~StandardOutput() { std::cout.rdbuf(before_); }
  StandardOutput(const StandardOutput&) = delete;
  StandardOutput& operator=(const StandardOutput&) = delete;
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::streambuf* before_;
};

}  // namespace tessera::test
