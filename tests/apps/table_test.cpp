#include "apps/common/table.hpp"

#include "tests/support/catch.hpp"

namespace table_test {

using tessera::app::fixed;
using tessera::app::Table;

TEST_CASE("a table aligns its columns and has no trailing spaces", "[table]") {
  Table table({"operation", "shape", "us"}, 2);
  table.add({"add", "(3,)", "0.5"});
  table.add({"transpose", "(2, 3)", "12.5"});
  table.add({"exp"});
  CHECK(table.to_string() ==
        "operation  shape     us\n"
        "---------  ------  ----\n"
        "add        (3,)     0.5\n"
        "transpose  (2, 3)  12.5\n"
        "exp\n");
}

TEST_CASE("a table without rows is its header", "[table]") {
  CHECK(Table({"a", "bc"}).to_string() == "a  bc\n-  --\n");
}

TEST_CASE("fixed writes the given number of decimals", "[table]") {
  CHECK(fixed(2.5, 2) == "2.50");
  CHECK(fixed(1.25e6, 0) == "1250000");
  CHECK(fixed(0.049, 1) == "0.0");
}

}  // namespace table_test
