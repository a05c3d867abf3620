#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/tree_reduce.hpp>
#include <tessera/framework/comm/world_size_invariant.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/catch.hpp"
#include "tests/support/channel_ranks.hpp"
#include "tests/support/local_group.hpp"

namespace tree_reduce_test {

using namespace tessera;
using namespace tessera::detail;
using tessera::test::Owners;

namespace {

using Ids = std::vector<int64_t>;
using Tensors = std::vector<at::Tensor>;

/// Whether two float32 tensors have the same bits, of zeros too.
bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return at::equal(a.contiguous().view(at::kInt), b.contiguous().view(at::kInt));
}

Group tree_group(const Owners& owner, int rank) {
  Group group = test::group_of(owner, rank);
  group.tree = true;
  return group;
}

/// The tree over positions [first, first + size), written as its definition; undefined if it has no
/// leaf.
at::Tensor by_definition(const Tensors& leaves, int64_t first, int64_t size) {
  if (first >= std::ssize(leaves)) return {};
  if (size == 1) return leaves[static_cast<size_t>(first)];
  const at::Tensor a = by_definition(leaves, first, size / 2);
  const at::Tensor b = by_definition(leaves, first + size / 2, size / 2);
  if (!a.defined() || !b.defined()) return a.defined() ? a : b;
  return a + b;
}

/// Reduces what the ranks send: the reductions of their subtrees.
at::Tensor by_ranks(Reduce kind, const Tensors& leaves, const Owners& owner) {
  std::vector<TreeAddend> addends;
  const int ranks = *std::max_element(owner.begin(), owner.end()) + 1;
  for (int rank = 0; rank < ranks; ++rank) {
    const Group group = tree_group(owner, rank);
    if (group.local.empty()) continue;
    Tensors mine;
    for (int64_t m : group.local) mine.push_back(leaves[static_cast<size_t>(m)]);
    // A rank with no part passes one, so that every rank takes part.
    const bool none = std::none_of(mine.begin(), mine.end(),
                                   [](const at::Tensor& leaf) { return leaf.defined(); });
    if (none) mine.front() = tree_identity(kind, {9}, at::kFloat);
    const Tensors sent = subtree_reductions(group, kind, mine);
    const Ids positions = subtree_positions(group, rank);
    for (size_t s = 0; s < sent.size(); ++s) addends.push_back({positions[s], sent[s]});
  }
  std::sort(addends.begin(), addends.end(),
            [](const TreeAddend& a, const TreeAddend& b) { return a.position < b.position; });
  return tree_reduce(kind, std::move(addends));
}

/// Numbers of many magnitudes, with zeros of both signs.
at::Tensor numbers(std::mt19937& random) {
  at::Tensor values = at::empty({9}, at::kFloat);
  float* const value = values.mutable_data_ptr<float>();
  std::uniform_real_distribution<float> mantissa(-1, 1);
  for (int64_t i = 0; i < 9; ++i) {
    value[i] = std::ldexp(mantissa(random), static_cast<int>(random() % 24));
    if (random() % 4 == 0) value[i] = i % 2 ? 0.0F : -0.0F;
  }
  return values;
}

}  // namespace

TEST_CASE("a tree has the same bits for any subset of positions and any split over ranks") {
  std::mt19937 random(1);
  int absent = 0;
  for (int64_t members = 1; members <= 17; ++members) {
    for (int trial = 0; trial < 40; ++trial) {
      Tensors leaves;
      Owners owner;
      const bool runs = trial % 2 == 0;
      const auto ranks = static_cast<int64_t>(1 + random() % 8);
      for (int64_t m = 0; m < members; ++m) {
        leaves.push_back(random() % 3 ? numbers(random) : at::Tensor());
        absent += leaves.back().defined() ? 0 : 1;
        owner.push_back(
            static_cast<int>(runs ? m * ranks / members : static_cast<int64_t>(random()) % ranks));
      }
      leaves[random() % leaves.size()] = numbers(random);
      CAPTURE(members, trial, owner);
      const at::Tensor expected = by_definition(leaves, 0, 32);
      CHECK(same_bits(reduce_inputs(tree_group(Owners(owner.size(), 0), 0), Reduce::sum, leaves),
                      expected));
      CHECK(same_bits(by_ranks(Reduce::sum, leaves, owner), expected));
      CHECK(same_bits(by_ranks(Reduce::max, leaves, owner),
                      by_ranks(Reduce::max, leaves, Owners(owner.size(), 0))));
    }
  }
  CHECK(absent > 500);
}

