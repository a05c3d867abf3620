#include <tessera/framework/tensor/internal/bucket.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/world_size_invariant.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>

#include <ATen/ATen.h>

#include <limits>
#include <list>

#include "tests/support/catch.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/noted_communicator.hpp"
#include "tests/support/thread_communicator.hpp"

namespace bucket_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

/// Returns values of every partial layout of vectors and matrices, with empty shards and absent
/// parts.
std::vector<TestValue> samples(const Mesh& mesh, at::ScalarType dtype = at::kFloat) {
  std::vector<TestValue> list;
  int64_t seed = 0;
  for (Reduce kind : {Reduce::sum, Reduce::max}) {
    for (int64_t rank : {1, 2}) {
      for (const Layout& layout : pending_layouts(mesh, rank, kind)) {
        for (int64_t extent : {1, 3, 7}) {
          const Shape shape = rank == 1 ? Shape{extent} : Shape{extent, 5};
          list.push_back(test_value(shape, layout, ++seed, dtype));
        }
      }
    }
  }
  return list;
}

/// A memory order for matrices, column-major.
MemoryOrder order_of(const DTensor& value) {
  return value.rank() == 2 ? MemoryOrder{1, 0} : MemoryOrder();
}

/// Empty if values reduced in buckets equal those of relayouts, bit for bit, block by block.
std::string wrong_buckets(const std::vector<TestValue>& made, size_t& count) {
  ResultBuffers buffers;
  std::list<Bucket> buckets;
  std::vector<DTensor> alone;
  for (const TestValue& sample : made) {
    const DTensor& value = sample.value;
    alone.push_back(
        relayout_value(DTensor(value.sharding(), value.blocks()), value.layout().resolved()));
    auto it = std::find_if(buckets.begin(), buckets.end(),
                           [&](const Bucket& bucket) { return bucket.fits(value); });
    if (it == buckets.end()) it = buckets.emplace(it, buffers);
    it->add(value, order_of(value));
  }
  count = buckets.size();
  for (Bucket& bucket : buckets) bucket.start();
  for (Bucket& bucket : buckets) bucket.finish();
  for (size_t v = 0; v < made.size(); ++v) {
    const DTensor& value = made[v].value;
    if (value.sharding() != alone[v].sharding()) return "other blocks: " + value.to_string();
    for (size_t b = 0; b < value.blocks().size(); ++b) {
      if (!at::equal(value.blocks()[b], alone[v].blocks()[b])) return value.to_string();
      if (!is_in_order(value.blocks()[b], order_of(value))) return "order: " + value.to_string();
    }
    const std::string wrong = wrong_shards(value, made[v].full);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

const std::vector<MeshDims> meshes = {
    {{"x", 4}}, {{"x", 2}, {"y", 2}}, {{"x", 4}, {"y", 2}}, {{"x", 1}, {"y", 4}}};

}  // namespace

TEST_CASE("buckets equal relayouts in one process") {
  for (BlockPolicy policy : policies) {
    const BlockPolicyScope scope(policy);
    for (const MeshDims& dims : {MeshDims{{"x", 4}}, {{"x", 2}, {"y", 3}}}) {
      size_t count = 0;
      CHECK(wrong_buckets(samples(create_mesh(dims)), count) == "");
    }
  }
}

TEST_CASE("buckets equal relayouts in a scope that is world size invariant") {
  for (int ranks : {1, 2, 3, 4}) {
    for (const MeshDims& dims : meshes) {
      if (!can_host(dims, ranks)) continue;
      INFO(ranks << " ranks, " << to_string(dims));
      CHECK_NOTHROW(run_ranks(ranks, [&](int, const auto& communicator) {
        const WorldSizeInvariantScope scope;
        const Mesh mesh = rank_mesh(dims, communicator);
        for (at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
          size_t count = 0;
          std::vector<TestValue> made = samples(mesh, dtype);
          std::erase_if(made, [](const TestValue& sample) {
            return sample.value.mesh().size_of(sample.value.layout().partial_dims()) == 1;
          });
          const std::string wrong = wrong_buckets(made, count);
          expect(wrong.empty(), wrong);
        }
      }));
    }
  }
}

TEST_CASE("buckets equal relayouts in several processes") {
  for (int ranks : {2, 4}) {
    for (const MeshDims& dims : meshes) {
      for (BlockPolicy policy : policies) {
        INFO(ranks << " ranks, " << to_string(dims) << " " << test::to_string(policy));
        CHECK_NOTHROW(run_ranks(ranks, [&](int, const auto& communicator) {
          const BlockPolicyScope scope(policy);
          const Mesh mesh = rank_mesh(dims, communicator);
          for (at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
            size_t count = 0;
            std::vector<TestValue> made = samples(mesh, dtype);
            // A dimension of one device needs no reduction.
            std::erase_if(made, [](const TestValue& sample) {
              return sample.value.mesh().size_of(sample.value.layout().partial_dims()) == 1;
            });
            const std::string wrong = wrong_buckets(made, count);
            expect(wrong.empty(), wrong);
            expect(3 * count <= made.size(), str(count, " buckets of ", made.size()));
          }
        }));
      }
    }
  }
}

TEST_CASE("values made under another block policy go into buckets") {
  CHECK_NOTHROW(run_ranks(2, [](int, const auto& communicator) {
    const Mesh mesh = rank_mesh({{"x", 4}, {"y", 2}}, communicator);
    for (BlockPolicy made : policies) {
      std::vector<TestValue> values;
      {
        const BlockPolicyScope scope(made);
        values = samples(mesh);
      }
      for (BlockPolicy now : policies) {
        const BlockPolicyScope scope(now);
        std::vector<TestValue> fresh;
        for (const TestValue& value : values) {
          fresh.push_back({DTensor(value.value.sharding(), value.value.blocks()), value.full});
        }
        size_t count = 0;
        const std::string wrong = wrong_buckets(fresh, count);
        expect(wrong.empty(), test::to_string(made) + " " + test::to_string(now) + wrong);
      }
    }
  }));
}

TEST_CASE("a process without devices takes part in buckets too") {
  CHECK_NOTHROW(run_ranks(3, [](int rank, const auto& communicator) {
    CommNotes notes;
    const auto noted = noted_communicator(communicator, notes);
    const bool none = shard_interval(2, 3, rank).empty();
    const Mesh mesh = none ? create_mesh_part({{"x", 2}}, {}, {}, noted)
                           : create_mesh_part({{"x", 2}}, {shard_interval(2, 3, rank).lo},
                                              virtual_cpus(1), noted);
    const Layout pending = Layout::replicated(mesh, 1).with_partial(1, Reduce::sum);
    size_t count = 0;
    const std::string wrong =
        wrong_buckets({test_value({3}, pending, 1), test_value({4}, pending, 2)}, count);
    expect(wrong.empty(), wrong);
    expect(notes.calls.size() == 3, "a bucket and two relayouts announced");
    expect(notes.started == (none ? 0 : 3), str("rank ", rank));
  }));
}

TEST_CASE("values that differ in layout or dtype do not share a bucket") {
  const Mesh mesh = create_mesh({{"x", 2}, {"y", 2}, {"z", 1}});
  const Layout replicated = Layout::replicated(mesh, 1);
  const DTensor first = test_value({3}, replicated.with_partial(1, Reduce::sum), 1).value;
  ResultBuffers buffers;
  Bucket bucket(buffers);
  bucket.add(first);
  const auto fits = [&](const Layout& layout, at::ScalarType dtype = at::kFloat) {
    return bucket.fits(test_value({4}, layout, 2, dtype).value);
  };
  CHECK(fits(replicated.with_partial(1, Reduce::sum)));
  CHECK_FALSE(fits(replicated.with_partial(2, Reduce::sum)));
  CHECK_FALSE(fits(replicated.with_partial(3, Reduce::sum)));
  CHECK_FALSE(fits(replicated.with_partial(1, Reduce::max)));
  CHECK_FALSE(fits(replicated.with_partial(1, Reduce::sum), at::kDouble));
  CHECK_FALSE(fits(replicated));
  CHECK_FALSE(fits(replicated.with_partial(4, Reduce::sum)));
  CHECK(bucket.bytes() == 12);
}

TEST_CASE("a bucket's memory is reused once nobody holds it") {
  ResultBuffers buffers;
  const int64_t large = 1 << 18;
  const auto make = [&](int64_t numel, at::ScalarType dtype = at::kFloat) {
    return buffers.make({numel}, dtype);
  };
  at::Tensor first = make(large);
  const void* memory = first.data_ptr();
  at::Tensor second = make(large);
  CHECK(second.data_ptr() != memory);
  at::Tensor view = first.narrow(0, 2, 3);
  first.reset();
  CHECK(make(large).data_ptr() != memory);
  view.reset();
  CHECK(make(large).data_ptr() == memory);
  CHECK(make(large, at::kDouble).scalar_type() == at::kDouble);
  CHECK(make(9).numel() == 9);
}

TEST_CASE("the first value with a non-finite part is found before the reduction") {
  CHECK_NOTHROW(run_ranks(2, [](int rank, const auto& communicator) {
    const Mesh mesh = rank_mesh({{"x", 2}}, communicator);
    const Layout pending = Layout::replicated(mesh, 1).with_partial(1, Reduce::sum);
    const float large = std::numeric_limits<float>::max();
    for (float bad : {1.0F, large, HUGE_VALF, NAN}) {
      ResultBuffers buffers;
      Bucket bucket(buffers);
      const ShardingPtr sharding = intern({3}, at::kFloat, pending);
      for (int v = 0; v < 4; ++v) {
        const bool here = rank == 1 && v >= 2;
        bucket.add(DTensor(sharding, {at::full({3}, here ? bad : 1.0F)}));
      }
      bucket.start();
      const bool found = rank == 1 && !std::isfinite(bad);
      expect(bucket.find_non_finite() == (found ? std::optional<size_t>(2) : std::nullopt),
             str("rank ", rank, " with ", bad));
      bucket.finish();
    }
  }));
}

}  // namespace bucket_test
