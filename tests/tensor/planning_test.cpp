#include <tessera/framework/tensor/internal/abstract.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/nn/variable.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"

namespace planning_test {

using namespace tessera;
using namespace tessera::detail;

TEST_CASE("a planned value has shape, layout and no blocks", "[planning]") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}});
  const AbstractScope scope(mesh);
  CHECK(is_abstract());
  const DTensor x = filled({4, 6}, 1, at::kFloat, Layout({"batch", "model"}, mesh));
  CHECK(x.blocks().empty());
  CHECK(x.layout().describe() == "(batch, model)");
  CHECK(x.mesh() == abstract_mesh());
  CHECK(ops::relayout(x, Layout({"model", unsharded}, mesh)).layout().describe() ==
        "(model, unsharded)");
  CHECK(ops::matmul(x, zeros({6, 3})).shape() == Shape{4, 3});
  CHECK_THROWS_AS(x.full(), StateError);
}

TEST_CASE("planning logs what the real operations communicate", "[planning]") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}});
  const auto run = [&] {
    CommLog log;
    const CommLogScope logged(log);
    const DTensor x = filled({4, 6}, 1, at::kFloat, Layout({"batch", "model"}, mesh));
    const DTensor w = filled({6, 8}, 1, at::kFloat, Layout({"model", unsharded}, mesh));
    ops::relu(ops::matmul(x, w));
    return log.to_string();
  };
  const std::string real = run();
  const AbstractScope scope(mesh);
  CHECK(run() == real);
  CHECK_FALSE(real.empty());
}

TEST_CASE("Variables keep their values when used in planning", "[planning]") {
  const Mesh mesh = create_mesh({{"batch", 2}});
  const Layout layout({"batch"}, mesh);
  Variable drawn("drawn", pack(at::ones({4}), layout));
  Variable unread(VariableSpec{"unread", {4}, at::kFloat, "ones"});
  {
    const AbstractScope scope(mesh);
    CHECK(drawn.value().blocks().empty());
    CHECK(drawn.value().layout().describe() == "(batch)");
    CHECK(drawn.value().id() == drawn.id());
    drawn.assign(ops::scale(drawn.value(), 2));
    CHECK(unread.value().shape() == Shape{4});
  }
  CHECK_FALSE(is_abstract());
  CHECK(drawn.value().full().sum().item<double>() == 4);
  CHECK_FALSE(unread.has_value());
}

TEST_CASE("scopes nest, and layouts of other meshes count as replicated", "[planning]") {
  const Mesh mesh = create_mesh({{"batch", 2}}), other = create_mesh({{"model", 3}});
  const AbstractScope outer(mesh);
  {
    const AbstractScope inner(other);
    CHECK(abstract_mesh().dims() == other.dims());
  }
  CHECK(abstract_mesh().dims() == mesh.dims());
  CHECK(abstract_layout(Layout({"model"}, other)).describe() == "(unsharded)");
}

}  // namespace planning_test
