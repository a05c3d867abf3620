#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tessera::detail {

/// The candidate within a few typing mistakes (Damerau-Levenshtein distance, case ignored) of
/// `word`, the first of the closest; empty where none is close.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

/// What to do about the unknown `word`, to end an error: `write "x"` for the nearest, else
/// `use one of "a", "b"`.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

/// Texts one after the other with `separator` between them.
std::string join(std::span<const std::string> texts, std::string_view separator);

/// Text on one line, for names and values that come from files: control characters and bytes that
/// are not UTF-8 as \xHH, cut with "..." after `max_bytes`.
std::string one_line(std::string_view text, size_t max_bytes = 80);

/// one_line in double quotes.
std::string in_quotes(std::string_view text, size_t max_bytes = 80);

/// `"a", "b", ...`: the texts quoted, at most `max_items` of them.
std::string quoted_list(std::span<const std::string> texts, size_t max_items = 20);

/// Length in bytes of the UTF-8 character that `text` begins with; 0 if it is not valid UTF-8.
size_t utf8_length(std::string_view text);

}  // namespace tessera::detail
