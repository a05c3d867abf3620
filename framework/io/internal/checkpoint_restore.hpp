#pragma once

#include <tessera/framework/io/checkpoint.hpp>
#include <tessera/framework/io/internal/checkpoint_parts.hpp>

namespace tessera::detail {

/// Implements Checkpoint::restore().
Checkpoint::Restored restore_checkpoint(CheckpointParts& parts, const std::string& folder,
                                        const CheckpointRestoreOptions& options);

}  // namespace tessera::detail
