#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/framework/io/format/checkpoint_index.hpp>
#include <tessera/framework/io/format/checkpoint_writer.hpp>
#include <tessera/framework/io/format/safetensors.hpp>

namespace tessera::detail {

/// A shard file of a checkpoint to be written.
struct PlannedShard {
  int writer = 0;
  /// What lies in it, in the order of the index; with data on its writer only.
  std::vector<SafeTensor> contents;
};

/// The files that a checkpoint will have and who writes them: the same on every writer.
struct CheckpointPlan {
  /// Tensors and pieces; no shards, checksums or state yet.
  CheckpointIndex index;
  std::vector<PlannedShard> shards;

  /// A checksum of all that the writers must have in common.
  std::string digits() const;
};

/// Cuts the pieces to the size of a file and gives each writer files for its own. Throws
/// ConfigError as write_checkpoint() does; `path` names the checkpoint there.
CheckpointPlan plan_checkpoint(const std::string& path,
                               const std::vector<CheckpointTensor>& tensors,
                               const std::vector<CheckpointPiece>& pieces,
                               const CheckpointWriterOptions& options);

}  // namespace tessera::detail
