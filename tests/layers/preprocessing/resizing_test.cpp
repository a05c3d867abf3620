#include <tessera/layers/preprocessing/center_crop.hpp>
#include <tessera/layers/preprocessing/resizing.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"

namespace resizing_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

Json resizing_config(int64_t height, int64_t width, const std::string& interpolation,
                     const Json& other = Json::object()) {
  Json config = {{"height", height},
                 {"width", width},
                 {"interpolation", interpolation},
                 {"crop_to_aspect_ratio", false},
                 {"pad_to_aspect_ratio", false},
                 {"fill_mode", "constant"},
                 {"fill_value", 0.0},
                 {"antialias", false},
                 {"data_format", "channels_last"}};
  config.update(other);
  return config;
}

DTensor replicated(const at::Tensor& tensor) {
  return pack(tensor, Layout::replicated(default_mesh(), tensor.dim()));
}

}  // namespace

TEST_CASE("Resizing under every layout") {
  test::run_layer_test({.make = [] { return Resizing(3, 7); },
                        .input = {{2, 5, 4, 2}},
                        .output = {2, 3, 7, 2},
                        .config = resizing_config(3, 7, "bilinear")});
  test::run_layer_test(
      {.make = [] { return Resizing(2, 3, {.interpolation = "lanczos3", .antialias = true}); },
       .input = {{2, 7, 5, 1}},
       .output = {2, 2, 3, 1},
       .config = resizing_config(2, 3, "lanczos3", {{"antialias", true}})});
  test::run_layer_test(
      {.make =
           [] {
             return Resizing(
                 4, 2,
                 {.interpolation = "nearest", .pad_to_aspect_ratio = true, .fill_value = 1.5});
           },
       .input = {{2, 3, 5, 2}},
       .output = {2, 4, 2, 2},
       .config =
           resizing_config(4, 2, "nearest", {{"pad_to_aspect_ratio", true}, {"fill_value", 1.5}})});
}

TEST_CASE("CenterCrop under every layout") {
  test::run_layer_test({.make = [] { return CenterCrop(2, 3); },
                        .input = {{2, 5, 4, 2}},
                        .output = {2, 2, 3, 2},
                        .config = {{"height", 2}, {"width", 3}, {"data_format", "channels_last"}}});
  // The image is too small: its centre is resized.
  test::run_layer_test(
      {.make = [] { return CenterCrop(4, 3, {.data_format = "channels_first"}); },
       .input = {{2, 1, 3, 5}},
       .output = {2, 1, 4, 3},
       .config = {{"height", 4}, {"width", 3}, {"data_format", "channels_first"}}});
}

TEST_CASE("Resizing keeps uint8, within its range") {
  const at::Tensor edge = at::tensor({0, 0, 255, 255}, at::kByte).reshape({1, 1, 4, 1});
  const DTensor wide = Resizing(1, 8, {.interpolation = "bicubic"})(replicated(edge));
  CHECK(wide.dtype() == at::kByte);
  CHECK(at::equal(wide.full().flatten(), at::tensor({0, 0, 0, 52, 203, 255, 255, 255}, at::kByte)));
  const at::Tensor numbers = at::tensor({1, 1000000, 3}, at::kInt).reshape({1, 3, 1, 1});
  const DTensor same = Resizing(6, 1, {.interpolation = "nearest"})(replicated(numbers));
  CHECK(at::equal(same.full().flatten(), at::tensor({1, 1, 1000000, 1000000, 3, 3}, at::kInt)));
}

TEST_CASE("Resizing and CenterCrop refuse invalid arguments") {
  CHECK_THROWS_WITH(Resizing(0, 3), Contains("[Resizing]") && Contains("height is at least 1"));
  CHECK_THROWS_WITH(CenterCrop(3, 0), Contains("width is at least 1"));
  CHECK_THROWS_WITH(Resizing(3, 3, {.interpolation = "bilinar", .name = "r"}),
                    Contains("[Resizing r]") && Contains("write \"bilinear\""));
  CHECK_THROWS_WITH(Resizing(3, 3, {.fill_mode = "reflect"}), Contains("\"reflect\""));
  CHECK_THROWS_WITH(Resizing(3, 3, {.crop_to_aspect_ratio = true, .pad_to_aspect_ratio = true}),
                    Contains("both"));
  CHECK_THROWS_WITH(Resizing(3, 3, {.data_format = "first"}), Contains("data_format"));
  CHECK_THROWS_WITH(Resizing(3, 3)->build({{4, 4, 3}}),
                    Contains("(batch, height, width, channels)") && Contains("(4, 4, 3)"));
}

}  // namespace resizing_test
