#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/function_check.hpp"

namespace gather_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Contains;

namespace {

using Inputs = std::vector<DTensor>;

Function along(int64_t axis) {
  return [axis](const Inputs& in) { return ops::gather(in[0], in[1], axis); };
}

DTensor look_up(const Inputs& in) { return ops::embedding(in[0], in[1]); }

}  // namespace

TEST_CASE("gather takes slices along any axis, in every layout") {
  const at::Tensor x = at::randn({3, 5, 2}, at::kDouble);
  const at::Tensor ids = at::tensor({4, 0, 4, 1}, at::kLong), grid = ids.view({2, 2});
  CHECK(wrong_values({x, ids}, along(1), x.index_select(1, ids)) == "");
  CHECK(wrong_values({x, grid}, along(-2), x.index_select(1, ids).view({3, 2, 2, 2})) == "");
  CHECK(wrong_values({x, ids[3]}, along(2), x.select(2, 1)) == "");
  CHECK(wrong_values({x[0], ids}, look_up, at::embedding(x[0], ids)) == "");
}

TEST_CASE("gather takes integers and bools in every layout") {
  const at::Tensor x = at::randint(-9, 9, {5, 2}, at::kLong),
                   ids = at::tensor({4, 0, 1}, at::kLong);
  CHECK(wrong_values({x, ids}, along(0), x.index_select(0, ids)) == "");
  CHECK(wrong_values({x.gt(0), ids}, along(0), x.gt(0).index_select(0, ids)) == "");
}

TEST_CASE("gradients of gather accumulate over repeated indices") {
  const at::Tensor table = at::randn({5, 2}, at::kDouble);
  const at::Tensor ids = at::tensor({4, 0, 4, 1, 4, 0}, at::kLong);
  CHECK(wrong_gradients({table, ids}, look_up) == "");
  CHECK(wrong_gradients({table, ids.view({2, 3})}, look_up) == "");
  CHECK(wrong_gradients({at::randn({2, 5, 2}, at::kDouble), ids.view({3, 2})}, along(1)) == "");
  CHECK(wrong_gradients({at::randn({2, 5}, at::kDouble), ids}, along(1)) == "");
  CHECK(wrong_gradients({at::randn({3}, at::kDouble), at::tensor(2, at::kLong)}, along(0)) == "");
}

TEST_CASE("a sharded vocabulary costs one all-reduce; its gradient costs none over it") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}});
  const Layout layout({"model", unsharded}, mesh);
  const DTensor table = pack(at::randn({6, 3}), layout);
  const DTensor ids = pack(at::randint(6, {4}, at::kLong), Layout({"batch"}, mesh));
  CommLog comm;
  const CommLogScope scope(comm);
  GradientTape tape;
  tape.watch(table);
  const DTensor y = ops::embedding(table, ids);
  CHECK(fetch_layout(y) == Layout({"batch", unsharded}, mesh));
  CHECK(comm.to_string() == "");
  CHECK(y.full().sizes() == at::IntArrayRef({4, 3}));
  CHECK(comm.count(CommOp::all_reduce, "model") == 1);
  comm.clear();
  CHECK(tape.gradient(y, table).layout() == layout);
  CHECK(comm.count(CommOp::all_reduce, "batch") == 1);
  CHECK(comm.entries().size() == 1);
}

TEST_CASE("a weight's gradient stays in its shards, a partial sum over the ids' dimensions") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}});
  const Layout layout({"model", unsharded}, mesh);
  const DTensor table = pack(at::randn({6, 3}), layout);
  table.mark_parameter();
  const DTensor ids = pack(at::randint(6, {4}, at::kLong), Layout({"batch"}, mesh));
  GradientTape tape;
  tape.watch(table);
  const DTensor y = ops::embedding(table, ids);
  CHECK(tape.gradient(y, table).layout() == layout.with_partial(1, Reduce::sum));
}

TEST_CASE("a weight sharded like the ids is gathered forward, and its gradient is reduced once") {
  const Mesh mesh = create_mesh({{"batch", 2}});
  const Layout layout({"batch", unsharded}, mesh);
  const DTensor table = pack(at::randn({6, 3}), layout);
  table.mark_parameter();
  const DTensor ids = pack(at::randint(6, {4}, at::kLong), Layout({"batch"}, mesh));
  CommLog comm;
  const CommLogScope scope(comm);
  GradientTape tape;
  tape.watch(table);
  const DTensor y = ops::embedding(table, ids);
  CHECK(y.layout() == layout);
  CHECK(comm.count(CommOp::all_gather) == 1);
  comm.clear();
  const DTensor gradient = tape.gradient(y, table);
  CHECK(gradient.layout() == Layout::replicated(mesh, 2).with_partial(1, Reduce::sum));
  relayout_value(gradient, layout);
  CHECK(comm.count(CommOp::reduce_scatter) == 1);
  CHECK(comm.entries().size() == 1);
}

