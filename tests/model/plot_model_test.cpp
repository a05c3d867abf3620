#include <tessera/tessera.hpp>

#include <regex>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/idx_files.hpp"
#include "tests/support/warnings.hpp"

namespace plot_model_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

using Names = std::vector<std::string>;

/// The nodes of a DOT text.
struct Drawn {
  explicit Drawn(const std::string& dot) : text(dot) {
    const std::regex node(R"re(n(\d+) \[label=<<table[^>]*>\n<tr><td[^>]*><b>([^<]*)</b>)re");
    for (std::sregex_iterator it(dot.begin(), dot.end(), node), end; it != end; ++it) {
      names[(*it)[1]] = (*it)[2];
    }
    const std::regex arrow("n(\\d+) -> n(\\d+)\n");
    for (std::sregex_iterator it(dot.begin(), dot.end(), arrow), end; it != end; ++it) {
      inputs[names.at((*it)[2])].push_back(names.at((*it)[1]));
    }
  }

  /// Returns the node's table without tags, one row a line.
  std::string table(const std::string& name) const {
    const size_t from = text.rfind(" [label=<<table", text.find("<b>" + name + "</b>"));
    const size_t rows = text.find('\n', from) + 1;
    const std::string part = text.substr(rows, text.find("</table>", from) - rows);
    return std::regex_replace(std::regex_replace(part, std::regex("</td><td[^>]*>"), " | "),
                              std::regex("<[^>]*>"), "");
  }

  std::string text;
  std::map<std::string, std::string> names;
  std::map<std::string, Names> inputs;
};

}  // namespace

TEST_CASE("a model's DOT has its layers, connections, clusters and layouts", "[plot_model]") {
  const Sequential block({Input({4}), Dense(4, {.name = "inner"}), Activation("tanh")},
                         {.name = "block"});
  const Input a({4}, {.name = "a"}), b({4}, {.name = "b"});
  const Dense shared(4, {.name = "shared"});
  const SymbolicTensor sum = Add({.name = "sum"})({shared(a), shared(b), block(a)});
  Functional model({a, b}, {sum, Dense(2, {.name = "head"})(sum)}, {.name = "whole"});
  LayoutMap layouts(create_mesh({{"batch", 2}, {"model", 2}}, virtual_cpus(4)));
  layouts["head/kernel"] = {unsharded, "model"};
  model.compile({.loss = "mse", .layouts = layouts});

  const Drawn drawn(model_to_dot(model.model()));
  CHECK_THAT(drawn.text, Contains("label=<<b>whole</b>>"));
  CHECK(drawn.names.size() == 7);
  CHECK(drawn.inputs.count("a") == 0);
  CHECK(drawn.inputs.at("shared") == Names{"a", "b"});
  CHECK(drawn.inputs.at("inner") == Names{"a"});
  CHECK(drawn.inputs.at("activation") == Names{"inner"});
  CHECK(drawn.inputs.at("sum") == Names{"shared", "activation"});
  CHECK(drawn.inputs.at("head") == Names{"sum"});
  const size_t cluster = drawn.text.find("<b>block</b>  <font color=\"#59636e\">Sequential</font>");
  CHECK(cluster < drawn.text.find("<b>inner</b>"));
  CHECK(drawn.text.find("subgraph", cluster) == std::string::npos);
  CHECK(drawn.table("head") ==
        "head  Dense\noutput | (None, 2)\nparameters | 10\n"
        "kernel | (unsharded, model)\nbias | (model)\n");
  CHECK(drawn.table("a") == "a  InputLayer\noutput | (None, 4)\n");

  const Drawn closed(model_to_dot(
      model.model(),
      {.show_shapes = false, .show_layouts = false, .show_params = false, .expand_nested = false}));
  CHECK_THAT(closed.text, !Contains("subgraph"));
  CHECK(closed.table("block") == "block  Sequential\n");
  CHECK(closed.inputs.at("block") == Names{"a"});
}

TEST_CASE("a nested functional model is connected to its surroundings", "[plot_model]") {
  const Input x({3}, {.name = "x"});
  const Functional inner({x}, {Dense(3, {.name = "deep"})(x)}, {.name = "inner"});
  const Input z({3}, {.name = "z"});
  const Functional outer({z}, {Dense(1, {.name = "top"})(inner(z))});
  const Drawn drawn(model_to_dot(outer.model()));
  CHECK(drawn.inputs.at("x") == Names{"z"});
  CHECK(drawn.inputs.at("deep") == Names{"x"});
  CHECK(drawn.inputs.at("top") == Names{"deep"});
}

TEST_CASE("a nested model that is called again is entered at its input", "[plot_model]") {
  const Sequential block({Input({4}), Dense(3, {.name = "in"}), Dense(4, {.name = "out"})});
  const Input x({4}, {.name = "x"});
  const Functional model({x}, {block(block(x))});
  const Drawn drawn(model_to_dot(model.model()));
  CHECK(drawn.names.size() == 3);
  CHECK(drawn.inputs.at("in") == Names{"x", "out"});
  CHECK(drawn.inputs.at("out") == Names{"in"});
}

TEST_CASE("plot_model writes DOT for any style of model", "[plot_model]") {
  const test::TempFolder folder;
  const test::Warnings warnings;
  const Sequential model({Flatten(), Dense(3)}, {.name = "a<b"});
  plot_model(model.model(), folder / "model.dot");
  const std::string text = test::read_file(folder / "model.dot");
  CHECK(text == model_to_dot(model.model()));
  CHECK_THAT(text, Contains("<b>dense</b>") && Contains("a&lt;b"));
  CHECK(warnings.text() == "");
  CHECK_THROWS_AS(plot_model(model.model(), "/nowhere/model.dot"), FileError);
  CHECK_THROWS_WITH(plot_model(model.model(), folder / "model.jpeg"),
                    Contains("must end in .dot, .svg or .png"));
  CHECK_THROWS_AS(plot_model(model.model(), "model"), ConfigError);
}

TEST_CASE("without Graphviz plot_model keeps the DOT and says what to install", "[plot_model]") {
  const test::TempFolder folder;
  const Sequential model({Input({2}), Dense(3)});
  const std::string dot = folder / "model.dot", svg = folder / "model.svg";
  const test::EnvironmentScope path("PATH", "/nowhere");
  const test::Warnings warnings;
  plot_model(model.model(), svg);
  CHECK(warnings.text() == "Warning: " + svg + " is not drawn: there is no dot in PATH. The graph" +
                               " is in " + dot + ". To fix: apt-get install graphviz, then dot" +
                               " -Tsvg " + dot + " -o " + svg + "\n");
  CHECK(test::read_file(dot) == model_to_dot(model.model()));
  CHECK(!std::filesystem::exists(svg));
}

}  // namespace plot_model_test
