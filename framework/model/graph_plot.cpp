#include <tessera/framework/model/graph_plot.hpp>

#include <algorithm>
#include <cmath>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/strings.hpp>
#include <tessera/framework/drawing/svg.hpp>
#include <tessera/framework/model/graph_placement.hpp>

namespace tessera {
namespace {

constexpr double margin = 20, headline_height = 36;
constexpr double head_height = 26, line_height = 16, side = 12;
constexpr double name_size = 13, line_size = 11;
constexpr double least_width = 96, max_text = 320;
constexpr double arrow_length = 7;
constexpr const char* arrow_color = "#59636e";
constexpr const char* group_fills[] = {"#f5f7fa", "#ebeff4"};

void check(const Graph& graph) {
  const auto fail = [&](const std::string& what, int received, size_t count) {
    throw ConfigError("graph_svg", str(what, " must be below ", count), std::to_string(received),
                      "pass the position of one that exists");
  };
  for (const GraphNode& node : graph.nodes) {
    const std::string name = in_quotes(node.name);
    for (const int input : node.inputs) {
      const bool known = input >= 0 && static_cast<size_t>(input) < graph.nodes.size();
      if (!known) fail("inputs of node " + name, input, graph.nodes.size());
    }
    const bool known = node.group >= -1 && node.group < static_cast<int>(graph.groups.size());
    if (!known) fail("group of node " + name, node.group, graph.groups.size());
  }
  for (size_t i = 0; i < graph.groups.size(); ++i) {
    const int parent = graph.groups[i].parent;
    const bool known = parent >= -1 && parent < static_cast<int>(i);
    if (!known) fail("parent of group " + in_quotes(graph.groups[i].title), parent, i);
  }
}

/// Name and type share the head; a long type leaves the name half of it, "BatchNormalization" fits.
struct Head {
  std::string name, type;
  double name_width = 0, width = 0;

