#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/comm/internal/communicator.hpp>

namespace tessera::detail {

/// Returns the members of a group that a rank holds, ascending.
std::vector<int64_t> members_of(const Group& group, int rank);

/// Returns the parts of each value, of which `reduced` are reductions, that the members get,
/// flattened and concatenated: by value, and then by member.
at::Tensor flat_parts(std::span<const ScatteredValue> values,
                      const std::vector<at::Tensor>& reduced, const std::vector<int64_t>& members);

/// Sets each value's results to the parts of this process's members in `flat`, which is in the
/// order of flat_parts().
void take_parts(const Group& group, std::span<ScatteredValue> values,
                const std::vector<at::Tensor>& reduced, const at::Tensor& flat);

}  // namespace tessera::detail
