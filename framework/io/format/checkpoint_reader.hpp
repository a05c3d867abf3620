#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/framework/io/format/checkpoint_writer.hpp>

namespace tessera::detail {

/// The share of a read that one of `count` threads does.
struct CheckpointShare {
  uint64_t number = 0;
  uint64_t count = 1;
};

/// Reads checkpoints of write_checkpoint() in parts. A checkpoint of at most 256 files stays
/// readable while it is open, even if another process replaces or removes it; further files are not
/// kept open. Every failure is a FileError naming the file, and the tensor if there is one.
/// Thread-safe for reads.
class CheckpointReader {
 public:
  /// Reads and checks the index, file sizes and headers, but not the tensors' bytes.
  explicit CheckpointReader(const std::string& folder);
  ~CheckpointReader();
  CheckpointReader(CheckpointReader&&) noexcept;

  const std::string& folder() const;

  /// Returns all tensors in the order in which they were written.
  const std::vector<CheckpointTensor>& tensors() const;

  /// Returns the tensor called `name`, or nullptr.
  const CheckpointTensor* find(std::string_view name) const;

  /// Returns the tensor called `name`. Throws FileError naming the most similar name.
  const CheckpointTensor& at(std::string_view name) const;

  /// Fills `out`, row-major, with the elements [begin, end) of a tensor, one pair per axis. Reads
  /// and verifies only the chunks that contain them, and of these only those of the `share`; leaves
  /// the rest of `out` unchanged. Throws ConfigError for a range outside the tensor or an `out` of
  /// another size, FileError naming a damaged file.
  void read(std::string_view name, const Shape& begin, const Shape& end, std::span<std::byte> out,
            CheckpointShare share = {}) const;

  /// Returns the state given to write_checkpoint().
  const Json& state() const;

  /// Verifies every byte. Throws FileError.
  void verify() const;

  /// Returns the bytes of the shard files read so far, without headers.
  uint64_t bytes_read() const;

 private:
  struct Content;
  std::unique_ptr<Content> content_;
};

}  // namespace tessera::detail
