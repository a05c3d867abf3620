#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tessera::detail {

/// Returns the first candidate closest to `word` (Damerau-Levenshtein distance, case ignored);
/// empty if none is within a few typing mistakes, or within `most`.
std::string nearest(std::string_view word, std::span<const std::string> candidates,
                    size_t most = static_cast<size_t>(-1));

/// Returns the fix for the unknown `word`, for the end of an error: `write "x"` with the nearest
/// candidate, or `use one of "a", "b"`.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

/// Concatenates texts with `separator` between them.
std::string join(std::span<const std::string> texts, std::string_view separator);

/// Sanitizes names and values that come from files: returns one line, with control characters and
/// invalid UTF-8 as \xHH, truncated with "..." after `max_bytes`.
std::string one_line(std::string_view text, size_t max_bytes = 80);

/// Returns one_line() in double quotes.
std::string in_quotes(std::string_view text, size_t max_bytes = 80);

/// Returns `"a", "b", ...`: at most `max_items` texts, quoted.
std::string quoted_list(std::span<const std::string> texts, size_t max_items = 20);

/// Returns the length in bytes of the first UTF-8 character of `text`; 0 if it is invalid.
size_t utf8_length(std::string_view text);

/// Appends a character in UTF-8.
void append_utf8(std::string& text, char32_t c);

}  // namespace tessera::detail
