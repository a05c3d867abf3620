#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/comm/reduce_dtype.hpp>
#include <tessera/framework/tensor/internal/bucket.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/thread_communicator.hpp"

namespace reduce_dtype_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

/// A partial sum of 256 and fifteen times 0.5. Next to 256 bfloat16 has a step of 2, so each 0.5
/// would be lost.
DTensor addends(const Mesh& mesh, at::ScalarType dtype) {
  const BlockPolicyScope separate(BlockPolicy::per_device);
  const Layout pending = Layout::replicated(mesh, 1).with_partial(1, Reduce::sum);
  Blocks blocks;
  for (int64_t id : mesh.local_ids()) {
    blocks.push_back(at::full({2}, id == 0 ? 256.0 : 0.5, dtype));
  }
  return DTensor(intern({2}, dtype, pending), blocks);
}

double sum_of(const Mesh& mesh, at::ScalarType dtype, bool in_bucket) {
  const DTensor value = addends(mesh, dtype);
  if (in_bucket) {
    ResultBuffers buffers;
    Bucket bucket(buffers);
    bucket.add(value);
    bucket.start();
    bucket.finish();
  }
  const at::Tensor full = value.full();
  expect(full.scalar_type() == dtype, "the sum has the addends' dtype");
  return full[1].item<double>();
}

}  // namespace

TEST_CASE("float16 and bfloat16 are reduced in float32, or in the given dtype", "[reduce_dtype]") {
  const auto sums = [](const Mesh& mesh, double in_bfloat16) {
    for (bool in_bucket : {false, true}) {
      const auto sum = [&] { return sum_of(mesh, at::kBFloat16, in_bucket); };
      expect(sum() == 264, str("float32 by itself: ", sum()));
      {
        const ReduceDtypeScope scope(at::kBFloat16);
        expect(sum() == in_bfloat16, str("bfloat16: ", sum()));
        const ReduceDtypeScope inner(at::kDouble);
        expect(sum() == 264, str("float64: ", sum()));
      }
      expect(sum() == 264, "float32 again");
      const ReduceDtypeScope scope(at::kBFloat16);
      expect(sum_of(mesh, at::kFloat, in_bucket) == 263.5, "other dtypes are not concerned");
    }
  };
  CHECK_NOTHROW(sums(create_mesh({{"x", 16}}), 256));
  // Four times 0.5 of one process are 2 together.
  CHECK_NOTHROW(run_ranks(4, [&](int, const std::shared_ptr<Communicator>& communicator) {
    sums(rank_mesh({{"x", 16}}, communicator), 262);
  }));
}

TEST_CASE("the global reduce dtype applies until it is set again", "[reduce_dtype]") {
  const Mesh mesh = create_mesh({{"x", 16}});
  set_reduce_dtype(at::kBFloat16);
  CHECK(reduction_dtype(at::kHalf, Reduce::sum) == at::kBFloat16);
  CHECK(reduction_dtype(at::kHalf, Reduce::max) == at::kHalf);
  CHECK(sum_of(mesh, at::kBFloat16, false) == 256);
  set_reduce_dtype(std::nullopt);
  CHECK(reduction_dtype(at::kHalf, Reduce::sum) == at::kFloat);
  CHECK(sum_of(mesh, at::kBFloat16, false) == 264);
}

TEST_CASE("bytes of a reduction are those of the reduce dtype", "[reduce_dtype]") {
  const Mesh mesh = create_mesh({{"x", 16}});
  const auto received = [&] {
    CommLog log;
    const CommLogScope scope(log);
    const DTensor value = addends(mesh, at::kBFloat16);
    const Layout resolved = value.layout().resolved();
    const double planned = relayout_bytes({2}, at::kBFloat16, value.layout(), resolved);
    value.full();
    CHECK(log.received() == planned);
    return log.entries()[0].bytes;
  };
  CHECK(received() == 8);
  const ReduceDtypeScope narrow(at::kBFloat16);
  CHECK(received() == 4);
  const ReduceDtypeScope wide(at::kDouble);
  CHECK(received() == 16);
}

TEST_CASE("a reduce dtype must be floating", "[reduce_dtype]") {
  CHECK_THROWS_WITH(set_reduce_dtype(at::kInt),
                    Contains("[reduce_dtype]") && Contains("Received: int32"));
  CHECK_THROWS_AS(ReduceDtypeScope(at::kBool), ConfigError);
  CHECK(reduction_dtype(at::kHalf, Reduce::sum) == at::kFloat);
}

}  // namespace reduce_dtype_test
