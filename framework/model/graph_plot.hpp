#pragma once

#include <string>
#include <vector>

namespace tessera {

/// A box of a graph's picture: a layer, or one call of it.
struct GraphNode {
  std::string name;
  std::string type;
  /// Texts below the head: output shape, layout, number of parameters, …
  std::vector<std::string> lines;
  /// Positions in Graph::nodes of what it is called on.
  std::vector<int> inputs;
  /// Position in Graph::groups of the nested model it belongs to; -1 for none.
  int group = -1;
};

/// A frame around the nodes of a nested model.
struct GraphGroup {
  std::string title;
  /// The group around it, which comes earlier in Graph::groups; -1 for none.
  int parent = -1;
};

/// What graph_svg draws.
struct Graph {
  std::string title;
  std::vector<GraphNode> nodes;
  std::vector<GraphGroup> groups;
};

/// The graph as an SVG picture, from top to bottom: each node in the layer that the longest path to
/// it gives, arrows around the boxes, groups framed. Cycles, as a layer that is called on its own
/// output makes, are drawn with an arrow upwards. Throws ConfigError for an input or group that
/// does not exist. Keras name: keras.utils.plot_model.
std::string graph_svg(const Graph& graph);

}  // namespace tessera
