#include <tessera/layers/pooling/global_pooling.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace global_pooling_test {

using namespace tessera;
using namespace tessera::detail;

TEST_CASE("a global pooling finds the channels by data_format") {
  const Layout columns({"unsharded", "unsharded", "x", "unsharded"}, test::virtual_mesh({2}));
  const at::Tensor x = test::random_values({{2, 4, 6, 5}}, 3);
  const GlobalAveragePooling2D mean({.data_format = "channels_first", .dtype = "float64"});
  CHECK(test::difference(mean(pack(x, columns)).full(), x.mean({2, 3}), 1e-12) == "");
  const GlobalMaxPooling2D largest(
      {.data_format = "channels_first", .keepdims = true, .dtype = "float64"});
  CHECK(test::difference(largest(pack(x, columns)).full(), x.amax({2, 3}, true)) == "");
  CHECK(largest->output_shape({{-1, 4, 6, 5}}) == Shape{-1, 4, 1, 1});
}

TEST_CASE("a global pooling of volumes reduces depth, height and width") {
  const Layout slices({"unsharded", "unsharded", "x", "y", "unsharded"},
                      test::virtual_mesh({2, 2}));
  const at::Tensor x = test::random_values({{2, 4, 6, 5, 3}}, 3);
  const GlobalAveragePooling3D mean({.data_format = "channels_first", .dtype = "float64"});
  CHECK(test::difference(mean(pack(x, slices)).full(), x.mean({2, 3, 4}), 1e-12) == "");
  const GlobalMaxPooling3D largest({.keepdims = true, .dtype = "float64"});
  CHECK(test::difference(largest(pack(x, slices)).full(), x.amax({1, 2, 3}, true)) == "");
  CHECK(mean->output_shape({{-1, 4, -1, 5, 3}}) == Shape{-1, 4});
}

}  // namespace global_pooling_test
