#include <tessera/framework/model/graph_placement.hpp>

#include <algorithm>
#include <map>
#include <tuple>

#include <tessera/framework/model/layered_layout.hpp>

namespace tessera {
namespace {

constexpr double padding = 16, title_height = 24;

/// One group, or the whole graph, with what it holds as boxes.
struct Level {
  /// Group whose inside this is; -1 for the graph.
  int group = -1;
  LayeredDrawing drawing = {};
  std::map<int, int> node_box = {};
  std::map<int, int> group_box = {};
  /// By the node where an arrow starts: the box, without extent, by which it enters or leaves.
  std::map<int, int> entry = {};
  std::map<int, int> exit = {};
  /// By (upper box, lower box, node where the arrow starts): the drawing's edge.
  std::map<std::tuple<int, int, int>, int> edges = {};
  Point origin = {};

  // Where arrows pass the frame, the way to the next layer is distance enough.
  double above() const { return title_height + (entry.empty() ? padding / 2 : 0); }
  double below() const { return exit.empty() ? padding : 0; }
  double frame_width() const { return drawing.width + 2 * padding; }
  double frame_height() const { return drawing.height + above() + below(); }
};

class Placer {
 public:
  Placer(const Graph& graph, const std::vector<Frame>& sizes) : graph_(graph), sizes_(sizes) {
    // Groups come after the one around them, so the innermost are laid out first.
    for (int group = -1; group < static_cast<int>(graph.groups.size()); ++group) {
      levels_.push_back({.group = group});
    }
    for (size_t i = levels_.size(); i-- > 0;) lay_out(levels_[i]);
  }

  GraphPlacement result() {
    GraphPlacement placement;
    placement.width = levels_[0].drawing.width;
    placement.height = levels_[0].drawing.height;
    placement.nodes = sizes_;
    placement.groups.resize(graph_.groups.size());
    for (Level& level : levels_) {
      for (const auto& [node, box] : level.node_box) {
        placement.nodes[static_cast<size_t>(node)].corner = corner(level, box);
      }
      for (const auto& [group, box] : level.group_box) {
        Level& inner = level_of(group);
        const Point at = corner(level, box);
        placement.groups[static_cast<size_t>(group)] = {at, inner.frame_width(),
                                                        inner.frame_height()};
        inner.origin = {at.x + padding, at.y + inner.above()};
      }
    }
    for (size_t to = 0; to < graph_.nodes.size(); ++to) {
      for (const int from : graph_.nodes[to].inputs) {
        placement.arrows.push_back(arrow(from, static_cast<int>(to)));
      }
    }
    return placement;
  }

 private:
  Level& level_of(int group) { return levels_[static_cast<size_t>(group + 1)]; }

  int parent_of(int group) const { return graph_.groups[static_cast<size_t>(group)].parent; }

  static Point corner(const Level& level, int box) {
    const LayeredBox& b = level.drawing.boxes[static_cast<size_t>(box)];
    return {level.origin.x + b.top.x - b.width / 2, level.origin.y + b.top.y};
  }

  /// The level's box that holds a node, -1 if the node lies outside.
  int box_of(const Level& level, int node) const {
    int group = graph_.nodes[static_cast<size_t>(node)].group;
    if (group == level.group) return level.node_box.at(node);
    while (group >= 0 && parent_of(group) != level.group) group = parent_of(group);
    return group < 0 ? -1 : level.group_box.at(group);
  }

  void lay_out(Level& level) {
    add_boxes(level);
    for (size_t to = 0; to < graph_.nodes.size(); ++to) {
      for (const int from : graph_.nodes[to].inputs) add_edge(level, from, static_cast<int>(to));
    }
    place_in_layers(level.drawing);
    if (spread_ends(level)) place_in_layers(level.drawing);
  }

  void add_boxes(Level& level) {
    std::vector<LayeredBox>& boxes = level.drawing.boxes;
    for (size_t node = 0; node < graph_.nodes.size(); ++node) {
      if (graph_.nodes[node].group != level.group) continue;
      level.node_box[static_cast<int>(node)] = static_cast<int>(boxes.size());
      boxes.push_back({.width = sizes_[node].width, .height = sizes_[node].height});
    }
    for (size_t i = 0; i < graph_.groups.size(); ++i) {
      if (graph_.groups[i].parent != level.group) continue;
      const Level& inner = level_of(static_cast<int>(i));
      level.group_box[inner.group] = static_cast<int>(boxes.size());
      boxes.push_back({.width = inner.frame_width(), .height = inner.frame_height()});
    }
  }

