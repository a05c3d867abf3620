#include <tessera/framework/base/internal/scoped_value.hpp>

#include <string>
#include <type_traits>
#include <vector>

#include "tests/support/catch.hpp"

using namespace tessera;
using namespace tessera::detail;

TEST_CASE("a scoped value nests and restores the previous value") {
  std::string mode = "outside";
  {
    const ScopedValue<std::string> outer(mode, "outer");
    CHECK(mode == "outer");
    CHECK(outer.previous() == "outside");
    try {
      const ScopedValue<std::string> inner(mode, "inner");
      CHECK(mode == "inner");
      CHECK(inner.previous() == "outer");
      throw 1;
    } catch (int) {
      CHECK(mode == "outer");
    }
  }
  CHECK(mode == "outside");
}

TEST_CASE("changes to a scoped value end with its scope") {
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
