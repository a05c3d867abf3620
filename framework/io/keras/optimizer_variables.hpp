#pragma once

#include <string>
#include <vector>

#include <tessera/framework/io/keras/keras_values.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// The variables of an optimizer in Keras' order, under "path/vars".
struct OptimizerGroup {
  std::string path;  ///< "/optimizer"
  std::string name;  ///< name of the optimizer
  std::vector<KerasValue> values;
};

/// Builds a compiled model's optimizer for the trainable weights and matches its variables with
/// Keras' file. Empty if the file has none, or, with a warning, if they are another optimizer's.
std::vector<KerasMatch> match_optimizer(const Layer& model, const KerasStore& store);

/// Returns the groups of a compiled model's optimizer; as in Keras, without slots before the first
/// step. Empty without an optimizer.
std::vector<OptimizerGroup> optimizer_groups(const Layer& model);

}  // namespace tessera::detail
