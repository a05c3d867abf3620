#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>

namespace tessera::detail {

/// A range of bytes of a text that becomes tokens by itself.
struct TextPiece {
  size_t begin = 0;
  size_t end = 0;
  bool is_first = false;  ///< whether it is at the beginning of the user's text
  int32_t token = -1;     ///< the added token that it is, if any
};

/// A normalized text and its pieces, in order.
struct SplitText {
  std::string text;
  std::vector<TextPiece> pieces;
};

/// Splits pieces further. Thread-safe.
using PreTokenizer = std::function<void(SplitText& text)>;

/// A pre-tokenizer, and what to do with its pieces.
struct PreTokenizing {
  PreTokenizer split = nullptr;  ///< empty: every text is one piece
  /// Whether the model gets the characters that stand for the pieces' bytes.
  bool byte_level = false;
};

/// Makes a pre-tokenizer from its object in tokenizer.json; an empty one from null. Throws
/// ConfigError naming the file, the path, and a kind that is not implemented.
PreTokenizing make_pre_tokenizer(const Json& json, const JsonPath& path);

/// Replaces the bytes of all pieces by the characters that stand for them.
void to_byte_characters(SplitText& text);

}  // namespace tessera::detail
