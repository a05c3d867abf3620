#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/thread_communicator.hpp"

namespace random_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

using Draw = DTensor (*)(const Shape&, Seed, double, double, at::ScalarType);
constexpr Draw draws[] = {stateless_uniform, stateless_normal, stateless_truncated_normal};

std::string wrong_draws(const Mesh& mesh, const Shape& shape, at::ScalarType dtype) {
  for (Draw draw : draws) {
    const at::Tensor full = draw(shape, {3, 4}, -1, 2, dtype).full();
    for (const Layout& layout : all_layouts(mesh, static_cast<int64_t>(shape.size()))) {
      const DefaultLayoutScope scope(layout);
      const std::string wrong = wrong_shards(draw(shape, {3, 4}, -1, 2, dtype), full);
      if (!wrong.empty()) return wrong;
    }
  }
  return "";
}

}  // namespace

TEST_CASE("a sharded draw is the slice of the full one") {
  for (const MeshDims& dims : {MeshDims{{"a", 3}}, MeshDims{{"a", 4}, {"b", 2}}}) {
    const Mesh mesh = create_mesh(dims);
    for (BlockPolicy policy : policies) {
      const BlockPolicyScope scope(policy);
      CHECK(wrong_draws(mesh, {7, 5}, at::kFloat) == "");
      CHECK(wrong_draws(mesh, {1, 9}, at::kDouble) == "");
      CHECK(wrong_draws(mesh, {0, 9}, at::kFloat) == "");
    }
  }
}

TEST_CASE("a draw large enough for several threads is the same") {
  CHECK(wrong_draws(create_mesh({{"a", 4}}), {301, 97}, at::kFloat) == "");
}

TEST_CASE("processes draw their slices") {
  CHECK_NOTHROW(run_ranks(4, [](int, const auto& communicator) {
    const std::string wrong =
        wrong_draws(rank_mesh({{"a", 2}, {"b", 4}}, communicator), {7, 5}, at::kFloat);
    expect(wrong.empty(), wrong);
  }));
}

TEST_CASE("draws depend on the seed and are those of the torch-free generator") {
  const std::vector<Interval> all = {{0, 100}};
  const at::Tensor numbers = at::empty({100});
  stateless_uniform({1, 2}, {100}, all, -3, 5, numbers.data_ptr<float>());
  CHECK(difference(stateless_uniform({100}, {1, 2}, -3, 5).full(), numbers) == "");
  CHECK(difference(stateless_uniform({100}, {1, 3}, -3, 5).full(), numbers) != "");
  stateless_normal({1, 2}, {100}, all, 1, 2, numbers.data_ptr<float>());
  CHECK(difference(stateless_normal({100}, {1, 2}, 1, 2).full(), numbers) == "");
  stateless_truncated_normal({1, 2}, {100}, all, 1, 2, numbers.data_ptr<float>());
  CHECK(difference(stateless_truncated_normal({100}, {1, 2}, 1, 2).full(), numbers) == "");
}

TEST_CASE("float64 draws are float32 draws widened; other dtypes are refused") {
  const at::Tensor narrow = stateless_normal({50}, {1, 2}).full();
  const at::Tensor wide = stateless_normal({50}, {1, 2}, 0, 1, at::kDouble).full();
  CHECK(difference(wide, narrow.to(at::kDouble)) == "");
  CHECK_THROWS_AS(stateless_normal({50}, {1, 2}, 0, 1, at::kHalf), ConfigError);
}

}  // namespace random_test
