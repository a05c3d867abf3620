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

/// Which part of a read is done: several threads do one each.
struct CheckpointShare {
  uint64_t number = 0;
  uint64_t count = 1;
};

/// A checkpoint that write_checkpoint() made, read in parts. It stays readable while it is open,
/// even if another process replaces or removes it, if it has at most 256 files; more are not kept
/// open. Every failure is a FileError naming the file, and the tensor where there is one. May be
/// read by several threads.
class CheckpointReader {
 public:
  /// Reads and checks the index, the files' sizes and their headers, not the tensors' bytes.
  explicit CheckpointReader(const std::string& folder);
  ~CheckpointReader();
  CheckpointReader(CheckpointReader&&) noexcept;

  const std::string& folder() const;

  /// All tensors in the order in which they were written.
  const std::vector<CheckpointTensor>& tensors() const;

  /// The tensor of that name, or nullptr.
  const CheckpointTensor* find(std::string_view name) const;

  /// The tensor of that name. Throws FileError naming the nearest one there is.
  const CheckpointTensor& at(std::string_view name) const;

  /// Fills `out`, row-major, with the elements [begin, end) of a tensor, one pair per axis. Reads
  /// only the chunks that hold them and verifies each; of them those of the `share`, and leaves the
  /// rest of `out` alone. Throws ConfigError for a range outside the tensor or an `out` of another
  /// size, FileError naming a file that is damaged.
  void read(std::string_view name, const Shape& begin, const Shape& end, std::span<std::byte> out,
            CheckpointShare share = {}) const;

  /// The state given to write_checkpoint().
  const Json& state() const;

  /// Verifies every byte. Throws FileError.
  void verify() const;

  /// Bytes of the shard files read so far, headers not counted.
  uint64_t bytes_read() const;

 private:
  struct Content;
  std::unique_ptr<Content> content_;
};

}  // namespace tessera::detail
