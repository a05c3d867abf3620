#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <set>
#include <string_view>

#include "tests/gpu/meshes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/oracle.hpp"

namespace oracle_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

/// Operations that draw with logarithms, sines or roots in float32, which a real GPU rounds
/// differently from the host (docs/gpus.md); an imitated one computes on the host.
double draw_tolerance(std::string_view op) {
  static const std::set<std::string_view> draws = {"gaussian_dropout", "gaussian_noise",
                                                   "gumbel_noise", "random_normal",
                                                   "random_truncated_normal"};
  return gpu(0).device.is_cuda() && draws.contains(op) ? 1e-6 : 0;
}

}  // namespace

TEST_CASE("every registered operation gives the result of one CPU on GPUs") {
  // At most 1,000, which are all but those of operations of three and more inputs.
  constexpr size_t daily = 12;
  const size_t limit = std::min<size_t>(limit_of_oracle(daily), 1000);
  OracleStats stats;
  for (const OpInfo* info : selected_ops()) {
    Failures failures;
    ++stats.ops;
    const auto start = std::chrono::steady_clock::now();
    for (const OracleCase& c : op_cases(*info)) {
      ++stats.samples;
      Reference reference = make_reference(c, failures);
      reference.min_tolerance = draw_tolerance(info->name);
      const auto check = [&](const MeshDims& dims, BlockPolicy policy) {
        const Failures wrong = check_layouts(c, reference, gpu_mesh(dims), policy, limit, stats);
        failures.insert(failures.end(), wrong.begin(), wrong.end());
      };
      for (const MeshDims& dims : {MeshDims{{"x", 1}}, {{"x", 3}}, {{"x", 2}, {"y", 2}}}) {
        check(dims, BlockPolicy::per_worker);
      }
      check({{"x", 3}, {"y", 2}}, BlockPolicy::per_worker);
      check({{"x", 2}, {"y", 2}}, BlockPolicy::per_device);
    }
    INFO(info->name);
    CHECK(joined(failures) == "");
    // More assignments of layouts than those of a daily run take an hour.
    if (limit == daily) continue;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::cout << info->name << ": " << failures.size() << " failures, " << int(seconds.count())
              << " s" << std::endl;
  }
  std::cout << "oracle on GPUs: " << stats.to_string() << "\n";
}

}  // namespace oracle_test
