#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/nn/variable.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/comm_lines.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/function_check.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/op_names.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace dense_op_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

using Inputs = std::vector<DTensor>;

DTensor as_parameter(const DTensor& x) {
  const DTensor y = ops::neg(x);
  y.mark_parameter();
  return y;
}

/// dense() of x, a kernel and a bias, which are marked as Variables' values.
Function dense_of(bool relu) {
  return [relu](const Inputs& in) {
    return ops::dense(in[0], as_parameter(in[1]), as_parameter(in[2]), relu);
  };
}

at::Tensor random(const Shape& shape) { return at::randn(shape, at::kDouble); }

/// dense() as three operations.
DTensor three_operations(const DTensor& x, const DTensor& kernel, const DTensor& bias) {
  return ops::relu(ops::matmul(x, kernel) + bias);
}

/// A layer's results in given layouts, forward and backward, with its communication and the order
/// in which gradients are ready.
struct Run {
  std::vector<std::string> layouts, sent;
  std::vector<size_t> ready;
  std::vector<at::Tensor> values;
  bool fused = false;
};

Run run(const std::vector<Layout>& layouts, bool at_once) {
  const DTensor x = pack(random_values({{4, 6}}, 1), layouts[0]);
  const Variable kernel("kernel", pack(random_values({{6, 3}}, 2), layouts[1]));
  const Variable bias("bias", pack(random_values({{3}}, 3), layouts[2]));
  Run run;
  CommLog comm;
  Inputs all;
  {
    const CommLogScope scope(comm);
    const OpNames names;
    GradientTape tape;
    tape.watch(x);
    const DTensor y = at_once ? ops::dense(x, kernel.value(), bias.value(), true)
                              : three_operations(x, kernel.value(), bias.value());
    GradientOptions options;
    options.on_ready = [&](size_t source, const DTensor&) { run.ready.push_back(source); };
    all = tape.gradient(y, {x, kernel.value(), bias.value()}, options);
    all.push_back(y);
    run.fused = names.has("dense_relu");
  }
  for (const DTensor& each : all) {
    run.layouts.push_back(each.layout().describe());
    run.values.push_back(each.full().clone());
  }
  run.sent = comm_lines(comm.entries());
  return run;
}

}  // namespace

TEST_CASE("dense is product, bias and relu in every layout, of Variables and of values") {
  const at::Tensor x = random({2, 4, 6}), kernel = random({6, 3}), bias = random({3});
  const at::Tensor y = at::matmul(x, -kernel) - bias;
  CHECK(wrong_values({x, kernel, bias}, dense_of(false), y) == "");
  CHECK(wrong_values({x[0], kernel, bias}, dense_of(true), y[0].relu()) == "");
  CHECK(wrong_gradients({x, kernel, bias}, dense_of(true)) == "");
  const Function of_values = [](const Inputs& in) { return ops::dense(in[0], in[1], in[2], true); };
  CHECK(wrong_values({x, -kernel, -bias}, of_values, y.relu()) == "");
}

TEST_CASE("dense communicates the same fused and as three operations") {
  int fused = 0;
  for (const Mesh& mesh : {virtual_mesh({2, 2}), virtual_mesh({4})}) {
    for (const Layout& x : all_layouts(mesh, 2)) {
      for (const Layout& kernel : all_layouts(mesh, 2)) {
        for (const Layout& bias : all_layouts(mesh, 1)) {
          CAPTURE(mesh.describe(), x.describe(), kernel.describe(), bias.describe());
          const Run expected = run({x, kernel, bias}, false);
          const Run actual = run({x, kernel, bias}, true);
          CHECK(actual.layouts == expected.layouts);
          CHECK(actual.sent == expected.sent);
          CHECK(actual.ready == expected.ready);
          for (size_t i = 0; i < expected.values.size(); ++i) {
            CHECK(difference(actual.values[i], expected.values[i], 1e-12) == "");
          }
          fused += actual.fused;
        }
      }
    }
  }
  CHECK(fused > 100);
}

TEST_CASE("dense is fused under data, column and fully sharded parallelism, not row parallelism") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}}, virtual_cpus(4));
  const auto fused = [&](const LayoutSpec& x, const LayoutSpec& kernel, const std::string& bias) {
    return run({Layout(x, mesh), Layout(kernel, mesh), Layout({bias}, mesh)}, true).fused;
  };
  CHECK(fused({unsharded, unsharded}, {unsharded, unsharded}, unsharded));
  CHECK(fused({"batch", unsharded}, {unsharded, unsharded}, unsharded));
  CHECK(fused({"batch", unsharded}, {unsharded, "model"}, "model"));
  CHECK(fused({"batch", unsharded}, {unsharded, "model"}, unsharded));
  CHECK(fused({"batch", unsharded}, {"batch", "model"}, "model"));
  CHECK(fused({"batch", unsharded}, {unsharded, "batch"}, "batch"));
  CHECK_FALSE(fused({"batch", "model"}, {"model", unsharded}, unsharded));
  CHECK_FALSE(fused({"batch", unsharded}, {"model", unsharded}, unsharded));
  CHECK_FALSE(fused({"batch", unsharded}, {unsharded, unsharded}, "model"));
}

TEST_CASE("dense has a second derivative") {
  const Function slope = [](const Inputs& in) {
    GradientTape tape;
    tape.watch(in[0]);
    const DTensor y = dense_of(true)(in);
    return tape.gradient(y * y, in[0]);
  };
  CHECK(wrong_gradients({random({4, 6}), random({6, 3}), random({3})}, slope) == "");
}

TEST_CASE("dense without inner elements is the bias, and refuses invalid arguments in one line") {
  CHECK(ops::dense(ones({2, 0}), as_parameter(ones({0, 3})), as_parameter(ones({3})))
            .full()
            .equal(at::full({2, 3}, -1.0F)));
  const auto call = [](const Shape& x, const Shape& kernel, const Shape& bias) {
    return error_line(
        [&] { ops::dense(ones(x), as_parameter(ones(kernel)), as_parameter(ones(bias))); });
  };
  CHECK_THAT(call({2, 4}, {3, 5}, {5}), Contains("[dense]") && Contains("(2, 4), (3, 5) and (5,)"));
  CHECK_THAT(call({2, 3}, {3, 5}, {4}), Contains("[dense]"));
}

TEST_CASE("matmul and einsum refuse bool") {
  const DTensor x = pack(at::ones({2, 2}, at::kBool), Layout::replicated(virtual_mesh({1}), 2));
  CHECK_THROWS_WITH(ops::matmul(x, x), Contains("[matmul] the operand must be numeric"));
  CHECK_THROWS_WITH(ops::einsum("ij,jk->ik", {x, x}), Contains("[einsum] the operand must be"));
}

}  // namespace dense_op_test
