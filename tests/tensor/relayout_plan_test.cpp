#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/layouts.hpp"

namespace relayout_plan_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

std::string text(const RelayoutStep& step, const Mesh& mesh) {
  std::string dims;
  for (int dim : step.dims) dims += mesh.dim_names()[static_cast<size_t>(dim)];
  switch (step.kind) {
    case RelayoutStep::Kind::slice:
      return str("slice ", dims, " at ", step.axis);
    case RelayoutStep::Kind::all_gather:
      return str("gather ", dims, " at ", step.axis);
    case RelayoutStep::Kind::all_reduce:
      return "reduce " + dims;
    case RelayoutStep::Kind::reduce_scatter:
      return str("scatter ", dims, " at ", step.axis);
    case RelayoutStep::Kind::all_to_all:
      return str("move ", dims, " from ", step.axis, " to ", step.to_axis);
  }
  return "?";
}

std::string plan(const Layout& from, const Layout& to) {
  std::string all;
  for (const RelayoutStep& step : plan_relayout(from, to)) {
    all += (all.empty() ? "" : "; ") + text(step, from.mesh());
  }
  return all;
}

const Mesh mesh = create_mesh({{"a", 2}, {"b", 4}});
const DimMask a = 1, b = 2;

Layout over(const LayoutSpec& spec, DimMask pending = 0) {
  return Layout(spec, mesh).with_partial(pending, Reduce::sum);
}

}  // namespace

TEST_CASE("a relayout that only shards further is free") {
  CHECK(plan(over({nullptr, nullptr}), over({"a", "b"})) == "slice a at 0; slice b at 1");
  CHECK(plan(over({"a"}), over({{"a", "b"}})) == "slice b at 0");
  CHECK(plan(over({"a"}), over({"a"})).empty());
  CHECK(relayout_bytes({8, 8}, at::kFloat, over({nullptr, nullptr}), over({"a", "b"})) == 0);
}

TEST_CASE("partial dimensions are reduce-scattered straight into the target's axes") {
  CHECK(plan(over({nullptr}, b), over({nullptr})) == "reduce b");
  CHECK(plan(over({nullptr}, b), over({"b"})) == "scatter b at 0");
  CHECK(plan(over({"a"}, b), over({{"a", "b"}})) == "scatter b at 0");
  CHECK(plan(over({nullptr, nullptr}, a | b), over({"b", "a"})) ==
        "scatter b at 0; scatter a at 1");
  CHECK(plan(over({nullptr}, a | b), over({{"b", "a"}})) == "scatter ba at 0");
  CHECK(plan(over({nullptr}, a | b), over({"b"})) == "scatter b at 0; reduce a");
  CHECK(plan(over({nullptr}, a | b), over({nullptr})) == "reduce ab");
  CHECK(plan(over({nullptr}, a | b), over({nullptr}, b)) == "reduce a");
}

TEST_CASE("slicing first leaves fewer bytes to reduce") {
  CHECK(plan(over({nullptr}, b), over({"a"})) == "slice a at 0; reduce b");
  CHECK(plan(over({nullptr}, b), over({{"a", "b"}})) == "slice a at 0; scatter b at 0");
  CHECK(relayout_bytes({8}, at::kFloat, over({nullptr}, b), over({"a"})) == 2 * 0.75 * 16);
}

TEST_CASE("dimensions move between axes by all-to-all rather than all-gather") {
  CHECK(plan(over({"b", nullptr}), over({nullptr, "b"})) == "move b from 0 to 1");
  CHECK(plan(over({{"a", "b"}, nullptr}), over({nullptr, {"a", "b"}})) == "move ab from 0 to 1");
  CHECK(plan(over({{"a", "b"}, nullptr}), over({"a", "b"})) == "move b from 0 to 1");
  CHECK(plan(over({"a", "b"}), over({{"a", "b"}, nullptr})) == "move b from 1 to 0");
  CHECK(plan(over({{"a", "b"}, nullptr}), over({nullptr, "b"})) ==
        "move b from 0 to 1; gather a at 0");
  CHECK(plan(over({{"a", "b"}, nullptr}), over({nullptr, "a"})) ==
        "gather b at 0; move a from 0 to 1");
  CHECK(plan(over({"a", "b"}), over({"b", "a"})) ==
        "gather a at 0; move b from 1 to 0; slice a at 1");
}

TEST_CASE("dimensions that the target does not use are gathered at once") {
  CHECK(plan(over({{"a", "b"}}), over({nullptr})) == "gather ab at 0");
  CHECK(plan(over({{"a", "b"}}), over({"a"})) == "gather b at 0");
  CHECK(plan(over({{"a", "b"}}), over({{"b", "a"}})) == "gather ab at 0; slice ba at 0");
  CHECK(plan(over({"a", "b"}), over({nullptr, nullptr})) == "gather a at 0; gather b at 1");
  CHECK(relayout_bytes({8}, at::kFloat, over({{"a", "b"}}), over({nullptr})) == 0.875 * 32);
}

TEST_CASE("every plan ends at its target and costs no more than reducing and gathering all") {
  const Mesh cube = create_mesh({{"a", 2}, {"b", 2}, {"c", 2}});
  std::vector<Layout> from = all_layouts(cube, 2);
  for (const Layout& layout : pending_layouts(cube, 2, Reduce::sum)) from.push_back(layout);
  const Shape shape = {8, 8};
  const Layout replicated = Layout::replicated(cube, 2);
  for (const Layout& source : from) {
    const double max_bytes = relayout_bytes(shape, at::kFloat, source, source.resolved()) +
                             relayout_bytes(shape, at::kFloat, source.resolved(), replicated);
    for (const Layout& target : all_layouts(cube, 2)) {
      INFO(source.describe() << " -> " << target.describe() << ": " << plan(source, target));
      const std::vector<RelayoutStep> steps = plan_relayout(source, target);
      REQUIRE((steps.empty() ? source : steps.back().after) == target);
      REQUIRE(relayout_bytes(shape, at::kFloat, source, target) <= max_bytes);
    }
  }
}

TEST_CASE("plans need no block of the value in this process") {
  const Layout elsewhere(
      LayoutSpec{"b"},
      Mesh::from_string(
          create_mesh_part({{"a", 2}, {"b", 4}}, {7}, virtual_cpus(1), nullptr).to_string()));
  const Layout replicated = Layout::replicated(elsewhere.mesh(), 1);
  CHECK(plan(elsewhere, replicated) == "gather b at 0");
  CHECK(relayout_bytes({8}, at::kFloat, elsewhere, replicated) == 24);
}

TEST_CASE("a relayout to a partial layout is refused") {
  CHECK_THROWS_AS(plan_relayout(over({nullptr}), over({nullptr}, a)), LayoutError);
  CHECK_THROWS_AS(plan_relayout(over({nullptr}, a), over({nullptr}, a | b)), LayoutError);
  CHECK_THROWS_AS(
      plan_relayout(over({nullptr}, a), Layout::replicated(mesh, 1).with_partial(a, Reduce::max)),
      LayoutError);
  CHECK_THROWS_WITH(plan_relayout(over({nullptr}), over({nullptr}, a)),
                    "[relayout] only operations make partial sums, not a relayout. Received: "
                    "(unsharded) to (unsharded) +sum over a. To fix: relayout to a layout that is "
                    "not a partial sum.");
}

}  // namespace relayout_plan_test
