#pragma once

#include <string>
#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// What Keras' file of weights keeps of one object, under "path/vars".
struct KerasGroup {
  std::string path;                 ///< "/layers/dense"; empty for the model
  std::string name;                 ///< the object's own, "dense_1"
  const Layer* layer = nullptr;     ///< null for an object that is no layer here
  std::vector<Variable> variables;  ///< in Keras' order: those that train, then the others
};

/// The groups of a model's weights in the order in which Keras saves them. A layer is found by its
/// class and its place, not by its name: the second Conv2D of a Functional model is
/// "/layers/conv2d_1". What a layer has inside is found by the attribute of Keras' class, see
/// Layer::track(); a layer in two places is in the first one.
std::vector<KerasGroup> keras_tree(const Layer& model);

}  // namespace tessera::detail
