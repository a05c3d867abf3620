#pragma once

#include <vector>

#include <tessera/framework/drawing/svg.hpp>
#include <tessera/framework/model/graph_plot.hpp>

namespace tessera {

/// A rectangle of a picture.
struct Frame {
  Point corner;
  double width = 0;
  double height = 0;
};

/// An arrow between two nodes.
struct GraphArrow {
  int from = 0;
  int to = 0;
  /// Points from the one to the other, each entered and left vertically; empty if both are one.
  std::vector<Point> way = {};
};

/// Where everything of a graph's picture lies, from (0, 0) on.
struct GraphPlacement {
  std::vector<Frame> nodes;
  std::vector<Frame> groups;
  std::vector<GraphArrow> arrows;
  double width = 0;
  double height = 0;
};

/// Places nodes of these sizes: each group is laid out by itself, from the innermost on, and is one
/// box for the group around it. Its arrows pass the frame at its upper and lower edge.
GraphPlacement place_graph(const Graph& graph, const std::vector<Frame>& sizes);

}  // namespace tessera
