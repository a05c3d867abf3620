#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/thread_communicator.hpp"

namespace create_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

const Mesh mesh = create_mesh({{"a", 2}, {"b", 2}});

}  // namespace

TEST_CASE("pack copies, so that the caller keeps its tensor") {
  for (BlockPolicy policy : policies) {
    const BlockPolicyScope scope(policy);
    at::Tensor mine = at::zeros({4});
    const DTensor x = pack(mine, Layout::replicated(mesh, 1));
    mine.fill_(1);
    CHECK(difference(x.full(), at::zeros({4})) == "");
  }
}

TEST_CASE("pack takes over an rvalue, unless someone else holds its memory") {
  const Layout layout = Layout::replicated(mesh, 1);
  at::Tensor mine = at::zeros({4});
  const void* memory = mine.data_ptr();
  const DTensor taken = pack(std::move(mine), layout);
  CHECK(taken.blocks()[0].data_ptr() == memory);
  CHECK_FALSE(mine.defined());

  at::Tensor held = at::zeros({4});
  const DTensor of_view = pack(held.view({4}), layout);
  float buffer[4] = {1, 2, 3, 4};
  const DTensor of_buffer = pack(at::from_blob(buffer, {4}), layout);
  // Outside InferenceMode the view would keep its base alive.
  const c10::InferenceMode inference;
  at::Tensor repeated = at::zeros({1}).expand({4});
  const DTensor of_repeated = pack(std::move(repeated), layout);
  held.fill_(5);
  buffer[0] = 5;
  CHECK(difference(of_view.full(), at::zeros({4})) == "");
  CHECK(difference(of_buffer.full(), at::tensor({1.f, 2.f, 3.f, 4.f})) == "");
  CHECK(of_repeated.blocks()[0].stride(0) == 1);
}

TEST_CASE("blocks are inference tensors, whatever they are made of") {
  const Layout layout({"a"}, mesh);
  std::vector<DTensor> values{pack(at::zeros({4}), layout), filled({4}, 2, at::kFloat, layout),
                              stateless_normal({4}, {1, 2}),
                              pack_rows(at::zeros({4}), {0, 4}, 4, layout)};
  const at::Tensor mine = at::zeros({4});
  values.push_back(pack(mine, layout));
  values.push_back(values[0] + values[1]);
  values.push_back(ops::reshape(values[0], {2, 2}));
  values.push_back(ops::slice(values[0], 0, 1, 2));
  for (const DTensor& value : values) {
    for (const at::Tensor& block : value.blocks()) CHECK(block.is_inference());
  }
}

TEST_CASE("under per_device every device has separate memory") {
  const BlockPolicyScope scope(BlockPolicy::per_device);
  const DTensor x = pack(at::zeros({4}), Layout::replicated(mesh, 1));
  REQUIRE(x.blocks().size() == 4);
  for (size_t b = 1; b < 4; ++b) CHECK_FALSE(x.blocks()[b].is_alias_of(x.blocks()[0]));
}

TEST_CASE("pack of one tensor for each device, and unpack, are inverses") {
  for (BlockPolicy policy : policies) {
    const BlockPolicyScope scope(policy);
    for (const Shape& shape : {Shape{4, 6}, Shape{5, 3}, Shape{1, 7}, Shape{4, 0}, Shape{0, 0}}) {
      const at::Tensor full = small_integers(shape, 1);
      for (const Layout& layout : all_layouts(mesh, 2)) {
        const std::vector<at::Tensor> shards = unpack(pack(full, layout));
        REQUIRE(shards.size() == 4);
        const DTensor again = pack(shards, layout, shape);
        INFO(layout.describe() << " of " << tessera::to_string(shape));
        CHECK(wrong_shards(again, full) == "");
        CHECK(again.sharding() == intern(shape, at::kFloat, layout));
      }
    }
  }
}

TEST_CASE("pack infers the global shape from shards of one size") {
  const std::vector<at::Tensor> shards(4, at::ones({2, 3}));
  CHECK(pack(shards, Layout(LayoutSpec{"a", "b"}, mesh)).shape() == Shape{4, 6});
  CHECK(pack(shards, Layout(LayoutSpec{nullptr, {"a", "b"}}, mesh)).shape() == Shape{2, 12});
  CHECK(pack(shards, Layout::replicated(mesh, 2)).shape() == Shape{2, 3});
}

TEST_CASE("unpack resolves a partial value") {
  const TestValue sample =
      test_value({3}, Layout::replicated(mesh, 1).with_partial(3, Reduce::sum), 4);
  for (const at::Tensor& shard : unpack(sample.value)) {
    CHECK(difference(shard, sample.full) == "");
  }
}

TEST_CASE("pack refuses invalid arguments") {
  const Layout layout(LayoutSpec{"a"}, mesh);
  CHECK_THROWS_AS(pack(at::Tensor(), layout), ShapeError);
  CHECK_THROWS_AS(pack(at::ones({2, 2}), layout), LayoutError);
  CHECK_THROWS_AS(pack(at::ones({2}), Layout()), LayoutError);
  const at::Tensor two = at::ones({2}), three = at::ones({3});
  CHECK_THROWS_AS(pack({two, two, two}, layout), ShapeError);
  CHECK_THROWS_AS(pack({two, two, two, two}, Layout()), ShapeError);
  CHECK_THROWS_AS(pack({two, two, two, at::ones({2}, at::kLong)}, layout), ConfigError);
  CHECK_THROWS_AS(pack({two, two, two, at::Tensor()}, layout), ShapeError);
  CHECK_THROWS_AS(pack({two, two, two, at::ones({2, 1})}, layout), LayoutError);
  CHECK_THROWS_WITH(pack({two, two, three, three}, layout),
                    "[pack] the shard of local device 2 has shape (2,). Received: (3,). To fix: "
                    "give the global shape if shards differ in size.");
  CHECK(pack({two, two, three, three}, layout, Shape{5}).shape() == Shape{5});
}

