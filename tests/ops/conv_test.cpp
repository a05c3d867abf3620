#include <tessera/framework/ops/conv.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/memory_order.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace conv_test {

using namespace tessera;
using namespace tessera::detail;
using ops::WindowAxis;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

/// Returns the rows that the busiest device receives, for each exchange that `run` causes. Checks
/// that it communicates nothing else but all-reduces.
template <class Run>
std::vector<double> exchanged_rows(int64_t row_bytes, const Run& run) {
  CommLog log;
  {
    const CommLogScope scope(log);
    run();
  }
  std::vector<double> rows;
  for (const CommEntry& entry : log.entries()) {
    CAPTURE(log.to_string());
    if (entry.op == CommOp::all_reduce) continue;
    REQUIRE(entry.op == CommOp::exchange);
    rows.push_back(entry.received / double(row_bytes));
  }
  return rows;
}

DTensor random(const Shape& shape, const Layout& layout, uint64_t seed) {
  return pack(random_values({shape}, seed), layout);
}

}  // namespace

TEST_CASE("a spatial convolution exchanges only the halo rows of its windows") {
  const Mesh mesh = virtual_mesh({4});
  const Layout cut({"unsharded", "x", "unsharded", "unsharded"}, mesh);
  const int64_t row = 2 * 6 * 3 * 8;
  const DTensor x = random({2, 8, 6, 3}, cut, 1);
  const DTensor kernel = random({3, 3, 3, 4}, Layout::replicated(mesh, 4), 2);

  SECTION("one row of each neighbour at stride 1") {
    const std::vector<WindowAxis> same = {{3, 1, 1, 1, 1}, {3, 1, 1, 1, 1}};
    DTensor y;
    CHECK(exchanged_rows(row, [&] { y = ops::conv(x, kernel, same); }) == std::vector<double>{2});
    // The gradient of x reads dy, of 4 channels, that of the kernel x again.
    const int64_t dy_row = 2 * 6 * 4 * 8;
    CHECK(exchanged_rows(dy_row, [&] {
            ops::conv_transpose(y, kernel, same, {8, 6});
          }) == std::vector<double>{2});
    CHECK(exchanged_rows(row, [&] {
            ops::conv_kernel_grad(x, y, {{3, 1, 1, 1, 1}, {3, 1, 1, 1, 1}});
          }) == std::vector<double>{2});
  }
  SECTION("none where windows are within the shards") {
    const std::vector<WindowAxis> apart = {{2, 2}, {2, 2}};
    const DTensor two = random({2, 2, 3, 4}, Layout::replicated(mesh, 4), 3);
    CHECK(exchanged_rows(row, [&] { ops::conv(x, two, apart); }).empty());
    CHECK(exchanged_rows(row, [&] { ops::max_pool(x, apart); }).empty());
    CHECK(exchanged_rows(row, [&] { ops::avg_pool(x, apart); }).empty());
  }
  SECTION("the rows that a valid convolution shifts") {
    // 6 output rows on 4 devices: 1, 2, 1, 2. The second's windows read rows 1 to 4, of which it
    // holds two.
    CHECK(exchanged_rows(row, [&] { ops::conv(x, kernel, {{3}, {3}}); }) == std::vector<double>{2});
  }
}

TEST_CASE("convolutions have the same bits for kernels in any memory order") {
  // Images of one, two and three spatial axes.
  for (const int64_t spatial : {1, 2, 3}) {
    CAPTURE(spatial);
    Shape image = {3}, window(size_t(spatial), 3);
    image.insert(image.end(), size_t(spatial), 10);
    image.push_back(12);
    window.insert(window.end(), {12, 8});
    const at::Tensor x = at::randn(image), rows = at::randn(window);
    const at::Tensor ordered = copy_in_order(rows, ops::conv_kernel_order(spatial));
    REQUIRE_FALSE(is_in_order(rows, ops::conv_kernel_order(spatial)));
    const std::vector<WindowAxis> axes(size_t(spatial), WindowAxis{.size = 3});
    const auto results = [&](const at::Tensor& weights) {
      const DTensor image_value = pack(x), kernel = pack(weights);
      GradientTape tape;
      tape.watch(image_value);
      tape.watch(kernel);
      const DTensor y = ops::conv(image_value, kernel, axes);
      std::vector<at::Tensor> all = {y.full()};
      for (const DTensor& gradient :
           tape.gradient(ops::sum(ops::square(y)), {image_value, kernel})) {
        all.push_back(gradient.full());
      }
      return all;
    };
    REQUIRE(is_in_order(pack(ordered).blocks()[0], ops::conv_kernel_order(spatial)));
    const std::vector<at::Tensor> expected = results(ordered), actual = results(rows);
    for (size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(i);
      CHECK(at::equal(actual[i], expected[i]));
    }
  }
}

