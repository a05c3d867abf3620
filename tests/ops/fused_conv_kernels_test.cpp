#include <tessera/framework/ops/internal/fused_conv_kernels.hpp>

#include <cmath>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace fused_conv_kernels_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

at::Tensor random(const Shape& shape, uint64_t seed) {
  return random_values({shape}, seed).to(at::kFloat) * 4;
}

at::Tensor activated_by_aten(const at::Tensor& x, FusedActivation activation) {
  if (activation == FusedActivation::none) return x;
  return activation == FusedActivation::relu ? x.relu() : x.clamp(0, 6);
}

constexpr FusedActivation activations[] = {FusedActivation::none, FusedActivation::relu,
                                           FusedActivation::relu6};

}  // namespace

TEST_CASE("convolutions of single channels equal ATen's") {
  struct Case {
    int64_t rows, channels, height, width, window, stride, dilation, padding;
  };
  for (const Case& c : {Case{2, 67, 9, 7, 3, 1, 1, 1}, Case{1, 16, 8, 8, 3, 2, 1, 0},
                        Case{3, 5, 6, 11, 5, 2, 1, 2}, Case{1, 33, 9, 9, 3, 1, 2, 2},
                        Case{40, 130, 12, 12, 3, 1, 1, 1}, Case{2, 3, 2, 2, 5, 3, 1, 4}}) {
    const at::Tensor x = random({c.rows, c.channels, c.height, c.width}, 1)
                             .contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor kernel = random({c.window, c.window, c.channels}, 2) / 4;
    const at::Tensor bias = random({c.channels}, 3);
    Convolution::Local local;
    local.stride = {c.stride, 1};
    local.dilation = {c.dilation, c.dilation};
    local.padding = {c.padding, c.padding};
    const at::Tensor filters = kernel.permute({2, 0, 1}).unsqueeze(1);
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      const at::Tensor image = x.to(dtype);
      const at::Tensor plain =
          at::conv2d(image.to(at::kDouble), filters.to(at::kDouble), bias.to(at::kDouble),
                     local.stride, local.padding, local.dilation, c.channels);
      for (const FusedActivation activation : activations) {
        CAPTURE(c.channels, c.window, dtype, int(activation));
        REQUIRE(can_convolve_channels(c.window * c.window));
        const at::Tensor y = convolve_channels(image, kernel, bias, local, activation);
        CHECK(y.scalar_type() == dtype);
        CHECK(y.is_contiguous(at::MemoryFormat::ChannelsLast));
        const double unit = dtype == at::kFloat ? 1e-6 : 0.004;
        CHECK(difference(y.to(at::kDouble), activated_by_aten(plain, activation), unit, 1e-4) ==
              "");
      }
    }
  }
  CHECK_FALSE(can_convolve_channels(4));
}

TEST_CASE("a product is finished with bias, residual and activation as by ATen") {
  for (const int64_t rows : {1, 3, 700}) {
    const at::Tensor product = random({rows, 67}, 1), bias = random({67}, 2);
    const at::Tensor residual = random({rows, 67}, 3);
    for (const FusedActivation activation : activations) {
      for (const bool adds : {false, true}) {
        CAPTURE(rows, int(activation), adds);
        const at::Tensor y = product.clone();
        finish_product(y, bias, adds ? residual : at::Tensor(), activation);
        const at::Tensor sum = adds ? product + bias + residual : product + bias;
        CHECK(difference(y, activated_by_aten(sum, activation), 0, 0) == "");
      }
    }
  }
}

TEST_CASE("NaN passes a fused activation") {
  const at::Tensor y = at::full({1, 3}, NAN);
  finish_product(y, at::zeros({3}), {}, FusedActivation::relu6);
  CHECK(y.isnan().all().item<bool>());
}

}  // namespace fused_conv_kernels_test
