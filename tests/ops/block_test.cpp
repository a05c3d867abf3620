#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace block_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

const Mesh& mesh() {
  static const Mesh grid = virtual_mesh({2, 2});
  return grid;
}

at::Tensor numbers(Shape shape, uint64_t seed) {
  return random_values({std::move(shape), at::kDouble}, seed);
}

std::string same(const DTensor& actual, const at::Tensor& expected) {
  std::string wrong;
  const at::Tensor full = assemble(actual, wrong);
  return wrong.empty() ? difference(full, expected, 1e-12, 1e-12) : wrong;
}

/// Returns a·b with the inner axis sharded over both dimensions in this order: a partial sum over
/// both, in blocks that depend on the order.
DTensor pending_product(const at::Tensor& a, const at::Tensor& b, const AxisSpec& order) {
  return ops::matmul(pack(a, Layout({nullptr, order}, mesh())),
                     pack(b, Layout({order, nullptr}, mesh())));
}

}  // namespace

TEST_CASE("partial values in different blocks go through one operation") {
  at::set_num_threads(2);
  const at::Tensor a = numbers({3, 4}, 1), b = numbers({4, 5}, 2), ab = a.mm(b);
  for (BlockPolicy policy : policies) {
    const BlockPolicyScope scope(policy);
    const DTensor p = pending_product(a, b, {"y", "x"}), q = pending_product(a, b, {"x", "y"});
    INFO(test::to_string(policy));
    if (policy == BlockPolicy::per_worker) CHECK(p.sharding() != q.sharding());
    CHECK(p.layout() == q.layout());
    CHECK(p.layout().is_partial());
    CHECK(same(p, ab) == "");
    CHECK(same(q, ab) == "");
    CHECK(same(p + q, 2 * ab) == "");
    CHECK(same(q - p, 0 * ab) == "");
    CHECK(same(ops::concat({p, q}, 0), at::cat({ab, ab}, 0)) == "");
    CHECK(same(ops::concat({q, p}, 1), at::cat({ab, ab}, 1)) == "");
    CHECK(same(ops::concat({q, ops::slice(p, 0, 1, 2)}, 0), at::cat({ab, ab.slice(0, 1, 3)})) ==
          "");
    CHECK(p.layout().is_partial());
    CHECK(same(ops::exp(p) + q, ab.exp() + ab) == "");
  }
}

TEST_CASE("values made under another policy are used as they are") {
  const at::Tensor x = numbers({5, 3}, 3), y = numbers({5, 3}, 4);
  const std::vector<LayoutSpec> specs = {
      {"x", nullptr}, {{"y", "x"}, nullptr}, {nullptr, nullptr}, {"x", "y"}};
  for (BlockPolicy first : policies) {
    for (BlockPolicy second : policies) {
      for (const LayoutSpec& spec : specs) {
        const auto make = [&](const at::Tensor& full, BlockPolicy policy) {
          const BlockPolicyScope scope(policy);
          return pack(full, Layout(spec, mesh()));
        };
        const DTensor a = make(x, first), b = make(y, second);
        INFO(test::to_string(first)
             << " " << test::to_string(second) << " " << a.layout().describe());
        CHECK(same(a * b, x * y) == "");
        CHECK(same(ops::concat({a, b}, 0), at::cat({x, y})) == "");
        CHECK(same(ops::matmul(a, ops::transpose(b)), x.mm(y.t())) == "");
        CHECK(same(ops::sum(a + b, {0}), (x + y).sum(0)) == "");
        CHECK(same(ops::reshape(a, {3, 5}) + ops::reshape(b, {3, 5}), (x + y).reshape({3, 5})) ==
              "");
      }
    }
  }
}

TEST_CASE("partial values made under another policy are used as they are") {
  const at::Tensor x = numbers({4, 3}, 5), y = numbers({4, 3}, 6);
  const Layout replicated = Layout::replicated(mesh(), 2);
  for (const Layout& layout :
       {replicated.with_partial(3, Reduce::sum), replicated.with_partial(1, Reduce::sum),
        Layout({"x", nullptr}, mesh()).with_partial(2, Reduce::sum)}) {
    for (BlockPolicy first : policies) {
      for (BlockPolicy second : policies) {
        const auto make = [&](const at::Tensor& full, BlockPolicy policy, uint64_t seed) {
          const BlockPolicyScope scope(policy);
          return make_value(full, layout, seed);
        };
        for (uint64_t seed : {3, 4, 6, 7}) {
          const DTensor a = make(x, first, seed), b = make(y, second, seed + 2);
          INFO(test::to_string(first)
               << " " << test::to_string(second) << " " << layout.describe());
          CHECK(same(a + b, x + y) == "");
          CHECK(same(ops::concat({a, b}, 0), at::cat({x, y})) == "");
          CHECK(same(ops::slice(a, 0, 1, 2), x.slice(0, 1, 3)) == "");
          CHECK(same(ops::reshape(a, {2, 6}), x.reshape({2, 6})) == "");
          CHECK(same(ops::sum(a - b, {1}), (x - y).sum(1)) == "");
          CHECK(same(a * b, x * y) == "");
        }
      }
    }
  }
}

}  // namespace block_test
