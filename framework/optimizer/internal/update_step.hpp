#pragma once

#include <c10/core/InferenceMode.h>

#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera::detail {

/// An update is not an operation of the model: neither tapes nor ATen record it.
struct UpdateScope {
  NoRecording no_tape;
  c10::InferenceMode inference;
};

/// Returns a variable's blocks, to be written in place.
inline const Blocks& writable_blocks(Variable& variable) {
  const Blocks& blocks = variable.value().blocks();
  return blocks.empty() ? blocks : variable.writable();
}

/// Returns the sharding in which a variable is updated by a gradient.
inline ShardingPtr sharding_of_update(const DTensor& gradient, const Variable& variable) {
  const Sharding& sharding = *gradient.sharding();
  return intern(sharding.shape, variable.dtype(), sharding.layout, sharding.groups);
}

}  // namespace tessera::detail
