#pragma once

#include <string>
#include <vector>

#include "tests/support/oracle.hpp"

namespace tessera::test {

/// What one run of a case gave.
struct Outcome {
  std::string wrong;                  ///< the first thing that is not as the reference has it
  std::vector<at::Tensor> gradients;  ///< whole; undefined for an input that wants none
};

/// Runs a case on inputs in these layouts, under the block policy in force, and compares outputs
/// and, where the reference has them, gradients. Where bit i of `parameters` is set, input i is the
/// value of a Variable.
Outcome run_case(const OracleCase& c, const Reference& reference,
                 const std::vector<Layout>& layouts, uint64_t seed, uint32_t parameters = 0);

/// An operation without a derivative must say so, by name, when it is asked for one.
Failures check_refusal(const OracleCase& c);

/// What an exception says, without ATen's stack trace.
std::string reason(const std::exception& e);

/// Bytes that each device receives for a case's outputs, and then for its gradients, given those of
/// the outputs in the outputs' layouts.
struct Bytes {
  double forward = 0, backward = 0;
};
Bytes measure_bytes(const OracleCase& c, const Reference& reference,
                    const std::vector<Layout>& layouts);

}  // namespace tessera::test
