#pragma once

#include <string>
#include <vector>

#include <tessera/framework/io/keras/keras_values.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// The variables of an optimizer as Keras orders them, under "path/vars".
struct OptimizerGroup {
  std::string path;  ///< "/optimizer"
  std::string name;  ///< the optimizer's own
  std::vector<KerasValue> values;
};

/// The data that a compiled model's optimizer, which is built for the trainable weights, takes of
/// Keras' file; none if the file has none, or a warning if it is of another optimizer.
std::vector<KerasMatch> match_optimizer(const Layer& model, const KerasStore& store);

/// The groups of a compiled model's optimizer, as in Keras without slots before its first step;
/// none without one.
std::vector<OptimizerGroup> optimizer_groups(const Layer& model);

}  // namespace tessera::detail
