#include "apps/gpt/corpus.hpp"

#include <cctype>
#include <iostream>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/training/callbacks/progress_bar.hpp>

#include "apps/common/processes.hpp"

namespace tessera::gpt {

using namespace detail;

namespace {

/// The reviews of both splits, concatenated.
class AllReviews final : public TextData {
 public:
  AllReviews(ImdbSplits splits, int64_t size) : splits_(std::move(splits)), size_(size) {}
  int64_t size() const override { return size_; }
  std::string_view text(int64_t row) const override {
    const int64_t first = splits_.train->size();
    return row < first ? splits_.train->text(row) : splits_.test->text(row - first);
  }
  std::string name() const override { return splits_.train->name(); }

 private:
  ImdbSplits splits_;
  int64_t size_;
};

/// Texts that are cleaned once and read twice: to learn the vocabulary and to make rows.
class CleanTexts final : public TextData {
 public:
  explicit CleanTexts(const std::string& name) : name_(name) {}
  void add(std::string_view text) { texts_.push_back(cleaned(text)); }
  int64_t size() const override { return std::ssize(texts_); }
  std::string_view text(int64_t row) const override { return texts_[static_cast<size_t>(row)]; }
  std::string name() const override { return name_; }

 private:
  std::string name_;
  std::vector<std::string> texts_;
};

TextVectorizationOptions vectorization(std::optional<int64_t> length) {
  return {.standardize = nullptr, .output_sequence_length = length, .name = "words"};
}

/// Returns whether a row is held out, if `some` of `all` rows are, spread evenly.
bool is_held_out(int64_t row, int64_t some, int64_t all) {
  return (row + 1) * some / all > row * some / all;
}

TensorDataset rows_of(const CleanTexts& texts, const TextVectorization& vectorize, int64_t length) {
  at::Tensor rows = at::empty({texts.size(), length + 1}, at::kLong);
  constexpr int64_t at_a_time = 2048;
  for (int64_t row = 0; row < texts.size(); row += at_a_time) {
    std::vector<std::string_view> some;
    for (int64_t r = row; r < std::min(row + at_a_time, texts.size()); ++r) {
      some.push_back(texts.text(r));
    }
    rows.narrow(0, row, std::ssize(some)).copy_(vectorize.transform(some));
  }
  return TensorDataset(rows.narrow(1, 0, length).contiguous(),
                       rows.narrow(1, 1, length).contiguous(), texts.name());
}

}  // namespace

std::string cleaned(std::string_view text) {
  constexpr std::string_view line_break = "<br />";
  std::string clean;
  clean.reserve(text.size() + text.size() / 8);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, line_break.size()) == line_break) {
      clean += ' ';
      i += line_break.size() - 1;
      continue;
    }
    const auto letter = static_cast<unsigned char>(text[i]);
    if (std::ispunct(letter) && letter != '\\') clean += ' ';
    clean += static_cast<char>(letter < 128 ? std::tolower(letter) : letter);
  }
  return clean;
}

TextVectorization words_of(const std::vector<std::string>& vocabulary,
                           std::optional<int64_t> length) {
  TextVectorizationOptions options = vectorization(length);
  options.vocabulary = vocabulary;
  return TextVectorization(options);
}

Corpus read_corpus(const app::CommonOptions& common, const CorpusOptions& options) {
  const int64_t verbose = app::verbosity(common);
  const ImdbOptions files{.path = common.data_dir, .synthetic = true};
  ImdbSplits splits = datasets::imdb_splits(files);
  if (verbose > 0) std::cout << splits.train->announcement() << std::endl;
  const int64_t all = splits.train->size() + splits.test->size();
  const AllReviews reviews(std::move(splits), std::min(all, common.train_size.value_or(all)));
  const int64_t held_out = options.validation_size;
  if (held_out >= reviews.size()) {
    throw ConfigError("--validation-size", "some reviews are left to train on",
                      str(held_out, " of ", reviews.size()), "hold fewer out");
  }
  const auto training = std::make_shared<CleanTexts>(reviews.name());
  CleanTexts validation(reviews.name());
  for (int64_t row = 0; row < reviews.size(); ++row) {
    const bool is_training = !is_held_out(row, held_out, reviews.size());
    (is_training ? *training : validation).add(reviews.text(row));
  }

  // One token less than the model has, since Keras' example never uses its last one.
  TextVectorizationOptions learning = vectorization(options.length + 1);
  learning.max_tokens = options.vocabulary - 1;
  const TextVectorization vectorize(learning);
  if (verbose > 0) std::cout << "Learning the vocabulary" << std::endl;
  ProgressBar bar({.verbose = static_cast<int>(verbose)});
  bar.start(training->size());
  vectorize.adapt(training, {.progress = [&](int64_t done, int64_t) { bar.update(done); }});
  bar.finish();
  Corpus corpus{rows_of(*training, vectorize, options.length), {}, vectorize.get_vocabulary()};
  if (held_out > 0) corpus.validation = rows_of(validation, vectorize, options.length);
  return corpus;
}

}  // namespace tessera::gpt
