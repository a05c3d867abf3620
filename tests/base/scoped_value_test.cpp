#include <tessera/framework/base/internal/scoped_value.hpp>

#include <string>
#include <type_traits>
#include <vector>

#include "tests/support/catch.hpp"

using namespace tessera;
using namespace tessera::detail;

TEST_CASE("a scoped value nests and gives the former value back") {
  std::string mode = "outside";
  {
    const ScopedValue<std::string> outer(mode, "outer");
    CHECK(mode == "outer");
    CHECK(outer.former() == "outside");
    try {
      const ScopedValue<std::string> inner(mode, "inner");
      CHECK(mode == "inner");
      CHECK(inner.former() == "outer");
      throw 1;
    } catch (int) {
      CHECK(mode == "outer");
    }
  }
  CHECK(mode == "outside");
}

TEST_CASE("what is done to a scoped value ends with its scope") {
  std::vector<int> list = {1, 2};
  {
    const ScopedValue<std::vector<int>> none(list, {});
    CHECK(list.empty());
    list.push_back(3);
  }
  CHECK(list == std::vector<int>{1, 2});
  CHECK_FALSE(std::is_copy_constructible_v<ScopedValue<int>>);
  CHECK_FALSE(std::is_move_constructible_v<ScopedValue<int>>);
}