TEST_CASE("any other order of additions changes bits that the tree keeps") {
  // 1 is lost next to 0.1 * 2^28, and 2 is not.
  const float large = 0.1F * static_cast<float>(1 << 28);
  const auto leaf = [](float value) { return at::full({1}, value, at::kFloat); };
  const Tensors leaves = {leaf(large), leaf(1), leaf(1), leaf(1), leaf(1), leaf(1),
                          leaf(1),     leaf(1), leaf(1), leaf(1), leaf(1), leaf(1),
                          leaf(1),     leaf(1), leaf(1), leaf(1)};
  const Group group = tree_group(Owners(16, 0), 0);
  const at::Tensor tree = reduce_inputs(group, Reduce::sum, leaves);
  CHECK(same_bits(tree, by_definition(leaves, 0, 16)));
  // A planted linear sum, as inside a process without the mode.
  CHECK_FALSE(same_bits(tree, reduce_all(Reduce::sum, leaves)));
  // Sums by rank first, of other runs than subtrees.
  const at::Tensor by_thirds =
      reduce_all(Reduce::sum, {reduce_all(Reduce::sum, {leaves.begin(), leaves.begin() + 5}),
                               reduce_all(Reduce::sum, {leaves.begin() + 5, leaves.end()})});
  CHECK_FALSE(same_bits(tree, by_thirds));
  for (const int ranks : {2, 3, 5, 7, 16}) {
    Owners owner;
    for (int m = 0; m < 16; ++m) owner.push_back(m * ranks / 16);
    CHECK(same_bits(by_ranks(Reduce::sum, leaves, owner), tree));
  }
}

TEST_CASE("a rank sends the reductions of few subtrees") {
  const auto positions = [](const Owners& owner, int rank) {
    return subtree_positions(tree_group(owner, rank), rank);
  };
  const Owners three = {0, 0, 1, 1, 1, 2, 2, 2};
  CHECK(positions(three, 0) == Ids{0});
  CHECK(positions(three, 1) == Ids{2, 4});
  CHECK(positions(three, 2) == Ids{5, 6});
  CHECK(positions({0, 1, 0, 1}, 0) == Ids{0, 2});
  // The last subtree is cut off at the end of the group.
  CHECK(positions({0, 0, 0, 0, 1, 1, 1}, 1) == Ids{4});
  CHECK(positions({0, 0, 0, 0, 0}, 0) == Ids{0});
  for (int ranks = 1; ranks <= 8; ++ranks) {
    Owners owner;
    for (int m = 0; m < 64; ++m) owner.push_back(((m + 1) * ranks - 1) / 64);
    for (int rank = 0; rank < ranks; ++rank) CHECK(positions(owner, rank).size() <= 5);
  }
}

TEST_CASE("inputs of a tree are read only, and one input is the result") {
  const Tensors leaves = {at::ones({3}), at::Tensor(), at::full({3}, 2.0F), at::full({3}, 4.0F)};
  const Group group = tree_group({0, 0, 0, 0}, 0);
  CHECK(at::equal(reduce_inputs(group, Reduce::sum, leaves), at::full({3}, 7.0F)));
  CHECK(at::equal(leaves[0], at::ones({3})));
  CHECK(at::equal(leaves[2], at::full({3}, 2.0F)));
  CHECK(at::equal(leaves[3], at::full({3}, 4.0F)));
  const Tensors one = {at::Tensor(), leaves[0], at::Tensor(), at::Tensor()};
  CHECK(reduce_inputs(group, Reduce::sum, one).is_same(leaves[0]));
  at::Tensor out = at::empty({3});
  CHECK(tree_reduce(Reduce::sum, {{0, leaves[0]}, {5, leaves[2]}}, out).is_same(out));
  CHECK(at::equal(out, at::full({3}, 3.0F)));
  CHECK_THROWS_AS(reduce_inputs(group, Reduce::sum, {leaves[0]}), StateError);
}

TEST_CASE("groups are in tree order in a scope, and in nested ones that are off") {
  const Mesh mesh = create_mesh({{"a", 4}});
  CHECK_FALSE(make_group(mesh, {0}, {4}).tree);
  {
    const WorldSizeInvariantScope on;
    CHECK(make_group(mesh, {0}, {4}).tree);
    const WorldSizeInvariantScope off(false);
    CHECK(make_group(mesh, {0}, {4}).tree);
  }
  CHECK_FALSE(make_group(mesh, {0}, {4}).tree);
}

}  // namespace tree_reduce_test
