#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/framework/io/format/checkpoint_grid.hpp>
#include <tessera/framework/io/format/checkpoint_writer.hpp>

namespace tessera::detail {

/// Files of a checkpoint's folder, beside the shards.
inline constexpr const char* checkpoint_index_file = "index.json";
inline constexpr const char* checkpoint_checksum_file = "index.xxh128";

/// Version of the format that this code writes, and the newest that it reads.
inline constexpr int64_t checkpoint_version = 1;

/// Bytes of a piece that have one checksum; the last chunk of a piece may be shorter.
inline constexpr uint64_t checkpoint_chunk_bytes = uint64_t{1} << 20;

/// Most bytes of index.json.
inline constexpr uint64_t max_checkpoint_index = uint64_t{256} << 20;

/// A shard file: its size and the checksum of what stands before its data.
struct CheckpointShard {
  uint64_t bytes = 0;
  std::string header_checksum;
};

/// Where a rectangle of a tensor lies, and the checksums of its chunks.
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

/// What index.json says.
struct CheckpointIndex {
  std::vector<CheckpointShard> shards;
  std::vector<StoredTensor> tensors;
  Json state;
};

/// "shard-00000.safetensors".
std::string checkpoint_shard_file(uint64_t shard);

/// Name of a piece in its shard file: the tensor's if it is the whole tensor, else with the
/// rectangle behind it: "dense/kernel[0:4, 8:16]".
std::string checkpoint_piece_name(const CheckpointTensor& tensor, const Rectangle& area);

/// Bytes of a rectangle of a tensor with a dtype of whole bytes.
uint64_t checkpoint_bytes(const CheckpointTensor& tensor, const Rectangle& area);

/// How many chunks that many bytes take.
uint64_t checkpoint_chunks(uint64_t bytes);

/// The metadata of a shard file, given the checksums of its chunks in the order of the index.
std::map<std::string, std::string> checkpoint_metadata(const std::string& checksums);

/// Whether the dtype is one of safetensors and its elements take whole bytes.
bool is_checkpoint_dtype(std::string_view dtype);

/// Content of index.json, and of the file with its checksum.
std::string checkpoint_index_text(const CheckpointIndex& index);
std::string checkpoint_checksum_text(std::string_view index_text);

/// The opposite; `path` names the file in errors. Checks everything that can be checked without the
/// shard files: fields, names, dtypes, shapes, that pieces cover their tensors once, the numbers of
/// chunks and of shards. Throws FileError.
CheckpointIndex parse_checkpoint_index(std::string_view text, const std::string& path);

}  // namespace tessera::detail
