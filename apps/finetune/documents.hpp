#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

namespace tessera::finetune {

/// The token ids of a JSON Lines file's documents.
struct TokenizedFile {
  std::vector<TokenDocument> training;
  std::vector<TokenDocument> validation;  ///< held-out documents, spread evenly
  int64_t left_out = 0;                   ///< number of documents of less than two tokens
  int64_t learned = 0;                    ///< number of tokens of `training` that are learned
};

/// Reads and encodes the documents of a file on all of ATen's threads. Texts and completions end
/// with `end_token`, if there is one; chats have the ChatFormat of the tokenizer.
/// `validation_split` is the fraction of documents that are held out. Throws as
/// datasets::read_json_lines() and ChatFormat, naming the line; ConfigError if none is left to
/// learn from.
TokenizedFile tokenize_file(const std::string& path, const Tokenizer& tokenizer,
                            std::optional<int64_t> end_token, double validation_split);

}  // namespace tessera::finetune
