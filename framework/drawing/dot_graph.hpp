#pragma once

#include <string>
#include <vector>

namespace tessera::detail {

/// A box of a graph: a layer, or a model that is not unfolded.
struct DotNode {
  /// A line of a box: a name on the left, a value on the right.
  struct Row {
    std::string name;
    std::string value;
    bool operator==(const Row&) const = default;
  };
  std::string name;
  std::string type;
  std::vector<Row> rows;
  /// Indices in DotGraph::nodes of the nodes with an arrow to this one.
  std::vector<int> inputs;
  /// Index in DotGraph::clusters of the nested model that the node belongs to; -1 for none.
  int cluster = -1;
};

/// A frame around the nodes of a nested model.
struct DotCluster {
  std::string name;
  std::string type;
  /// Index in DotGraph::clusters of the enclosing frame; -1 for none.
  int parent = -1;
};

/// A graph for Graphviz. Its texts may hold any bytes.
struct DotGraph {
  std::string title;
  std::vector<DotNode> nodes;
  std::vector<DotCluster> clusters;

  /// Returns the graph in the language DOT, laid out from top to bottom. Multiple arrows between
  /// the same two nodes are drawn as one.
  std::string text() const;
};

}  // namespace tessera::detail
