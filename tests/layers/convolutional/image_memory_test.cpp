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

/// The most bytes that one of `devices`, which share an image's rows, holds in a forward and a
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
  const int64_t whole = peaks(side, 1)[0];
  // A float of every feature and of its gradient is the least.
  CHECK(whole > side * side * 4 * 20);
  for (int64_t part : peaks(side, 4)) {
    CAPTURE(whole, part);
    CHECK(part > whole / 8);
    CHECK(part <= whole / 3);
  }
}

}  // namespace

TEST_CASE("four devices that share an image's rows need a third of one's memory each") {
  check_share(384);
}

TEST_CASE("four devices that share a large image's rows need a third of one's memory each",
          "[nightly]") {
  check_share(4096);
}

}  // namespace image_memory_test
