#include <tessera/framework/ops/layer_norm.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/function_check.hpp"

namespace layer_norm_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

using Inputs = std::vector<DTensor>;

Function normalized(const ops::Axes& axes, double epsilon = 1e-3) {
  return [=](const Inputs& x) {
    return ops::layer_norm(x[0], x.size() > 1 ? x[1] : DTensor(), x.size() > 2 ? x[2] : DTensor(),
                           axes, epsilon);
  };
}

at::Tensor random(const Shape& shape) { return at::randn(shape, at::kDouble); }

}  // namespace

TEST_CASE("layer_norm matches ATen in every layout, with sharded normalized axes too") {
  const at::Tensor x = random({3, 2, 4}), gamma = random({4}), beta = random({4});
  CHECK(wrong_values({x, gamma, beta}, normalized({-1}),
                     at::layer_norm(x, {4}, gamma, beta, 1e-3)) == "");
  CHECK(wrong_values({x, gamma}, normalized({2}, 0.5),
                     at::layer_norm(x, {4}, gamma, at::Tensor(), 0.5)) == "");
  CHECK(wrong_values({x}, normalized({-1, 1}), at::layer_norm(x, {2, 4}, {}, {}, 1e-3)) == "");
  CHECK(wrong_gradients({x, gamma, beta}, normalized({-1})) == "");
  CHECK(wrong_gradients({x}, normalized({1, 2})) == "");
}

TEST_CASE("layer_norm takes any axes, with weights of their extents in ascending order") {
  const at::Tensor x = random({3, 2, 4}), gamma = random({3, 4}), beta = random({3, 4});
  const at::Tensor last = x.permute({1, 0, 2});
  CHECK(wrong_values({x, gamma, beta}, normalized({2, 0}),
                     at::layer_norm(last, {3, 4}, gamma, beta, 1e-3).permute({1, 0, 2})) == "");
  CHECK(wrong_gradients({x, gamma, beta}, normalized({2, 0})) == "");
}

TEST_CASE("layer_norm of float16 and bfloat16 accumulates in float32") {
  const at::Tensor x = (at::rand({2, 1000}) * 200).to(at::kHalf);
  const at::Tensor exact = at::layer_norm(x.to(at::kDouble), {1000}, {}, {}, 1e-3);
  for (const Layout& layout :
       {Layout::replicated(default_mesh(), 2),
        Layout({unsharded, "x"}, create_mesh({{"x", 2}}, virtual_cpus(2)))}) {
    const DTensor y = ops::layer_norm(pack(x, layout));
    CHECK(y.dtype() == at::kHalf);
    CHECK(difference(y.full().to(at::kDouble), exact, 2e-3, 2e-3) == "");
  }
}

TEST_CASE("layer_norm of sharded rows communicates nothing") {
  const Mesh mesh = create_mesh({{"batch", 2}}, virtual_cpus(2));
  const Layout rows({"batch", unsharded, unsharded}, mesh),
      replicated = Layout::replicated(mesh, 1);
  GradientTape tape;
  const Inputs in = {pack(random({4, 3, 5}), rows), pack(random({5}), replicated),
                     pack(random({5}), replicated)};
  for (const DTensor& value : in) tape.watch(value);
  CommLog comm;
  const CommLogScope scope(comm);
  const DTensor y = ops::layer_norm(in[0], in[1], in[2]);
  CHECK(y.layout() == rows);
  GradientOptions options;
  options.output_gradient = y;
  CHECK(tape.gradient(y, in[0], options).layout() == rows);
  CHECK(comm.entries().empty());
}

TEST_CASE("layer_norm has a second derivative, fused or not") {
  const auto slope = [](const ops::Axes& axes) -> Function {
    return [axes](const Inputs& in) {
      GradientTape tape;
      tape.watch(in[0]);
      const DTensor y = normalized(axes)(in);
      return tape.gradient(ops::sum(y * y * y), in[0]);
    };
  };
  CHECK(wrong_gradients({random({3, 4}), random({4}), random({4})}, slope({1})) == "");
  CHECK(wrong_gradients({random({3, 4}), random({3}), random({3})}, slope({0})) == "");
}

TEST_CASE("layer_norm refuses invalid arguments in one line") {
  const auto call = [](const Shape& x, const Shape& gamma, const ops::Axes& axes = {-1}) {
    return error_line([&] { ops::layer_norm(ones(x), ones(gamma), {}, axes); });
  };
  CHECK_THAT(call({2, 3}, {2}), Contains("[layer_norm]") && Contains("(2,) and (3,) for (2, 3)"));
  CHECK_THAT(call({2, 3}, {3}, {2}), Contains("[layer_norm]"));
  CHECK_THAT(call({2, 0}, {0}), Contains("the normalized axes must not be empty"));
  CHECK_THAT(error_line([] { ops::layer_norm(ones({2}, at::kLong)); }), Contains("floating dtype"));
  CHECK_THAT(error_line([] { ops::layer_norm(ones({2}), ones({2}, at::kDouble)); }),
             Contains("one dtype"));
}

}  // namespace layer_norm_test
