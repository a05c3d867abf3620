#include "apps/imdb/models.hpp"

namespace tessera::imdb {

using namespace detail;

namespace {

/// Returns an initializer with tf.random.stateless_normal's numbers for this seed.
InitializerHandle stateless_normal_from(const Seed& seed) {
  return RandomNormal({.stddev = 1, .seed = seed});
}

std::vector<LayerHandle> sentiment_layers() {
  return {Dense(48, {.activation = "relu",
                     .kernel_initializer = stateless_normal_from({1, 2}),
                     .name = "dense1"}),
          BatchNormalization({.epsilon = 1e-5, .center = false, .scale = false, .name = "bn"}),
          Dense(2, {.kernel_initializer = stateless_normal_from({3, 4}), .name = "dense2"})};
}

}  // namespace

SentimentModel::SentimentModel() : SequentialModel(sentiment_layers(), {.name = "sentiment"}) {}

StepValues SentimentModel::train_step(const Batch& batch) {
  GradientTape tape;
  const std::vector<DTensor> y_pred = outputs(batch.x, training_context());
  const DTensor loss = compute_loss(batch, y_pred);
  minimize(loss * static_cast<double>(batch.rows), tape);
  update_metrics(batch, y_pred);
  return loss;
}

ModelHandle sentiment_model() { return ModelHandle(std::make_shared<SentimentModel>()); }

}  // namespace tessera::imdb
