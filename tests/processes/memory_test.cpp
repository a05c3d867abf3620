#include <algorithm>
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

/// Whether a device held what was planned. A plan counts tensors below 1 KiB, too.
bool is_as_planned(const UseOfRank& use) {
  return use.measured == Approx(use.planned).epsilon(0.03).margin(1024);
}

bool are_as_planned(const std::map<std::string, UseOfRank>& uses) {
  return std::all_of(uses.begin(), uses.end(),
                     [](const auto& use) { return is_as_planned(use.second); });
}

/// Checks that a device held no more than was planned.
void check_total(const std::map<std::string, UseOfRank>& uses) {
  CHECK(uses.size() == 7);
  UseOfRank total;
  for (const auto& [name, use] : uses) {
    total.planned += use.planned;
    total.measured += use.measured;
  }
  CHECK(total.planned > 0);
  CHECK(total.measured <= total.planned);
}

}  // namespace

TEST_CASE("on 2 and 4 processes a device holds what was planned, use by use") {
  const auto layouts = GENERATE(as<std::string>(), "data", "fully_shard");
  const int count = GENERATE(2, 4);
  const std::string buckets = GENERATE("0", "1");
  // Reductions that end early leave less at the peak, and that at another moment.
  std::vector<bool> as_planned(static_cast<size_t>(count));
  std::string texts;
  for (int run = 0; run < 5; ++run) {
    const auto ends = measure(count, {"layouts=" + layouts, "buckets=" + buckets});
    for (size_t rank = 0; rank < ends.size(); ++rank) {
      CAPTURE(layouts, buckets, rank, ends[rank].out, ends[rank].err);
      REQUIRE(ends[rank].exit_code == 0);
      const auto uses = uses_of(ends[rank]);
      check_total(uses);
      as_planned[rank] = as_planned[rank] || are_as_planned(uses);
      texts += ends[rank].out + "\n";
    }
    if (std::count(as_planned.begin(), as_planned.end(), true) == count) break;
  }
  CAPTURE(layouts, buckets, texts);
  CHECK(std::count(as_planned.begin(), as_planned.end(), true) == count);
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
      check_total(uses);
      if (held == "1" && &end == &ends.front()) CHECK(are_as_planned(uses));
    }
  }
}

}  // namespace memory_test
