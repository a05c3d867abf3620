#include <tessera/framework/base/error.hpp>
#include <tessera/framework/mesh/layout.hpp>

#include "tests/support/catch.hpp"

namespace layout_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Contains;

namespace {

Mesh grid() { return create_mesh({{"batch", 2}, {"height", 3}, {"width", 2}}); }

}  // namespace

TEST_CASE("a layout gives each axis one mesh dimension, several or none") {
  const Mesh mesh = grid();
  const Layout layout({"batch", unsharded, {"height", "width"}, nullptr}, mesh);
  CHECK(layout.defined());
  CHECK(layout.rank() == 4);
  CHECK(layout.mesh() == mesh);
  CHECK(layout.axis(0) == std::vector<int>{0});
  CHECK(layout.axis(1).empty());
  CHECK(layout.axis(2) == std::vector<int>{1, 2});
  CHECK(layout.num_shards(0) == 2);
  CHECK(layout.num_shards(1) == 1);
  CHECK(layout.num_shards(2) == 6);
  CHECK(layout.sharded_dims() == 0b111u);
  CHECK_FALSE(layout.is_fully_replicated());
  CHECK_FALSE(layout.is_partial());
  CHECK(Layout(layout.spec(), mesh) == layout);
}

TEST_CASE("every spelling of an unsharded axis is the same") {
  CHECK(AxisSpec(unsharded) == AxisSpec(nullptr));
  CHECK(AxisSpec{unsharded} == AxisSpec(nullptr));
  CHECK(AxisSpec(std::string("unsharded")).dims().empty());
  CHECK(AxisSpec{"batch"} == AxisSpec("batch"));
  CHECK_FALSE(AxisSpec{"height", "width"} == AxisSpec{"width", "height"});
}

TEST_CASE("unknown and repeated mesh dimensions are refused") {
  const Mesh mesh = grid();
  CHECK_THROWS_MATCHES(
      Layout({unsharded, "widht"}, mesh), LayoutError,
      Catch::Message("[layout] the layout names mesh dimension \"widht\". Received: mesh batch=2, "
                     "height=3, width=2. To fix: write \"width\"."));
  CHECK_THROWS_WITH(Layout({"batch", "batch"}, mesh), Contains("\"batch\" twice"));
  CHECK_THROWS_AS(Layout({AxisSpec{"height", "height"}}, mesh), LayoutError);
  CHECK_THROWS_AS(Layout({"height", AxisSpec{"width", "height"}}, mesh), LayoutError);
  CHECK_THROWS_AS(Layout({""}, mesh), LayoutError);
}

TEST_CASE("replicated, batch_sharded and inner_sharded") {
  const Mesh mesh = grid();
  CHECK(Layout::replicated(mesh, 2) == Layout({unsharded, unsharded}, mesh));
  CHECK(Layout::replicated(mesh, 0).rank() == 0);
  CHECK(Layout::replicated(mesh, 3).is_fully_replicated());
  CHECK(Layout::batch_sharded(mesh, "batch", 3) == Layout({"batch", nullptr, nullptr}, mesh));
  CHECK(Layout::inner_sharded(mesh, "width", 3) == Layout({nullptr, nullptr, "width"}, mesh));
  CHECK(Layout::inner_sharded(mesh, "width", 1) == Layout::batch_sharded(mesh, "width", 1));
  CHECK_THROWS_AS(Layout::replicated(mesh, -1), LayoutError);
  CHECK_THROWS_AS(Layout::batch_sharded(mesh, "batch", 0), LayoutError);
  CHECK_THROWS_AS(Layout::inner_sharded(mesh, "batch", -1), LayoutError);
  CHECK_THROWS_AS(Layout::inner_sharded(mesh, "model", 2), LayoutError);
}

TEST_CASE("layouts are equal when axes, mesh and partial reduction are") {
  const Mesh mesh = grid();
  const Layout layout({"batch", unsharded}, mesh);
  CHECK(layout == Layout({"batch", unsharded}, grid()));
  CHECK(layout.hash() == Layout({"batch", unsharded}, grid()).hash());
  CHECK_FALSE(layout == Layout({unsharded, "batch"}, mesh));
  CHECK_FALSE(layout == Layout({"batch"}, mesh));
  CHECK_FALSE(layout == Layout({"batch", unsharded}, create_mesh({{"batch", 2}})));
  CHECK_FALSE(Layout({AxisSpec{"height", "width"}}, mesh) ==
              Layout({AxisSpec{"width", "height"}}, mesh));
  CHECK_FALSE(layout == layout.with_partial(0b010, Reduce::sum));
  CHECK_FALSE(layout.with_partial(0b010, Reduce::max) == layout.with_partial(0b010, Reduce::sum));
  CHECK(Layout() == Layout());
  CHECK_FALSE(layout == Layout());
}

