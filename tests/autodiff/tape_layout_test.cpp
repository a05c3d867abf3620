#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <array>

#include <ATen/ATen.h>

#include "tests/autodiff/grid.hpp"
#include "tests/support/catch.hpp"

namespace tape_layout_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using namespace tessera::test::grid;

namespace {

/// Computes x·a, then relu(·b)·c with b and c sharded over `model`, as a model-parallel pair of
/// layers.
struct ThreeLayers {
  at::Tensor x = numbers({8, 6}, 1), a = numbers({6, 5}, 2), b = numbers({5, 4}, 3),
             c = numbers({4, 3}, 4);
  DTensor first = variable(a, {nullptr, nullptr});
  DTensor up = variable(b, {nullptr, "model"});
  DTensor down = variable(c, {"model", nullptr});
  DTensor input = pack(x, Layout({"batch", nullptr}, mesh()));

  DTensor loss() const {
    const DTensor h = ops::tanh(ops::matmul(input, first));
    return ops::sum(ops::square(ops::matmul(ops::relu(ops::matmul(h, up)), down)));
  }

  /// Returns the gradients computed by hand on one device.
  std::vector<at::Tensor> gradients() const {
    const at::Tensor h = x.mm(a).tanh(), r = h.mm(b).relu(), y = r.mm(c);
    const at::Tensor dy = 2 * y, dr = dy.mm(c.t()) * r.gt(0), dh = dr.mm(b.t()) * (1 - h * h);
    return {x.t().mm(dh), h.t().mm(dr), r.t().mm(dy)};
  }
};

}  // namespace

TEST_CASE("a layer before a model-parallel pair costs one all-reduce over model in backward") {
  const ThreeLayers net;
  GradientTape tape;
  const DTensor loss = net.loss();
  CommLog log;
  std::vector<DTensor> gradients;
  {
    const CommLogScope scope(log);
    gradients = tape.gradient(loss, {net.first, net.up, net.down});
  }
  INFO(log.to_string());
  CHECK(log.count(CommOp::all_reduce, "model") == 1);
  CHECK(log.entries().size() == 1);
  const DimMask batch = 1u << mesh().index("batch");
  for (const DTensor& gradient : gradients) CHECK(gradient.layout().partial_dims() == batch);
  CHECK(gradients[0].layout().sharded_dims() == 0);
  CHECK(gradients[1].layout().resolved() == net.up.layout());
  CHECK(gradients[2].layout().resolved() == net.down.layout());
  CommLog reduction;
  {
    const CommLogScope scope(reduction);
    const std::vector<at::Tensor> expected = net.gradients();
    for (size_t i = 0; i < 3; ++i) {
      const DTensor reduced = relayout_value(gradients[i], gradients[i].layout().resolved());
      CHECK(reduction.count(CommOp::all_reduce, "batch") == int64_t(i) + 1);
      CHECK(reduction.entries().size() == i + 1);
      CommLog rest;
      const CommLogScope inner(rest);
      CHECK(same(reduced, expected[i]) == "");
    }
  }
}

TEST_CASE("the forward pass of a model-parallel pair costs one all-reduce over model") {
  const ThreeLayers net;
  CommLog log;
  const CommLogScope scope(log);
  const DTensor h = ops::tanh(ops::matmul(net.input, net.first));
  const DTensor y = ops::matmul(ops::relu(ops::matmul(h, net.up)), net.down);
  CHECK(log.entries().empty());
  CHECK(y.layout().partial_dims() == 1u << mesh().index("model"));
  ops::square(y);
  CHECK(log.count(CommOp::all_reduce, "model") == 1);
  CHECK(log.entries().size() == 1);
}

