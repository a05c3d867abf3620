#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/base/shape.hpp>

namespace tessera {

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
  std::span<const std::byte> data;
};

struct CheckpointWriterOptions {
  /// Most bytes of one shard file, at least 4096; what is larger is cut.
  uint64_t max_file_bytes = uint64_t{1} << 31;
};

/// Writes the checkpoint `folder` in one step: a reader, a crash or a full disk sees the former
/// folder of that name, or none, until everything is on disk. The pieces of a tensor cover it once
/// and form a grid, as the shards of a layout do; empty ones are skipped. Missing parents are made.
/// `state` is any JSON value (NaN and infinities become null). Throws ConfigError naming a tensor
/// or piece that is wrong, FileError naming a path and the system's reason; then the former folder
/// is as it was and nothing is left beside it. A folder that holds anything but a checkpoint is not
/// replaced: FileError.
void write_checkpoint(const std::string& folder, const std::vector<CheckpointTensor>& tensors,
                      const std::vector<CheckpointPiece>& pieces, const Json& state,
                      const CheckpointWriterOptions& options = {});

}  // namespace tessera
