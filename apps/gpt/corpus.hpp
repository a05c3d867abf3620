#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/tessera.hpp>

#include "apps/common/app_options.hpp"

namespace tessera::gpt {

/// Reviews as token ids.
struct Corpus {
  TensorDataset data;  ///< x: token ids; y: x shifted by one word; int64 (rows, length)
  std::optional<TensorDataset> validation;  ///< held-out reviews in the same format, if any
  std::vector<std::string> vocabulary;      ///< words by token id: 0 is padding, 1 unknown words
};

/// Returns a text in lower case, with line breaks as blanks and each punctuation mark as a word of
/// its own. Like Keras' example, it does not separate backslashes.
std::string cleaned(std::string_view text);

/// Makes a layer with this vocabulary that returns `length` token ids per text (default: as many as
/// the text has).
TextVectorization words_of(const std::vector<std::string>& vocabulary,
                           std::optional<int64_t> length = std::nullopt);

/// The options of read_corpus().
struct CorpusOptions {
  int64_t length = 80;         ///< number of words of a row
  int64_t vocabulary = 20000;  ///< vocabulary size, including padding and unknown words
  /// Number of held-out reviews, spread evenly. The vocabulary is learned without them.
  int64_t validation_size = 0;
};

/// Reads and vectorizes IMDB's reviews of both splits, at most `common.train_size`. Throws
/// ConfigError if no review would be left to train on.
Corpus read_corpus(const app::CommonOptions& common, const CorpusOptions& options);

}  // namespace tessera::gpt