  explicit Head(const GraphNode& node) {
    type = fit_text(node.type, 12, max_text / 2);
    const double type_width = text_width(type, 12);
    name = fit_text(node.name, name_size, max_text - type_width, true);
    name_width = text_width(name, name_size, true);
    width = name_width + 10 + type_width;
  }
};

Frame size_of(const GraphNode& node) {
  double width = std::max(least_width - 2 * side, Head(node).width);
  for (const std::string& line : node.lines) {
    width = std::max(width, std::min(text_width(line, line_size), max_text));
  }
  const double lines = static_cast<double>(node.lines.size());
  return {{}, std::ceil(width + 2 * side), head_height + (lines > 0 ? lines * line_height + 8 : 0)};
}

void draw_node(Svg& svg, const GraphNode& node, const Frame& frame) {
  const auto [x, y] = frame.corner;
  const bool input = node.type == "InputLayer" || node.type == "Input";
  const char* fill = input ? "#d7eadb" : "#dbe7f5";
  const char* stroke = input ? "#5d9a6c" : "#6d94c4";
  svg.rect(frame.corner, frame.width, frame.height,
           str("rx=\"5\" fill=\"#ffffff\" stroke=\"", stroke, '"'));
  const double right = x + frame.width, base = y + head_height;
  const std::string w = svg_number(frame.width - 10);
  // The head's upper corners are round, the lower ones only if nothing follows.
  if (node.lines.empty()) {
    svg.rect(frame.corner, frame.width, frame.height,
             str("rx=\"5\" fill=\"", fill, "\" stroke=\"", stroke, '"'));
  } else {
    svg.path(str("M", svg_number(x), ' ', svg_number(base), 'V', svg_number(y + 5),
                 "a5 5 0 0 1 5 -5h", w, "a5 5 0 0 1 5 5V", svg_number(base), 'Z'),
             str("fill=\"", fill, "\" stroke=\"", stroke, '"'));
  }
  const Head head(node);
  svg.text({x + side, y + 17.5}, head.name, "font-size=\"13\" font-weight=\"bold\"");
  svg.text({right - side, y + 17.5}, head.type,
           str("text-anchor=\"end\" fill=\"", Svg::muted, '"'));
  for (size_t i = 0; i < node.lines.size(); ++i) {
    svg.text({x + side, base + 16 + line_height * static_cast<double>(i)},
             fit_text(node.lines[i], line_size, max_text), "font-size=\"11\"");
  }
}

std::string place(Point p) { return svg_number(p.x) + " " + svg_number(p.y); }

void draw_head(Svg& svg, Point tip, double dx, double dy) {
  const Point base{tip.x - dx * arrow_length, tip.y - dy * arrow_length};
  const Point left{base.x - dy * 4, base.y + dx * 4}, right{base.x + dy * 4, base.y - dx * 4};
  svg.path(str("M", place(tip), 'L', place(left), 'L', place(right), 'Z'),
           str("fill=\"", arrow_color, '"'));
}

void draw_arrow(Svg& svg, const GraphArrow& arrow, const Frame& target) {
  const std::string style =
      str("fill=\"none\" stroke=\"", arrow_color, "\" stroke-width=\"1.4\"");
  if (arrow.way.empty()) {
    const double x = target.corner.x + target.width, y = target.corner.y;
    svg.path(str("M", place({x, y + target.height - 6}), "h12V", svg_number(y + 8), "h-7"), style);
    draw_head(svg, {x, y + 8}, -1, 0);
    return;
  }
  const Point tip = arrow.way.back();
  const double down = tip.y < arrow.way.front().y ? -1 : 1;
  std::vector<Point> way = arrow.way;
  way.back().y -= down * (arrow_length - 1);
  std::string path = "M" + place(way[0]);
  for (size_t i = 1; i < way.size(); ++i) {
    const Point a = way[i - 1], b = way[i];
    const double middle = (a.y + b.y) / 2;
    path += a.x == b.x ? "L" + place(b)
                       : str('C', place({a.x, middle}), ' ', place({b.x, middle}), ' ', place(b));
  }
  svg.path(path, style);
  draw_head(svg, tip, 0, down);
}

Frame moved(Frame frame, Point by) {
  frame.corner = {frame.corner.x + by.x, frame.corner.y + by.y};
  return frame;
}

int depth_of(const Graph& graph, size_t group) {
  int depth = 0;
  for (int g = graph.groups[group].parent; g >= 0; ++depth) {
    g = graph.groups[static_cast<size_t>(g)].parent;
  }
  return depth;
}

void draw_groups(Svg& svg, const Graph& graph, const std::vector<Frame>& frames) {
  for (size_t i = 0; i < frames.size(); ++i) {
    svg.rect(frames[i].corner, frames[i].width, frames[i].height,
             str("rx=\"8\" fill=\"", group_fills[depth_of(graph, i) % 2], "\" stroke=\"",
                 Svg::frame, "\" stroke-dasharray=\"4 3\""));
  }
}

/// Whether an arrow goes straight down through the middle of the text in `frame`.
bool is_crossed(const Frame& frame, const std::vector<GraphArrow>& arrows) {
  const double y = frame.corner.y + frame.height / 2;
  for (const GraphArrow& arrow : arrows) {
    for (size_t i = 1; i < arrow.way.size(); ++i) {
      const Point a = arrow.way[i - 1], b = arrow.way[i];
      const bool across = frame.corner.x <= a.x && a.x <= frame.corner.x + frame.width;
      if (across && a.x == b.x && a.y <= y && y <= b.y) return true;
    }
  }
  return false;
}

/// Titles stand on the left, or on the right where an arrow would cross them only on the left. In
/// narrow frames they lie over the arrows, on a ground of their own.
void draw_group_titles(Svg& svg, const Graph& graph, const GraphPlacement& placement) {
  for (size_t i = 0; i < graph.groups.size(); ++i) {
    const Frame& frame = placement.groups[i];
    const std::string title = fit_text(graph.groups[i].title, 12, frame.width - 24, true);
    const double width = text_width(title, 12, true) + 8;
    const Frame left{{frame.corner.x + 8, frame.corner.y + 5}, width, 18};
    const Frame right = moved(left, {frame.width - 16 - width, 0});
    const bool turn =
        is_crossed(left, placement.arrows) && !is_crossed(right, placement.arrows);
    const Point corner = turn ? right.corner : left.corner;
    svg.rect(corner, width, left.height,
             str("rx=\"3\" fill=\"", group_fills[depth_of(graph, i) % 2], '"'));
    svg.text({corner.x + 4, corner.y + 13}, title,
             str("font-weight=\"bold\" fill=\"", Svg::muted, '"'));
  }
}

}  // namespace

std::string graph_svg(const Graph& graph) {
  check(graph);
  std::vector<Frame> sizes;
  for (const GraphNode& node : graph.nodes) sizes.push_back(size_of(node));
  GraphPlacement placement = place_graph(graph, sizes);
  const double head = graph.title.empty() ? 0 : headline_height;
  const double title_width = std::min(text_width(graph.title, 16, true), 600.0);
  const double width = std::max(placement.width, title_width) + 2 * margin;
  const Point by{std::round((width - placement.width) / 2), margin + head};
  for (Frame& frame : placement.nodes) frame = moved(frame, by);
  for (Frame& frame : placement.groups) frame = moved(frame, by);
  for (GraphArrow& arrow : placement.arrows) {
    for (Point& point : arrow.way) point = {point.x + by.x, point.y + by.y};
  }
  Svg svg(width, placement.height + head + 2 * margin, graph.title);
  svg.text({margin, 30}, fit_text(graph.title, 16, 600, true),
           "font-size=\"16\" font-weight=\"bold\"");
  draw_groups(svg, graph, placement.groups);
  for (const GraphArrow& arrow : placement.arrows) {
    draw_arrow(svg, arrow, placement.nodes[static_cast<size_t>(arrow.to)]);
  }
  draw_group_titles(svg, graph, placement);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    draw_node(svg, graph.nodes[i], placement.nodes[i]);
  }
  return svg.document();
}

}  // namespace tessera
