#pragma once

#include <string>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"

namespace tessera::test {

/// Returns the Error that a call throws, which must be one line; "no error" if it throws none.
template <class Call>
std::string error_line(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    const std::string text = error.what();
    CHECK(text.find('\n') == std::string::npos);
    return text;
  }
  return "no error";
}

}  // namespace tessera::test
