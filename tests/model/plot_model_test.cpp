#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace plot_model_test {

using namespace tessera;
using Catch::Matchers::Contains;

namespace {

/// Position of a node by name.
int find(const Graph& graph, const std::string& name) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].name == name) return static_cast<int>(i);
  }
  FAIL("no node " << name);
  return -1;
}

std::vector<std::string> inputs_of(const Graph& graph, const std::string& name) {
  std::vector<std::string> names;
  for (int input : graph.nodes[static_cast<size_t>(find(graph, name))].inputs) {
    names.push_back(graph.nodes[static_cast<size_t>(input)].name);
  }
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a model's graph has its layers, connections and groups", "[plot_model]") {
  const Sequential block({Input({4}), Dense(4, {.name = "inner"}), Activation("tanh")},
                         {.name = "block"});
  const Input a({4}, {.name = "a"}), b({4}, {.name = "b"});
  const Dense shared(4, {.name = "shared"});
  const SymbolicTensor sum = Add({.name = "sum"})({shared(a), shared(b), block(a)});
  const Functional model({a, b}, {sum, Dense(2, {.name = "head"})(sum)}, {.name = "whole"});

  const Graph graph = model_graph(model.model(), {});
  CHECK(graph.title == "whole");
  CHECK(graph.nodes.size() == 7);
  CHECK(inputs_of(graph, "a").empty());
  CHECK(inputs_of(graph, "shared") == Names{"a", "b"});
  CHECK(inputs_of(graph, "inner") == Names{"a"});
  CHECK(inputs_of(graph, "activation") == Names{"inner"});
  CHECK(inputs_of(graph, "sum") == Names{"shared", "shared", "activation"});
  REQUIRE(graph.groups.size() == 1);
  CHECK(graph.groups[0].title == "block (Sequential)");
  const GraphNode& inner = graph.nodes[static_cast<size_t>(find(graph, "inner"))];
  CHECK(inner.group == 0);
  CHECK(inner.type == "Dense");
  CHECK(inner.lines == Names{"output (None, 4)", "20 parameters", "kernel (unsharded, unsharded)",
                             "bias (unsharded)"});

  const Graph closed = model_graph(model.model(), {.show_shapes = false,
                                                   .show_layouts = false,
                                                   .show_params = false,
                                                   .expand_nested = false});
  CHECK(closed.groups.empty());
  CHECK(closed.nodes[static_cast<size_t>(find(closed, "block"))].lines.empty());
  CHECK(inputs_of(closed, "block") == Names{"a"});
}

TEST_CASE("a nested functional model is joined to what is around it", "[plot_model]") {
  const Input x({3}, {.name = "x"});
  const Functional inner({x}, {Dense(3, {.name = "deep"})(x)}, {.name = "inner"});
  const Input z({3}, {.name = "z"});
  const Functional outer({z}, {Dense(1, {.name = "top"})(inner(z))});
  const Graph graph = model_graph(outer.model(), {});
  CHECK(inputs_of(graph, "x") == Names{"z"});
  CHECK(inputs_of(graph, "deep") == Names{"x"});
  CHECK(inputs_of(graph, "top") == Names{"deep"});
}

TEST_CASE("a nested model that is called again is entered where it begins", "[plot_model]") {
  const Sequential block({Input({4}), Dense(3, {.name = "in"}), Dense(4, {.name = "out"})});
  const Input x({4}, {.name = "x"});
  const Functional model({x}, {block(block(x))});
  const Graph graph = model_graph(model.model(), {});
  REQUIRE(graph.nodes.size() == 3);
  CHECK(graph.nodes[1].name == "in");
  CHECK(graph.nodes[1].inputs == std::vector<int>{0, 2});
  CHECK(graph.nodes[2].inputs == std::vector<int>{1});
}

TEST_CASE("plot_model writes a picture, of any style of model", "[plot_model]") {
  const test::TempFolder folder;
  const Sequential model({Flatten(), Dense(3)}, {.name = "a<b"});
  const std::string path = (folder / "model.svg").string();
  plot_model(model.model(), path);
  const std::string text = test::read_file(path);
  CHECK_THAT(text, Contains("<svg") && Contains("dense") && Contains("a&lt;b"));
  CHECK_THROWS_AS(plot_model(model.model(), "/nowhere/model.svg"), FileError);
}

}  // namespace plot_model_test
