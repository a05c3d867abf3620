#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/cross_entropy.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/function_check.hpp"

namespace cross_entropy_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Contains;

namespace {

using Inputs = std::vector<DTensor>;

DTensor sparse(const Inputs& in) { return ops::sparse_softmax_cross_entropy(in[0], in[1]); }
DTensor dense(const Inputs& in) { return ops::softmax_cross_entropy(in[0], in[1]); }
DTensor binary(const Inputs& in) { return ops::sigmoid_cross_entropy(in[0], in[1]); }

at::Tensor sparse_reference(const at::Tensor& x, const at::Tensor& labels) {
  return at::log_softmax(x, -1).gather(-1, labels.unsqueeze(-1)).squeeze(-1).neg();
}

}  // namespace

TEST_CASE("sparse cross-entropy matches ATen in every layout, with sharded classes too") {
  const at::Tensor matrix = at::randn({5, 7}, at::kDouble), rows = at::randint(7, {5}, at::kLong);
  CHECK(wrong_values({matrix, rows}, sparse, sparse_reference(matrix, rows)) == "");
  const at::Tensor cube = at::randn({2, 3, 4}, at::kDouble),
                   grid = at::randint(4, {2, 3}, at::kLong);
  CHECK(wrong_values({cube, grid}, sparse, sparse_reference(cube, grid)) == "");
  CHECK(wrong_values({matrix[0], rows[0]}, sparse, sparse_reference(matrix[0], rows[0])) == "");
}

TEST_CASE("devices with empty shards of classes are skipped") {
  const at::Tensor x = at::randn({2, 2}, at::kDouble), labels = at::tensor({1, 0}, at::kLong);
  CHECK(wrong_values({x, labels}, sparse, sparse_reference(x, labels)) == "");
  CHECK(wrong_gradients({x, labels}, sparse) == "");
}

TEST_CASE("sparse cross-entropy keeps its precision for large logits") {
  const at::Tensor x = at::tensor({1e4, 1e4 - 1, -1e4, 1e4 + 2}, at::kDouble).view({1, 4});
  const at::Tensor labels = at::tensor({1}, at::kLong);
  CHECK(wrong_values({x, labels}, sparse, sparse_reference(x, labels)) == "");
}

TEST_CASE("gradients of the cross-entropies match finite differences") {
  const at::Tensor x = at::randn({3, 5}, at::kDouble), labels = at::tensor({4, 0, 2}, at::kLong);
  CHECK(wrong_gradients({x, labels}, sparse) == "");
  CHECK(wrong_gradients({x, at::softmax(at::randn({3, 5}, at::kDouble), 1)}, dense) == "");
  CHECK(wrong_gradients({x, at::rand({3, 5}, at::kDouble)}, binary) == "");
}

TEST_CASE("cross-entropy with probabilities and with logits of two classes are exact") {
  const at::Tensor x = at::randn({3, 5}, at::kDouble) * 3, z = at::rand({3, 5}, at::kDouble);
  CHECK(wrong_values({x, z}, dense, at::log_softmax(x, 1).mul(z).sum(1).neg()) == "");
  CHECK(wrong_values({x, z}, binary, at::softplus(x).sub(x * z)) == "");
}

TEST_CASE("sigmoid cross-entropy neither overflows nor loses small losses") {
  const at::Tensor x = at::tensor({800.0, -800.0, 50.0}, at::kDouble);
  const at::Tensor z = at::tensor({0.0, 0.0, 1.0}, at::kDouble);
  const at::Tensor expected = at::tensor({800.0, 0.0, std::exp(-50.0)}, at::kDouble);
  const Mesh mesh = create_mesh({{"batch", 1}});
  const Layout layout = Layout::replicated(mesh, 1);
  const DTensor loss = ops::sigmoid_cross_entropy(pack(x, layout), pack(z, layout));
  CHECK(difference(loss.full(), expected, 1e-15) == "");
}

