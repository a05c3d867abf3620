#pragma once

#include "tests/support/oracle.hpp"

namespace tessera::test {

/// Outputs and gradients of an operation's samples whose floating inputs are float64, made in a
/// half type on meshes of 1, 3 and 2 by 2 devices in at most `limit` layouts each, beside what
/// float64 gives for the same inputs. Tolerances, relative and absolute: 3e-2 for bfloat16, 4e-3
/// for float16, eight units in the last place.
Failures check_half(const OpInfo& info, at::ScalarType half, size_t limit, OracleStats& stats);

}  // namespace tessera::test
