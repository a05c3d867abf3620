#include <tessera/framework/io/format/checkpoint_reader.hpp>

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unordered_map>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/io/format/checkpoint_files.hpp>
#include <tessera/framework/io/format/checkpoint_path.hpp>
#include <tessera/framework/io/format/rectangle_runs.hpp>
#include <tessera/framework/io/format/safetensors_header.hpp>

namespace tessera::detail {
namespace {

uint64_t chunk_size(uint64_t piece_bytes, uint64_t chunk) {
  return std::min(checkpoint_chunk_bytes, piece_bytes - chunk * checkpoint_chunk_bytes);
}

/// Opens a checkpoint; retries if it is replaced meanwhile.
std::unique_ptr<CheckpointFiles> open_files(const CheckpointPath& checkpoint) {
  constexpr int attempts = 20;
  for (int attempt = 1;; ++attempt) {
    FileDescriptor opened = open_descriptor(checkpoint.path(), O_RDONLY | O_DIRECTORY);
    if (!opened.valid() && errno == ENOENT) {
      opened = open_descriptor(checkpoint.previous(), O_RDONLY | O_DIRECTORY);
    }
    if (!opened.valid()) {
      if (errno != ENOENT) fail_read(checkpoint.path());
      if (attempt < attempts) continue;
      throw FileError(checkpoint.path(), "the checkpoint must exist", std::strerror(ENOENT),
                      "pass a folder that save() wrote");
    }
    const auto folder = std::make_shared<const FileDescriptor>(std::move(opened));
    try {
      return std::make_unique<CheckpointFiles>(folder, checkpoint.path());
    } catch (const FileError&) {
      if (attempt == attempts || is_at(*folder, checkpoint.path())) throw;
    }
  }
}

/// Reads a share of a piece's chunks in ascending order, each chunk at most once.
class PieceReader {
 public:
  PieceReader(const CheckpointFiles& files, size_t tensor, size_t piece, CheckpointShare share)
      : files_(files),
        tensor_(tensor),
        piece_(piece),
        bytes_(checkpoint_bytes(stored().tensor, stored().pieces[piece].area)) {
    const uint64_t chunks = checkpoint_chunks(bytes_);
    begin_ = chunks * share.number / share.count * checkpoint_chunk_bytes;
    end_ = chunks * (share.number + 1) / share.count * checkpoint_chunk_bytes;
  }

  /// Copies the bytes from `begin` on that belong to the share.
  void copy(uint64_t begin, std::span<std::byte> out) {
    const uint64_t first = std::max(begin, begin_);
    const uint64_t end = std::min(begin + out.size(), end_);
    if (first >= end) return;
    out = out.subspan(first - begin, end - first);
    begin = first;
    while (!out.empty()) {
      const uint64_t chunk = begin / checkpoint_chunk_bytes;
      const uint64_t skipped = begin % checkpoint_chunk_bytes;
      const uint64_t size = chunk_size(bytes_, chunk);
      const uint64_t count = std::min(size - skipped, out.size());
      if (count == size) {
        files_.read_chunk(tensor_, piece_, chunk, out.first(count));
      } else {
        load(chunk, size);
        std::memcpy(out.data(), buffer_.data() + skipped, count);
      }
      begin += count;
      out = out.subspan(count);
    }
  }

  /// Copies the elements that the piece and `requested` have in common into `out`, the buffer of
  /// `requested`.
  void copy(const Rectangle& requested, std::span<std::byte> out) {
    const Rectangle& area = stored().pieces[piece_].area;
    const uint64_t element = *safetensors_bits(stored().tensor.dtype) / 8;
    for_each_run(area, requested, element, [&](const CommonRun& run) {
      copy(run.source, out.subspan(run.target, run.bytes));
    });
  }

 private:
  const StoredTensor& stored() const { return files_.index().tensors[tensor_]; }

  void load(uint64_t chunk, uint64_t size) {
    if (!buffer_.empty() && chunk == loaded_) return;
    buffer_.resize(size);
    files_.read_chunk(tensor_, piece_, chunk, buffer_);
    loaded_ = chunk;
  }

