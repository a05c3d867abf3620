#include <tessera/layers/text/internal/farm_hash.hpp>

#include <string>

#include <tessera/framework/base/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace farm_hash_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

}  // namespace

TEST_CASE("fingerprint64 is TensorFlow's hash for texts of every length") {
  const Json all = read_json_file(test::golden_path("keras_text.json").string()).at("hash");
  REQUIRE(all.size() > 70);
  constexpr uint64_t buckets = (uint64_t{1} << 62) + 57;
  for (const Json& item : all) {
    const std::string bytes = from_hex(item[0].get<std::string>());
    CAPTURE(bytes.size());
    CHECK(std::to_string(fingerprint64(bytes) % buckets) == item[1].get<std::string>());
  }
}

}  // namespace farm_hash_test
