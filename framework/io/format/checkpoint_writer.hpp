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

/// A tensor of a checkpoint: `dtype` is a safetensors name of whole bytes ("F32"), `shape` global.
struct CheckpointTensor {
  std::string name;
  std::string dtype;
  Shape shape;
};

/// The elements [begin, end) of a tensor, one pair per axis: row-major and contiguous bytes.
struct CheckpointPiece {
  std::string tensor;
  Shape begin;
  Shape end;
  std::span<const std::byte> data;  ///< not looked at but on its writer
  int writer = 0;                   ///< rank of the process that writes it
};

struct CheckpointWriterOptions {
  /// Most bytes of one shard file, at least 4096; what is larger is cut.
  uint64_t max_file_bytes = uint64_t{1} << 31;
  /// This process, and how many write the checkpoint together.
  int rank = 0;
  int writers = 1;
  /// How several writers exchange short texts: 35 bytes for a MiB that they write.
  GatherTexts gather = {};
};

/// Writes the checkpoint `folder` in one step: a reader, a crash or a full disk sees the former
/// folder of that name, or none, until everything is on disk. The pieces of a tensor cover it once
/// and form a grid, as the shards of a layout do; empty ones are skipped. Missing parents are made.
/// `state` is any JSON value (NaN and infinities become null). Throws ConfigError naming a tensor
/// or piece that is wrong, FileError naming a path and the system's reason; then the former folder
/// is as it was and nothing is left beside it. A folder that holds anything but a checkpoint is not
/// replaced: FileError.
///
/// With several writers, collective: all pass the same tensors and pieces, each the data of its own
/// ones, which it writes to files of its own; `state` is that of rank 0, which alone makes and
/// commits the folder. Where any fails nothing is committed and all throw: the one at fault its own
/// error, the others RankFailures. Throws ConfigError on all if they pass different things,
/// and what `gather` throws, after which rank 0 leaves nothing behind unless it has ended.
void write_checkpoint(const std::string& folder, const std::vector<CheckpointTensor>& tensors,
                      const std::vector<CheckpointPiece>& pieces, const Json& state,
                      const CheckpointWriterOptions& options = {});

}  // namespace tessera::detail
