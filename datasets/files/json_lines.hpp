#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/framework/text/chat_format.hpp>

namespace tessera {

/// A document of a JSON Lines file, from which a language model learns.
struct TrainingDocument {
  std::string text;                   ///< the text, or the completion of `prompt`
  std::string prompt;                 ///< a text before it that the model does not learn to write
  std::vector<ChatMessage> messages;  ///< a chat, in place of both
  int64_t line = 0;                   ///< line of the file, counted from 1
};

namespace detail {

/// Parses the content of an untrusted JSON Lines file; `where` names it in errors. See
/// datasets::read_json_lines().
std::vector<TrainingDocument> parse_json_lines(std::string_view text, const std::string& where);

}  // namespace detail

}  // namespace tessera
