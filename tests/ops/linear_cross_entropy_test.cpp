#include <tessera/framework/ops/linear_cross_entropy.hpp>

#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/cross_entropy.hpp>
#include <tessera/framework/ops/internal/deferred_logits.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/device_memory.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/function_check.hpp"
#include "tests/support/op_names.hpp"

namespace linear_cross_entropy_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Contains;
using ops::ClassAxis;

namespace {

using Inputs = std::vector<DTensor>;

DTensor last(const Inputs& in) {
  return ops::linear_softmax_cross_entropy(in[0], in[1], in[2], in.size() > 3 ? in[3] : DTensor());
}
DTensor first(const Inputs& in) {
  return ops::linear_softmax_cross_entropy(in[0], in[1], in[2], in.size() > 3 ? in[3] : DTensor(),
                                           ClassAxis::first);
}

at::Tensor reference(const at::Tensor& x, const at::Tensor& kernel, const at::Tensor& labels,
                     const at::Tensor& bias = {}) {
  const at::Tensor logits = bias.defined() ? at::matmul(x, kernel) + bias : at::matmul(x, kernel);
  return at::log_softmax(logits, -1).gather(-1, labels.unsqueeze(-1)).squeeze(-1).neg();
}

}  // namespace

TEST_CASE("a linear cross-entropy equals that of the product in every layout") {
  const at::Tensor x = at::randn({2, 3, 4}, at::kDouble), kernel = at::randn({4, 7}, at::kDouble),
                   bias = at::randn({7}, at::kDouble), labels = at::randint(7, {2, 3}, at::kLong);
  const at::Tensor table = kernel.t().contiguous();
  CHECK(wrong_values({x, kernel, labels}, last, reference(x, kernel, labels)) == "");
  CHECK(wrong_values({x, kernel, labels, bias}, last, reference(x, kernel, labels, bias)) == "");
  CHECK(wrong_values({x, table, labels}, first, reference(x, kernel, labels)) == "");
  CHECK(wrong_values({x, table, labels, bias}, first, reference(x, kernel, labels, bias)) == "");
  CHECK(wrong_values({x[0][0], kernel, labels[0][0]}, last,
                     reference(x[0][0], kernel, labels[0][0])) == "");
}

TEST_CASE("large logits and distant shards lose no precision") {
  const at::Tensor x = at::eye(2, at::kDouble);
  const at::Tensor kernel =
      at::tensor({1000.0, -1000.0, 999.0, 3.0, -5.0, -900.0, -7.0, -6.0}, at::kDouble).view({2, 4});
  const at::Tensor labels = at::tensor({int64_t{2}, int64_t{1}}, at::kLong);
  CHECK(wrong_values({x, kernel, labels}, last, reference(x, kernel, labels)) == "");
}

TEST_CASE("there may be no rows") {
  const at::Tensor labels = at::empty({0}, at::kLong);
  const at::Tensor x = at::empty({0, 4}, at::kDouble), kernel = at::randn({4, 3}, at::kDouble);
  CHECK(wrong_values({x, kernel, labels}, last, reference(x, kernel, labels)) == "");
}

TEST_CASE("a block computes few logits at a time, forward and backward") {
  // The logits are 4.3 times as large as the most that a block computes.
  const int64_t rows = 900, classes = 80000, width = 4;
  const Mesh mesh = create_mesh({{"batch", 1}});
  const at::Tensor x = at::randn({rows, width}), kernel = at::randn({width, classes}),
                   bias = at::randn({classes}), labels = at::randint(classes, {rows}, at::kLong);
  const auto on = [&](const at::Tensor& value) {
    return pack(value, Layout::replicated(mesh, value.dim()));
  };
  const std::vector<DTensor> in = {on(x), on(kernel), on(labels), on(bias)};
  const auto run = [&](bool whole) {
    GradientTape tape;
    for (const size_t i : {0, 1, 3}) tape.watch(in[i]);
    const DTensor losses =
        whole ? ops::sparse_softmax_cross_entropy(ops::dense(in[0], in[1], in[3], false), in[2])
              : last(in);
    std::vector<DTensor> results = {losses};
    for (const DTensor& gradient :
         tape.gradient(ops::mean(losses), std::vector{in[0], in[1], in[3]})) {
      results.push_back(gradient);
    }
    return results;
  };
  std::vector<DTensor> parts;
  const double logits = 4.0 * double(rows) * double(classes);
  {
    const DeviceMemory memory;
    parts = run(false);
    // Logits of a part, what logsumexp allocates for them, and kernels and their gradients.
    CHECK(double(memory.peak(0)) < 0.65 * logits);
  }
  const std::vector<DTensor> expected = run(true);
  for (size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(difference(parts[i].full(), expected[i].full(), 1e-4, 1e-7) == "");
  }
}

TEST_CASE("sharded classes cost three reductions of the labels' shape") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 3}});
  const DTensor x = pack(at::randn({4, 5}, at::kDouble), Layout({"batch", unsharded}, mesh));
  const DTensor kernel = pack(at::randn({5, 7}, at::kDouble), Layout({unsharded, "model"}, mesh));
  const DTensor labels = pack(at::randint(7, {4}, at::kLong), Layout({"batch"}, mesh));
  GradientTape tape;
  tape.watch(kernel);
  CommLog log;
  const CommLogScope scope(log);
  const DTensor losses = last({x, kernel, labels});
  CHECK(log.count(CommOp::all_reduce, "model") == 3);
  CHECK(log.entries().size() == 3);
  for (const CommEntry& entry : log.entries()) CHECK(entry.bytes == 2 * 8);
  const DTensor gradient = tape.gradient(losses, kernel);
  CHECK(gradient.layout() == kernel.layout());
  CHECK(log.count(CommOp::all_reduce, "batch") == 1);
  CHECK(log.entries().size() == 4);
}

