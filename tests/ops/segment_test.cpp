#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/segment.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/function_check.hpp"

namespace segment_test {

using namespace tessera;
using namespace tessera::test;
using Catch::Contains;

namespace {

DTensor five_sums(const std::vector<DTensor>& in) { return ops::segment_sum(in[0], in[1], 5); }

}  // namespace

TEST_CASE("segment_sum accumulates the data of each id, in every layout") {
  const at::Tensor data = at::randn({2, 3}, at::kDouble);
  const at::Tensor ids = at::tensor({4, 0, 4, 1, 4, 0}, at::kLong).view({2, 3});
  const at::Tensor sums = at::zeros({5}, at::kDouble).index_add(0, ids.flatten(), data.flatten());
  CHECK(wrong_values({data, ids}, five_sums, sums) == "");
  CHECK(wrong_values({data[0], ids.to(at::kInt)[0]}, five_sums,
                     at::zeros({5}, at::kDouble).index_add(0, ids[0], data[0])) == "");
  CHECK(wrong_gradients({data, ids}, five_sums) == "");
}

TEST_CASE("segments of rows have sums and extremes, in every layout") {
  const at::Tensor data = at::randn({7, 3}, at::kDouble);
  const at::Tensor ids = at::tensor({4, 0, 4, 1, 4, 0, 3}, at::kLong);
  const auto largest = [](const std::vector<DTensor>& in) {
    return ops::segment_max(in[0], in[1], 5);
  };
  const auto smallest = [](const std::vector<DTensor>& in) {
    return ops::segment_min(in[0], in[1], 5);
  };
  CHECK(wrong_values({data, ids}, five_sums,
                     at::zeros({5, 3}, at::kDouble).index_add(0, ids, data)) == "");
  const at::Tensor highest = at::full({5, 3}, -INFINITY, at::kDouble);
  for (int64_t row = 0; row < 7; ++row) {
    const at::Tensor segment = highest[ids[row].item<int64_t>()];
    segment.copy_(at::maximum(segment, data[row]));
  }
  CHECK(wrong_values({data, ids}, largest, highest) == "");
  CHECK(wrong_values({data.neg(), ids}, smallest, highest.neg()) == "");
  for (const Function& function : {Function(five_sums), Function(largest), Function(smallest)}) {
    // No segment is empty: the extremes of one are infinite.
    const at::Tensor all = at::tensor({4, 0, 2, 1, 4, 0, 3}, at::kLong);
    CHECK(wrong_gradients({data, all}, function) == "");
  }
}

TEST_CASE("segment_sum of shards stays a partial sum and costs nothing") {
  const Mesh mesh = create_mesh({{"batch", 4}});
  const Layout layout = Layout::batch_sharded(mesh, "batch", 1);
  CommLog log;
  const CommLogScope scope(log);
  const DTensor sums =
      ops::segment_sum(pack(at::ones({8}), layout), pack(at::arange(8, at::kLong) % 3, layout), 3);
  CHECK(sums.layout().is_partial());
  CHECK(log.entries().empty());
}

TEST_CASE("segment_sum names invalid arguments") {
  const Layout layout = Layout::replicated(create_mesh({{"batch", 2}}), 1);
  const DTensor data = pack(at::ones({3}), layout);
  CHECK_THROWS_AS(ops::segment_sum(data, pack(at::zeros({2}, at::kLong), layout), 2), ShapeError);
  CHECK_THROWS_AS(ops::segment_sum(data, pack(at::zeros({3}), layout), 2), ConfigError);
  CHECK_THROWS_WITH(ops::segment_sum(data, pack(at::tensor({0, 2, 1}, at::kLong), layout), 2),
                    Contains("segment_sum") && Contains("[0, 2)"));
}

}  // namespace segment_test
