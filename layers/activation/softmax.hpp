#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of Softmax.
struct SoftmaxOptions {
  std::vector<int64_t> axis = {-1};  ///< axes over whose elements y sums to 1
  std::string name = "";             ///< first component of the weights' paths
  std::string dtype = "";            ///< dtype policy (default: the global policy)
  bool trainable = true;             ///< whether training changes the weights
};

/// y = exp(x) / sum(exp(x)) over axes (keras.layers.Softmax). A second input, or without one the
/// mask of the first, selects elements: true, or greater than 1/2; it broadcasts to x. Other
/// elements give 0 and count as -1e9 in the sums.
///
/// Shape: (batch, …) -> (batch, …). The mask passes through. Throws ShapeError for an axis that the
/// input lacks and for a mask that does not broadcast.
/// Communication: none if the axes are replicated; if they are sharded, all-reduces of a maximum
/// and a sum.
class Softmax : public LayerHandle {
 public:
  /// Throws ConfigError for no axes.
  explicit Softmax(const SoftmaxOptions& options = {});
};

}  // namespace tessera
