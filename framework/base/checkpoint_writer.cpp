#include <tessera/framework/base/checkpoint_writer.hpp>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <tessera/framework/base/checkpoint_index.hpp>
#include <tessera/framework/base/checkpoint_place.hpp>
#include <tessera/framework/base/checksum.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/safetensors.hpp>
#include <tessera/framework/base/safetensors_header.hpp>
#include <tessera/framework/base/text.hpp>

namespace tessera {
namespace {

using Bytes = std::span<const std::byte>;

constexpr uint64_t min_file_bytes = 4096;

/// The shard files that tensors and their pieces become, and the index of them.
class Plan {
 public:
  Plan(std::string path, const std::vector<CheckpointTensor>& tensors,
       const std::vector<CheckpointPiece>& pieces, const Json& state, uint64_t max_file_bytes)
      : path_(std::move(path)), max_file_bytes_(max_file_bytes), given_(tensors.size()) {
    if (max_file_bytes < min_file_bytes) {
      throw ConfigError(path_, str("max_file_bytes is at least ", min_file_bytes),
                        str(max_file_bytes), "allow larger files");
    }
    // What could not be read again, such as too deep nesting.
    parse_json(to_json_text(Json{{"state", state}}, -1), path_ + ", state");
    index.state = state;
    for (const CheckpointTensor& tensor : tensors) add(tensor);
    for (const CheckpointPiece& piece : pieces) add(piece);
    for (size_t i = 0; i < tensors.size(); ++i) place(i);
  }

  CheckpointIndex index;
  /// What lies in each shard file, in the order of the index.
  std::vector<std::vector<SafeTensor>> shards;

 private:
  [[noreturn]] void fail(const std::string& tensor, const std::string& expected,
                         const std::string& received, const std::string& fix) const {
    throw ConfigError(str(path_, ", tensor ", in_quotes(tensor)), expected, received, fix);
  }

  void add(const CheckpointTensor& tensor) {
    if (!is_safetensors_name(tensor.name)) {
      fail(tensor.name, "a name in UTF-8 that is not the key of the metadata",
           in_quotes(tensor.name), "rename the tensor");
    }
    if (!is_checkpoint_dtype(tensor.dtype)) {
      fail(tensor.name, "a safetensors dtype of whole bytes", in_quotes(tensor.dtype),
           "use a name such as F32");
    }
    const bool negative = std::any_of(tensor.shape.begin(), tensor.shape.end(),
                                      [](int64_t extent) { return extent < 0; });
    if (negative || !safetensors_bytes(tensor.shape, tensor.dtype)) {
      fail(tensor.name, "a shape", to_string(tensor.shape), "use smaller extents, 0 or more");
    }
    if (!numbers_.emplace(tensor.name, index.tensors.size()).second) {
      fail(tensor.name, "a name of its own", "the name twice", "rename one of the two");
    }
    index.tensors.push_back({tensor, {}});
  }

  void add(const CheckpointPiece& piece) {
    const auto found = numbers_.find(piece.tensor);
    if (found == numbers_.end()) {
      fail(piece.tensor, "a piece of a tensor of the checkpoint", "an unknown name",
           "add the tensor");
    }
    const CheckpointTensor& tensor = index.tensors[found->second].tensor;
    const Rectangle area{piece.begin, piece.end};
    const std::string range = to_string(piece.begin) + " to " + to_string(piece.end);
    if (!lies_inside(area, tensor.shape)) {
      fail(tensor.name, "pieces lie inside its shape " + to_string(tensor.shape), range,
           "pass global indices");
    }
    if (piece.data.size() != checkpoint_bytes(tensor, area)) {
      fail(tensor.name, str("the piece ", range, " has ", checkpoint_bytes(tensor, area), " bytes"),
           str(piece.data.size()), "pass all of its elements, and no more");
    }
    if (!piece.data.empty()) given_[found->second].push_back({area, piece.data});
  }

