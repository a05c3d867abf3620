#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/cluster/internal/collective_error.hpp>

namespace tessera::detail {

/// A tensor of a checkpoint: `dtype` is a safetensors dtype of whole bytes ("F32"), `shape` the
/// global shape.
struct CheckpointTensor {
  std::string name;
  std::string dtype;
  Shape shape;
};

/// The elements [begin, end) of a tensor, one pair per axis, as contiguous row-major bytes.
struct CheckpointPiece {
  std::string tensor;
  Shape begin;
  Shape end;
  std::span<const std::byte> data;  ///< ignored except on the writer
  int writer = 0;                   ///< rank of the process that writes it
};

struct CheckpointWriterOptions {
  /// Maximum bytes of one shard file, at least 4096; larger pieces are split.
  uint64_t max_file_bytes = uint64_t{1} << 31;
  /// Rank of this process, and the number of processes that write the checkpoint together.
  int rank = 0;
  int writers = 1;
  /// Exchanges short texts between several writers: 35 bytes for each MiB written.
  GatherTexts gather = {};
};

/// Writes the checkpoint `folder` atomically: after a crash or on a full disk, readers see the
/// previous folder, or none, until everything is on disk. The pieces of a tensor must cover it
/// exactly once and form a grid, as the shards of a layout do; empty ones are skipped. Creates
/// missing parents. `state` is any JSON value (NaN and infinities become null). Throws ConfigError
/// naming an invalid tensor or piece, FileError naming a path and the system's reason; then the
/// previous folder is unchanged and no temporary files are left. Throws FileError rather than
/// replace a folder that contains anything but a checkpoint.
///
/// Collective with several writers: all pass the same tensors and pieces, each with the data of its
/// own pieces only, which it writes to files of its own; `state` is rank 0's, which alone creates
/// and commits the folder. If any writer fails, nothing is committed and all throw: the failed one
/// its own error, the others RankFailures. Throws ConfigError on all if their arguments differ, and
/// whatever `gather` throws; after that rank 0 leaves nothing behind unless it was killed.
void write_checkpoint(const std::string& folder, const std::vector<CheckpointTensor>& tensors,
                      const std::vector<CheckpointPiece>& pieces, const Json& state,
                      const CheckpointWriterOptions& options = {});

}  // namespace tessera::detail
