#include <tessera/framework/base/error.hpp>

#include <cstdlib>
#include <iostream>

#include "tests/support/catch.hpp"
#include "tests/support/oracle.hpp"

namespace oracle_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

/// Returns the operation named by TESSERA_ORACLE_OP, else every registered one.
std::vector<const OpInfo*> selected() {
  const char* name = std::getenv("TESSERA_ORACLE_OP");
  if (!name || !*name) return op_registry();
  const OpInfo* info = find_op(name);
  REQUIRE(info);
  return {info};
}

}  // namespace

TEST_CASE("every registered operation gives in all layouts what one device gives") {
  OracleStats stats;
  for (const OpInfo* info : selected()) {
    const Failures failures = check_op(*info, stats);
    INFO(info->name);
    CHECK(joined(failures) == "");
  }
  std::cout << "oracle: " << stats.to_string() << "\n";
}

TEST_CASE("every registered operation gives in several processes what one device gives") {
  OracleStats stats;
  for (const OpInfo* info : selected()) {
    INFO(info->name);
    ++stats.ops;
    CHECK(joined(check_processes(*info, 2, {{"x", 2}, {"y", 2}}, 24, stats)) == "");
    CHECK(joined(check_processes(*info, 3, {{"x", 3}}, 12, stats)) == "");
  }
  std::cout << "oracle in processes: " << stats.to_string() << "\n";
}

}  // namespace oracle_test
