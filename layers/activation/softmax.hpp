#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of Softmax.
struct SoftmaxOptions {
  std::vector<int64_t> axis = {-1};  ///< axes over whose elements together the sum is 1
  std::string name = "";             ///< first part of the weights' paths
  std::string dtype = "";            ///< policy; the default one if empty
  bool trainable = true;             ///< whether training changes the weights
};

/// y = exp(x) / sum(exp(x)) over axes (keras.layers.Softmax). A second input, or else the mask of
/// the first, says which elements take part: bool, or numbers above 1/2; it broadcasts to x. Others
/// give 0, and -1e9 stands for them in the sums.
///
/// Shape: (batch, …) -> (batch, …). The mask stays. Throws ShapeError for an axis that the input
/// has not, and for a mask that does not broadcast.
/// Communication: none if the axes are whole; over sharded ones a maximum and a sum are
/// all-reduced.
class Softmax : public LayerHandle {
 public:
  /// Throws ConfigError for no axes.
  explicit Softmax(const SoftmaxOptions& options = {});
};

}  // namespace tessera
