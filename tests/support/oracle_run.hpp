#pragma once

#include <string>
#include <vector>

#include "tests/support/oracle.hpp"

namespace tessera::test {

/// The result of running a case.
struct Outcome {
  std::string wrong;                  ///< first difference from the reference
  std::vector<at::Tensor> gradients;  ///< in full; undefined for an input without a gradient
};

/// Runs a case on inputs in these layouts, under the current block policy, and compares outputs
/// and, if the reference has them, gradients. If bit i of `parameters` is set, input i is the value
/// of a Variable.
Outcome run_case(const OracleCase& c, const Reference& reference,
                 const std::vector<Layout>& layouts, uint64_t seed, uint32_t parameters = 0);

/// Checks that an operation without a derivative names itself when asked for one.
Failures check_refusal(const OracleCase& c);

/// Returns the text of an exception without ATen's stack trace.
std::string reason(const std::exception& e);

/// The bytes that each device receives for a case's outputs, and then for its gradients, given
/// output gradients in the outputs' layouts.
struct Bytes {
  double forward = 0, backward = 0;
};
Bytes measure_bytes(const OracleCase& c, const Reference& reference,
                    const std::vector<Layout>& layouts);

}  // namespace tessera::test
