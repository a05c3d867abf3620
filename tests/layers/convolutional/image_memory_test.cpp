#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>
#include <tessera/layers/layers.hpp>

#include "tests/support/catch.hpp"

namespace image_memory_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

/// Returns the peak bytes of each of `devices`, which shard an image's rows, in a forward and a
/// backward pass of three convolutions.
std::vector<int64_t> peaks(int64_t side, int64_t devices) {
  const BlockPolicyScope scope(BlockPolicy::per_device);
  const Mesh mesh = create_mesh({{"height", devices}}, virtual_cpus(devices));
  const Layout rows({"unsharded", "height", "unsharded", "unsharded"}, mesh);
  const DTensor image = pack(at::rand({1, side, side, 3}), rows);
  std::vector<LayerHandle> layers;
  for (int64_t filters : {8, 8, 8}) {
    layers.push_back(Conv2D(filters, 3, {.padding = "same", .activation = "relu"}));
  }
  const DeviceMemory memory;
  GradientTape tape;
  DTensor y = image;
  std::vector<DTensor> weights;
  for (const LayerHandle& layer : layers) {
    layer->build({y.shape()});
    layer->place_weights(LayoutMap(mesh));
    y = layer(y);
    for (const Variable& weight : layer->weights()) weights.push_back(weight.value());
  }
  const DTensor loss = ops::mean(ops::square(y));
  y = {};
  for (const DTensor& gradient : tape.gradient(loss, weights)) gradient.full();
  std::vector<int64_t> all;
  for (int64_t d = 0; d < devices; ++d) all.push_back(memory.peak(d));
  return all;
}

void check_share(int64_t side) {
  const int64_t alone = peaks(side, 1)[0];
  // At least a float of every feature and of its gradient.
  CHECK(alone > side * side * 4 * 20);
  for (int64_t shared : peaks(side, 4)) {
    CAPTURE(alone, shared);
    CHECK(shared > alone / 8);
    CHECK(shared <= alone / 3);
  }
}

}  // namespace

TEST_CASE("four devices that shard an image's rows need a third of one device's memory") {
  check_share(384);
}

TEST_CASE("four devices that shard a large image's rows need a third of one device's memory",
          "[nightly]") {
  check_share(4096);
}

}  // namespace image_memory_test
