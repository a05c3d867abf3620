#include <tessera/framework/model/graph_plot.hpp>

#include <algorithm>
#include <random>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/model/graph_placement.hpp>
#include "tests/support/catch.hpp"
#include "tests/support/xml_check.hpp"

namespace graph_plot_test {

using namespace tessera;

namespace {

GraphNode node(const std::string& name, const std::vector<int>& inputs, int group = -1) {
  return {name, "Dense", {"output (None, 8)"}, inputs, group};
}

GraphPlacement placed(const Graph& graph) {
  std::vector<Frame> sizes;
  // Different sizes, so that nothing fits by accident.
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const double wide = static_cast<double>(i % 5), high = static_cast<double>(i % 4);
    sizes.push_back({{}, 60 + 17 * wide, 26 + 9 * high});
  }
  return place_graph(graph, sizes);
}

/// Points on an arrow, as graph_svg draws it.
std::vector<Point> course(const std::vector<Point>& way) {
  std::vector<Point> points;
  for (size_t i = 1; i < way.size(); ++i) {
    const Point a = way[i - 1], b = way[i];
    for (double t = 0; t <= 1; t += 0.05) {
      const double s = 1 - t, ends = s * s * s + 3 * s * s * t;
      const double y = s * s * s * a.y + 3 * s * t * (a.y + b.y) / 2 + t * t * t * b.y;
      points.push_back({a.x * ends + b.x * (1 - ends), y});
    }
  }
  return points;
}

bool inside(Point p, const Frame& frame) {
  return frame.corner.x + 0.6 < p.x && p.x < frame.corner.x + frame.width - 0.6 &&
         frame.corner.y + 0.6 < p.y && p.y < frame.corner.y + frame.height - 0.6;
}

bool overlap(const Frame& a, const Frame& b) {
  return a.corner.x < b.corner.x + b.width && b.corner.x < a.corner.x + a.width &&
         a.corner.y < b.corner.y + b.height && b.corner.y < a.corner.y + a.height;
}

bool is_in_group(const Graph& graph, int node_index, int group) {
  int g = graph.nodes[static_cast<size_t>(node_index)].group;
  while (g >= 0 && g != group) g = graph.groups[static_cast<size_t>(g)].parent;
  return g == group;
}

/// What is wrong with a placement: boxes that overlap, arrows through boxes or strange groups.
std::string faults(const Graph& graph) {
  const GraphPlacement p = placed(graph);
  for (size_t i = 0; i < p.nodes.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (overlap(p.nodes[i], p.nodes[j])) return str("boxes ", i, " and ", j, " overlap");
    }
    for (size_t g = 0; g < p.groups.size(); ++g) {
      const bool member = is_in_group(graph, static_cast<int>(i), static_cast<int>(g));
      if (overlap(p.nodes[i], p.groups[g]) != member) return str("box ", i, " in group ", g);
    }
  }
  for (const GraphArrow& arrow : p.arrows) {
    const std::string name = str("arrow ", arrow.from, "-", arrow.to);
    for (const Point& point : course(arrow.way)) {
      const Frame all{{}, p.width, p.height};
      if (!overlap({point, 0.1, 0.1}, all)) return name + " lies outside";
      for (size_t i = 0; i < p.nodes.size(); ++i) {
        if (inside(point, p.nodes[i])) return str(name, " through box ", i);
      }
      for (size_t g = 0; g < p.groups.size(); ++g) {
        const int group = static_cast<int>(g);
        const bool belongs =
            is_in_group(graph, arrow.from, group) || is_in_group(graph, arrow.to, group);
        if (!belongs && inside(point, p.groups[g])) return str(name, " through group ", g);
      }
    }
  }
  return "";
}

Graph random_graph(unsigned seed, int nodes, int groups) {
  std::mt19937 random(seed);
  const auto below = [&random](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  };
  Graph graph;
  for (int i = 0; i < groups; ++i) graph.groups.push_back({str("g", i), below(i + 1) - 1});
  for (int i = 0; i < nodes; ++i) {
    GraphNode next = node(str("n", i), {}, below(groups + 1) - 1);
    for (int k = 0; k < 2 && i > 2; ++k) {
      if (k == 0 || below(3) == 0) next.inputs.push_back(i - 1 - below(std::min(i, 5)));
    }
    graph.nodes.push_back(next);
  }
  return graph;
}

double middle(const Frame& frame) { return frame.corner.x + frame.width / 2; }

}  // namespace