  /// Cuts a tensor's pieces to the size of a file and gives them their files.
  void place(size_t number) {
    StoredTensor& stored = index.tensors[number];
    const CheckpointTensor& tensor = stored.tensor;
    std::vector<Rectangle> areas;
    for (const auto& [area, data] : given_[number]) areas.push_back(area);
    Grid grid;
    const std::string wrong = find_grid(tensor.shape, std::move(areas), grid);
    if (!wrong.empty()) {
      fail(tensor.name,
           str("the pieces cover its shape ", to_string(tensor.shape), " once, as a grid"), wrong,
           "pass each distinct shard once");
    }
    const uint64_t header = header_bound(tensor);
    const uint64_t element = *safetensors_bits(tensor.dtype) / 8;
    if (header + element > max_file_bytes_) {
      fail(tensor.name, str("a name that fits a file of ", max_file_bytes_, " bytes"),
           str(tensor.name.size(), " bytes"), "use a shorter name, or larger files");
    }
    grid = cut_grid(std::move(grid), (max_file_bytes_ - header) / element);
    for (const auto& [area, data] : given_[number]) {
      uint64_t begin = 0;
      for (const Rectangle& cell : cells_of(grid, area)) {
        const uint64_t size = checkpoint_bytes(tensor, cell);
        append(stored, cell, data.subspan(begin, size));
        begin += size;
      }
    }
  }

  /// An upper bound of the bytes of a file that do not belong to its one piece's data.
  static uint64_t header_bound(const CheckpointTensor& tensor) {
    const uint64_t name = to_json_text(Json(tensor.name), -1).size();
    return file_bound + name + 160 + 64 * tensor.shape.size();
  }

  void append(StoredTensor& stored, const Rectangle& area, Bytes data) {
    const uint64_t needed = header_bound(stored.tensor) - file_bound + data.size();
    if (shards.empty() || filled_ + needed > max_file_bytes_) {
      shards.emplace_back();
      filled_ = file_bound;
    }
    filled_ += needed;
    shards.back().push_back({checkpoint_piece_name(stored.tensor, area), stored.tensor.dtype,
                             area.shape(), data});
    stored.pieces.push_back({shards.size() - 1, area, {}});
    for (uint64_t at = 0; at < data.size(); at += checkpoint_chunk_bytes) {
      stored.pieces.back().checksums.push_back(
          xxh128(data.subspan(at, std::min(checkpoint_chunk_bytes, data.size() - at))));
    }
  }

  // Length, braces, metadata and padding.
  static constexpr uint64_t file_bound = 160;

  std::string path_;
  uint64_t max_file_bytes_;
  uint64_t filled_ = 0;
  std::unordered_map<std::string, size_t> numbers_;
  std::vector<std::vector<std::pair<Rectangle, Bytes>>> given_;
};

/// The checksums of each shard's chunks, one after the other.
std::vector<std::string> checksums_of(const CheckpointIndex& index, size_t shards) {
  std::vector<std::string> all(shards);
  for (const StoredTensor& stored : index.tensors) {
    for (const StoredPiece& piece : stored.pieces) {
      for (const std::string& checksum : piece.checksums) all[piece.shard] += checksum;
    }
  }
  return all;
}

}  // namespace

void write_checkpoint(const std::string& folder, const std::vector<CheckpointTensor>& tensors,
                      const std::vector<CheckpointPiece>& pieces, const Json& state,
                      const CheckpointWriterOptions& options) {
  const CheckpointPlace place = checkpoint_place(folder);
  Plan plan(place.path(), tensors, pieces, state, options.max_file_bytes);
  std::vector<std::string> headers;
  const std::vector<std::string> checksums = checksums_of(plan.index, plan.shards.size());
  for (size_t i = 0; i < plan.shards.size(); ++i) {
    headers.push_back(
        begin_safetensors(plan.shards[i], checkpoint_metadata(checksums[i]), place.path()));
    uint64_t bytes = headers[i].size();
    for (const SafeTensor& tensor : plan.shards[i]) bytes += tensor.data.size();
    plan.index.shards.push_back({bytes, xxh128(std::as_bytes(std::span(headers[i])))});
  }
  const std::string index = checkpoint_index_text(plan.index);
  if (index.size() > max_checkpoint_index) {
    throw ConfigError(place.path(), str("an index of at most ", max_checkpoint_index, " bytes"),
                      str(index.size()), "keep less in the state, or fewer tensors");
  }
  check_only_checkpoint(place.path());
  TemporaryFolder temporary(place);
  const auto write_text = [&](const char* name, const std::string& text) {
    const Bytes part = std::as_bytes(std::span(text));
    temporary.write(name, std::span(&part, 1));
  };
  for (size_t i = 0; i < headers.size(); ++i) {
    std::vector<Bytes> parts{std::as_bytes(std::span(headers[i]))};
    for (const SafeTensor& tensor : plan.shards[i]) parts.push_back(tensor.data);
    temporary.write(checkpoint_shard_file(i), parts);
  }
  write_text(checkpoint_index_file, index);
  write_text(checkpoint_checksum_file, checkpoint_checksum_text(index));
  temporary.commit();
}

}  // namespace tessera
