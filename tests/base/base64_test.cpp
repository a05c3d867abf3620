#include <tessera/framework/base/internal/base64.hpp>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.hpp"

namespace base64_test {

using namespace tessera;
using namespace tessera::detail;

TEST_CASE("base64 is encoded and decoded as RFC 4648 has it") {
  const std::vector<std::pair<std::string, std::string>> vectors = {{"", ""},
                                                                    {"Zg==", "f"},
                                                                    {"Zm8=", "fo"},
                                                                    {"Zm9v", "foo"},
                                                                    {"Zm9vYg==", "foob"},
                                                                    {"Zm9vYmE=", "fooba"},
                                                                    {"Zm9vYmFy", "foobar"},
                                                                    {"AP+/", {"\0\xff\xbf", 3}}};
  for (const auto& [text, bytes] : vectors) {
    CAPTURE(text);
    CHECK(from_base64(text) == bytes);
    CHECK(to_base64(bytes) == text);
  }
}

TEST_CASE("other texts than base64 are refused") {
  for (const char* text : {"Z", "Zg", "Zg=", "Zm8", "Zm9vZ", "====", "=m9v", "Zg==Zg==", "Zm 9",
                           "Zm9-", "Zm9_", "Zm9\n", "Zh==", "Zm9=", "Z==="}) {
    CAPTURE(text);
    CHECK_FALSE(from_base64(text).has_value());
  }
}

}  // namespace base64_test
