#pragma once

#include <string>
#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// One object in Keras' weights file; its variables are under "path/vars".
struct KerasGroup {
  std::string path;  ///< "/layers/dense"; empty for the model
  /// The path if each layer with weights counts twice in its list, as in Keras 2.13's Functional
  /// models: the second Conv2D is "/layers/conv2d_2".
  std::string path_counted_twice;
  std::string name;                 ///< name of the object, "dense_1"
  const Layer* layer = nullptr;     ///< null for an object that is not a layer here
  std::vector<Variable> variables;  ///< in Keras' order: trainable ones first
};

/// Returns the groups of a model's weights in the order in which Keras saves them. A layer is found
/// by its class and index, not by its name: the second Conv2D of a Functional model is
/// "/layers/conv2d_1". A layer's sublayers are found by the attributes of Keras' class, see
/// Layer::track(); a shared layer is at its first position.
std::vector<KerasGroup> keras_tree(const Layer& model);

}  // namespace tessera::detail
