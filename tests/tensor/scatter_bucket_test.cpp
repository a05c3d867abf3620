#include <tessera/framework/tensor/internal/scatter_bucket.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>

#include <ATen/ATen.h>

#include <list>

#include "tests/support/catch.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/noted_communicator.hpp"
#include "tests/support/thread_communicator.hpp"

namespace scatter_bucket_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

const std::vector<MeshDims> meshes = {{{"x", 4}}, {{"x", 2}, {"y", 2}}, {{"x", 4}, {"y", 2}}};

bool is_only_step(const Layout& from, const Layout& to, RelayoutStep::Kind kind) {
  const std::vector<RelayoutStep> steps = plan_relayout(from, to);
  return steps.size() == 1 && steps[0].kind == kind && from.mesh().size_of(from.partial_dims()) > 1;
}

struct Scattered {
  TestValue made;
  ShardingPtr target;
};

/// Returns partial sums of vectors and matrices, each with a layout to which a reduce-scatter alone
/// leads.
std::vector<Scattered> scattered_samples(const Mesh& mesh, at::ScalarType dtype) {
  std::vector<Scattered> list;
  int64_t seed = 0;
  for (int64_t rank : {1, 2}) {
    for (const Layout& from : pending_layouts(mesh, rank, Reduce::sum)) {
      for (const Layout& to : all_layouts(mesh, rank)) {
        if (!is_only_step(from, to, RelayoutStep::Kind::reduce_scatter)) continue;
        for (int64_t extent : {1, 7}) {
          const Shape shape = rank == 1 ? Shape{extent} : Shape{extent, 5};
          list.push_back({test_value(shape, from, ++seed, dtype), intern(shape, dtype, to)});
        }
      }
    }
  }
  return list;
}

/// Empty if blocks are equal, bit for bit.
std::string unlike(const DTensor& actual, const DTensor& expected) {
  if (actual.sharding() != expected.sharding()) return "other blocks: " + actual.to_string();
  for (size_t b = 0; b < actual.blocks().size(); ++b) {
    if (!at::equal(actual.blocks()[b], expected.blocks()[b])) return actual.to_string();
  }
  return "";
}

}  // namespace

TEST_CASE("reduce-scatters in buckets equal relayouts, and release the whole values") {
  for (int ranks : {2, 4}) {
    for (const MeshDims& dims : meshes) {
      for (BlockPolicy policy : policies) {
        INFO(ranks << " ranks, " << to_string(dims) << " " << test::to_string(policy));
        CHECK_NOTHROW(run_ranks(ranks, [&](int, const auto& communicator) {
          const BlockPolicyScope scope(policy);
          const Mesh mesh = rank_mesh(dims, communicator);
          for (at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
            std::vector<Scattered> made = scattered_samples(mesh, dtype);
            expect(made.size() >= 6, "values");
            std::vector<DTensor> alone;
            std::list<ScatterBucket> buckets;
            for (const Scattered& sample : made) {
              const DTensor& value = sample.made.value;
              alone.push_back(
                  relayout_to(DTensor(value.sharding(), value.blocks()), sample.target));
              auto it = std::find_if(buckets.begin(), buckets.end(), [&](const auto& bucket) {
                return bucket.fits(value, sample.target);
              });
              if (it == buckets.end()) it = buckets.emplace(it);
              it->add(value, sample.target, {});
            }
            expect(2 * buckets.size() <= made.size(), "several values a bucket");
            for (ScatterBucket& bucket : buckets) bucket.start();
            for (const Scattered& sample : made) {
              // Known before the shard arrives.
              expect(sample.made.value.sharding() == sample.target, "its layout");
            }
            // Reading one waits for its bucket.
            const std::string early = unlike(made[0].made.value, alone[0]);
            expect(early.empty(), early);
            for (ScatterBucket& bucket : buckets) bucket.finish();
            for (size_t v = 0; v < made.size(); ++v) {
              const std::string wrong = unlike(made[v].made.value, alone[v]) +
                                        wrong_shards(made[v].made.value, made[v].made.full);
              expect(wrong.empty(), wrong);
            }
          }
        }));
      }
    }
  }
}

TEST_CASE("a bucket takes only what one reduce-scatter leads to its target") {
  const Mesh mesh = create_mesh({{"x", 2}, {"y", 2}});
  const Layout whole = Layout::replicated(mesh, 1), rows({"x"}, mesh),
               pending = whole.with_partial(1, Reduce::sum);
  const auto target = [](const Layout& layout) { return intern({4}, at::kFloat, layout); };
  const auto value = [](const Layout& layout, at::ScalarType dtype = at::kFloat) {
    return test_value({4}, layout, 2, dtype).value;
  };
  ScatterBucket bucket;
  CHECK(bucket.fits(value(pending), target(rows)));
  CHECK_FALSE(bucket.fits(value(pending), target(whole)));
  CHECK_FALSE(bucket.fits(value(whole.with_partial(3, Reduce::sum)), target(rows)));
  CHECK_FALSE(bucket.fits(value(whole), target(rows)));
  bucket.add(value(pending), target(rows), {});
  CHECK(bucket.fits(value(pending), target(rows)));
  CHECK_FALSE(bucket.fits(value(pending, at::kDouble), target(rows)));
  CHECK_FALSE(bucket.fits(value(whole.with_partial(2, Reduce::sum)), target(Layout({"y"}, mesh))));
  CHECK(bucket.bytes() == 16);
}

TEST_CASE("several values are gathered in one exchange, with the same blocks") {
  const auto gathers = [](const Mesh& mesh) {
    std::vector<TestValue> made;
    std::vector<Layout> targets;
    int64_t seed = 0;
    for (int64_t rank : {1, 2}) {
      for (const Layout& from : all_layouts(mesh, rank)) {
        for (const Layout& to : all_layouts(mesh, rank)) {
          const Shape shape = rank == 1 ? Shape{3} : Shape{7, 5};
          made.push_back(test_value(shape, from, ++seed));
          targets.push_back(to);
        }
      }
    }
    return std::pair(made, targets);
  };
  for (int ranks : {1, 2, 4}) {
    for (const MeshDims& dims : meshes) {
      for (BlockPolicy policy : policies) {
        INFO(ranks << " ranks, " << to_string(dims) << " " << test::to_string(policy));
        CHECK_NOTHROW(run_ranks(ranks, [&](int, const auto& inner) {
          const BlockPolicyScope scope(policy);
          CommNotes notes;
          const Mesh mesh = rank_mesh(dims, noted_communicator(inner, notes));
          const auto [made, targets] = gathers(mesh);
          std::vector<DTensor> values, alone;
          for (size_t v = 0; v < made.size(); ++v) {
            values.push_back(made[v].value);
            alone.push_back(relayout_value(made[v].value, targets[v]));
          }
          const size_t calls = notes.calls.size();
          const std::vector<DTensor> together = relayout_values(values, targets);
          expect(ranks == 1 || notes.calls.size() - calls < calls, "fewer exchanges");
          for (size_t v = 0; v < made.size(); ++v) {
            const std::string wrong = unlike(together[v], alone[v]);
            expect(wrong.empty(), wrong);
          }
        }));
      }
    }
  }
}

}  // namespace scatter_bucket_test
