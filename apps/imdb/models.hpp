#pragma once

#include <tessera/tessera.hpp>

namespace tessera::imdb {

using namespace detail;

/// The DTensor tutorial's classifier of reviews, a Sequential of
///
///     Dense(48, relu) "dense1", BatchNormalization "bn" without gamma and beta, Dense(2) "dense2"
///
/// whose kernels are normal draws from the stateless seeds (1, 2) and (3, 4). A training step
/// minimizes the *sum* of the losses of a batch but reports their mean: compile it with a loss that
/// is a mean over the batch.
class SentimentModel final : public SequentialModel {
 public:
  SentimentModel();
  StepValues train_step(const Batch& batch) override;
};

/// Returns a SentimentModel; its input is (batch, tokens).
ModelHandle sentiment_model();

}  // namespace tessera::imdb
