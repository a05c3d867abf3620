#pragma once

#include <vector>

#include <tessera/framework/model/layered_layout.hpp>

namespace tessera {

/// What has a place in a layer: a box or, with box -1, a lane by which an edge passes the layer.
struct LayerItem {
  /// An edge's next item above or below.
  struct Link {
    int item = 0;
    /// How far right of that item's middle this one's should be, for the edge to be straight.
    double shift = 0;
  };
  int box = -1;
  double width = 6;
  int layer = 0;
  std::vector<Link> above = {};
  std::vector<Link> below = {};
  /// Middle, once placed.
  double x = 0;
};

struct LayerItems {
  std::vector<LayerItem> items;
  /// Items by layer, from left to right.
  std::vector<std::vector<int>> layers;
  /// For each edge of the drawing its items, from the upper box to the lower one.
  std::vector<std::vector<int>> chains;
};

/// Finds each box's layer, marks the edges that close cycles as reversed, and makes the lanes.
LayerItems make_items(LayeredDrawing& drawing);

/// Orders each layer such that few edges cross.
void order_items(LayerItems& items);

}  // namespace tessera
