#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <tessera/datasets/files/packed_file.hpp>

namespace tessera::detail {

/// The text of a file as UTF-8, decompressed and decoded while it is read.
class CsvText {
 public:
  /// `encoding`: "utf-8", "latin-1", "cp1252" or "utf-16". Throws ConfigError that suggests the
  /// nearest for another one, FileError as PackedFile.
  CsvText(const std::string& path, const std::string& encoding);

  /// Reads the next bytes into `out`; returns how many, fewer than out.size() only at the end.
  /// Throws FileError naming the line for bytes that are not of the encoding.
  size_t read(std::span<std::byte> out);

  /// Returns ", line 12" for a byte of the text; lines end in \n, \r\n or \r.
  std::string line_at(uint64_t offset) const;

 private:
  enum class Encoding { utf8, latin1, cp1252, utf16 };

  size_t read_utf8(std::span<std::byte> out);
  void check_utf8(std::string_view text);
  [[noreturn]] void fail_utf8(std::string_view context, uint64_t offset) const;
  void decode_block();
  void decode_utf16();
  [[noreturn]] void fail_decoding(const std::string& received) const;

  std::string path_;
  std::string name_;  ///< the encoding's name
  Encoding encoding_;
  PackedFile file_;
  uint64_t read_ = 0;      ///< bytes of text that were read
  std::string partial_;    ///< the begin of a character at the end of a block
  std::string decoded_;    ///< decoded text that is not taken yet
  size_t taken_ = 0;       ///< bytes of `decoded_` that were taken
  std::string undecoded_;  ///< stored bytes
  bool ended_ = false;
  bool big_endian_ = false;
  bool begun_ = false;
};

}  // namespace tessera::detail
