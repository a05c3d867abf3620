#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/optimizer/internal/block_sums.hpp>
#include <tessera/framework/optimizer/internal/gradient_clipping.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <set>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/thread_communicator.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace gradient_clipping_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

/// A value in every layout of ranks 1 to 3, with extents that shard unevenly, and their sums of
/// squares.
struct Values {
  std::vector<DTensor> values;
  std::vector<double> squares;
  size_t sets = 0;  ///< the number of sets of mesh dimensions that shard a value
};

Values every_layout(const Mesh& mesh) {
  Values made;
  std::set<DimMask> sets;
  const std::vector<Shape> shapes = {{7}, {5, 3}, {3, 1, 4}};
  for (const Shape& shape : shapes) {
    for (const Layout& layout : all_layouts(mesh, static_cast<int64_t>(shape.size()))) {
      const TestValue sample = test_value(shape, layout, static_cast<int64_t>(made.values.size()));
      made.values.push_back(sample.value);
      made.squares.push_back(at::sum(at::square(sample.full)).item<double>());
      if (layout.sharded_dims()) sets.insert(layout.sharded_dims());
    }
  }
  made.sets = sets.size();
  return made;
}

/// Returns squared_norms() in the order of the values.
std::vector<double> squares_of(const std::vector<DTensor>& values) {
  std::vector<double> squares(values.size());
  for (const ValueSet& set : squared_norms(values)) {
    if (set.numbers.blocks().empty()) continue;
    for (size_t i = 0; i < set.members.size(); ++i) {
      squares[set.members[i]] = set.numbers.blocks()[0][static_cast<int64_t>(i)].item<double>();
    }
  }
  return squares;
}

std::vector<DTensor> two(double a, double b) {
  const Layout layout = Layout::replicated(create_mesh({{"x", 1}}), 1);
  return {pack(at::full({4}, a), layout), pack(at::full({1}, b), layout)};
}

}  // namespace

TEST_CASE("norms are global, with one all-reduce for each set of dimensions") {
  for (BlockPolicy policy : policies) {
    const BlockPolicyScope scope(policy);
    for (const std::vector<int64_t>& sizes :
         std::vector<std::vector<int64_t>>{{1}, {3}, {8}, {2, 2}, {4, 3}, {2, 2, 2}}) {
      const Mesh mesh = virtual_mesh(sizes);
      INFO(short_name(mesh) << " " << test::to_string(policy));
      const Values sample = every_layout(mesh);
      CommLog log;
      const CommLogScope logging(log);
      CHECK(squares_of(sample.values) == sample.squares);
      CHECK(log.entries().size() == (mesh.size() == 1 ? 0 : sample.sets));
      CHECK(log.count(CommOp::all_reduce) == static_cast<int64_t>(log.entries().size()));
    }
  }
}

TEST_CASE("norms are correct for values made under another block policy") {
  const Mesh mesh = virtual_mesh({4, 2});
  for (BlockPolicy made : policies) {
    for (BlockPolicy now : policies) {
      INFO(test::to_string(made) << " " << test::to_string(now));
      Values sample;
      {
        const BlockPolicyScope scope(made);
        sample = every_layout(mesh);
      }
      const BlockPolicyScope scope(now);
      CHECK(squares_of(sample.values) == sample.squares);
    }
  }
}

TEST_CASE("norms are global in two processes") {
  for (const MeshDims& dims :
       {MeshDims{{"x", 4}}, {{"x", 2}, {"y", 2}}, {{"x", 4}, {"y", 3}}, {{"x", 1}, {"y", 4}}}) {
    CAPTURE(to_string(dims));
    const auto rank_run = [&](int, const std::shared_ptr<Communicator>& communicator) {
      const Values sample = every_layout(rank_mesh(dims, communicator));
      expect(squares_of(sample.values) == sample.squares, "other norms");
    };
    CHECK_NOTHROW(run_ranks(2, rank_run));
  }
}

TEST_CASE("values of several meshes and dtypes have their norms") {
  const Mesh a = virtual_mesh({2}), b = virtual_mesh({3});
  const at::Tensor large = at::full({12}, 300.0, at::kHalf);
  const std::vector<DTensor> values = {
      pack(large, Layout::batch_sharded(a, "x", 1)),
      pack(large.to(at::kDouble), Layout::batch_sharded(b, "x", 1)),
      pack(large.to(at::kBFloat16), Layout::replicated(b, 1))};
  const double squares = 12 * 300.0 * 300;
  CHECK(squares_of(values) == std::vector<double>{squares, squares, squares});
}

TEST_CASE("a dimension of one device makes no set of its own") {
  const Mesh mesh = virtual_mesh({2, 1});
  const at::Tensor full = at::ones({4, 4});
  CommLog log;
  const CommLogScope logging(log);
  squared_norms({pack(full, Layout({"x", unsharded}, mesh)), pack(full, Layout({"x", "y"}, mesh))});
  CHECK(log.entries().size() == 1);
}

TEST_CASE("gradients within the bound are passed on unchanged") {
  const std::vector<DTensor> gradients = two(0.5, -1);
  for (const BaseOptions& options :
       {BaseOptions{}, {.clipnorm = 1}, {.global_clipnorm = std::sqrt(2)}, {.clipnorm = 0}}) {
    const std::vector<DTensor> clipped = clip_gradients(gradients, options);
    for (size_t i = 0; i < 2; ++i) {
      CHECK(clipped[i].blocks()[0].data_ptr() == gradients[i].blocks()[0].data_ptr());
    }
  }
}

TEST_CASE("clipping bounds each norm, the norm of all, or each element") {
  const std::vector<DTensor> gradients = two(3, -8);  // norms 6, 8 and 10
  const auto check = [&](const BaseOptions& options, double a, double b) {
    const std::vector<DTensor> clipped = clip_gradients(gradients, options);
    CHECK(difference(clipped[0].full(), at::full({4}, a), 1e-6) == "");
    CHECK(difference(clipped[1].full(), at::full({1}, b), 1e-6) == "");
    CHECK(difference(gradients[0].full(), at::full({4}, 3.0)) == "");
  };
  check({.clipnorm = 6}, 3, -6);
  check({.clipnorm = 2}, 1, -2);
  check({.global_clipnorm = 5}, 1.5, -4);
  check({.clipvalue = 4}, 3, -4);
}

TEST_CASE("a non-finite norm spreads as in Keras") {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<DTensor> gradients = two(1, infinity);
  const std::vector<DTensor> global = clip_gradients(gradients, {.global_clipnorm = 1});
  CHECK(std::isnan(global[0].full()[0].item<float>()));
  CHECK(std::isnan(global[1].full()[0].item<float>()));
  const std::vector<DTensor> single = clip_gradients(gradients, {.clipnorm = 1});
  CHECK(single[0].full()[0].item<float>() == 0.5f);
  CHECK(std::isnan(single[1].full()[0].item<float>()));
}

}  // namespace gradient_clipping_test
