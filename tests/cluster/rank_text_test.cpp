#include <tessera/framework/cluster/internal/rank_text.hpp>

#include <vector>

#include "tests/support/catch.hpp"

namespace rank_text_test {

using namespace tessera;
using namespace tessera::detail;

TEST_CASE("ranks are listed, and three or more consecutive ones as a range") {
  const auto names = [](const std::vector<int>& ranks) { return rank_names(ranks); };
  CHECK(names({2}) == "rank 2");
  CHECK(names({0, 1}) == "ranks 0 and 1");
  CHECK(names({0, 2, 3}) == "ranks 0, 2 and 3");
  CHECK(names({0, 1, 2}) == "ranks 0-2");
  CHECK(names({0, 2, 3, 4, 7}) == "ranks 0, 2-4 and 7");
}

}  // namespace rank_text_test
