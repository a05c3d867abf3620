#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace tessera::detail {

/// Returns a * b; nullopt on 64-bit overflow.
std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b);

/// Returns a + b; nullopt on 64-bit overflow.
std::optional<uint64_t> checked_add(uint64_t a, uint64_t b);

/// Bounds-checked sequential reader of a binary file's bytes. Every failure is a FileError that
/// names the file and the byte offset.
class ByteReader {
 public:
  /// `bytes` must outlive the reader; `file` names them in errors.
  ByteReader(std::span<const std::byte> bytes, std::string file);

  uint8_t u8(const std::string& what);
  uint32_t u32_big_endian(const std::string& what);
  uint64_t u64_little_endian(const std::string& what);

  /// Returns the next `count` bytes.
  std::span<const std::byte> take(uint64_t count, const std::string& what);

  uint64_t offset() const { return offset_; }
  uint64_t remaining() const { return bytes_.size() - offset_; }

  /// Throws FileError at the current offset.
  [[noreturn]] void fail(const std::string& expected, const std::string& received) const;

 private:
  std::span<const std::byte> bytes_;
  std::string file_;
  uint64_t offset_ = 0;
};

/// Throws FileError `[file, byte offset] expected. Received: received. To fix: ...` for a file with
/// invalid content.
[[noreturn]] void fail_at(const std::string& file, uint64_t offset, const std::string& expected,
                          const std::string& received);

}  // namespace tessera::detail
