#include <optional>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/device_memory.hpp>

#include "tests/support/catch.hpp"

namespace ring_memory_test {

using namespace tessera;

namespace {

constexpr int64_t width = 64, heads = 4;

/// A causal transformer block, after its norms.
DTensor block(const DTensor& x, const std::vector<DTensor>& w) {
  const DTensor seen = ops::layer_norm(x, w[0], w[1], {-1}, 1e-6);
  const auto split = [&](const DTensor& kernel) {
    return ops::reshape(ops::matmul(seen, kernel), {1, x.size(1), heads, width / heads});
  };
  const DTensor attended =
      ops::attention(split(w[2]), split(w[3]), split(w[4]), {}, {.causal = true});
  const DTensor middle = x + ops::matmul(ops::reshape(attended, x.shape()), w[5]);
  const DTensor norm = ops::layer_norm(middle, w[0], w[1], {-1}, 1e-6);
  return middle + ops::matmul(ops::relu(ops::matmul(norm, w[6])), w[7]);
}

/// Returns the peak bytes of a device for the gradients of two such blocks.
double peak(int64_t steps, int64_t devices) {
  const Mesh mesh = create_mesh({{"steps", devices}}, virtual_cpus(devices));
  std::optional<DeviceMemory> memory(std::in_place);
  const auto packed = [&](const at::Tensor& full, const LayoutSpec& spec) {
    return pack(full, Layout(spec, mesh));
  };
  const DTensor x = packed(at::randn({1, steps, width}), {unsharded, "steps", unsharded});
  std::vector<DTensor> weights = {packed(at::ones({width}), {unsharded}),
                                  packed(at::zeros({width}), {unsharded})};
  for (const auto& [in, out] : std::vector<std::pair<int64_t, int64_t>>{{width, width},
                                                                        {width, width},
                                                                        {width, width},
                                                                        {width, width},
                                                                        {width, 4 * width},
                                                                        {4 * width, width}}) {
    weights.push_back(packed(at::randn({in, out}) / 8, {unsharded, unsharded}));
  }
  // The memory before a step is the same for both.
  memory.reset();
  memory.emplace();
  GradientTape tape;
  for (const DTensor& weight : weights) tape.watch(weight);
  const DTensor y = block(block(x, weights), weights);
  const auto gradients = tape.gradient(ops::sum(y * y), weights);
  REQUIRE(gradients[2].defined());
  return double(memory->peak(0));
}

}  // namespace

TEST_CASE("a ring of 8 devices handles 8 times as many steps in the memory of one") {
  const double one = peak(1024, 1), ring = peak(8192, 8);
  CAPTURE(one, ring);
  CHECK(ring < 1.15 * one);
  CHECK(ring > 0.9 * one);
}

}  // namespace ring_memory_test
