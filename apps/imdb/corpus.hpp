#pragma once

#include <tessera/datasets/imdb.hpp>
#include <tessera/framework/data/dataset.hpp>
#include <tessera/layers/text/text_vectorization.hpp>

#include "apps/imdb/train_options.hpp"

namespace tessera::imdb {

/// Reviews as rows of tf-idf weights, and the layer that computes them.
struct Corpus {
  TextVectorization vectorize;
  std::shared_ptr<const ImdbReviews> reviews;  ///< the training reviews
  DatasetHandle train = {};
  DatasetHandle test = {};  ///< null without --validation
};

/// Reads the reviews, learns the vocabulary of the training reviews and vectorizes all, with a
/// progress bar for each pass.
Corpus read_corpus(const TrainFlags& flags, const app::CommonOptions& common);

}  // namespace tessera::imdb
