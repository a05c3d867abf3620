#include <tessera/framework/tensor/layout_picture.hpp>

#include <algorithm>
#include <sstream>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/tensor/create.hpp>
#include "tests/support/catch.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace visualize_test {

using namespace tessera;

namespace {

Mesh grid() { return create_mesh({{"batch", 2}, {"model", 2}}); }
Mesh eight() { return create_mesh({{"batch", 4}, {"model", 2}}); }
Mesh cube() { return create_mesh({{"x", 2}, {"y", 2}, {"z", 2}}); }

/// Returns the code points of the widest line.
int64_t width(const std::string& text) {
  std::istringstream lines(text);
  int64_t widest = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto points =
        std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; });
    widest = std::max<int64_t>(widest, points);
  }
  return widest;
}

}  // namespace

TEST_CASE("a matrix sharded on both axes has one device in each cell", "[visualize]") {
  CHECK(visualize_layout({8, 6}, Layout({"batch", "model"}, grid())) ==
        "shape (8, 6), layout (batch, model), mesh batch=2, model=2\n"
        "  0     3     6\n"
        "0 ┌─────┬─────┐\n"
        "  │     │     │\n"
        "  │  0  │  1  │\n"
        "  │     │     │\n"
        "4 ├─────┼─────┤\n"
        "  │     │     │\n"
        "  │  2  │  3  │\n"
        "  │     │     │\n"
        "8 └─────┴─────┘\n");
}

TEST_CASE("replicas share a cell", "[visualize]") {
  CHECK(visualize_layout({4, 40}, Layout({unsharded, "model"}, eight())) ==
        "shape (4, 40), layout (unsharded, model), mesh batch=4, model=2\n"
        "  0                   20                  40\n"
        "0 ┌───────────────────┬───────────────────┐\n"
        "  │      0,2,4,6      │      1,3,5,7      │\n"
        "4 └───────────────────┴───────────────────┘\n");
  CHECK(visualize_layout({}, Layout::replicated(eight(), 0)) ==
        "shape (), layout (), mesh batch=4, model=2\n"
        "┌───────────────────────────────────────┐\n"
        "│                  0-7                  │\n"
        "└───────────────────────────────────────┘\n");
}

TEST_CASE("uneven shards are drawn in proportion, empty ones below", "[visualize]") {
  CHECK(visualize_layout({10}, Layout({"batch"}, eight())) ==
        "shape (10,), layout (batch), mesh batch=4, model=2\n"
        "0       2           5       7           10\n"
        "┌───────┬───────────┬───────┬───────────┐\n"
        "│  0,1  │    2,3    │  4,5  │    6,7    │\n"
        "└───────┴───────────┴───────┴───────────┘\n");
  CHECK(visualize_layout({3}, Layout({"batch"}, eight())) ==
        "shape (3,), layout (batch), mesh batch=4, model=2\n"
        "0             1             2             3\n"
        "┌─────────────┬─────────────┬─────────────┐\n"
        "│     2,3     │     4,5     │     6,7     │\n"
        "└─────────────┴─────────────┴─────────────┘\n"
        "without elements: 0,1\n");
  CHECK(visualize_layout({0, 4}, Layout({"batch", "model"}, grid())) ==
        "shape (0, 4), layout (batch, model), mesh batch=2, model=2\nno elements\n");
}

TEST_CASE("parts of a partial sum are distinguished from replicas", "[visualize]") {
  const Layout layout = Layout({"y", unsharded}, cube()).with_partial(1, Reduce::sum);
  CHECK(visualize_layout({2, 20}, layout) ==
        "shape (2, 20), layout (y, unsharded) +sum over x, mesh x=2, y=2, z=2\n"
        "  0                                       20\n"
        "0 ┌───────────────────────────────────────┐\n"
        "  │               0,1 + 4,5               │\n"
        "1 ├───────────────────────────────────────┤\n"
        "  │               2,3 + 6,7               │\n"
        "2 └───────────────────────────────────────┘\n");
}

TEST_CASE("of more axes the sharded ones are drawn", "[visualize]") {
  CHECK(visualize_layout({4, 28, 32, 1}, Layout({unsharded, "x", {"z", "y"}, unsharded}, cube())) ==
        "shape (4, 28, 32, 1)\n"
        "layout (unsharded, x, (z,y), unsharded)\n"
        "mesh x=2, y=2, z=2\n"
        "axis 1 downwards, axis 2 across\n"
        "   0    8    16   24   32\n"
        " 0 ┌────┬────┬────┬────┐\n"
        "   │    │    │    │    │\n"
        "   │ 0  │ 2  │ 1  │ 3  │\n"
        "   │    │    │    │    │\n"
        "14 ├────┼────┼────┼────┤\n"
        "   │    │    │    │    │\n"
        "   │ 4  │ 6  │ 5  │ 7  │\n"
        "   │    │    │    │    │\n"
        "28 └────┴────┴────┴────┘\n");
}

TEST_CASE("a tensor sharded along three axes is a table", "[visualize]") {
  CHECK(visualize_layout({4, 3, 9}, Layout({"x", "y", "z"}, cube())) ==
        "shape (4, 3, 9), layout (x, y, z), mesh x=2, y=2, z=2\n"
        "axis 0  axis 1  axis 2  devices\n"
        "0:2     0:1     0:4     0\n"
        "0:2     0:1     4:9     1\n"
        "0:2     1:3     0:4     2\n"
        "0:2     1:3     4:9     3\n"
        "2:4     0:1     0:4     4\n"
        "2:4     0:1     4:9     5\n"
        "2:4     1:3     0:4     6\n"
        "2:4     1:3     4:9     7\n");
}

TEST_CASE("pictures of every layout of many devices fit into 78 columns", "[visualize]") {
  for (const MeshDims& dims : {MeshDims{{"a", 64}, {"b", 2}}, MeshDims{{"a", 16}, {"b", 16}},
                               MeshDims{{"a", 300}, {"b", 1}}}) {
    const Mesh mesh = create_mesh(dims);
    const std::vector<LayoutSpec> specs = {{"a", "b"},
                                           {"b", "a"},
                                           {"a", unsharded},
                                           {unsharded, "a"},
                                           {unsharded, "b"},
                                           {unsharded, unsharded},
                                           {{"a", "b"}, unsharded}};
    for (const LayoutSpec& spec : specs) {
      for (const Shape& shape : {Shape{1000, 1000}, Shape{1, 5000000000}, Shape{7, 3}}) {
        const std::string text = visualize_layout(shape, Layout(spec, mesh));
        CAPTURE(text);
        CHECK(width(text) <= 78);
        CHECK(std::count(text.begin(), text.end(), '\n') < 75);
      }
    }
  }
}

TEST_CASE("a tensor is shown with its dtype, and needs a layout of its rank", "[visualize]") {
  const std::string text = visualize_layout(filled({4}, 1, at::kDouble, Layout({"batch"}, grid())));
  CHECK(text.starts_with("float64 (4,), layout (batch), mesh batch=2, model=2\n"));
  CHECK_THROWS_WITH(
      visualize_layout({4}, Layout({"batch", unsharded}, grid())),
      "[visualize_layout] the layout of this tensor must have rank 1. Received: (batch, "
      "unsharded). To fix: pass a layout with one entry for each axis.");
  CHECK_THROWS_AS(visualize_layout(DTensor()), StateError);
}

}  // namespace visualize_test