TEST_CASE("the gradient of a large table costs its rows, not the table") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}});
  const at::Tensor rows = at::randn({4096, 64}, at::kDouble), dy = at::randn({6, 64}, at::kDouble);
  const at::Tensor index = at::tensor({7, 4095, 7, 0, 2050, 2049}, at::kLong);
  const at::Tensor expected = at::zeros_like(rows).index_add(0, index, dy);
  const LayoutSpec specs[] = {
      {unsharded, unsharded}, {"batch", unsharded}, {"model", unsharded}, {unsharded, "model"}};
  for (const LayoutSpec& spec : specs) {
    const Layout layout(spec, mesh);
    CAPTURE(layout.describe());
    const DTensor table = pack(rows, layout);
    table.mark_parameter();
    const DTensor ids = pack(index, Layout({"batch"}, mesh));
    GradientTape tape;
    tape.watch(table);
    const DTensor loss = ops::embedding(table, ids);
    const DTensor seed = pack(dy, Layout({"batch", unsharded}, mesh));
    CommLog comm;
    const CommLogScope scope(comm);
    const DTensor gradient = tape.gradient(loss, table, {.output_gradient = seed});
    CHECK(gradient.layout() == layout);
    CHECK(comm.count(CommOp::all_gather, "batch") == 2);
    CHECK(comm.entries().size() == 2);
    CHECK(difference(gradient.full(), expected) == "");
  }
}

TEST_CASE("an index out of range is named") {
  const Mesh mesh = create_mesh({{"model", 3}});
  const DTensor ids = pack(at::tensor({1, 5, -1}, at::kLong), Layout::replicated(mesh, 1));
  const BlockPolicyScope policy(BlockPolicy::per_device);
  for (const LayoutSpec& spec : {LayoutSpec{unsharded, unsharded}, {"model", unsharded}}) {
    const DTensor table = pack(at::randn({5, 3}), Layout(spec, mesh));
    CHECK_THROWS_WITH(ops::embedding(table, ids),
                      Contains("[gather] indices lie in [0, 5). Received: 5 in row 1. To fix: ") &&
                          !Contains("\n"));
    CHECK_THROWS_AS(ops::embedding(table, ids), ConfigError);
  }
}

TEST_CASE("gather refuses invalid arguments") {
  const Mesh mesh = create_mesh({{"model", 2}});
  const auto value = [&](const at::Tensor& t) {
    return pack(t, Layout::replicated(mesh, t.dim()));
  };
  const DTensor ids = value(at::zeros({2}, at::kLong));
  CHECK_THROWS_AS(ops::gather(value(at::randn({4})), ids, 1), ShapeError);
  CHECK_THROWS_AS(ops::gather(value(at::randn({4})), value(at::zeros({2})), 0), ConfigError);
  CHECK_THROWS_AS(ops::gather(value(at::randn({0, 2})), ids, 0), ShapeError);
  CHECK_THROWS_AS(ops::embedding(value(at::randn({4})), ids), ShapeError);
}

TEST_CASE("one_hot sets one class a row, and none for a label out of range") {
  const at::Tensor labels = at::tensor({2, 0, -1, 3, 1}, at::kLong);
  const at::Tensor expected = at::tensor({0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0}, at::kFloat);
  CHECK(wrong_values(
            {labels}, [](const Inputs& in) { return ops::one_hot(in[0], 3); },
            expected.view({5, 3})) == "");
  const auto smooth = [](const Inputs& in) {
    return ops::one_hot(in[0], 3, at::kDouble, 0.9, 0.05);
  };
  CHECK(wrong_values({labels.view({5, 1})}, smooth,
                     expected.to(at::kDouble).mul(0.85).add(0.05).view({5, 1, 3})) == "");
  const Mesh mesh = create_mesh({{"batch", 2}});
  const DTensor x = pack(labels, Layout({"batch"}, mesh));
  CHECK(ops::one_hot(x, 3).layout() == Layout({"batch", unsharded}, mesh));
  CHECK(ops::one_hot(x, 0).shape() == Shape{5, 0});
  CHECK_THROWS_AS(ops::one_hot(x, -1), ShapeError);
  CHECK_THROWS_AS(ops::one_hot(pack(at::zeros({2}), Layout::replicated(mesh, 1)), 3), ConfigError);
}

}  // namespace gather_test
