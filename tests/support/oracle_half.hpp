#pragma once

#include "tests/support/oracle.hpp"

namespace tessera::test {

/// Checks outputs and gradients of an operation's samples with float64 inputs, computed in float16
/// or bfloat16 on meshes of 1, 3 and 2 by 2 devices in at most `limit` layouts each, against
/// float64 on the same inputs. Tolerances, relative and absolute: 3e-2 for bfloat16, 4e-3 for
/// float16, eight units in the last place.
Failures check_half(const OpInfo& info, at::ScalarType half, size_t limit, OracleStats& stats);

}  // namespace tessera::test
