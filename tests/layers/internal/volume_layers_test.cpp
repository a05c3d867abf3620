// Layers for volumes under layouts that shard batch, channels, depth and height.
#include <ATen/ATen.h>

#include <algorithm>
#include <functional>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/nn/initializers/initializers.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/layers.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace volume_layers_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

using Make = std::function<LayerHandle(const char* data_format)>;

std::vector<Make> convolutions() {
  return {[](const char* format) -> LayerHandle {
            return Conv3D(4, {2, 3, 3},
                          {.strides = {1, 2, 1},
                           .padding = "same",
                           .data_format = format,
                           .kernel_initializer = GlorotUniform({.seed = 5})});
          },
          [](const char* format) -> LayerHandle {
            return Conv3DTranspose(3, {3, 2, 3},
                                   {.strides = {2, 2, 1},
                                    .padding = "same",
                                    .data_format = format,
                                    .kernel_initializer = GlorotUniform({.seed = 5})});
          },
          [](const char* format) -> LayerHandle {
            return Conv3DTranspose(
                2, {2, 3, 1},
                {.data_format = format, .kernel_initializer = GlorotUniform({.seed = 6})});
          }};
}

std::vector<Make> poolings() {
  return {[](const char* format) -> LayerHandle {
            return MaxPooling3D(3, {.strides = 2, .padding = "same", .data_format = format});
          },
          [](const char* format) -> LayerHandle {
            return MaxPooling3D({2, 1, 2}, {.data_format = format});
          },
          [](const char* format) -> LayerHandle {
            return AveragePooling3D({3, 2, 2},
                                    {.strides = 1, .padding = "same", .data_format = format});
          },
          [](const char* format) -> LayerHandle {
            return GlobalMaxPooling3D({.data_format = format, .keepdims = true});
          },
          [](const char* format) -> LayerHandle {
            return GlobalAveragePooling3D({.data_format = format});
          },
          [](const char* format) -> LayerHandle {
            return AdaptiveMaxPooling3D({3, 4, 1}, {.data_format = format});
          },
          [](const char* format) -> LayerHandle {
            return AdaptiveAveragePooling3D({2, 3, 2}, {.data_format = format});
          }};
}

std::vector<Make> sizes() {
  return {[](const char* format) -> LayerHandle {
            return UpSampling3D({2, 3, 1}, {.data_format = format});
          },
          [](const char* format) -> LayerHandle {
            return ZeroPadding3D({{1, 0}, {2, 1}, {0, 3}}, {.data_format = format});
          },
          [](const char* format) -> LayerHandle {
            return Cropping3D({{1, 0}, {2, 1}, {0, 1}}, {.data_format = format});
          }};
}

/// Returns the output, and the gradients of the input and the weights.
std::vector<at::Tensor> results(const LayerHandle& layer, const at::Tensor& x,
                                const Layout& layout) {
  layer->build({x.sizes().vec()});
  layer->place_weights(LayoutMap(layout.mesh()));
  const DTensor in = pack(x, layout);
  std::vector<DTensor> sources = {in};
  for (const Variable& weight : layer->trainable_weights()) sources.push_back(weight.value());
  GradientTape tape;
  tape.watch(in);
  const DTensor y = layer(in);
  const DTensor dy = pack(random_values({y.shape()}, 7), fetch_layout(y));
  std::vector<at::Tensor> all = {y.full()};
  for (const DTensor& gradient : tape.gradient(y, sources, {.output_gradient = dy})) {
    all.push_back(gradient.full());
  }
  CHECK(layer->output_shape({x.sizes().vec()}) == y.shape());
  return all;
}

/// Checks that every layer gives what one device gives, in both data formats.
void check_layers_for_volumes(const std::vector<Make>& makers) {
  const DTypeScope wide("float64");
  const Mesh one = create_mesh({{"depth", 1}, {"height", 1}}, virtual_cpus(1));
  const Mesh four = create_mesh({{"depth", 2}, {"height", 2}}, virtual_cpus(4));
  const at::Tensor last = random_values({.shape = {2, 5, 6, 3, 4}, .distinct = true}, 3);
  // Axes: batch, depth, height, width and channels.
  const std::vector<std::vector<AxisSpec>> layouts = {
      {nullptr, "depth", "height", nullptr, nullptr},
      {"depth", nullptr, "height", nullptr, nullptr},
      {"height", nullptr, nullptr, nullptr, "depth"},
      {nullptr, "depth", nullptr, nullptr, "height"},
      {nullptr, "height", nullptr, "depth", nullptr},
      {nullptr, nullptr, nullptr, nullptr, nullptr}};
  for (const char* format : {"channels_last", "channels_first"}) {
    const bool first = format == std::string("channels_first");
    const at::Tensor x = first ? last.movedim(-1, 1).contiguous() : last;
    for (const Make& make : makers) {
      const std::vector<at::Tensor> expected =
          results(make(format), x, Layout::replicated(one, x.dim()));
      for (std::vector<AxisSpec> axes : layouts) {
        if (first) std::rotate(axes.begin() + 1, axes.end() - 1, axes.end());
        const Layout layout(axes, four);
        const LayerHandle layer = make(format);
        CAPTURE(layer->class_name(), format, short_name({layout}));
        CHECK(difference_in_float64(results(layer, x, layout), expected, 1e-12) == "");
      }
    }
  }
}

}  // namespace

TEST_CASE("convolutions of sharded volumes give what one device gives") {
  check_layers_for_volumes(convolutions());
}

TEST_CASE("poolings of sharded volumes give what one device gives") {
  check_layers_for_volumes(poolings());
}

TEST_CASE("sharded volumes are resized, padded and cropped as on one device") {
  check_layers_for_volumes(sizes());
}

}  // namespace volume_layers_test
