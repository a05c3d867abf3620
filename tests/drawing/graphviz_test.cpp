#include <tessera/framework/drawing/graphviz.hpp>

#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/drawing/dot_graph.hpp>
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/skip.hpp"

namespace graphviz_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

/// Prepends a folder of this test to PATH and restores PATH at the end.
class ProgramFolder {
 public:
  explicit ProgramFolder(bool alone) : before_(getenv("PATH")) {
    const std::string path = folder_.path().string() + (alone ? "" : ":" + before_);
    setenv("PATH", path.c_str(), 1);
  }
  ~ProgramFolder() { setenv("PATH", before_.c_str(), 1); }

  /// Adds a shell script to the folder as the program dot.
  void add_dot(const std::string& commands) const {
    test::write_file(folder_ / "dot", "#!/bin/sh\n" + commands + "\n");
    std::filesystem::permissions(folder_ / "dot", std::filesystem::perms::owner_all);
  }

 private:
  test::TempFolder folder_;
  std::string before_;
};

bool has_graphviz() {
  std::string path = getenv("PATH");
  for (size_t from = 0; from <= path.size();) {
    const size_t end = std::min(path.find(':', from), path.size());
    if (std::filesystem::exists(path.substr(from, end - from) + "/dot")) return true;
    from = end + 1;
  }
  return false;
}

}  // namespace

TEST_CASE("dot reads the graph, and its output is the picture", "[graphviz]") {
  const test::TempFolder folder;
  test::write_file(folder / "-m.dot", "digraph {}");
  const ProgramFolder programs(false);
  programs.add_dot("echo \"$@\"; cat; echo complaint >&2");
  CHECK(draw_dot_file(folder / "-m.dot", folder / "m.svg") == "");
  CHECK(test::read_file(folder / "m.svg") == "-Tsvg\ndigraph {}");
  CHECK(draw_dot_file(folder / "-m.dot", folder / "m.png") == "");
  CHECK(test::read_file(folder / "m.png") == "-Tpng -Gdpi=144\ndigraph {}");
}

TEST_CASE("if dot is missing or fails, the old picture stays and the error says why",
          "[graphviz]") {
  const test::TempFolder folder;
  const std::string dot = folder / "m.dot", picture = folder / "m.svg";
  test::write_file(dot, "digraph {}");
  test::write_file(picture, "old");
  const ProgramFolder programs(true);
  CHECK(draw_dot_file(dot, picture) == "there is no dot in PATH");
  programs.add_dot("echo half a picture; exit 3");
  CHECK(draw_dot_file(dot, picture) == "dot ended with exit code 3");
  programs.add_dot("echo half a picture; kill -9 $$");
  CHECK(draw_dot_file(dot, picture) == "dot was killed by signal 9");
  programs.add_dot("");
  CHECK(draw_dot_file(dot, picture) == "dot wrote nothing");
  CHECK(test::read_file(picture) == "old");
  programs.add_dot("echo new");
  CHECK_THROWS_AS(draw_dot_file(dot, folder / "none" / "m.svg"), FileError);
}

TEST_CASE("Graphviz draws names of any bytes unchanged", "[graphviz]") {
  if (!has_graphviz()) return test::skip("there is no Graphviz here");
  const test::TempFolder folder;
  DotGraph graph;
  graph.title = "a \\N \"title\"";
  graph.clusters = {{"frame \\G <1>", "Sequential"}};
  graph.nodes = {{"first \\l\n", "Input", {{"row", "<&\\N>\xff"}, {"", ""}}, {}},
                 {"second & \"last\" \\", "T<int>", {}, {0, 0, 1}, 0}};
  test::write_file(folder / "m.dot", graph.text());
  REQUIRE(draw_dot_file(folder / "m.dot", folder / "m.svg") == "");
  std::string svg = test::read_file(folder / "m.svg");
  for (const auto& [code, text] : {std::pair("&#45;", "-"), {"&#160;", " "}, {"&quot;", "\""}}) {
    for (size_t at = svg.find(code); at != svg.npos; at = svg.find(code)) {
      svg.replace(at, strlen(code), text);
    }
  }
  CHECK_THAT(svg, Contains(">a \\N \"title\"</text>"));
  CHECK_THAT(svg, Contains(">frame \\G &lt;1&gt;</text>"));
  CHECK_THAT(svg, Contains(">first \\l\\x0a</text>") && Contains(">&lt;&amp;\\N&gt;\\xff</text>"));
  CHECK_THAT(svg, Contains(">second &amp; \"last\" \\</text>") && Contains(">T&lt;int&gt;</text>"));
  REQUIRE(draw_dot_file(folder / "m.dot", folder / "m.png") == "");
  CHECK_THAT(test::read_file(folder / "m.png"), Catch::StartsWith("\x89PNG"));
}

}  // namespace graphviz_test