  const CheckpointFiles& files_;
  size_t tensor_;
  size_t piece_;
  uint64_t bytes_;
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
  uint64_t loaded_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace

struct CheckpointReader::Content {
  std::unique_ptr<CheckpointFiles> files;
  std::vector<CheckpointTensor> tensors;
  std::unordered_map<std::string_view, size_t> tensor_indices;
};

CheckpointReader::CheckpointReader(const std::string& folder)
    : content_(std::make_unique<Content>()) {
  content_->files = open_files(split_checkpoint_path(folder));
  for (const StoredTensor& stored : content_->files->index().tensors) {
    content_->tensors.push_back(stored.tensor);
  }
  for (size_t i = 0; i < content_->tensors.size(); ++i) {
    content_->tensor_indices.emplace(content_->tensors[i].name, i);
  }
}

CheckpointReader::~CheckpointReader() = default;
CheckpointReader::CheckpointReader(CheckpointReader&&) noexcept = default;

const std::string& CheckpointReader::folder() const { return content_->files->path(); }

const std::vector<CheckpointTensor>& CheckpointReader::tensors() const { return content_->tensors; }

const CheckpointTensor* CheckpointReader::find(std::string_view name) const {
  const auto found = content_->tensor_indices.find(name);
  return found == content_->tensor_indices.end() ? nullptr : &content_->tensors[found->second];
}

const CheckpointTensor& CheckpointReader::at(std::string_view name) const {
  const CheckpointTensor* tensor = find(name);
  if (tensor != nullptr) return *tensor;
  std::vector<std::string> names;
  for (const CheckpointTensor& each : tensors()) names.push_back(each.name);
  throw FileError(folder(), str("the checkpoint must hold the tensor ", in_quotes(name)),
                  names.empty() ? "no tensors" : quoted_list(names),
                  "pass a checkpoint of this model, or " + suggestion(name, names));
}

void CheckpointReader::read(std::string_view name, const Shape& begin, const Shape& end,
                            std::span<std::byte> out, CheckpointShare share) const {
  const CheckpointTensor& tensor = at(name);
  const std::string where = str(folder(), ", tensor ", in_quotes(name));
  const Rectangle requested{begin, end};
  if (!is_inside(requested, tensor.shape)) {
    throw ConfigError(where, "a range inside its shape " + to_string(tensor.shape),
                      to_string(begin) + " to " + to_string(end), "pass global indices");
  }
  if (out.size() != checkpoint_bytes(tensor, requested)) {
    throw ConfigError(where, str("room for ", checkpoint_bytes(tensor, requested), " bytes"),
                      str(out.size()), "pass a buffer of that size");
  }
  const size_t tensor_index = content_->tensor_indices.at(name);
  const size_t pieces = content_->files->index().tensors[tensor_index].pieces.size();
  for (size_t i = 0; i < pieces; ++i) {
    PieceReader(*content_->files, tensor_index, i, share).copy(requested, out);
  }
}

const Json& CheckpointReader::state() const { return content_->files->index().state; }

void CheckpointReader::verify() const {
  const CheckpointFiles& files = *content_->files;
  files.verify_headers();
  std::vector<std::byte> buffer(checkpoint_chunk_bytes);
  for (size_t t = 0; t < files.index().tensors.size(); ++t) {
    const StoredTensor& stored = files.index().tensors[t];
    for (size_t p = 0; p < stored.pieces.size(); ++p) {
      const uint64_t bytes = checkpoint_bytes(stored.tensor, stored.pieces[p].area);
      for (uint64_t chunk = 0; chunk < checkpoint_chunks(bytes); ++chunk) {
        files.read_chunk(t, p, chunk, std::span(buffer).first(chunk_size(bytes, chunk)));
      }
    }
  }
}

uint64_t CheckpointReader::bytes_read() const { return content_->files->bytes_read(); }

}  // namespace tessera::detail