TEST_CASE("convolutions have second derivatives") {
  const DTensor x = random({2, 5, 4, 2}, Layout::replicated(virtual_mesh({1}), 4), 1);
  const DTensor kernel = random({2, 3, 2, 3}, Layout::replicated(x.mesh(), 4), 2);
  const std::vector<WindowAxis> axes = {{2, 2, 1, 1, 0}, {3, 1, 1, 1, 1}};
  // d/dx of |d/dk sum(conv(x, k)^2)|^2 against a difference quotient along a direction.
  const auto norm = [&](const DTensor& at, bool want, DTensor& gradient) {
    GradientTape outer;
    outer.watch(at);
    DTensor inner;
    {
      GradientTape tape;
      tape.watch(kernel);
      const DTensor loss = ops::sum(ops::square(ops::conv(at, kernel, axes)));
      inner = tape.gradient(loss, kernel);
    }
    const DTensor value = ops::sum(ops::square(inner));
    if (want) gradient = outer.gradient(value, at);
    return value.full().item<double>();
  };
  DTensor gradient, unused;
  norm(x, true, gradient);
  const DTensor direction = random(x.shape(), x.layout(), 5);
  const double step = 1e-6;
  const double slope =
      (norm(x + direction * step, false, unused) - norm(x - direction * step, false, unused)) /
      (2 * step);
  const double expected = ops::sum(gradient * direction).full().item<double>();
  CHECK(slope == Approx(expected).epsilon(1e-6));
}

TEST_CASE("an invalid convolution is refused") {
  const Mesh mesh = virtual_mesh({1});
  const auto zeros = [&](const Shape& shape) {
    return pack(at::zeros(shape), Layout::replicated(mesh, static_cast<int64_t>(shape.size())));
  };
  const DTensor x = zeros({1, 3, 3, 2});
  CHECK_THROWS_WITH(ops::conv(x, zeros({4, 1, 2, 1}), {{}, {}}),
                    Contains("a window of 4 fits into spatial axis 0") && Contains("3 elements"));
  CHECK_THROWS_WITH(ops::conv(x, zeros({2, 2, 3, 1}), {{}, {}}),
                    Contains("channels and groups") && Contains("(2, 2, 3, 1)"));
  CHECK_THROWS_WITH(ops::conv(x, zeros({2, 2, 2}), {{}, {}}), Contains("kernel"));
  CHECK_THROWS_WITH(ops::conv(x, zeros({2, 2, 1}), {{}}), Contains("(1, 3, 3, 2)"));
  CHECK_THROWS_WITH(ops::conv(x, zeros({2, 2, 2, 1}), {{1, -1}, {}}), Contains("strides"));
  CHECK_THROWS_WITH(ops::conv(x, zeros({2, 2, 2, 1}), {{1, 1, 0}, {}}), Contains("dilations"));
  CHECK_THROWS_WITH(ops::max_pool(x, {{2, 1, 1, -1}, {2}}), Contains("padding is at least 0"));
  CHECK_THROWS_WITH(ops::conv_transpose(x, zeros({2, 2, 2, 2}), {{}, {}}, {9, 4}),
                    Contains("outputs"));
  CHECK_THROWS_WITH(ops::resample(x, 1, 0, ops::Interpolation::bilinear), Contains("resample"));
}

TEST_CASE("strided transposed convolutions of single channels in bfloat16 round once") {
  const Layout whole = Layout::replicated(virtual_mesh({1}), 5);
  const std::vector<WindowAxis> axes = {{3, 2, 1, 1, 1}, {3, 2, 1, 1, 1}};
  for (const at::ScalarType half : {at::kBFloat16, at::kHalf}) {
    const at::Tensor y = random_values({{2, 4, 4, 6, 1}}, 1).to(half);
    const at::Tensor kernel = random_values({{3, 3, 1, 6, 1}}, 2).to(half);
    const auto run = [&](at::ScalarType dtype) {
      return ops::conv_transpose(pack(y.to(dtype), whole), pack(kernel.to(dtype), whole), axes,
                                 {7, 7})
          .full();
    };
    CHECK(difference(run(half), run(at::kFloat).to(half)) == "");
  }
}

}  // namespace conv_test
