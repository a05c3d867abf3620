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

}  // namespace

TEST_CASE("on 2 and 4 processes a device holds what was planned, use by use") {
  const auto layouts = GENERATE(as<std::string>(), "data", "fully_shard");
  const int count = GENERATE(2, 4);
  const std::string devices = std::to_string(count);
  for (const RankEnd& end : run_ranks_program(
           count, {"mesh=batch=" + devices, "layouts=" + layouts, "memory=1", "bucket_cap_mb=0"})) {
    CAPTURE(layouts, count, end.out, end.err);
    REQUIRE(end.exit_code == 0);
    std::map<std::string, UseOfRank> uses = uses_of(end);
    REQUIRE(uses.size() == 7);
    // Between processes reductions run beside the backward pass, two at most, which a plan does not
    // contain: here of a kernel each, without buckets. So the peak may come one layer earlier.
    const UseOfRank gradients = uses.extract("gradients").mapped();
    const UseOfRank activations = uses.extract("activations").mapped();
    CHECK(gradients.measured >= 0.97 * gradients.planned);
    CHECK(gradients.measured <= 1.03 * gradients.planned + 2 * 4 * 256 * 256);
    CHECK(activations.measured <= activations.planned + 4 * 256 * 64.0 / count);
    for (const auto& [name, use] : uses) {
      CAPTURE(name);
      // A plan counts tensors below 1 KiB, too.
      CHECK(use.measured == Approx(use.planned).epsilon(0.03).margin(1024));
    }
  }
}

}  // namespace memory_test
