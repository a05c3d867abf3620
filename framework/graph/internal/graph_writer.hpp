#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/graph/graph_ends.hpp>
#include <tessera/framework/graph/internal/mask_sources.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// Writes the calls of a Functional model as Keras does, in "inbound_nodes", "input_layers" and
/// "output_layers".
class GraphWriter {
 public:
  /// `call_index`: position of each call among the calls of its layer. `input_keys`: keys of the
  /// inputs of a nested Functional model; empty for other layers.
  GraphWriter(const std::map<const Node*, int64_t>& call_index,
              std::function<std::vector<std::string>(const Layer&)> input_keys)
      : call_index_(call_index), input_keys_(std::move(input_keys)) {}

  /// The arguments of one call, as Keras' layer takes them: a list, one by one, or an RNN's initial
  /// states beside the sequence. Masks are one argument, except for attention. Throws ConfigError
  /// for a layer with several inputs of which some alone have a mask.
  Json call(const Node& node, const MaskFlow& flow) const;
  /// A list, or an object where there are keys. Here alone Keras counts the calls of a Functional
  /// model from 1.
  Json ends(const GraphEnds& ends) const;

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
