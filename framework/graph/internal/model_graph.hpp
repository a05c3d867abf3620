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

/// Throws ConfigError if an output depends on an Input that is not among `inputs`, if an input is
/// no Input's tensor or given twice.
ModelGraph trace_graph(const std::vector<SymbolicTensor>& inputs,
                       const std::vector<SymbolicTensor>& outputs);

}  // namespace tessera::detail
