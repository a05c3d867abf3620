#include <tessera/framework/io/format/checkpoint_plan.hpp>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/checksum.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/io/format/safetensors_header.hpp>

namespace tessera::detail {
namespace {

using Bytes = std::span<const std::byte>;

constexpr uint64_t min_file_bytes = 4096;

/// Builds a CheckpointPlan.
class Planner {
 public:
  Planner(const std::string& path, const CheckpointWriterOptions& options, size_t tensors)
      : path_(path),
        options_(options),
        open_(static_cast<size_t>(options.writers)),
        pieces_(tensors) {
    if (options.max_file_bytes >= min_file_bytes) return;
    throw ConfigError(path_, str("max_file_bytes is at least ", min_file_bytes),
                      str(options.max_file_bytes), "allow larger files");
  }

  CheckpointPlan plan(const std::vector<CheckpointTensor>& tensors,
                      const std::vector<CheckpointPiece>& pieces) {
    for (const CheckpointTensor& tensor : tensors) add(tensor);
    for (const CheckpointPiece& piece : pieces) add(piece);
    for (size_t i = 0; i < tensors.size(); ++i) assign_to_files(i);
    return std::move(plan_);
  }

 private:
  /// A non-empty piece.
  struct InputPiece {
    Rectangle area;
    Bytes data;
    int writer = 0;
  };
  /// The file that a writer is filling.
  struct Open {
    std::optional<size_t> shard;
    uint64_t filled = 0;
  };

  [[noreturn]] void fail(const std::string& tensor, const std::string& expected,
                         const std::string& received, const std::string& fix) const {
    throw ConfigError(str(path_, ", tensor ", in_quotes(tensor)), expected, received, fix);
  }

  void add(const CheckpointTensor& tensor) {
    if (!is_safetensors_name(tensor.name)) {
      fail(tensor.name, "a name in UTF-8 other than the metadata key", in_quotes(tensor.name),
           "rename the tensor");
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
    if (!tensor_indices_.emplace(tensor.name, plan_.index.tensors.size()).second) {
      fail(tensor.name, "a unique name", "the name twice", "rename one of the two");
    }
    plan_.index.tensors.push_back({tensor, {}});
  }

  void add(const CheckpointPiece& piece) {
    const auto it = tensor_indices_.find(piece.tensor);
    if (it == tensor_indices_.end()) {
      fail(piece.tensor, "a piece of a tensor of the checkpoint", "an unknown name",
           "add the tensor");
    }
    const CheckpointTensor& tensor = plan_.index.tensors[it->second].tensor;
    const Rectangle area{piece.begin, piece.end};
    const std::string range = to_string(piece.begin) + " to " + to_string(piece.end);
    if (!is_inside(area, tensor.shape)) {
      fail(tensor.name, "pieces lie inside its shape " + to_string(tensor.shape), range,
           "pass global indices");
    }
    if (piece.writer < 0 || piece.writer >= options_.writers) {
      fail(tensor.name, str("the piece ", range, " has one of ", options_.writers, " writers"),
           str(piece.writer), "pass the rank of the process that writes it");
    }
    const bool mine = piece.writer == options_.rank;
    const uint64_t bytes = checkpoint_bytes(tensor, area);
    if (mine && piece.data.size() != bytes) {
      fail(tensor.name, str("the piece ", range, " has ", bytes, " bytes"), str(piece.data.size()),
           "pass all of its elements, and no more");
    }
    if (bytes == 0) return;
    pieces_[it->second].push_back({area, mine ? piece.data : Bytes(), piece.writer});
  }

  /// Splits a tensor's pieces to the maximum file size and assigns them to files.
  void assign_to_files(size_t tensor_index) {
    StoredTensor& stored = plan_.index.tensors[tensor_index];
    const CheckpointTensor& tensor = stored.tensor;
    std::vector<Rectangle> areas;
    for (const InputPiece& piece : pieces_[tensor_index]) areas.push_back(piece.area);
    Grid grid;
    const std::string problem = find_grid(tensor.shape, std::move(areas), grid);
    if (!problem.empty()) {
      fail(tensor.name,
           str("the pieces cover its shape ", to_string(tensor.shape), " once, as a grid"), problem,
           "pass each distinct shard once");
    }
    const uint64_t header = header_bound(tensor);
    const uint64_t element = *safetensors_bits(tensor.dtype) / 8;
    if (header + element > options_.max_file_bytes) {
      fail(tensor.name, str("a name that fits a file of ", options_.max_file_bytes, " bytes"),
           str(tensor.name.size(), " bytes"), "use a shorter name, or larger files");
    }
    grid = split_grid(std::move(grid), (options_.max_file_bytes - header) / element);
    for (const InputPiece& piece : pieces_[tensor_index]) {
      uint64_t begin = 0;
      for (const Rectangle& cell : cells_of(grid, piece.area)) {
        const uint64_t size = checkpoint_bytes(tensor, cell);
        const Bytes data = piece.data.empty() ? Bytes() : piece.data.subspan(begin, size);
        append(stored, {cell, data, piece.writer}, size);
        begin += size;
      }
    }
  }

  /// Returns an upper bound of the bytes of a file with a single piece, without the piece's data.
  static uint64_t header_bound(const CheckpointTensor& tensor) {
    const uint64_t name = to_json_text(Json(tensor.name), -1).size();
    return file_bound + name + 160 + 64 * tensor.shape.size();
  }

  void append(StoredTensor& stored, const InputPiece& cell, uint64_t size) {
    const uint64_t needed = header_bound(stored.tensor) - file_bound + size;
    Open& open = open_[static_cast<size_t>(cell.writer)];
    if (!open.shard || open.filled + needed > options_.max_file_bytes) {
      open = {plan_.shards.size(), file_bound};
      plan_.shards.push_back({cell.writer, {}});
    }
    open.filled += needed;
    plan_.shards[*open.shard].contents.push_back({checkpoint_piece_name(stored.tensor, cell.area),
                                                  stored.tensor.dtype, cell.area.shape(),
                                                  cell.data});
    stored.pieces.push_back({*open.shard, cell.area, {}});
  }

  // Bound for length field, braces, metadata and padding.
  static constexpr uint64_t file_bound = 160;

  const std::string& path_;
  const CheckpointWriterOptions& options_;
  CheckpointPlan plan_;
  std::vector<Open> open_;  ///< by writer
  std::unordered_map<std::string, size_t> tensor_indices_;
  std::vector<std::vector<InputPiece>> pieces_;  ///< by tensor
};

}  // namespace

std::string CheckpointPlan::checksum() const {
  std::string text = checkpoint_index_text(index);
  for (const PlannedShard& shard : shards) text += str(shard.writer, ' ');
  return xxh128(std::as_bytes(std::span(text)));
}

CheckpointPlan plan_checkpoint(const std::string& path,
                               const std::vector<CheckpointTensor>& tensors,
                               const std::vector<CheckpointPiece>& pieces,
                               const CheckpointWriterOptions& options) {
  return Planner(path, options, tensors.size()).plan(tensors, pieces);
}

}  // namespace tessera::detail
