#pragma once

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <sstream>
#include <string>

namespace tessera::test {

using namespace detail;

/// Captures std::cerr during its lifetime.
class Warnings {
 public:
  Warnings() : before_(std::cerr.rdbuf(text_.rdbuf())) {}
  ~Warnings() { std::cerr.rdbuf(before_); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
  std::string text() const { return text_.str(); }
  int64_t lines() const {
    const std::string all = text_.str();
    return std::count(all.begin(), all.end(), '\n');
  }

 private:
  std::ostringstream text_;
  std::streambuf* before_;
};

}  // namespace tessera::test
