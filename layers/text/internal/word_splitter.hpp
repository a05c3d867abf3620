#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/layers/text/text_steps.hpp>

namespace tessera::detail {

/// The tokens of one text, stored with a space between them, so that an n-gram is a substring.
class Tokens {
 public:
  void clear() { ends_.clear(), used_ = 0; }
  void add(std::string_view token);
  int64_t size() const { return static_cast<int64_t>(ends_.size()); }
  /// Returns `n` tokens from the i-th on, joined by spaces.
  std::string_view joined(int64_t i, int64_t n = 1) const {
    const size_t begin = i == 0 ? 0 : ends_[static_cast<size_t>(i - 1)] + 1;
    return {bytes_.data() + begin, ends_[static_cast<size_t>(i + n - 1)] - begin};
  }

  /// Returns space for at least `bytes` more bytes, to write a token directly; end_token() takes
  /// the end of a token written there.
  char* room(size_t bytes) {
    const size_t needed = used_ + bytes + 1;
    if (needed > bytes_.size()) bytes_.resize(std::max(needed, bytes_.size() * 2));
    return bytes_.data() + used_;
  }
  void end_token(char* end) {
    *end = ' ';
    ends_.push_back(static_cast<size_t>(end - bytes_.data()));
    used_ = ends_.back() + 1;
  }

 private:
  std::vector<char> bytes_;
  size_t used_ = 0;
  std::vector<size_t> ends_;
};

/// Standardizes and splits texts like keras.layers.TextVectorization: bytes beyond ASCII are
/// unchanged, and words are separated by ASCII's space, \t, \n, \v, \f and \r only. "character"
/// yields one token for each UTF-8 character, and U+FFFD for each maximal subpart of an invalid
/// one.
class WordSplitter {
 public:
  /// Throws ConfigError for an unknown name.
  WordSplitter(const Standardize& standardize, const Split& split);
  /// Replaces `out` by the tokens of a text.
  void operator()(std::string_view text, Tokens& out) const;

 private:
  std::string standardized(std::string_view text) const;
  void split_words(std::string_view text, Tokens& out) const;

  Standardize standardize_;
  Split split_;
  std::array<uint16_t, 256> map_;  ///< replacement of each byte, `dropped` or `space`
};

}  // namespace tessera::detail
