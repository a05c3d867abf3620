#include <iostream>

#include "tests/support/catch.hpp"
#include "tests/support/oracle_half.hpp"

namespace half_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

TEST_CASE("every registered operation gives float64's values in float16 and bfloat16, rounded") {
  for (const at::ScalarType half : {at::kBFloat16, at::kHalf}) {
    OracleStats stats;
    for (const OpInfo* info : op_registry()) {
      const Failures failures = check_half(*info, half, 3, stats);
      stats.ops += failures.empty();
      INFO(info->name);
      CHECK(joined(failures) == "");
    }
    std::cout << "oracle in " << half << ": " << stats.to_string() << "\n";
  }
}

}  // namespace half_test
