#include <tessera/framework/graph/internal/model_graph.hpp>

#include <algorithm>
#include <functional>
#include <set>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

using NodePtr = std::shared_ptr<const Node>;

/// Sorts nodes topologically and records the order in which layers are first visited.
class Walk {
 public:
  explicit Walk(const std::vector<SymbolicTensor>& inputs) {
    for (const SymbolicTensor& input : inputs) entries_.insert(input.node().get());
  }

  void visit(const NodePtr& node) {
    if (done_.contains(node.get())) return;
    first_visits_.try_emplace(node->layer.get(), first_visits_.size());
    const bool entry = entries_.contains(node.get());
    if (!entry && node->inputs.empty()) {
      throw ConfigError(
          "Functional", "every Input that the outputs depend on must be among the inputs",
          str("outputs that depend on another Input of shape ", to_string(node->shapes[0])),
          "add it to the inputs");
    }
    if (!entry) {
      for (const SymbolicTensor& input : node->inputs) visit(input.node());
    }
    done_.insert(node.get());
    order_.push_back(node);
  }

  const std::vector<NodePtr>& order() const { return order_; }
  size_t first_visit(const Layer* layer) const { return first_visits_.at(layer); }
  bool is_entry(const Node* node) const { return entries_.contains(node); }

 private:
  std::set<const Node*> entries_;
  std::set<const Node*> done_;
  std::map<const Layer*, size_t> first_visits_;
  std::vector<NodePtr> order_;
};

void check_ends(const std::vector<SymbolicTensor>& inputs,
                const std::vector<SymbolicTensor>& outputs) {
  if (inputs.empty() || outputs.empty()) {
    throw ConfigError("Functional", "a model must have inputs and outputs",
                      str(inputs.size(), " inputs, ", outputs.size(), " outputs"),
                      "pass Input tensors and tensors computed from them");
  }
  std::set<const Node*> seen;
  for (const SymbolicTensor& input : inputs) {
    if (!input.defined() || !input.node()->inputs.empty()) {
      throw ConfigError(
          "Functional", "a model's inputs must be tensors made by Input()",
          input.defined() ? "an output of " + input.node()->layer->class_name() : "an empty tensor",
          "pass tensors made by Input()");
    }
    if (!seen.insert(input.node().get()).second) {
      throw ConfigError("Functional", "inputs must be distinct", "one Input twice", "list it once");
    }
  }
  for (const SymbolicTensor& output : outputs) {
    if (!output.defined()) {
      throw ConfigError("Functional", "outputs must be tensors", "an empty tensor",
                        "pass a tensor that a layer returned");
    }
    if (output.mask().defined()) {
      throw ConfigError("Functional", "only inputs of calls may have with_mask()",
                        "an output with_mask()",
                        "call the layer that makes the output on a masked input");
    }
  }
}

}  // namespace

ModelGraph trace_graph(const std::vector<SymbolicTensor>& inputs,
                       const std::vector<SymbolicTensor>& outputs) {
  check_ends(inputs, outputs);
  Walk walk(inputs);
  for (const SymbolicTensor& output : outputs) walk.visit(output.node());
  for (const SymbolicTensor& input : inputs) walk.visit(input.node());

  std::map<const Node*, int64_t> node_depth;
  std::map<const Layer*, int64_t> layer_depth;
  for (auto node = walk.order().rbegin(); node != walk.order().rend(); ++node) {
    int64_t& of_layer = layer_depth[(*node)->layer.get()];
    const int64_t depth = std::max(node_depth[node->get()], of_layer);
    node_depth[node->get()] = of_layer = depth;
    if (walk.is_entry(node->get())) continue;
    for (const SymbolicTensor& input : (*node)->inputs) {
      int64_t& before = node_depth[input.node().get()];
      before = std::max(before, depth + 1);
    }
  }
  ModelGraph graph;
  graph.nodes = walk.order();
  std::stable_sort(graph.nodes.begin(), graph.nodes.end(), [&](const auto& a, const auto& b) {
    return node_depth.at(a.get()) > node_depth.at(b.get());
  });
  for (const NodePtr& node : graph.nodes) {
    const auto known = std::find(graph.layers.begin(), graph.layers.end(), node->layer);
    if (known == graph.layers.end()) graph.layers.push_back(node->layer);
  }
  std::stable_sort(graph.layers.begin(), graph.layers.end(), [&](const auto& a, const auto& b) {
    const int64_t deep_a = layer_depth.at(a.get()), deep_b = layer_depth.at(b.get());
    return deep_a != deep_b ? deep_a > deep_b
                            : walk.first_visit(a.get()) < walk.first_visit(b.get());
  });
  return graph;
}

}  // namespace tessera::detail
