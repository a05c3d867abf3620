#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/comm/reduce_dtype.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/thread_communicator.hpp"

namespace communicator_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

using Ids = std::vector<int64_t>;
using Ranks = std::vector<int>;

/// Work that fails or succeeds in wait().
class Promise final : public Work {
 public:
  explicit Promise(bool fails) : fails_(fails) {}
  void wait() override {
    done_ = true;
    if (fails_) throw CommError("test", "all ranks are there", "none", "");
  }
  bool done() const override { return done_; }

 private:
  bool fails_;
  bool done_ = false;
};

}  // namespace

TEST_CASE("the identity of a reduction changes nothing") {
  for (at::ScalarType dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong,
                               at::kInt, at::kShort, at::kChar, at::kByte, at::kBool}) {
    const at::Tensor values = at::tensor({1, 0, 100, 7}).to(dtype);
    for (Reduce kind : {Reduce::sum, Reduce::max, Reduce::min}) {
      INFO(c10::toString(dtype) << " " << to_string(kind));
      at::Tensor reduced = reduce_identity(kind, {4}, dtype);
      CHECK(reduced.scalar_type() == dtype);
      reduce_into(kind, reduced, values);
      CHECK(difference(reduced, values) == "");
    }
  }
  const at::Tensor extremes = at::tensor({-INFINITY, INFINITY, -3.5f});
  for (Reduce kind : {Reduce::max, Reduce::min}) {
    at::Tensor reduced = reduce_identity(kind, {3}, at::kFloat);
    reduce_into(kind, reduced, extremes);
    CHECK(difference(reduced, extremes) == "");
  }
  at::Tensor lowest = reduce_identity(Reduce::max, {1}, at::kLong);
  reduce_into(Reduce::max, lowest, at::full({1}, INT64_MIN, at::kLong));
  CHECK(lowest.item<int64_t>() == INT64_MIN);
}

TEST_CASE("reductions combine all inputs and leave them unchanged") {
  const std::vector<at::Tensor> parts = {at::tensor({1.f, 5.f}), at::tensor({2.f, -7.f}),
                                         at::tensor({-4.f, 3.f})};
  CHECK(difference(reduce_all(Reduce::sum, parts), at::tensor({-1.f, 1.f})) == "");
  CHECK(difference(reduce_all(Reduce::max, parts), at::tensor({2.f, 5.f})) == "");
  CHECK(difference(reduce_all(Reduce::min, parts), at::tensor({-4.f, -7.f})) == "");
  CHECK(difference(parts[0], at::tensor({1.f, 5.f})) == "");
  CHECK(reduce_all(Reduce::sum, {parts[0]}).is_same(parts[0]));
  CHECK(std::isnan(
      reduce_all(Reduce::max, {at::tensor({NAN}), parts[0][0].view({1})}).item<float>()));
}

TEST_CASE("only sums of float16 and bfloat16 are combined in float32") {
  CHECK(reduction_dtype(at::kHalf, Reduce::sum) == at::kFloat);
  CHECK(reduction_dtype(at::kBFloat16, Reduce::sum) == at::kFloat);
  CHECK(reduction_dtype(at::kHalf, Reduce::max) == at::kHalf);
  CHECK(reduction_dtype(at::kDouble, Reduce::sum) == at::kDouble);
  CHECK(reduction_dtype(at::kLong, Reduce::sum) == at::kLong);
}

TEST_CASE("a group's members are the coordinates along its dimensions") {
  const Mesh mesh = create_mesh({{"a", 2}, {"b", 4}});
  CHECK(make_group(mesh, {}, {2, 4}).size() == 1);
  CHECK(make_group(mesh, {1}, {2, 4}).local == Ids{0, 1, 2, 3});
  const Group both = make_group(mesh, {1, 0}, {2, 4});
  CHECK(both.dims == Ranks{1, 0});
  CHECK(both.size() == 8);
  CHECK(both.is_local());
  CHECK(both.owner == Ranks(8, 0));
  CHECK(make_group(mesh, {0, 1}, {2, 2}).size() == 4);
}

