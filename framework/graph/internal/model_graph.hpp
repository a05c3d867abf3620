#pragma once

#include <map>
#include <memory>
#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// The calls between a Functional model's inputs and outputs, in Keras' order: by distance from the
/// outputs, farthest first, then as met on a walk from the outputs.
struct ModelGraph {
  std::vector<std::shared_ptr<const Node>> nodes;
  std::vector<std::shared_ptr<Layer>> layers;
};

/// Collects the calls between inputs and outputs. Throws ConfigError if an output depends on an
/// Input that is not among `inputs`, or if an input was not made by Input() or is given twice.
ModelGraph trace_graph(const std::vector<SymbolicTensor>& inputs,
                       const std::vector<SymbolicTensor>& outputs);

}  // namespace tessera::detail
