#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/initializers/initializers.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/layers.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace convolution_test {

using namespace tessera;
using namespace tessera::test;

namespace {

DTensor blank(const Shape& shape) {
  return pack(at::zeros(shape),
              Layout::replicated(default_mesh(), static_cast<int64_t>(shape.size())));
}

/// The one line of an error that `run` ends in.
template <class Run>
std::string error(const Run& run) {
  try {
    run();
  } catch (const Error& thrown) {
    const std::string text = thrown.what();
    CHECK(text.find('\n') == std::string::npos);
    return text;
  }
  return "none";
}

template <class Run>
std::string error_of_call(const Run& make, const Shape& shape) {
  return error([&] { make()(blank(shape)); });
}

}  // namespace

TEST_CASE("arguments of convolutions that cannot be are told by layer, argument and value") {
  const auto made = [](const auto& make) { return error([&] { make(); }); };
  CHECK(made([] { Conv2D(0, 3, {.name = "first"}); }) ==
        "[Conv2D first] filters is at least 1. Received: 0. To fix: give a whole number from 1 "
        "on.");
  CHECK(made([] { Conv2D(4, {3, 3, 3}); }).find(
            "kernel_size is one whole number of at least 1, or 2 of them. Received: (3, 3, 3)") !=
        std::string::npos);
  CHECK(made([] { Conv2D(4, 3, {.strides = 0}); }).find("strides is one whole number") !=
        std::string::npos);
  CHECK(made([] { Conv1D(4, 3, {.dilation_rate = -2}); }).find(
            "dilation_rate is one whole number of at least 1") != std::string::npos);
  CHECK(made([] { Conv2D(4, 3, {.padding = "cuasal"}); }).find(
            "padding is one of \"valid\", \"same\". Received: \"cuasal\"") != std::string::npos);
  CHECK(made([] { Conv2D(4, 3, {.data_format = "nchw"}); }).find("data_format") !=
        std::string::npos);
  CHECK(made([] { Conv2D(4, 3, {.groups = 3}); }).find("filters is a multiple of groups") !=
        std::string::npos);
  CHECK(made([] { Conv2D(4, 3, {.activation = "rleu"}); }).find("write \"relu\"") !=
        std::string::npos);
  CHECK(made([] { DepthwiseConv2D(3, {.depth_multiplier = 0}); }).find("depth_multiplier") !=
        std::string::npos);
  CHECK(made([] { Conv2DTranspose(4, 3, {.strides = 2, .output_padding = 2}); }).find(
            "output_padding is below the stride") != std::string::npos);
  CHECK(made([] { MaxPooling2D(0); }).find("pool_size") != std::string::npos);
  CHECK(made([] { UpSampling2D(2, {.interpolation = "cubic"}); }).find("\"bicubic\"") !=
        std::string::npos);
  CHECK(made([] { UpSampling1D(2, {.interpolation = "bilinear"}); }).find("interpolation") !=
        std::string::npos);
  CHECK(made([] { ZeroPadding2D(-1); }).find("padding") != std::string::npos);
  CHECK(made([] { Cropping2D({{1, 1}, {0, 0}, {2, 1}}); }).find("cropping") != std::string::npos);
}

TEST_CASE("inputs that convolutions cannot take are told by layer and shape") {
  const auto conv = [] { return Conv2D(4, 5, {.name = "c"}); };
  CHECK(error_of_call(conv, {2, 4, 6, 3}).find(
            "a window of 5 fits into spatial axis 0. Received: 4 elements in (2, 4, 6, 3)") !=
        std::string::npos);
  CHECK(error_of_call(conv, {2, 4, 6}).find(
            "[Conv2D c] the input is (batch, height, width, channels). Received: (2, 4, 6)") !=
        std::string::npos);
  CHECK(error_of_call([] { return Conv1D(4, 2, {.groups = 2}); }, {1, 4, 3}).find(
            "multiple of groups 2") != std::string::npos);
  CHECK(error_of_call([] { return MaxPooling2D(4); }, {1, 3, 8, 1}).find("a window of 4") !=
        std::string::npos);
  CHECK(error_of_call([] { return Cropping1D(2); }, {1, 4, 1}).find("cropping leaves something") !=
        std::string::npos);
  const Conv2D built(4, 3, {.name = "c"});
  built(blank({1, 5, 5, 2}));
  CHECK(error([&] { built(blank({1, 5, 5, 3})); }).find("has 2 channels, as when built") !=
        std::string::npos);
}

TEST_CASE("channels_first computes what channels_last does") {
  const Mesh mesh = virtual_mesh({2});
  const at::Tensor x = random_values({{2, 6, 5, 4}}, 3);
  const Layout rows({"unsharded", "x", "unsharded", "unsharded"}, mesh);
  const Layout first({"unsharded", "unsharded", "x", "unsharded"}, mesh);
  const std::vector<std::function<LayerHandle(const char*)>> makers = {
      [](const char* format) -> LayerHandle {
        return Conv2D(4, 3, {.strides = 2, .padding = "same", .data_format = format, .groups = 2,
                             .kernel_initializer = GlorotUniform({.seed = 5}),
                             .dtype = "float64"});
      },
      [](const char* format) -> LayerHandle {
        return Conv2DTranspose(3, 3, {.strides = 2, .data_format = format,
                                      .kernel_initializer = GlorotUniform({.seed = 5}),
                                      .dtype = "float64"});
      },
      [](const char* format) -> LayerHandle {
        return MaxPooling2D(2, {.data_format = format, .dtype = "float64"});
      },
      [](const char* format) -> LayerHandle {
        return UpSampling2D({1, 2}, {.data_format = format, .dtype = "float64"});
      },
      [](const char* format) -> LayerHandle {
        return ZeroPadding2D({1, 2}, {.data_format = format, .dtype = "float64"});
      }};
  for (const auto& make : makers) {
    const LayerHandle last = make("channels_last"), turned = make("channels_first");
    CAPTURE(last->class_name());
    last->build({x.sizes().vec()});
    turned->build({{2, 4, 6, 5}});
    for (const LayerHandle& layer : {last, turned}) layer->place_weights(LayoutMap(mesh));
    const at::Tensor expected = last(pack(x, rows)).full().permute({0, 3, 1, 2});
    const at::Tensor y = turned(pack(x.permute({0, 3, 1, 2}).contiguous(), first)).full();
    CHECK(difference(y, expected, 1e-12) == "");
    CHECK(turned->config().at("data_format") == "channels_first");
    CHECK(turned->output_shape({{-1, 4, 6, 5}})[1] == y.size(1));
    CHECK(turned->output_shape({{-1, 4, -1, 5}})[2] == -1);
  }
  const GlobalAveragePooling2D pooled({.data_format = "channels_first", .dtype = "float64"});
  CHECK(difference(pooled(pack(x.permute({0, 3, 1, 2}).contiguous(), first)).full(),
                   x.mean({1, 2}), 1e-12) == "");
}

}  // namespace convolution_test