TEST_CASE("between processes a group names the rank that holds each member") {
  CHECK_NOTHROW(run_ranks(2, [](int rank, const auto& communicator) {
    const Mesh mesh = rank_mesh({{"a", 2}, {"b", 2}}, communicator);
    const Group a = make_group(mesh, {0}, {2, 2});
    expect(a.owner == Ranks{0, 1} && a.local == Ids{rank}, "a spans the ranks");
    const Group b = make_group(mesh, {1}, {2, 2});
    expect(b.owner == Ranks{rank, rank} && b.is_local(), "b lies within a rank");
    const Group ba = make_group(mesh, {1, 0}, {2, 2});
    expect(ba.owner == Ranks{0, 1, 0, 1} && ba.local == Ids{rank, 2 + rank}, "b then a");
    const Group merged = make_group(mesh, {0, 1}, {2, 1});
    expect(merged.owner == Ranks{0, 1} && merged.local == Ids{rank}, "merged members");
  }));
  CHECK_NOTHROW(run_ranks(4, [](int rank, const auto& communicator) {
    const Mesh mesh = rank_mesh({{"a", 2}, {"b", 4}}, communicator);
    const int row = rank / 2 * 2;
    const Group b = make_group(mesh, {1}, {2, 4});
    expect(b.owner == Ranks{row, row, row + 1, row + 1}, "the ranks of my row");
    const Group a = make_group(mesh, {0}, {2, 4});
    expect(a.owner == Ranks{rank % 2, 2 + rank % 2}, "the ranks of my column");
  }));
  CHECK_NOTHROW(run_ranks(2, [](int rank, const auto& communicator) {
    const Group uneven = make_group(rank_mesh({{"a", 5}}, communicator), {0}, {5});
    expect(uneven.owner == Ranks{0, 0, 1, 1, 1}, "uneven shares");
    expect(uneven.local == (rank == 0 ? Ids{0, 1} : Ids{2, 3, 4}), "uneven members");
  }));
}

TEST_CASE("a group follows the mesh's hosting") {
  CHECK_NOTHROW(run_ranks(3, [](int rank, const auto& communicator) {
    const Mesh mesh = rank_mesh({{"a", 4}, {"b", 2}}, communicator);
    expect(owner_of(mesh, 1) == 0 && owner_of(mesh, 2) == 1 && owner_of(mesh, 4) == 2, "owners");
    expect(!is_evenly_hosted(mesh), "one, one and two rows");
    const Group a = make_group(mesh, {0}, {4, 2});
    expect(a.owner == Ranks{0, 1, 2, 2}, "rows on the ranks");
    expect(a.local == (rank == 2 ? Ids{2, 3} : Ids{rank}), "own rows");
    expect(make_group(mesh, {1}, {4, 2}).is_local(), "columns are in a rank");
    const Group both = make_group(mesh, {1, 0}, {4, 2});
    expect(both.owner == Ranks{0, 1, 2, 2, 0, 1, 2, 2}, "b then a");
    const Mesh rows = mesh.sub_mesh({"a"});
    expect(make_group(rows, {0}, {4}).owner == a.owner, "the sub-mesh of the rows");
  }));
  CHECK_NOTHROW(run_ranks(3, [](int rank, const auto& communicator) {
    const Mesh mesh = rank_mesh({{"a", 2}, {"b", 4}}, communicator);
    expect(devices_of(mesh, 2) == Ids{2, 3, 6, 7}, "a box that is no run of ids");
    const Group b = make_group(mesh, {1}, {2, 4});
    expect(b.owner == Ranks{0, 1, 2, 2}, "columns on the ranks");
    expect(b.local == (rank == 2 ? Ids{2, 3} : Ids{rank}), "own columns");
  }));
}

TEST_CASE("collectives of a sub-mesh inside a process stay there") {
  CHECK_NOTHROW(run_ranks(2, [](int rank, const auto& communicator) {
    const Mesh inner = rank_mesh({{"a", 2}, {"b", 2}}, communicator).sub_mesh({"b"});
    const Group group = make_group(inner, {0}, {2});
    expect(group.owner == Ranks{rank, rank} && group.is_local(), "owned by this rank");
    at::Tensor out;
    wait(communicator->all_reduce(group, Reduce::sum, {at::ones({1}), at::ones({1})}, out));
    expect(out.item<float>() == 2, "sum");
  }));
}

TEST_CASE("ranks whose devices do not fit the run are named") {
  CHECK_NOTHROW(run_ranks(2, [](int rank, const auto& communicator) {
    const Mesh swapped =
        create_mesh_part({{"a", 4}}, rank ? Ids{0, 1} : Ids{2, 3}, virtual_cpus(2), communicator);
    std::string text;
    try {
      make_group(swapped, {0}, {4});
    } catch (const MeshError& error) {
      text = error.what();
    }
    if (rank == 1) return;
    expect(text ==
               "[mesh] rank 0 of 2 holds devices 0 to 1 of mesh a=4. Received: devices 2 to 3. "
               "To fix: give each rank its run of neighbouring ids, in the order of the ranks.",
           text);
  }));
}

TEST_CASE("wait() returns when work is done, or throws its error") {
  wait(nullptr);
  const auto good = std::make_shared<Promise>(false), bad = std::make_shared<Promise>(true);
  CHECK_FALSE(good->done());
  wait(good);
  CHECK(good->done());
  CHECK_THROWS_AS(wait(bad), CommError);
}

}  // namespace communicator_test
