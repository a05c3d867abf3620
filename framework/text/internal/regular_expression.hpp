#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::detail {

/// A half-open range of bytes of a text.
struct TextRange {
  size_t begin = 0;
  size_t end = 0;
};

/// A regular expression of a file, in Oniguruma's syntax. Patterns and texts are untrusted:
/// callouts are refused, and a search may backtrack only so often. Thread-safe.
class RegularExpression {
 public:
  /// `where` names the pattern in errors. Throws ConfigError for an invalid or too long pattern.
  RegularExpression(const std::string& pattern, std::string where);

  /// Replaces `out` by all matches in valid UTF-8, in order, without overlaps; an empty match that
  /// directly follows another match is none. Throws ConfigError naming the pattern if a search
  /// exceeds its limits.
  void find_all(std::string_view text, std::vector<TextRange>& out) const;

 private:
  std::shared_ptr<void> compiled_;
  std::string where_;
};

}  // namespace tessera::detail
