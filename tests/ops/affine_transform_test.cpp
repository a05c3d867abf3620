#include <tessera/framework/ops/affine_transform.hpp>

#include <map>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/keras_layers.hpp"

namespace affine_transform_test {

using namespace tessera;
using namespace tessera::test;
using Catch::Matchers::Contains;
using ops::FillMode;

TEST_CASE("affine transforms match Keras in all modes, near and far outside the image") {
  const std::map<std::string, FillMode> modes = {{"constant", FillMode::constant},
                                                 {"nearest", FillMode::nearest},
                                                 {"wrap", FillMode::wrap},
                                                 {"mirror", FillMode::mirror},
                                                 {"reflect", FillMode::reflect}};
  const Json& cases = golden_part("keras_augmentation.json", "transforms");
  REQUIRE(cases.size() == 10);
  for (const Json& golden : cases) {
    CAPTURE(golden.at("mode").dump(), golden.at("nearest").dump());
    const DTensor y = ops::affine_transform(on_one_device(input_tensor(golden.at("images"))),
                                            on_one_device(input_tensor(golden.at("transforms"))),
                                            {.nearest = golden.at("nearest").get<bool>(),
                                             .fill_mode = modes.at(golden.at("mode")),
                                             .fill_value = 0.75});
    CHECK(unlike(y.full(), golden.at("output")) == "");
  }
}

TEST_CASE("an affine transform may produce images of another size") {
  const DTensor x = on_one_device(at::arange(12, at::kFloat).view({1, 3, 4, 1}));
  const DTensor from = on_one_device(at::tensor({1., 0., 2., 0., 1., 1., 0., 0.}).view({1, 8}));
  const at::Tensor y = ops::affine_transform(x, from, {.nearest = true, .size = {{2, 2}}}).full();
  CHECK(y.equal(at::tensor({6.F, 7.F, 10.F, 11.F}).view({1, 2, 2, 1})));
}

TEST_CASE("inputs that are no batch of images with one transform each are refused") {
  const DTensor x = on_one_device(at::ones({2, 3, 4, 1}));
  const DTensor rows = on_one_device(at::ones({2, 8}));
  CHECK_THROWS_WITH(ops::affine_transform(x, on_one_device(at::ones({3, 8}))),
                    Contains("[affine_transform] images must be (n, h, w, c)") &&
                        Contains("(2, 3, 4, 1) and (3, 8)"));
  CHECK_THROWS_WITH(ops::affine_transform(on_one_device(at::ones({2, 0, 4, 1})), rows),
                    Contains("(2, 0, 4, 1)"));
  CHECK_THROWS_WITH(ops::affine_transform(x, rows, {.size = {{0, 2}}}), Contains("0 by 2"));
  CHECK_THROWS_WITH(ops::affine_transform(on_one_device(at::ones({2, 3, 4, 1}, at::kLong)), rows),
                    Contains("affine_transform"));
}

}  // namespace affine_transform_test
