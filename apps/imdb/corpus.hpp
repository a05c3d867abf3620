#pragma once

#include <tessera/datasets/imdb.hpp>
#include <tessera/framework/data/dataset.hpp>
#include <tessera/layers/text/text_vectorization.hpp>

#include "apps/imdb/train_options.hpp"

namespace tessera::imdb {

/// The reviews as rows of tf-idf weights, and the layer that makes them.
struct Corpus {
  TextVectorization vectorize;
  std::shared_ptr<const ImdbReviews> reviews;  ///< those trained on
  DatasetHandle train = {};
  DatasetHandle test = {};  ///< none without --validation
};

/// Reads the reviews, learns the vocabulary of those to train on and vectorizes them, with a
/// progress bar for each.
Corpus read_corpus(const TrainFlags& flags, const app::CommonOptions& common);

}  // namespace tessera::imdb
