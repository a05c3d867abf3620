#include <map>
#include <sstream>

#include <tessera/framework/base/json.hpp>

#include "tests/processes/ranks.hpp"
#include "tests/support/catch.hpp"

namespace memory_test {

using namespace tessera;
using namespace tessera::test;

namespace {

/// Bytes that a device was planned to hold for a use, and held.
struct UseOfRank {
  double planned = 0, measured = 0;
};

std::map<std::string, UseOfRank> uses_of(const RankEnd& end) {
  std::map<std::string, UseOfRank> uses;
  std::istringstream in(end.out);
  std::string name;
  UseOfRank use;
  while (in >> name >> use.planned >> use.measured) uses[name] = use;
  return uses;
}

/// Measures a step on so many processes, with the given arguments of rank_program.
std::vector<RankEnd> measure(int count, std::vector<std::string> arguments) {
  arguments.push_back("mesh=batch=" + std::to_string(count));
  arguments.push_back("memory=1");
  return run_ranks_program(count, arguments);
}

void check_uses(const std::map<std::string, UseOfRank>& uses) {
  CHECK(uses.size() == 7);
  for (const auto& [name, use] : uses) {
    CAPTURE(name);
    // A plan counts tensors below 1 KiB, too.
    CHECK(use.measured == Approx(use.planned).epsilon(0.03).margin(1024));
  }
}

}  // namespace

TEST_CASE("on 2 and 4 processes a device holds what was planned, use by use") {
  const auto layouts = GENERATE(as<std::string>(), "data", "fully_shard");
  const int count = GENERATE(2, 4);
  const std::string buckets = GENERATE("0", "1");
  for (const RankEnd& end : measure(count, {"layouts=" + layouts, "buckets=" + buckets})) {
    CAPTURE(layouts, count, buckets, end.out, end.err);
    REQUIRE(end.exit_code == 0);
    check_uses(uses_of(end));
  }
}

TEST_CASE("a plan is what a process holds whose reductions end late, and no process holds more") {
  // Weights stay gathered, so that the backward pass waits for nothing but reductions.
  const int count = GENERATE(2, 4);
  for (const std::string held : {"0", "1"}) {
    const std::vector<RankEnd> ends =
        measure(count, {"layouts=never", "buckets=0", "held=" + held});
    for (const RankEnd& end : ends) {
      CAPTURE(count, held, end.out, end.err);
      REQUIRE(end.exit_code == 0);
      const std::map<std::string, UseOfRank> uses = uses_of(end);
      double planned = 0, measured = 0;
      for (const auto& [name, use] : uses) {
        planned += use.planned;
        measured += use.measured;
      }
      CHECK(planned > 0);
      CHECK(measured <= planned);
      if (held == "1" && &end == &ends.front()) check_uses(uses);
    }
  }
}

}  // namespace memory_test
