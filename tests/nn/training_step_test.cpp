#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/initializers/initializers.hpp>
#include <tessera/framework/nn/losses/losses.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/metrics/metrics.hpp>
#include <tessera/optimizers/optimizers.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/thread_communicator.hpp"

namespace training_step_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

struct Outcome {
  at::Tensor kernel;
  std::vector<double> values;  ///< mean loss, accuracy
};

/// Runs four steps of a softmax regression without Model, on batches of 6, 6, 6 and 2 weighted
/// rows.
Outcome train(const Mesh& mesh, const LayoutSpec& kernel_layout, const LayoutSpec& x_layout,
              const OptimizerHandle& optimizer) {
  const at::Tensor images = at::sin(at::arange(80, at::kFloat)).reshape({20, 4});
  const at::Tensor labels = at::arange(20) % 3;
  const at::Tensor weights = at::arange(20, at::kFloat) % 4;
  Variable kernel(VariableSpec{"kernel", {4, 3}, at::kFloat, GlorotUniform({.seed = 1})});
  kernel.place({kernel.shape(), Layout(kernel_layout, mesh)});
  const SparseCategoricalCrossentropy loss({.from_logits = true});
  const Mean mean;
  const std::shared_ptr<Metric> accuracy = SparseCategoricalAccuracy().get();
  for (int64_t row = 0; row < 20; row += 6) {
    const int64_t rows = std::min<int64_t>(6, 20 - row);
    const auto batch = [&](const at::Tensor& all, const LayoutSpec& spec) {
      return pack(all.narrow(0, row, rows), Layout(spec, mesh));
    };
    const DTensor x = batch(images, x_layout);
    const DTensor y = batch(labels, {x_layout[0]});
    const DTensor w = batch(weights, {x_layout[0]});
    GradientTape tape;
    const DTensor logits = ops::matmul(x, kernel.read());
    const DTensor value = (*loss)(y, logits, w);
    optimizer->apply(tape.gradient(value, std::vector{kernel.value()}), {kernel});
    mean.update(value, double(rows));
    accuracy->update(y, logits, w);
  }
  return {kernel.value().full().clone(), results({mean.get(), accuracy})};
}

std::string unlike(const Outcome& outcome, const Outcome& expected) {
  for (size_t i = 0; i < expected.values.size(); ++i) {
    if (!(std::abs(outcome.values[i] - expected.values[i]) < 1e-6)) {
      return str("value ", i, " is ", outcome.values[i], ", not ", expected.values[i]);
    }
  }
  return difference(outcome.kernel, expected.kernel, 1e-5, 1e-6);
}

struct Case {
  MeshDims dims;
  LayoutSpec kernel, x;
};

const Case cases[] = {
    {{{"batch", 4}}, {unsharded, unsharded}, {"batch", unsharded}},
    {{{"batch", 4}}, {"batch", unsharded}, {"batch", unsharded}},
    {{{"batch", 2}, {"model", 2}}, {unsharded, "model"}, {"batch", unsharded}},
    {{{"batch", 2}, {"model", 2}}, {"model", "batch"}, {"batch", "model"}},
    {{{"batch", 1}, {"model", 4}}, {unsharded, "model"}, {"batch", unsharded}},
};

}  // namespace

TEST_CASE("a custom training step gives one device's result on every mesh") {
  const Mesh one = create_mesh({{"batch", 1}});
  for (const char* name : {"sgd", "adam", "adamw"}) {
    const Outcome expected =
        train(one, {unsharded, unsharded}, {"batch", unsharded}, OptimizerHandle(name));
    for (const Case& c : cases) {
      for (BlockPolicy policy : policies) {
        const BlockPolicyScope scope(policy);
        INFO(name << " kernel " << to_string(c.kernel) << " " << test::to_string(policy));
        CHECK(unlike(train(create_mesh(c.dims), c.kernel, c.x, OptimizerHandle(name)), expected) ==
              "");
      }
    }
  }
}

TEST_CASE("a custom training step gives the same in one process, two and four") {
  const Mesh one = create_mesh({{"batch", 1}});
  const Outcome expected =
      train(one, {unsharded, unsharded}, {"batch", unsharded}, OptimizerHandle("adam"));
  for (const Case& c : cases) {
    for (int ranks : {2, 4}) {
      const auto run = [&](int, const std::shared_ptr<Communicator>& communicator) {
        const Mesh mesh = rank_mesh(c.dims, communicator);
        const std::string wrong =
            unlike(train(mesh, c.kernel, c.x, OptimizerHandle("adam")), expected);
        expect(wrong.empty(), to_string(c.kernel) + ": " + wrong);
      };
      CHECK_NOTHROW(run_ranks(ranks, run));
    }
  }
}

TEST_CASE("a loop of one's own reads as in Keras") {
  const at::Tensor x = at::sin(at::arange(24, at::kDouble)).reshape({6, 4});
  const at::Tensor y = at::arange(6) % 3;
  const auto kernel_after = [&](bool pairs) {
    const Mesh mesh = create_mesh({{"batch", 2}});
    Variable kernel(VariableSpec{"kernel", {4, 3}, at::kDouble, GlorotUniform({.seed = 1})});
    kernel.place({kernel.shape(), Layout({unsharded, unsharded}, mesh)});
    const LossHandle loss = SparseCategoricalCrossentropy({.from_logits = true});
    const MetricHandle accuracy = SparseCategoricalAccuracy();
    const OptimizerHandle optimizer = SGD(0.5);
    const DTensor inputs = pack(x, Layout({"batch", unsharded}, mesh));
    const DTensor labels = pack(y, Layout({"batch"}, mesh));
    GradientTape tape;
    const DTensor logits = ops::matmul(inputs, kernel.read());
    const DTensor value = loss(labels, logits);
    const std::vector<Variable> weights{kernel};
    const std::vector<DTensor> gradients = tape.gradient(value, weights);
    if (pairs) {
      optimizer->apply_gradients({{gradients[0], kernel}});
    } else {
      optimizer->apply_gradients(gradients, weights);
    }
    const double once = accuracy(labels, logits);
    CHECK(accuracy(labels, logits) == once);
    accuracy->reset_state();
    CHECK(accuracy->result() == 0);
    accuracy->update_state(labels, logits);
    CHECK(accuracy->result() == once);
    return kernel.value().full().clone();
  };
  Variable kernel(VariableSpec{"kernel", {4, 3}, at::kDouble, GlorotUniform({.seed = 1})});
  const at::Tensor start = kernel.value().full().clone();
  const at::Tensor error = at::softmax(at::matmul(x, start), 1) - at::one_hot(y, 3).to(at::kDouble);
  const at::Tensor expected = start - 0.5 * at::matmul(x.t(), error) / 6;
  CHECK(difference(kernel_after(false), expected, 1e-12, 1e-12) == "");
  CHECK(difference(kernel_after(true), expected, 1e-12, 1e-12) == "");
}

TEST_CASE("the gradient with respect to a Variable is that of its value") {
  const Variable w("w", pack(at::tensor({1.0, 2.0})));
  GradientTape tape({.persistent = true});
  const DTensor y = ops::sum(w.read() * w.read());
  CHECK(difference(tape.gradient(y, w).full(), at::tensor({2.0, 4.0})) == "");
  CHECK(difference(tape.gradient(y, w.value()).full(), at::tensor({2.0, 4.0})) == "");
}

}  // namespace training_step_test
