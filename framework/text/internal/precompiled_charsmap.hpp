#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::detail {

/// The table by which SentencePiece normalizes: a double array (Darts) from characters to their
/// replacements. Thread-safe.
class PrecompiledCharsmap {
 public:
  /// Reads the bytes of a table; `where` names them in errors. Throws ConfigError for damaged ones.
  PrecompiledCharsmap(std::string_view bytes, const std::string& where);

  /// Replaces grapheme clusters of at most five bytes, and otherwise characters.
  void apply(std::string& text) const;

 private:
  /// Returns the replacement of the shortest beginning of `text` that has one.
  std::optional<std::string_view> replacement(std::string_view text) const;

  std::vector<uint32_t> units_;
  std::string replacements_;  ///< each ends with a NUL
};

}  // namespace tessera::detail
