#include <tessera/framework/data/table.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"

namespace table_test {

using namespace tessera;
using Catch::Matchers::Contains;

namespace {

Table passengers() {
  return {{"age", at::tensor({22, 38, 26}, at::kLong)},
          {"sex", {"male", "female", "female"}},
          {"fare", at::tensor({7.25, 71.5, 8.}, at::kDouble)}};
}

}  // namespace

TEST_CASE("a table returns its columns by name and lists them in insertion order") {
  Table table = passengers();
  CHECK(table.rows() == 3);
  CHECK(table.names() == std::vector<std::string>{"age", "sex", "fare"});
  CHECK(table["sex"].texts()[1] == "female");
  CHECK(table.pop("fare").numbers().equal(at::tensor({7.25, 71.5, 8.}, at::kDouble)));
  CHECK(table.names() == std::vector<std::string>{"age", "sex"});
  CHECK_FALSE(table.has("fare"));
}

TEST_CASE("rows of a table can be selected in any order, of numbers and texts") {
  const std::vector<int64_t> rows = {2, 0, 2};
  const Table taken = passengers().take(rows);
  CHECK(taken["age"].numbers().equal(at::tensor({26, 22, 26}, at::kLong)));
  CHECK(taken["sex"].texts() == std::vector<std::string>{"female", "male", "female"});
  CHECK_THROWS_WITH(passengers().take(std::vector<int64_t>{3}),
                    Contains("a row number lies in [0, 3)") && Contains("Received: 3"));
}

TEST_CASE("columns of numbers form one matrix") {
  Table table = passengers();
  table.add("place", at::arange(6).reshape({3, 2}));
  const at::Tensor matrix =
      at::tensor({7.25, 0., 1., 71.5, 2., 3., 8., 4., 5.}, at::kFloat).reshape({3, 3});
  CHECK(table.matrix({"fare", "place"}).equal(matrix));
  CHECK_THROWS_WITH(table.matrix(), Contains("texts in \"sex\""));
  CHECK_THROWS_WITH(Table().matrix(), Contains("a table without any"));
}

TEST_CASE("an unknown column is refused in one line that names it") {
  Table table = passengers();
  CHECK_THROWS_AS(table.add("fares", at::zeros({4})), ShapeError);
  CHECK_THROWS_WITH(table.add("fares", at::zeros({4})),
                    Contains("Table::add(\"fares\")") && Contains("all columns have 3 rows"));
  CHECK_THROWS_WITH(table.add("fares", at::zeros({})), Contains("shape ()"));
  CHECK_THROWS_WITH(table.add("age", at::zeros({3})), Contains("a second \"age\""));
  CHECK_THROWS_WITH(table["aeg"], Contains("one of the 3 columns") && Contains("write \"age\""));
  CHECK_THROWS_WITH(table["sex"].numbers(), Contains("a column of texts"));
  CHECK_THROWS_WITH(table["age"].texts(), Contains("a column of numbers"));
}

}  // namespace table_test
