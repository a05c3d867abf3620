#include "apps/imdb/corpus.hpp"

#include <iostream>

#include <tessera/framework/training/callbacks/progress_bar.hpp>

#include "apps/common/processes.hpp"

namespace tessera::imdb {

using namespace detail;

namespace {

/// Runs a pass over texts with a headline and a progress bar.
template <class Pass>
void show_pass(const std::string& headline, int64_t texts, int64_t verbose, const Pass& pass) {
  if (verbose > 0) std::cout << headline << std::endl;
  ProgressBar bar({.verbose = static_cast<int>(verbose)});
  bar.start(texts);
  pass({.progress = [&](int64_t done, int64_t) { bar.update(done); }});
  bar.finish();
}

DatasetHandle vectorized(const TextVectorization& vectorize,
                         const std::shared_ptr<const ImdbReviews>& reviews,
                         const std::string& split, int64_t verbose) {
  DatasetHandle data;
  show_pass("Vectorizing the " + split + " reviews", reviews->size(), verbose,
            [&](const TextPassOptions& options) { data = vectorize.dataset(reviews, options); });
  return data;
}

}  // namespace

Corpus read_corpus(const TrainFlags& flags, const app::CommonOptions& common) {
  const ImdbOptions options{.path = common.data_dir, .size = common.train_size, .synthetic = true};
  ImdbSplits splits;
  if (flags.validation) {
    splits = datasets::imdb_splits(options, common.test_size);
  } else {
    splits.train = datasets::imdb(options);
  }
  const int64_t verbose = app::verbosity(common);
  if (verbose > 0) std::cout << splits.train->announcement() << std::endl;

  Corpus corpus{.vectorize = TextVectorization(
                    {.max_tokens = flags.max_tokens, .output_mode = "tf_idf", .name = "words"}),
                .reviews = splits.train};
  show_pass("Learning the vocabulary", splits.train->size(), verbose,
            [&](const TextPassOptions& pass) { corpus.vectorize.adapt(splits.train, pass); });
  corpus.train = vectorized(corpus.vectorize, splits.train, "train", verbose);
  if (splits.test) corpus.test = vectorized(corpus.vectorize, splits.test, "test", verbose);
  return corpus;
}

}  // namespace tessera::imdb