TEST_CASE("values are copied between meshes in full") {
  const Mesh other = create_mesh({{"c", 3}});
  const at::Tensor full = small_integers({7, 2}, 1);
  const Layout there(LayoutSpec{"c", nullptr}, other);
  CHECK(wrong_shards(copy_to_mesh(full, there), full) == "");
  const DTensor here = pack(full, Layout(LayoutSpec{"a", "b"}, mesh));
  CHECK(wrong_shards(copy_to_mesh_value(here, there), full) == "");
  CHECK(copy_to_mesh_value(here, Layout::replicated(mesh, 2)).layout().is_fully_replicated());
  const TestValue pending =
      test_value({7, 2}, Layout::replicated(mesh, 2).with_partial(1, Reduce::sum), 3);
  CHECK(wrong_shards(copy_to_mesh_value(pending.value, there), pending.full) == "");
}

TEST_CASE("fetch_layout shows a partial value as resolved, without resolving it") {
  const Layout pending = Layout(LayoutSpec{"a"}, mesh).with_partial(2, Reduce::sum);
  const DTensor value = test_value({4}, pending, 1).value;
  CHECK(fetch_layout(value) == Layout(LayoutSpec{"a"}, mesh));
  CHECK(value.layout().is_partial());
}

TEST_CASE("values made without a layout are replicated over the default mesh") {
  CHECK(default_mesh().size() == 1);
  {
    const DefaultMeshScope scope(mesh);
    CHECK(zeros({3}).layout() == Layout::replicated(mesh, 1));
    const Mesh inner = create_mesh({{"c", 2}});
    {
      const DefaultMeshScope second(inner);
      CHECK(ones({}).mesh() == inner);
    }
    CHECK(default_mesh() == mesh);
  }
  CHECK(default_mesh().size() == 1);
}

TEST_CASE("call_with_layout makes values of its rank in their shards") {
  const Layout layout(LayoutSpec{"a", "b"}, mesh);
  CommLog log;
  const CommLogScope scope(log);
  Layout inside, vector;
  const auto make = [&](double value) {
    inside = default_layout(2);
    vector = default_layout(1);
    return filled({4, 6}, value);
  };
  const DTensor x = call_with_layout(make, layout, 3);
  CHECK(inside == layout);
  CHECK(vector == Layout::replicated(mesh, 1));
  CHECK(x.layout() == layout);
  CHECK(wrong_shards(x, at::full({4, 6}, 3.f)) == "");
  CHECK(log.entries().empty());
  CHECK(default_layout(2).mesh() == default_mesh());
  const DTensor cut =
      call_with_layout([] { return pack(at::ones({4}), Layout::replicated(mesh, 1)); },
                       Layout(LayoutSpec{"b"}, mesh));
  CHECK(cut.layout() == Layout(LayoutSpec{"b"}, mesh));
}

TEST_CASE("the innermost of default mesh and default layout applies") {
  const Mesh other = create_mesh({{"c", 2}});
  const DefaultLayoutScope outer(Layout(LayoutSpec{"a"}, mesh));
  {
    const DefaultMeshScope inner(other);
    CHECK(default_layout(1) == Layout::replicated(other, 1));
    const DefaultLayoutScope innermost(Layout(LayoutSpec{"b"}, mesh));
    CHECK(default_layout(1) == Layout(LayoutSpec{"b"}, mesh));
  }
  CHECK(default_layout(1) == Layout(LayoutSpec{"a"}, mesh));
}

TEST_CASE("filled values have the requested dtype and number") {
  for (at::ScalarType dtype : {at::kFloat, at::kDouble, at::kInt, at::kLong, at::kHalf}) {
    CHECK(difference(filled({2}, 3, dtype).full(), at::full({2}, 3, dtype)) == "");
  }
  CHECK(zeros({2, 0}).full().numel() == 0);
  CHECK(ones({}, at::kInt).item<int>() == 1);
}

TEST_CASE("processes pack the shards that they own") {
  CHECK_NOTHROW(run_ranks(2, [](int rank, const auto& communicator) {
    const Mesh part = rank_mesh({{"a", 2}, {"b", 2}}, communicator);
    const at::Tensor full = small_integers({5, 3}, 1);
    for (const Layout& layout : all_layouts(part, 2)) {
      const DTensor x = pack(full, layout);
      const DTensor again = pack(unpack(x), layout, Shape{5, 3});
      expect(difference(again.full(), full).empty(), layout.describe());
    }
    const Mesh here = create_mesh({{"c", 3}});
    const DTensor mine = copy_to_mesh_value(pack(full, Layout(LayoutSpec{"a", "b"}, part)),
                                            Layout(LayoutSpec{"c", nullptr}, here));
    expect(wrong_shards(mine, full).empty(), "to a mesh of this process");
    const std::vector<at::Tensor> rows(2, at::full({1, 2}, rank));
    const at::Tensor both = pack(rows, Layout(LayoutSpec{"a", nullptr}, part)).full();
    expect(
        difference(both, at::full({2, 2}, 0).index_fill_(0, at::ones({1}, at::kLong), 1)).empty(),
        "rows of both ranks");
  }));
}

}  // namespace create_test