TEST_CASE("sharded classes are never gathered, and the backward pass does not communicate") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}});
  const Layout layout({"batch", "model"}, mesh), rows({"batch"}, mesh);
  const DTensor x = pack(at::randn({4, 6}), layout);
  const DTensor labels = pack(at::randint(6, {4}, at::kLong), rows);
  CommLog comm;
  const CommLogScope scope(comm);
  GradientTape tape;
  tape.watch(x);
  const DTensor loss = ops::sparse_softmax_cross_entropy(x, labels);
  CHECK(loss.layout() == rows);
  CHECK(comm.count(CommOp::all_reduce, "model") == 3);
  CHECK(comm.entries().size() == 3);
  comm.clear();
  CHECK(tape.gradient(loss, x).layout() == layout);
  CHECK(comm.to_string() == "");
}

TEST_CASE("replicated classes cost nothing forward or backward") {
  const Mesh mesh = create_mesh({{"batch", 2}});
  const DTensor x = pack(at::randn({4, 6}), Layout({"batch", unsharded}, mesh));
  const DTensor labels = pack(at::randint(6, {4}, at::kLong), Layout({"batch"}, mesh));
  CommLog comm;
  const CommLogScope scope(comm);
  GradientTape tape;
  tape.watch(x);
  const DTensor loss = ops::sparse_softmax_cross_entropy(x, labels);
  CHECK(tape.gradient(loss, x).layout() == x.layout());
  CHECK(comm.to_string() == "");
}

TEST_CASE("labels of any integer dtype are accepted") {
  const Mesh mesh = create_mesh({{"model", 2}});
  const at::Tensor x = at::randn({3, 5}, at::kDouble), labels = at::tensor({4, 0, 2}, at::kLong);
  for (at::ScalarType dtype : {at::kInt, at::kByte}) {
    for (const LayoutSpec& spec : {LayoutSpec{unsharded, unsharded}, {unsharded, "model"}}) {
      const DTensor loss = ops::sparse_softmax_cross_entropy(
          pack(x, Layout(spec, mesh)), pack(labels.to(dtype), Layout::replicated(mesh, 1)));
      CHECK(difference(loss.full(), sparse_reference(x, labels), 1e-12) == "");
    }
  }
}

TEST_CASE("a label that is no class is named, that of the lowest block first") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}});
  const at::Tensor x = at::randn({4, 6});
  const at::Tensor labels = at::tensor({1, 17, -3, 2}, at::kLong);
  const BlockPolicyScope policy(BlockPolicy::per_device);
  for (const LayoutSpec& spec : {LayoutSpec{"batch", unsharded}, {"batch", "model"}}) {
    const DTensor logits = pack(x, Layout(spec, mesh)), y = pack(labels, Layout({"batch"}, mesh));
    CHECK_THROWS_WITH(ops::sparse_softmax_cross_entropy(logits, y),
                      Contains("[sparse_softmax_cross_entropy] labels lie in [0, 6). Received: 17 "
                               "in row 1. To fix: ") &&
                          !Contains("\n"));
    CHECK_THROWS_AS(ops::sparse_softmax_cross_entropy(logits, y), ConfigError);
  }
}

TEST_CASE("cross-entropies refuse invalid shapes and dtypes") {
  const Mesh mesh = create_mesh({{"model", 2}});
  const auto value = [&](const at::Tensor& t) {
    return pack(t, Layout::replicated(mesh, t.dim()));
  };
  const DTensor x = value(at::randn({4, 6})), y = value(at::zeros({4}, at::kLong));
  CHECK_THROWS_AS(ops::sparse_softmax_cross_entropy(x, value(at::zeros({3}, at::kLong))),
                  ShapeError);
  CHECK_THROWS_AS(ops::sparse_softmax_cross_entropy(x, value(at::zeros({4}))), ConfigError);
  CHECK_THROWS_AS(ops::sparse_softmax_cross_entropy(value(at::randn({})), y), ShapeError);
  CHECK_THROWS_AS(ops::sparse_softmax_cross_entropy(value(at::randn({4, 0})), y), ShapeError);
  const DTensor cut = pack(at::randn({4, 6}), Layout({unsharded, "model"}, mesh));
  CHECK_THROWS_AS(ops::sparse_softmax_cross_entropy(cut, value(at::zeros({3}, at::kLong))),
                  ShapeError);
  CHECK_THROWS_AS(ops::softmax_cross_entropy(x, y), ShapeError);
  CHECK_THROWS_AS(ops::sigmoid_cross_entropy(x, value(at::randn({6}))), ShapeError);
}

}  // namespace cross_entropy_test
