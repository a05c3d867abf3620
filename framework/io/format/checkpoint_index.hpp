#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/framework/io/format/checkpoint_grid.hpp>
#include <tessera/framework/io/format/checkpoint_writer.hpp>

namespace tessera::detail {

/// Files of a checkpoint's folder besides the shards.
inline constexpr const char* checkpoint_index_file = "index.json";
inline constexpr const char* checkpoint_checksum_file = "index.xxh128";

/// Format version that this code writes, and the newest that it reads.
inline constexpr int64_t checkpoint_version = 1;

/// Size of a chunk: the bytes of a piece that share one checksum; the last chunk of a piece may be
/// shorter.
inline constexpr uint64_t checkpoint_chunk_bytes = uint64_t{1} << 20;

/// Maximum size of index.json in bytes.
inline constexpr uint64_t max_checkpoint_index = uint64_t{256} << 20;

/// A shard file: its size, and the checksum of the bytes before its data.
struct CheckpointShard {
  uint64_t bytes = 0;
  std::string header_checksum;
};

/// A rectangle of a tensor, the shard that stores it, and the checksums of its chunks.
struct StoredPiece {
  uint64_t shard = 0;
  Rectangle area;
  std::vector<std::string> checksums;
};

/// A tensor and the pieces that cover it.
struct StoredTensor {
  CheckpointTensor tensor;
  std::vector<StoredPiece> pieces;
};

/// The content of index.json.
struct CheckpointIndex {
  std::vector<CheckpointShard> shards;
  std::vector<StoredTensor> tensors;
  Json state;
};

/// Returns a shard's file name: "shard-00000.safetensors".
std::string checkpoint_shard_file(uint64_t shard);

/// Returns the name of a piece in its shard file: the tensor's name if it is the entire tensor,
/// otherwise followed by the rectangle: "dense/kernel[0:4, 8:16]".
std::string checkpoint_piece_name(const CheckpointTensor& tensor, const Rectangle& area);

/// Returns the bytes of a rectangle of a tensor whose elements take whole bytes.
uint64_t checkpoint_bytes(const CheckpointTensor& tensor, const Rectangle& area);

/// Returns the number of chunks of a piece of this size.
uint64_t checkpoint_chunks(uint64_t bytes);

/// Returns the metadata of a shard file from the checksums of its chunks in the order of the index.
std::map<std::string, std::string> checkpoint_metadata(const std::string& checksums);

/// Returns whether the dtype is one of safetensors whose elements take whole bytes.
bool is_checkpoint_dtype(std::string_view dtype);

/// Returns the content of index.json, and of the file with its checksum.
std::string checkpoint_index_text(const CheckpointIndex& index);
std::string checkpoint_checksum_text(std::string_view index_text);

/// Parses index.json; `path` names it in errors. Checks everything that can be checked without the
/// shard files: fields, names, dtypes, shapes, that pieces cover their tensors exactly once, chunk
/// counts and shard indices. Throws FileError.
CheckpointIndex parse_checkpoint_index(std::string_view text, const std::string& path);

}  // namespace tessera::detail