  /// The box by which arrows from a node pass the level's frame.
  static int port(Level& level, std::map<int, int>& ports, int node, int pin) {
    const auto [known, is_new] =
        ports.try_emplace(node, static_cast<int>(level.drawing.boxes.size()));
    if (is_new) level.drawing.boxes.push_back({.width = 6, .height = 0, .pin = pin});
    return known->second;
  }

  void add_edge(Level& level, int from, int to) {
    int a = box_of(level, from), b = box_of(level, to);
    if (a == b) return;
    if (a < 0) a = port(level, level.entry, from, -1);
    if (b < 0) b = port(level, level.exit, from, 1);
    const auto [known, is_new] = level.edges.try_emplace(
        {a, b, from}, static_cast<int>(level.drawing.edges.size()));
    if (!is_new) return;
    level.drawing.edges.push_back({.from = a,
                                   .to = b,
                                   .from_offset = port_offset(level, a, from, false),
                                   .to_offset = port_offset(level, b, from, true)});
  }

  /// How far right of a box' middle the arrow from a node passes its frame; 0 for a node.
  double port_offset(Level& level, int box, int node, bool enters) {
    for (const auto& [group, group_box] : level.group_box) {
      if (group_box != box) continue;
      const Level& inner = level_of(group);
      const int at = enters ? inner.entry.at(node) : inner.exit.at(node);
      return inner.drawing.boxes[static_cast<size_t>(at)].top.x - inner.drawing.width / 2;
    }
    return 0;
  }

  /// Lets the arrows to one node end side by side, in the order in which they come; false if there
  /// is nothing to do.
  static bool spread_ends(Level& level) {
    std::map<int, std::vector<LayeredEdge*>> ends;
    for (LayeredEdge& edge : level.drawing.edges) {
      if (!edge.reversed) ends[edge.to].push_back(&edge);
    }
    bool any = false;
    for (const auto& [node, box] : level.node_box) {
      auto& edges = ends[box];
      if (edges.size() < 2) continue;
      const auto source_x = [](const LayeredEdge* edge) {
        const auto last = edge->way.back();
        for (size_t i = edge->way.size(); i-- > 0;) {
          if (edge->way[i].x != last.x) return edge->way[i].x;
        }
        return last.x;
      };
      std::stable_sort(edges.begin(), edges.end(), [&](const auto* a, const auto* b) {
        return source_x(a) < source_x(b);
      });
      const double gaps = static_cast<double>(edges.size() - 1);
      const double width = level.drawing.boxes[static_cast<size_t>(box)].width;
      const double step = std::min(22.0, 0.7 * width / gaps);
      for (size_t i = 0; i < edges.size(); ++i) {
        edges[i]->to_offset = (static_cast<double>(i) - gaps / 2) * step;
      }
      any = true;
    }
    return any;
  }

  /// The way within one level, upwards if the edge had to be turned round.
  bool add_way(Level& level, int from, int to, std::vector<Point>& way) {
    int a = box_of(level, from), b = box_of(level, to);
    if (a < 0) a = level.entry.at(from);
    if (b < 0) b = level.exit.at(from);
    const LayeredEdge& edge =
        level.drawing.edges[static_cast<size_t>(level.edges.at({a, b, from}))];
    std::vector<Point> part = edge.way;
    if (edge.reversed) std::reverse(part.begin(), part.end());
    for (const Point& p : part) way.push_back({level.origin.x + p.x, level.origin.y + p.y});
    return edge.reversed;
  }

  GraphArrow arrow(int from, int to) {
    GraphArrow arrow{from, to};
    if (from == to) return arrow;
    std::vector<int> outer, inner;
    int common = graph_.nodes[static_cast<size_t>(from)].group;
    for (; box_of(level_of(common), to) < 0; common = parent_of(common)) outer.push_back(common);
    for (int g = graph_.nodes[static_cast<size_t>(to)].group; g != common; g = parent_of(g)) {
      inner.push_back(g);
    }
    std::vector<Point> middle;
    // An arrow upwards would meet a frame at the wrong edge, so it ends there.
    if (add_way(level_of(common), from, to, middle)) {
      arrow.way = middle;
      return arrow;
    }
    for (const int group : outer) add_way(level_of(group), from, to, arrow.way);
    arrow.way.insert(arrow.way.end(), middle.begin(), middle.end());
    for (size_t i = inner.size(); i-- > 0;) add_way(level_of(inner[i]), from, to, arrow.way);
    return arrow;
  }

  const Graph& graph_;
  const std::vector<Frame>& sizes_;
  std::vector<Level> levels_;
};

}  // namespace

GraphPlacement place_graph(const Graph& graph, const std::vector<Frame>& sizes) {
  return Placer(graph, sizes).result();
}

}  // namespace tessera
