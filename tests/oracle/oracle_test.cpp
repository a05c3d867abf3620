#include <tessera/framework/base/error.hpp>

#include <iostream>

#include "tests/support/catch.hpp"
#include "tests/support/oracle.hpp"

namespace oracle_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

TEST_CASE("every registered operation gives in all layouts what one device gives") {
  OracleStats stats;
  for (const OpInfo* info : selected_ops()) {
    const Failures failures = check_op(*info, stats);
    INFO(info->name);
    CHECK(joined(failures) == "");
  }
  std::cout << "oracle: " << stats.to_string() << "\n";
}

TEST_CASE("every registered operation gives in several processes what one device gives") {
  OracleStats stats;
  for (const OpInfo* info : selected_ops()) {
    INFO(info->name);
    ++stats.ops;
    CHECK(joined(check_processes(*info, 2, {{"x", 2}, {"y", 2}}, 16, stats)) == "");
    CHECK(joined(check_processes(*info, 3, {{"x", 3}}, 8, stats)) == "");
  }
  std::cout << "oracle in processes: " << stats.to_string() << "\n";
}

}  // namespace oracle_test
