#include <tessera/layers/pooling/adaptive_pooling.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace adaptive_pooling_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::error_line;

TEST_CASE("an adaptive pooling has its size for inputs of any size") {
  const LayerHandle layer = AdaptiveAveragePooling2D({3, 2});
  CHECK(layer->output_shape({{-1, -1, 9, 4}}) == Shape{-1, 3, 2, 4});
  CHECK(layer->output_shape({{5, 2, 1, 4}}) == Shape{5, 3, 2, 4});
  CHECK(layer->config().at("output_size") == Json({3, 2}));
  CHECK(LayerHandle(AdaptiveMaxPooling3D(2, {.data_format = "channels_first"}))
            ->output_shape({{1, 4, 5, 6, 7}}) == Shape{1, 4, 2, 2, 2});
}

TEST_CASE("an adaptive pooling finds the channels by data_format") {
  const Layout columns({"unsharded", "unsharded", "x", "unsharded"}, test::virtual_mesh({2}));
  const at::Tensor x = test::random_values({{2, 4, 6, 5}}, 3);
  const AdaptiveAveragePooling2D mean({4, 3},
                                      {.data_format = "channels_first", .dtype = "float64"});
  CHECK(test::difference(mean(pack(x, columns)).full(), at::adaptive_avg_pool2d(x, {4, 3}),
                         1e-12) == "");
  const AdaptiveMaxPooling2D largest(3, {.data_format = "channels_first", .dtype = "float64"});
  CHECK(test::difference(largest(pack(x, columns)).full(),
                         std::get<0>(at::adaptive_max_pool2d(x, {3, 3}))) == "");
}

TEST_CASE("adaptive poolings refuse sizes that are invalid") {
  CHECK_THAT(error_line([] { AdaptiveMaxPooling1D(0); }),
             Contains("output_size is one integer of at least 1"));
  CHECK_THAT(error_line([] { AdaptiveAveragePooling3D({2, 3}); }), Contains("3 of them"));
}

}  // namespace adaptive_pooling_test