/// Three projections of one tensor plus the tensor itself, as in a transformer block.
TEST_CASE("a residual's gradient is added after the one all-reduce of the sharded layers") {
  const at::Tensor x = numbers({8, 6}, 1), a = numbers({6, 6}, 2), down = numbers({4, 6}, 6);
  const at::Tensor kernels[] = {numbers({6, 4}, 3), numbers({6, 4}, 4), numbers({6, 4}, 5)};
  const bool residual_first = GENERATE(false, true);
  CAPTURE(residual_first);
  const DTensor first = variable(a, {nullptr, nullptr});
  const DTensor h = variable(kernels[0], {nullptr, "model"}),
                k = variable(kernels[1], {nullptr, "model"}),
                v = variable(kernels[2], {nullptr, "model"}),
                o = variable(down, {"model", nullptr});
  const DTensor input = pack(x, Layout({"batch", nullptr}, mesh()));
  const auto block = [&](const DTensor& u) {
    const DTensor copy = residual_first ? u * 2.0 : DTensor();
    const DTensor heads = ops::tanh(ops::matmul(u, h)) * ops::matmul(u, k) * ops::matmul(u, v);
    return ops::matmul(heads, o) + (residual_first ? copy : u * 2.0);
  };
  GradientTape tape;
  const DTensor loss = ops::sum(ops::square(block(block(ops::matmul(input, first)))));
  CommLog log;
  DTensor gradient;
  {
    const CommLogScope scope(log);
    gradient = tape.gradient(loss, first);
  }
  INFO(log.to_string());
  CHECK(log.count(CommOp::all_reduce, "model") == 2);
  CHECK(log.entries().size() == 2);

  const auto cut = [&](const at::Tensor& u) {
    const at::Tensor p = u.mm(kernels[0]).tanh(), q = u.mm(kernels[1]), r = u.mm(kernels[2]);
    return std::array{p, q, r, (p * q * r).mm(down) + 2 * u};
  };
  const auto back = [&](const at::Tensor& u, const at::Tensor& dy) {
    const auto [p, q, r, y] = cut(u);
    const at::Tensor dh = dy.mm(down.t());
    return 2 * dy + (dh * q * r * (1 - p * p)).mm(kernels[0].t()) +
           (dh * p * r).mm(kernels[1].t()) + (dh * p * q).mm(kernels[2].t());
  };
  const at::Tensor u = x.mm(a), w = cut(u)[3], y = cut(w)[3];
  CHECK(same(gradient, x.t().mm(back(u, back(w, 2 * y)))) == "");
}

TEST_CASE("the gradient of a Variable stays a partial sum through cast, transpose and reshape") {
  const at::Tensor x = numbers({8, 6}, 1), w = numbers({5, 6}, 2);
  const DTensor weight = variable(w, {nullptr, nullptr});
  const DTensor input = pack(x.to(at::kFloat), Layout({"batch", nullptr}, mesh()));
  GradientTape tape;
  const DTensor narrow = ops::cast(weight, at::kFloat);
  const DTensor kernel = ops::reshape(ops::transpose(ops::reshape(narrow, {10, 3})), {6, 5});
  const DTensor loss = ops::sum(ops::matmul(input, kernel));
  CommLog log;
  DTensor gradient;
  {
    const CommLogScope scope(log);
    gradient = tape.gradient(loss, weight);
  }
  CHECK(log.entries().empty());
  CHECK(gradient.layout().is_partial());
  CHECK(gradient.dtype() == at::kDouble);
  const at::Tensor rows = x.sum(0).view({6, 1}).expand({6, 5}).reshape({3, 10});
  const at::Tensor expected = rows.t().reshape({5, 6});
  CHECK(difference(gradient.full(), expected, 1e-5, 1e-5) == "");
}

TEST_CASE("the gradient of a Variable keeps the dtype of a narrow read if asked to") {
  const at::Tensor x = numbers({8, 6}, 1).to(at::kBFloat16), w = numbers({6, 5}, 2).to(at::kFloat);
  const DTensor weight = variable(w, {nullptr, nullptr});
  const DTensor input = pack(x, Layout({"batch", nullptr}, mesh()));
  const auto gradient = [&](bool narrow, bool wide_read) {
    GradientTape tape;
    DTensor loss = ops::sum(
        ops::cast(ops::tanh(ops::matmul(input, ops::cast(weight, at::kBFloat16))), at::kFloat));
    if (wide_read) loss = loss + ops::sum(ops::square(weight));
    CommLog log;
    const CommLogScope scope(log);
    const DTensor result = tape.gradient(loss, weight, {.narrow = narrow});
    CHECK(log.entries().empty() == !wide_read);
    return result;
  };
  CHECK(gradient(false, false).dtype() == at::kFloat);
  const DTensor kept = gradient(true, false);
  CHECK(kept.dtype() == at::kBFloat16);
  REQUIRE(kept.layout().is_partial());
  // The addends are summed in float32, and the sum is rounded once.
  at::Tensor sum = at::zeros({6, 5});
  for (const at::Tensor& addend : kept.blocks()) sum += addend.to(at::kFloat);
  CHECK(at::equal(kept.full(), sum.to(at::kBFloat16)));
  const DTensor both = gradient(true, true);
  CHECK(both.dtype() == at::kFloat);
  CHECK(difference(both.full(), kept.full().to(at::kFloat) + 2 * w, 1e-2, 1e-2) == "");
  CHECK(difference(both.full(), gradient(false, true).full(), 1e-5, 1e-5) == "");
}

