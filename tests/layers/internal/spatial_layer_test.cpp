// Behaviour that all image layers share, tested on Conv2D, Conv2DTranspose, MaxPooling2D,
// UpSampling2D and ZeroPadding2D.
#include <ATen/ATen.h>

#include <tessera/framework/nn/initializers/initializers.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/layers.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace spatial_layer_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

template <class T>
concept TakesAnyName = requires {
  T({.nonsense = 2});
};
template <class T>
concept TakesAnyNameSecond = requires {
  T(4, {.filters = 3});
};

}  // namespace

TEST_CASE("a size is not constructible from arbitrary names") {
  // With g++ 12 and later this would compile if a size had a std::initializer_list constructor.
  STATIC_REQUIRE_FALSE(TakesAnyName<MaxPooling1D>);
  STATIC_REQUIRE_FALSE(TakesAnyName<AveragePooling2D>);
  STATIC_REQUIRE_FALSE(TakesAnyName<UpSampling2D>);
  STATIC_REQUIRE_FALSE(TakesAnyName<ZeroPadding2D>);
  STATIC_REQUIRE_FALSE(TakesAnyName<Cropping1D>);
  STATIC_REQUIRE_FALSE(TakesAnyName<Cropping3D>);
  STATIC_REQUIRE_FALSE(TakesAnyName<AdaptiveMaxPooling2D>);
  STATIC_REQUIRE_FALSE(TakesAnyNameSecond<Conv2D>);
  STATIC_REQUIRE_FALSE(TakesAnyNameSecond<Conv2DTranspose>);
  CHECK((AxisValues{3, 2}.values == std::vector<int64_t>{3, 2}));
  CHECK((AxisValues{3, 2, 1}.values == std::vector<int64_t>{3, 2, 1}));
}

TEST_CASE("channels_first computes what channels_last does") {
  const Mesh mesh = virtual_mesh({2});
  const at::Tensor x = random_values({{2, 6, 5, 4}}, 3);
  const Layout rows({"unsharded", "x", "unsharded", "unsharded"}, mesh);
  const Layout first({"unsharded", "unsharded", "x", "unsharded"}, mesh);
  const std::vector<std::function<LayerHandle(const char*)>> makers = {
      [](const char* format) -> LayerHandle {
        return Conv2D(4, 3,
                      {.strides = 2,
                       .padding = "same",
                       .data_format = format,
                       .groups = 2,
                       .kernel_initializer = GlorotUniform({.seed = 5}),
                       .dtype = "float64"});
      },
      [](const char* format) -> LayerHandle {
        return Conv2DTranspose(3, 3,
                               {.strides = 2,
                                .data_format = format,
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
}

}  // namespace spatial_layer_test