TEST_CASE("half types give float32 losses and gradients that are rounded once") {
  const at::Tensor x = at::randn({70, 8}), kernel = at::randn({8, 300000 / 8}) * 0.1,
                   labels = at::randint(kernel.size(1), {70}, at::kLong);
  const Mesh mesh = create_mesh({{"batch", 1}});
  const auto on = [&](const at::Tensor& value) {
    return pack(value, Layout::replicated(mesh, value.dim()));
  };
  for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
    const DTensor narrow_x = on(x.to(dtype)), narrow_kernel = on(kernel.to(dtype));
    GradientTape tape;
    tape.watch(narrow_kernel);
    const DTensor losses = last({narrow_x, narrow_kernel, on(labels)});
    CHECK(losses.dtype() == at::kFloat);
    const at::Tensor wide_x = x.to(dtype).to(at::kDouble),
                     wide_kernel = kernel.to(dtype).to(at::kDouble);
    CHECK(difference(losses.full().to(at::kDouble), reference(wide_x, wide_kernel, labels), 2e-3,
                     2e-3) == "");
    CHECK(tape.gradient(ops::sum(losses), narrow_kernel).dtype() == dtype);
  }
}

TEST_CASE("deferred logits are computed by what reads them, but not by a loss of large ones") {
  const Mesh mesh = create_mesh({{"batch", 2}});
  const at::Tensor rows = at::randn({4, 3}, at::kDouble), numbers = at::randn({3, 6}, at::kDouble),
                   offsets = at::randn({6}, at::kDouble);
  const DTensor x = pack(rows, Layout({"batch", unsharded}, mesh));
  const DTensor kernel = pack(numbers, Layout::replicated(mesh, 2));
  const DTensor bias = pack(offsets, Layout::replicated(mesh, 1));
  const DTensor labels = pack(at::randint(6, {4}, at::kLong), Layout({"batch"}, mesh));
  // Returns whether the loss was computed from the operands, and the kernel's gradient.
  const auto run = [&](bool read_first) {
    OpNames names;
    GradientTape tape;
    tape.watch(kernel);
    const DTensor logits = ops::deferred_logits(x, kernel, bias);
    CHECK(logits.shape() == Shape{4, 6});
    CHECK(logits.dtype() == at::kDouble);
    CHECK(DeferredValue::of(logits) != nullptr);
    if (read_first) CHECK(logits.layout() == Layout({"batch", unsharded}, mesh));
    const DTensor losses = ops::sparse_softmax_cross_entropy(logits, labels);
    CHECK(difference(losses.full(), reference(rows, numbers, labels.full(), offsets), 1e-10) == "");
    const at::Tensor gradient = tape.gradient(losses, kernel).full();
    CHECK(difference(logits.full(), at::addmm(offsets, rows, numbers), 1e-10) == "");
    CHECK(DeferredValue::of(logits) == nullptr);
    return std::pair(names.has("linear_softmax_cross_entropy"), gradient);
  };
  const auto small = run(false);
  CHECK_FALSE(small.first);
  const ScopedValue<int64_t> all(least_large_logits(), 0);
  const auto read = run(true), large = run(false);
  CHECK_FALSE(read.first);
  CHECK(large.first);
  CHECK(difference(large.second, small.second, 1e-10) == "");
  CHECK(at::equal(read.second, small.second));
  // A contracted axis that is sharded is not gathered for the loss.
  const DTensor cut = pack(numbers, Layout({"batch", unsharded}, mesh));
  OpNames names;
  ops::sparse_softmax_cross_entropy(
      ops::deferred_logits(pack(rows, Layout({unsharded, "batch"}, mesh)), cut), labels);
  CHECK_FALSE(names.has("linear_softmax_cross_entropy"));
}

TEST_CASE("a linear cross-entropy refuses what does not fit") {
  const Mesh mesh = create_mesh({{"batch", 1}});
  const auto on = [&](const at::Tensor& value) {
    return pack(value, Layout::replicated(mesh, value.dim()));
  };
  const DTensor x = on(at::ones({2, 3})), kernel = on(at::ones({3, 4})),
                labels = on(at::zeros({2}, at::kLong));
  CHECK_THROWS_WITH(first({x, kernel, labels}), Contains("(c, d)") && Contains("(3, 4)"));
  CHECK_THROWS_WITH(last({x, kernel, on(at::zeros({3}, at::kLong))}), Contains("labels (...)"));
  CHECK_THROWS_WITH(last({x, kernel, labels, on(at::ones({3}))}), Contains("bias (c,)"));
  CHECK_THROWS_WITH(last({x, on(at::ones({3, 0})), labels}), Contains("at least one class"));
  CHECK_THROWS_WITH(last({x, on(at::ones({3, 4}, at::kDouble)), labels}), Contains("one dtype"));
  CHECK_THROWS_WITH(last({x, kernel, on(at::full({2}, 4, at::kLong))}), Contains("labels"));
  CHECK_THROWS_AS(ops::deferred_logits(x, on(at::ones({4, 4}))), Error);
}

}  // namespace linear_cross_entropy_test