TEST_CASE("remove leaves the layout of the other axes") {
  const Mesh mesh = grid();
  const Layout layout({"batch", unsharded, AxisSpec{"height", "width"}}, mesh);
  CHECK(layout.remove({0}) == Layout({unsharded, AxisSpec{"height", "width"}}, mesh));
  CHECK(layout.remove({-1}) == Layout({"batch", unsharded}, mesh));
  CHECK(layout.remove({0, 1, 2}) == Layout::replicated(mesh, 0));
  CHECK(layout.remove({1, 1, -2}) == Layout({"batch", AxisSpec{"height", "width"}}, mesh));
  CHECK(layout.remove({}) == layout);
  CHECK_THROWS_AS(layout.remove({3}), LayoutError);
  CHECK_THROWS_AS(layout.remove({-4}), LayoutError);
}

TEST_CASE("a layout's text round-trips") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"height", 1}, {"width", 1}}, {}, "m");
  const std::string tail = " mesh:m|batch=2,height=1,width=1|0,1|0,1|cpu:0,cpu:1";
  for (const char* spec : {"batch,unsharded", "unsharded", "", "unsharded,(height,width),batch",
                           "(width,height)", "(batch,width),height"}) {
    const std::string text = "sharding_specs:" + (spec + tail);
    INFO(text);
    CHECK(Layout::from_string(text).to_string() == text);
  }
  const Layout layout({AxisSpec{"height", "width"}, unsharded, "batch"}, mesh);
  CHECK(layout.to_string() == "sharding_specs:(height,width),unsharded,batch" + tail);
  CHECK(Layout::from_string(layout.to_string()) == layout);
}

TEST_CASE("any other layout text is refused") {
  const std::string tail = " mesh:|batch=2,width=1|0,1|0,1|cpu:0,cpu:1";
  for (const char* spec : {"batch,", ",batch", "batch,,width", "(batch", "batch)", "(batch,width",
                           "()", "(batch)", "(batch,)", "(batch,width)unsharded", "model",
                           "batch,batch", "(unsharded,batch)", "batch, width"}) {
    const std::string text = "sharding_specs:" + (spec + tail);
    INFO(text);
    CHECK_THROWS_AS(Layout::from_string(text), LayoutError);
  }
  CHECK_THROWS_AS(Layout::from_string(""), LayoutError);
  CHECK_THROWS_AS(Layout::from_string("batch" + tail), LayoutError);
  CHECK_THROWS_AS(Layout::from_string("sharding_specs:batch"), LayoutError);
  CHECK_THROWS_AS(Layout::from_string("sharding_specs:batch mesh:|batch=2"), MeshError);
}

TEST_CASE("describe() gives a layout's text for errors") {
  const Layout layout({"batch", unsharded, AxisSpec{"height", "width"}}, grid());
  CHECK(layout.describe() == "(batch, unsharded, (height,width))");
  CHECK(Layout({unsharded}, grid()).with_partial(0b101, Reduce::max).describe() ==
        "(unsharded) +max over batch,width");
  CHECK(Layout().describe() == "(no layout)");
}

TEST_CASE("a partial layout reduces over dimensions that shard no axis") {
  const Layout layout({"batch", unsharded}, grid());
  const Layout pending = layout.with_partial(0b010, Reduce::max);
  CHECK(pending.is_partial());
  CHECK(pending.partial_dims() == 0b010u);
  CHECK(pending.partial_kind() == Reduce::max);
  CHECK(pending.used_dims() == 0b011u);
  CHECK_FALSE(Layout::replicated(grid(), 1).with_partial(1, Reduce::sum).is_fully_replicated());
  CHECK(pending.resolved() == layout);
  CHECK(pending.remove({0}).partial_dims() == 0b010u);
  CHECK_THROWS_AS(layout.with_partial(0b001, Reduce::sum), LayoutError);
}

TEST_CASE("shards of one axis cover it once, in order, even if it is short or empty") {
  for (int64_t k : {1, 2, 3, 4, 6, 8}) {
    for (int64_t n : {int64_t{0}, int64_t{1}, k - 1, k, k + 1, int64_t{10}, int64_t{1} << 40}) {
      int64_t at = 0;
      for (int64_t i = 0; i < k; ++i) {
        const Interval shard = shard_interval(n, k, i);
        CHECK(shard.lo == at);
        CHECK(shard.size() >= n / k);
        CHECK(shard.size() <= n / k + 1);
        at = shard.hi;
      }
      CHECK(at == n);
    }
  }
  CHECK(shard_interval(2, 3, 0).empty());
  CHECK(shard_interval(2, 3, 1) == Interval{0, 1});
  CHECK(shard_interval(10, 3, 1) == Interval{3, 6});
}

}  // namespace layout_test
