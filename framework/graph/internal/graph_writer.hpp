#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/graph/internal/mask_sources.hpp>
#include <tessera/framework/graph/symbolic_tensors.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// Writes the calls of a Functional model as Keras does: "inbound_nodes", "input_layers" and
/// "output_layers".
class GraphWriter {
 public:
  /// `call_index`: index of each call among its layer's calls, reversed ones included.
  /// `input_keys`: returns the keys of a nested Functional model's inputs; empty for other layers.
  GraphWriter(const std::map<const Node*, int64_t>& call_index,
              std::function<std::vector<std::string>(const Layer&)> input_keys)
      : call_index_(call_index), input_keys_(std::move(input_keys)) {}

  /// Returns the arguments of one call as Keras' layer takes them: a list, separate arguments, or
  /// an RNN's initial states besides the sequence. Masks are one argument, except for attention.
  /// Throws ConfigError for a layer with several inputs of which only some are given a mask.
  Json call(const Node& node, const MaskFlow& flow) const;
  /// Returns a list, or an object if there are keys. Only here does Keras count the calls of a
  /// Functional model from 1.
  Json ends(const SymbolicTensors& ends) const;

 private:
  Json history_json(const SymbolicTensor& tensor) const;
  Json tensor_json(const SymbolicTensor& tensor) const;
  Json with_tensors(const Node& node, const Json& json) const;
  Json operation_call_json(const Node& node) const;
  Json keyed(const Layer& layer, const Json& values) const;

  const std::map<const Node*, int64_t>& call_index_;
  std::function<std::vector<std::string>(const Layer&)> input_keys_;
};

}  // namespace tessera::detail
