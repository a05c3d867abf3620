#pragma once

#include <tessera/framework/io/checkpoint.hpp>
#include <tessera/framework/io/internal/checkpoint_parts.hpp>
#include <tessera/framework/io/internal/checkpoint_source.hpp>

namespace tessera::detail {

/// Restores training state as Checkpoint::restore() does. Collective.
Checkpoint::Restored restore_checkpoint(CheckpointParts& parts, CheckpointSource& source,
                                        const CheckpointRestoreOptions& options);

/// Implements Checkpoint::restore().
Checkpoint::Restored restore_checkpoint(CheckpointParts& parts, const std::string& folder,
                                        const CheckpointRestoreOptions& options);

}  // namespace tessera::detail
