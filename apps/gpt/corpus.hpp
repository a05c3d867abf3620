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
  TensorDataset data;  ///< words, and the same one further, int64 (rows, length)
  std::optional<TensorDataset> validation;  ///< the same of reviews that are held out, if any are
  std::vector<std::string> vocabulary;      ///< words by number: 0 is padding, 1 any other word
};

/// A text in small letters, line breaks as blanks, and each punctuation mark a word of its own: as
/// Keras' example has it, which leaves a backslash where it is.
std::string cleaned(std::string_view text);

/// What adapt() learned, as a layer that makes `length` numbers of a text, or as many as it has.
TextVectorization words_of(const std::vector<std::string>& vocabulary,
                           std::optional<int64_t> length = std::nullopt);

/// How reviews become rows.
struct CorpusOptions {
  int64_t length = 80;         ///< words of a row, and the words that follow them
  int64_t vocabulary = 20000;  ///< words that are known, with those for padding and all others
  /// Reviews that are held out, evenly among all. The vocabulary is learned without them.
  int64_t validation_size = 0;
};

/// Reads the reviews of IMDB, all of both splits unless `common` says fewer, and makes rows of
/// them. Throws ConfigError where no review would be left to train on.
Corpus read_corpus(const app::CommonOptions& common, const CorpusOptions& options);

}  // namespace tessera::gpt