TEST_CASE("a chain stands in one column, from top to bottom", "[graph_plot]") {
  Graph graph;
  for (int i = 0; i < 20; ++i) {
    graph.nodes.push_back(node(str("layer_", i), i ? std::vector<int>{i - 1} : std::vector<int>{}));
  }
  const GraphPlacement p = placed(graph);
  for (size_t i = 1; i < p.nodes.size(); ++i) {
    CHECK(middle(p.nodes[i]) == Approx(middle(p.nodes[0])).margin(1));
    CHECK(p.nodes[i].corner.y > p.nodes[i - 1].corner.y + p.nodes[i - 1].height + 20);
  }
  CHECK(faults(graph) == "");
}

TEST_CASE("a diamond is symmetrical", "[graph_plot]") {
  const Graph graph{"", {node("a", {}), node("b", {0}), node("c", {0}), node("d", {1, 2})}, {}};
  const GraphPlacement p = placed(graph);
  CHECK(p.nodes[1].corner.x < p.nodes[2].corner.x);
  CHECK(middle(p.nodes[0]) == Approx((middle(p.nodes[1]) + middle(p.nodes[2])) / 2).margin(8));
  // The arrows end side by side, in the order in which they come.
  CHECK(p.arrows[2].way.back().x < p.arrows[3].way.back().x);
  CHECK(p.arrows[2].way.back().y == p.nodes[3].corner.y);
  CHECK(faults(graph) == "");
}

TEST_CASE("boxes and frames never overlap, nor do arrows cross boxes", "[graph_plot]") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    CHECK(faults(random_graph(seed, 3 + static_cast<int>(seed % 30), 0)) == "");
  }
}

TEST_CASE("arrows pass nested models through their own frames only", "[graph_plot]") {
  const Graph graph{"",
                    {node("in", {}), node("a", {0}, 0), node("b", {1}, 1), node("c", {2, 1}, 0),
                     node("d", {3, 0}), node("probe", {2})},
                    {{"outer", -1}, {"inner", 0}}};
  CHECK(faults(graph) == "");
  const GraphPlacement p = placed(graph);
  CHECK(inside({middle(p.groups[1]), p.groups[1].corner.y + 5}, p.groups[0]));
}

TEST_CASE("layers that feed themselves are drawn with an arrow upwards", "[graph_plot]") {
  const Graph graph{"", {node("a", {2}), node("b", {0, 1}), node("c", {1})}, {}};
  const GraphPlacement p = placed(graph);
  REQUIRE(p.arrows.size() == 4);
  CHECK(p.arrows[2].way.empty());
  CHECK(p.arrows[0].way.front().y > p.arrows[0].way.back().y);
  CHECK(p.arrows[0].way.front().y == p.nodes[2].corner.y);
  const test::Xml xml = test::parse_xml(graph_svg(graph));
  CHECK(xml.error == "");
}

TEST_CASE("a graph's picture names nodes, types, lines and groups", "[graph_plot]") {
  Graph graph{
      "m & m", {node("first <1>", {}), node(std::string(300, 'n'), {0}, 0)}, {{"block", -1}}};
  graph.nodes[0].type = "InputLayer";
  const test::Xml xml = test::parse_xml(graph_svg(graph));
  REQUIRE(xml.error == "");
  const std::vector<std::string> texts = xml.texts("text");
  for (const char* text :
       {"m & m", "first <1>", "InputLayer", "Dense", "output (None, 8)", "block"}) {
    CAPTURE(text);
    CHECK(std::count(texts.begin(), texts.end(), text) >= 1);
  }
  for (const std::string& text : texts) CHECK(text.size() < 80);
  CHECK(test::parse_xml(graph_svg({})).error == "");
}

TEST_CASE("a graph that names what does not exist is refused", "[graph_plot]") {
  CHECK_THROWS_WITH(graph_svg({"", {node("a", {1})}, {}}),
                    "[graph_svg] inputs of node \"a\" must be below 1. Received: 1. To fix: pass "
                    "the position of one that exists.");
  CHECK_THROWS_AS(graph_svg({"", {node("a", {-1})}, {}}), ConfigError);
  CHECK_THROWS_AS(graph_svg({"", {node("a", {}, 0)}, {}}), ConfigError);
  CHECK_THROWS_AS(graph_svg({"", {}, {{"g", 0}}}), ConfigError);
}

}  // namespace graph_plot_test
