#pragma once

#include <string>
#include <vector>

namespace tessera::detail {

/// A box of a graph: a layer, or a model that is not unfolded.
struct DotNode {
  /// A line of a box: what it is about on the left, what there is to say on the right.
  struct Row {
    std::string name;
    std::string value;
    bool operator==(const Row&) const = default;
  };
  std::string name;
  std::string type;
  std::vector<Row> rows;
  /// Positions in DotGraph::nodes of what the arrows to this node come from.
  std::vector<int> inputs;
  /// Position in DotGraph::clusters of the nested model it belongs to; -1 for none.
  int cluster = -1;
};

/// A frame around the nodes of a nested model.
struct DotCluster {
  std::string name;
  std::string type;
  /// Position in DotGraph::clusters of the frame around this one; -1 for none.
  int parent = -1;
};

/// A graph for Graphviz. Its texts may hold any bytes.
struct DotGraph {
  std::string title;
  std::vector<DotNode> nodes;
  std::vector<DotCluster> clusters;

  /// The graph in the language DOT, from top to bottom. Several arrows between the same two nodes
  /// are one.
  std::string text() const;
};

}  // namespace tessera::detail
