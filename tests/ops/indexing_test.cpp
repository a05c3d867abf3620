#include <tessera/framework/ops/internal/indexing.hpp>

#include <functional>
#include <sstream>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace indexing_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Contains;

namespace {

const at::Tensor values = at::arange(7 * 4 * 3).to(at::kDouble).reshape({7, 4, 3});

void check(const at::Tensor& expected, const std::function<DTensor(const DTensor&)>& function) {
  const Mesh mesh = create_mesh({{"a", 2}, {"b", 2}});
  for (const LayoutSpec& spec :
       {LayoutSpec{unsharded, unsharded, unsharded}, LayoutSpec{"a", unsharded, unsharded},
        LayoutSpec{"a", "b", unsharded}, LayoutSpec{unsharded, "b", "a"}}) {
    const Layout layout(spec, mesh);
    CAPTURE(layout.describe());
    CHECK(difference(function(pack(values, layout)).full(), expected) == "");
  }
}

}  // namespace

TEST_CASE("a value is indexed and sliced as in Python") {
  check(values[0], [](const DTensor& x) { return x[0]; });
  check(values[-1], [](const DTensor& x) { return x[-1]; });
  check(values.slice(0, 1, 3), [](const DTensor& x) { return x["1:3"]; });
  check(values.select(1, 2), [](const DTensor& x) { return x[{":", 2}]; });
  check(values.slice(1, 0, 2).slice(0, 5, 7), [](const DTensor& x) { return x[{"-2:", ":2"}]; });
  check(values.select(2, -1), [](const DTensor& x) { return x[{"...", -1}]; });
  check(values.unsqueeze(1), [](const DTensor& x) { return x[{":", "None"}]; });
  check(values.slice(0, 0, 7, 3), [](const DTensor& x) { return x["::3"]; });
  check(values.flip({0}), [](const DTensor& x) { return x["::-1"]; });
  check(values.flip({0}).slice(0, 2, 6, 2), [](const DTensor& x) { return x["4:0:-2"]; });
  check(values.slice(0, 0, 0), [](const DTensor& x) { return x["5:2"]; });
  check(values[1][2][0], [](const DTensor& x) { return x[{1, 2, 0}]; });
}

TEST_CASE("indexing is differentiable") {
  const Mesh mesh = create_mesh({{"a", 2}});
  const DTensor x = pack(values, Layout({"a", unsharded, unsharded}, mesh));
  GradientTape tape;
  tape.watch(x);
  const DTensor y = x[{"::2", 1}];
  at::Tensor expected = at::zeros_like(values);
  expected.slice(0, 0, 7, 2).select(1, 1).fill_(1);
  CHECK(difference(tape.gradient(y, x).full(), expected) == "");
}

TEST_CASE("an index that does not fit is refused") {
  const DTensor x = zeros({3, 4});
  CHECK_THROWS_WITH(x[3], Contains("[DTensor::operator[]] an index of an axis of extent 3. "
                                   "Received: 3"));
  CHECK_THROWS_WITH((x[{0, 0, 0}]), Contains("at most 2 indices and slices"));
  CHECK_THROWS_WITH(x["1:x"], Contains("each item must be an index, a slice"));
  CHECK_THROWS_WITH(x["::0"], Contains("a step that is not 0"));
}

TEST_CASE("a value prints its shape, dtype, layout and elements") {
  const Mesh mesh = create_mesh({{"a", 2}});
  std::ostringstream out;
  out << pack(at::ones({2}), Layout({"a"}, mesh)) << "; " << zeros({2})[0];
  CHECK(out.str() ==
        "DTensor(shape=(2,), dtype=float32, layout=(a)); "
        "DTensor(shape=(), dtype=float32, layout=()\n0\n[ CPUFloatType{} ])");
  const std::string large = pack(at::arange(5000), Layout::replicated(mesh, 1)).to_string();
  CHECK_THAT(large, Contains("the first and last 3 of longer axes") && Contains(" 4999"));
  CHECK(large.size() < 200);
}

}  // namespace indexing_test
