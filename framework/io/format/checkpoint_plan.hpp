#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/framework/io/format/checkpoint_index.hpp>
#include <tessera/framework/io/format/checkpoint_writer.hpp>
#include <tessera/framework/io/format/safetensors.hpp>

namespace tessera::detail {

/// A shard file to be written.
struct PlannedShard {
  int writer = 0;
  /// Tensors of the file in the order of the index; with data on its writer only.
  std::vector<SafeTensor> contents;
};

/// The files of a checkpoint to be written, and their writers. Equal on every writer.
struct CheckpointPlan {
  /// Has tensors and pieces, but no shards, checksums or state yet.
  CheckpointIndex index;
  std::vector<PlannedShard> shards;

  /// Returns a checksum of everything that the writers must agree on.
  std::string checksum() const;
};

/// Splits the pieces to the maximum file size and assigns each writer files for its own pieces.
/// Throws ConfigError as write_checkpoint() does; `path` names the checkpoint in errors.
CheckpointPlan plan_checkpoint(const std::string& path,
                               const std::vector<CheckpointTensor>& tensors,
                               const std::vector<CheckpointPiece>& pieces,
                               const CheckpointWriterOptions& options);

}  // namespace tessera::detail
