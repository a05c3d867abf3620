#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/tessera.hpp>

#include "apps/common/app_options.hpp"

namespace tessera::gpt {

/// Reviews as numbers of words.
struct Corpus {
  TensorDataset data;                    ///< words, and the same one further, int64 (rows, length)
  std::vector<std::string> vocabulary;   ///< words by number: 0 is padding, 1 any other word
};

/// A text in small letters, line breaks as blanks, and each punctuation mark a word of its own: as
/// Keras' example has it, which leaves a backslash where it is.
std::string cleaned(std::string_view text);

/// What adapt() learned, as a layer that makes `length` numbers of a text, or as many as it has.
TextVectorization words_of(const std::vector<std::string>& vocabulary,
                           std::optional<int64_t> length = std::nullopt);

/// Reads the reviews of IMDB, all of both splits unless the options say fewer, and makes rows of
/// them: `length` words of a known `vocabulary`, and the words that follow them.
Corpus read_corpus(const app::CommonOptions& common, int64_t length, int64_t vocabulary);

}  // namespace tessera::gpt
