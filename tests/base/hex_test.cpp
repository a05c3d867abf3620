#include <tessera/framework/base/internal/hex.hpp>

#include <string>

#include "tests/support/catch.hpp"

namespace hex_test {

using namespace tessera::detail;

TEST_CASE("bytes are two hexadecimal digits each") {
  CHECK(to_hex("") == "");
  CHECK(to_hex(std::string{"\0\x0a\x7f\x80\xff", 5}) == "000a7f80ff");
}

}  // namespace hex_test
