#include <ATen/ATen.h>

#include <functional>
#include <limits>

#include <tessera/layers/layers.hpp>

#include "tests/support/catch.hpp"

/// Options and inputs that augmentation layers refuse.
namespace augmentation_options_test {

using namespace tessera;
using Catch::Matchers::Contains;

TEST_CASE("labels of other shapes, and layers that take none, are refused by name") {
  const at::Tensor x = at::rand({3, 5, 4, 3}) * 255;
  CHECK_THROWS_WITH(MixUp(0.2, {.name = "m"})({x, at::ones({3})}, 1), Contains("MixUp m"));
  CHECK_THROWS_WITH(RandomFlip("vertical", {.name = "f"})({x, at::ones({3, 2})}, 1),
                    Contains("RandomFlip f") && Contains("(3, 5, 4, 3) and (3, 2)"));
  CHECK_THROWS_WITH(RandomHue(0.1, {.name = "h"})(x.narrow(3, 0, 2), 1),
                    Contains("RandomHue h") && Contains("three channels"));
}

TEST_CASE("both numbers of a factor are in its range, in any order") {
  const struct {
    const char* option;
    double minimum, maximum;
    std::function<void(const Factor&)> make;
  } factors[] = {
      {"factor", -1, 1, [](const Factor& f) { RandomBrightness{f}; }},
      {"factor", -1, 1, [](const Factor& f) { RandomColorDegeneration{f}; }},
      {"factor", 0, 1, [](const Factor& f) { RandomContrast{f}; }},
      {"factor", 0, 1, [](const Factor& f) { RandomHue{f}; }},
      {"factor", 1, 8, [](const Factor& f) { RandomPosterization{f}; }},
      {"factor", -1, 1, [](const Factor& f) { RandomSaturation{f}; }},
      {"factor", 0, 1, [](const Factor& f) { RandomSharpness{f}; }},
      {"factor", 0, 1, [](const Factor& f) { CutMix{f}; }},
      {"factor", 0, 1, [](const Factor& f) { RandomErasing{f}; }},
      {"scale", 0, 1, [](const Factor& f) { RandomErasing(1.0, {.scale = f}); }},
      {"factor", 0, 1, [](const Factor& f) { RandomPerspective{f}; }},
      {"factor", 0, 1, [](const Factor& f) { RandomInvert{f}; }},
      {"factor", 0, 1, [](const Factor& f) { RandomGaussianBlur{f}; }},
      {"sigma", 0, 1, [](const Factor& f) { RandomGaussianBlur(1.0, {.sigma = f}); }},
      {"factor", 0, 1, [](const Factor& f) { RandomElasticTransform{f}; }},
      {"scale", 0, 1, [](const Factor& f) { RandomElasticTransform(1.0, {.scale = f}); }},
      {"factor", 0, 1, [](const Factor& f) { AugMix({.factor = f}); }},
      {"factor", -1, 1, [](const Factor& f) { RandomRotation{f}; }},
      {"factor", 0, 1, [](const Factor& f) { RandAugment({.factor = f}); }},
      {"addition_factor", 0, 1, [](const Factor& f) { Solarization{f}; }},
      {"threshold_factor", 0, 1, [](const Factor& f) { Solarization(0.0, f); }},
      {"x_factor", -1, 1, [](const Factor& f) { RandomShear{f}; }},
      {"y_factor", -1, 1, [](const Factor& f) { RandomShear(0.0, f); }},
      {"height_factor", -1, 1, [](const Factor& f) { RandomTranslation(f, 0.1); }},
      {"width_factor", -1, 1, [](const Factor& f) { RandomTranslation(0.1, f); }},
      {"height_factor", -0.5, 1, [](const Factor& f) { RandomZoom{f}; }}};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& each : factors) {
    const double lo = each.minimum, hi = each.maximum, middle = (lo + hi) / 2;
    CAPTURE(each.option, lo, hi);
    CHECK_NOTHROW(each.make(Factor(lo, hi)));
    CHECK_NOTHROW(each.make(Factor(hi, lo)));
    for (const Factor& wrong :
         {Factor(lo - 5, middle), Factor(middle, lo - 5), Factor(middle, hi + 0.25),
          Factor(hi + 0.25, middle), Factor(nan, middle), Factor(lo - 5), Factor(hi + 0.25),
          Factor(nan)}) {
      CHECK_THROWS_WITH(each.make(wrong), Contains(std::string(each.option) + " is "));
    }
  }
}

TEST_CASE("invalid options are refused by name") {
  CHECK_THROWS_WITH(RandomFlip("sideways", {.name = "f"}), Contains("[RandomFlip f] mode"));
  CHECK_THROWS_WITH(RandomRotation(1.5, {.name = "r"}), Contains("[RandomRotation r] factor"));
  CHECK_THROWS_WITH(RandomRotation(0.1, {.fill_mode = "mirror"}), Contains("fill_mode"));
  CHECK_THROWS_WITH(RandomRotation(0.1, {.interpolation = "bicubic"}), Contains("interpolation"));
  CHECK_THROWS_WITH(RandomZoom(-1, {.name = "z"}), Contains("[RandomZoom z] height_factor"));
  CHECK_THROWS_WITH(RandomZoom(0.1, {.width_factor = 2}), Contains("width_factor"));
  CHECK_THROWS_WITH(RandomTranslation({-3, 0.5}, 0.1), Contains("height_factor"));
  CHECK_THROWS_WITH(RandomContrast(-0.1), Contains("factor is one number or two in [0, 1]"));
  CHECK_THROWS_WITH(RandomBrightness(0.1, {.value_range = {1}}), Contains("value_range"));
  CHECK_THROWS_WITH(RandomCrop(0, 3), Contains("height and width"));
  CHECK_THROWS_WITH(RandomErasing(1.0, {.fill_value = {1, 2}}), Contains("fill_value"));
  CHECK_THROWS_WITH(MixUp(0), Contains("alpha"));
  CHECK_THROWS_WITH(RandomGrayscale(2), Contains("factor lies in [0, 1]"));
  CHECK_THROWS_WITH(RandomPerspective(1.0, 2), Contains("scale"));
  CHECK_THROWS_WITH(Equalization({.bins = 1}), Contains("bins"));
  CHECK_THROWS_WITH(RandomGaussianBlur(1.0, {.kernel_size = 4}), Contains("kernel_size"));
  CHECK_THROWS_WITH(RandomGaussianBlur(1.0, {.kernel_size = {3, 3, 3}}), Contains("[3,3,3]"));
  CHECK_THROWS_WITH(RandomElasticTransform(1.0, {.fill_mode = "mirrored"}), Contains("fill_mode"));
  CHECK_NOTHROW(RandomElasticTransform(1.0, {.fill_mode = "mirror"}));
  CHECK_THROWS_WITH(ContrastLimitedAdaptiveHistogramEqualization({.tile_grid_size = {2, 0}}),
                    Contains("tile_grid_size"));
  CHECK_THROWS_WITH(AugMix({.num_chains = 0}), Contains("num_chains"));
  CHECK_THROWS_WITH(AugMix({.chain_depth = -1}), Contains("chain_depth"));
  CHECK_THROWS_WITH(AugMix({.alpha = 0}), Contains("alpha"));
  CHECK_THROWS_WITH(MaxNumBoundingBoxes(-1, {.name = "m"}),
                    Contains("[MaxNumBoundingBoxes m] max_number"));
  CHECK_THROWS_WITH(RandomFlip("vertical", {.data_format = "first"}), Contains("data_format"));
}

}  // namespace augmentation_options_test
