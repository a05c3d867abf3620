#pragma once

#include <string>

#include <tessera/framework/nn/losses/loss.hpp>

namespace tessera {

/// The options of Circle.
struct CircleOptions {
  double gamma = 80;            ///< what distances are multiplied by
  double margin = 0.4;          ///< how far from 1 matches may be, and others from 0
  bool remove_diagonal = true;  ///< a sample is no match of itself
  Reduction reduction = Reduction::sum_over_batch_size;  ///< how losses become one number
  std::string name = "circle";                           ///< what errors call the loss
};

/// For each sample, softplus(log sum exp over its matches + log sum exp over the others) of how far
/// cosine similarities are from where they should be, times gamma (keras.losses.Circle; Sun et al.,
/// 2020). Losses of 0 do not count in a mean.
///
/// Shape: whole-number labels (batch,) or (batch, 1), embeddings (batch, d) of length 1 ->
/// (batch,).
/// Communication: a batch that is cut is gathered for the similarities. Throws ShapeError for
/// other shapes.
class Circle : public LossHandle {
 public:
  explicit Circle(CircleOptions options = {});
};

}  // namespace tessera
