#pragma once

#include <vector>

#include <tessera/framework/drawing/svg.hpp>

namespace tessera {

/// A box of a drawing in layers.
struct LayeredBox {
  double width = 0;
  double height = 0;
  /// 0 to be placed freely, -1 in the first layer, 1 in the last.
  int pin = 0;
  /// Filled in: the middle of the upper edge.
  Point top = {};
};

/// An arrow from the lower edge of a box to the upper edge of another.
struct LayeredEdge {
  int from = 0;
  int to = 0;
  /// Where it leaves and ends: pixels right of the boxes' middles.
  double from_offset = 0;
  double to_offset = 0;
  /// Filled in: points of the way, each entered and left vertically. Of an edge that closes a cycle
  /// they go from the upper box down to the lower one, whichever end is which.
  std::vector<Point> way = {};
  bool reversed = false;
};

/// Boxes and arrows, arranged in layers from top to bottom.
struct LayeredDrawing {
  std::vector<LayeredBox> boxes;
  /// No edge joins a box with itself.
  std::vector<LayeredEdge> edges;
  /// Filled in.
  double width = 0;
  double height = 0;
};

/// Places the boxes, each in the layer that the longest path to it gives, and leads the edges
/// around them: Sugiyama's method, with barycentre ordering and least-squares positions.
void place_in_layers(LayeredDrawing& drawing);

}  // namespace tessera
