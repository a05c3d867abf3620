#include <cstdint>
#include <iostream>

#include "tests/gpu/meshes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/oracle.hpp"

namespace oracle_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

TEST_CASE("every registered operation gives on GPUs what one CPU gives") {
  OracleStats stats;
  for (const OpInfo* info : op_registry()) {
    Failures failures;
    ++stats.ops;
    for (const OracleCase& c : op_cases(*info)) {
      ++stats.samples;
      const Reference reference = make_reference(c, failures);
      const auto check = [&](const MeshDims& dims, BlockPolicy policy) {
        const Failures wrong = check_layouts(c, reference, gpu_mesh(dims), policy,
                                             full_oracle() ? SIZE_MAX : 24, stats);
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
  }
  std::cout << "oracle on GPUs: " << stats.to_string() << "\n";
}

}  // namespace oracle_test
