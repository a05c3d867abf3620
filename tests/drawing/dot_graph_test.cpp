#include <tessera/framework/drawing/dot_graph.hpp>

#include "tests/support/catch.hpp"

namespace dot_graph_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

TEST_CASE("a graph's DOT text has nodes, rows, clusters and edges", "[dot_graph]") {
  DotGraph graph;
  graph.title = "whole";
  graph.clusters = {{"outer", "Functional"}, {"inner", "Sequential", 0}};
  graph.nodes = {{"x", "InputLayer", {}, {}},
                 {"a", "Dense", {{"output", "(None, 4)"}}, {0}, 1},
                 {"b", "Add", {}, {1, 1, 0}, 0}};
  const std::string text = graph.text();
  CHECK_THAT(text, Catch::StartsWith("digraph {\n") && Catch::EndsWith("}\n"));
  CHECK_THAT(text, Contains("label=<<b>whole</b>>"));
  CHECK_THAT(text, Contains("<b>a</b>  <font color=\"#59636e\">Dense</font>"));
  CHECK_THAT(text, Contains(">output</font></td>") && Contains(">(None, 4)</td>"));
  CHECK_THAT(text, Catch::EndsWith("n0 -> n1\nn1 -> n2\nn0 -> n2\n}\n"));
  // Clusters are nested, and each node is in its own.
  const size_t outer = text.find("subgraph cluster_0 {"), b = text.find("n2 ["),
               inner = text.find("subgraph cluster_1 {"), a = text.find("n1 [");
  CHECK(text.find("n0 [") < outer);
  CHECK(outer < b);
  CHECK(b < inner);
  CHECK(inner < a);
  CHECK(a < text.find("}\n}\n"));
}

TEST_CASE("no name breaks out of its label", "[dot_graph]") {
  DotGraph graph;
  graph.title = "t<\"&>";
  graph.clusters = {{"c\n\\N<b>", "C"}};
  graph.nodes = {{"n\"\\\n>&amp;", "T<int>", {{"r<", "]\\>\xff"}}, {}, 0}};
  const std::string text = graph.text();
  CHECK_THAT(text, Contains("<b>t&lt;&quot;&amp;&gt;</b>"));
  CHECK_THAT(text, Contains("<b>c\\\\x0a\\\\N&lt;b&gt;</b>"));
  CHECK_THAT(text, Contains("<b>n&quot;\\\\\\\\x0a&gt;&amp;amp;</b>"));
  CHECK_THAT(text, Contains("T&lt;int&gt;</font>"));
  CHECK_THAT(text, Contains(">r&lt;</font>") && Contains(">]\\\\&gt;\\\\xff</td>"));
}

TEST_CASE("an empty graph gives valid DOT", "[dot_graph]") {
  CHECK_THAT(DotGraph().text(), Catch::StartsWith("digraph {\n") && Catch::EndsWith("}\n"));
}

}  // namespace dot_graph_test