TEST_CASE("the gradient of a tensor has the layout of the tensor") {
  const at::Tensor x = numbers({4, 6}, 1), w = numbers({6, 4}, 2);
  const at::Tensor expected = at::ones({4, 4}, at::kDouble).mm(w.t());
  const std::vector<LayoutSpec> layouts = {
      {nullptr, nullptr}, {"batch", nullptr}, {nullptr, "model"}, {"model", "batch"}};
  for (const LayoutSpec& spec : layouts) {
    const DTensor input = pack(x, Layout(spec, mesh()));
    const DTensor weight = pack(w, Layout({"batch", nullptr}, mesh()));
    GradientTape tape;
    tape.watch(input);
    const DTensor y = ops::matmul(input, weight);
    const DTensor gradient = tape.gradient(y, input);
    CHECK(gradient.layout() == input.layout());
    CHECK(same(gradient, expected) == "");
  }
}

TEST_CASE("the gradient of relayout and copy_to_mesh returns to the value's layout and mesh") {
  const at::Tensor x = numbers({4, 6}, 1);
  const Mesh other = virtual_mesh({3});
  const DTensor input = pack(x, Layout({"batch", nullptr}, mesh()));
  GradientTape tape({.persistent = true});
  tape.watch(input);
  const DTensor moved = relayout(input, Layout({nullptr, "model"}, mesh()));
  const DTensor y = ops::square(moved);
  const DTensor far = copy_to_mesh(input, Layout::batch_sharded(other, "x", 2));
  const DTensor z = ops::square(far);
  CHECK(z.mesh() == other);
  for (const DTensor& target : {y, z}) {
    const DTensor gradient = tape.gradient(target, input);
    CHECK(gradient.layout() == input.layout());
    CHECK(same(gradient, 2 * x) == "");
  }
  CHECK(tape.gradient(y, moved).layout() == moved.layout());
}

TEST_CASE("the gradient of a transfer to another view is transferred back") {
  const at::Tensor x = numbers({4, 6}, 1);
  const Mesh stages = virtual_mesh({2, 2});
  const Mesh first = stages.view({{"x", 0}}), second = stages.view({{"x", 1}});
  const DTensor input = pack(x, Layout({"y", nullptr}, first));
  for (const LayoutSpec& spec :
       {LayoutSpec{"y", nullptr}, LayoutSpec{nullptr, "y"}, LayoutSpec{nullptr, nullptr}}) {
    GradientTape tape;
    tape.watch(input);
    const DTensor there = copy_to_mesh(input, Layout(spec, second));
    const DTensor y = ops::square(there);
    CHECK(y.mesh() == second);
    CommLog log;
    const CommLogScope scope(log);
    const DTensor gradient = tape.gradient(y, input);
    CHECK(gradient.layout() == input.layout());
    CHECK(same(gradient, 2 * x) == "");
    CHECK(log.count(CommOp::transfer, "x") == 1);
  }
}

TEST_CASE("on_ready is called once per source, as soon as its gradient is complete") {
  const ThreeLayers net;
  GradientTape tape;
  const DTensor decay = ops::sum(ops::square(net.down));
  const DTensor loss = net.loss() + decay;
  std::vector<size_t> order;
  std::vector<DTensor> seen(4);
  GradientOptions options;
  const DTensor unused = variable(numbers({2}, 9), {nullptr});
  options.on_ready = [&](size_t source, const DTensor& gradient) {
    order.push_back(source);
    seen[source] = gradient;
  };
  const std::vector<DTensor> gradients =
      tape.gradient(loss, {net.first, net.up, net.down, unused}, options);
  // The decay was recorded first, so its contribution to the third gradient comes last.
  CHECK(order == std::vector<size_t>{1, 0, 2});
  CHECK(seen[0].layout().is_partial());
  CHECK(seen[1].layout().is_partial());
  std::vector<at::Tensor> expected = net.gradients();
  expected[2] = expected[2] + 2 * net.c;
  for (size_t i = 0; i < 3; ++i) {
    CHECK(same(seen[i], expected[i]) == "");
    CHECK(same(gradients[i], expected[i]) == "");
  }
  CHECK(!gradients[3].defined());
}

TEST_CASE("on_ready waits for the last use of a Variable") {
  const at::Tensor x = numbers({4, 4}, 1), w = numbers({4, 4}, 2);
  const DTensor weight = variable(w, {nullptr, nullptr}), other = variable(w, {nullptr, nullptr});
  const DTensor input = pack(x, Layout({"batch", nullptr}, mesh()));
  GradientTape tape;
  const DTensor h = ops::matmul(input, weight);
  const DTensor y = ops::matmul(ops::matmul(h, other), weight);
  std::vector<size_t> order;
  GradientOptions options;
  options.on_ready = [&](size_t source, const DTensor&) { order.push_back(source); };
  const std::vector<DTensor> gradients = tape.gradient(y, {weight, other}, options);
  CHECK(order == std::vector<size_t>{1, 0});
  const at::Tensor ones = at::ones({4, 4}, at::kDouble);
  CHECK(same(gradients[0], x.t().mm(ones).mm(w.t()).mm(w.t()) + x.mm(w).mm(w).t().mm(ones)) == "");
}

}  // namespace tape_layout_test
