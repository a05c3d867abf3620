#pragma once

#include <string>

#include <tessera/framework/nn/losses/loss.hpp>

namespace tessera {

/// The options of Circle.
struct CircleOptions {
  double gamma = 80;            ///< scale of the terms
  double margin = 0.4;          ///< relaxation of the targets: 1 for matches, 0 for others
  bool remove_diagonal = true;  ///< whether a sample is not its own match
  Reduction reduction = Reduction::sum_over_batch_size;  ///< reduction of the per-sample losses
  std::string name = "circle";                           ///< name in error messages
};

/// Circle loss (keras.losses.Circle; Sun et al., 2020): for each sample, softplus(log-sum-exp over
/// its matches + log-sum-exp over the others). The terms are gamma times the weighted deviation of
/// cosine similarities from their targets. Losses of 0 do not count in a mean.
///
/// Shape: integer labels (batch,) or (batch, 1), embeddings (batch, d) of norm 1 -> (batch,).
/// Communication: all-gathers a sharded batch for the similarities. Throws ShapeError for other
/// shapes.
class Circle : public LossHandle {
 public:
  explicit Circle(CircleOptions options = {});
};

}  // namespace tessera
