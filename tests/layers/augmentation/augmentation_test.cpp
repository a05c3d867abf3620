#include <ATen/ATen.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <thread>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/layers.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"
#include "tests/support/random_layer_check.hpp"
#include "tests/support/virtual_meshes.hpp"

/// Behaviour that all augmentation layers share, and the distributions of each.
namespace augmentation_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

using Make = std::function<AugmentationHandle()>;

/// Every augmentation layer; the random ones change most images.
const std::map<std::string, Make>& all_layers() {
  static const std::map<std::string, Make> made = {
      {"AutoContrast", [] { return AutoContrast({.name = "a"}); }},
      {"CutMix", [] { return CutMix(1.0, {.name = "a"}); }},
      {"Equalization", [] { return Equalization({.name = "a"}); }},
      {"MixUp", [] { return MixUp(1, {.name = "a"}); }},
      {"Pipeline",
       [] {
         return Pipeline({RandomFlip(), RandomRotation(0.2), MixUp()});
       }},
      {"RandAugment", [] { return RandAugment({.name = "a"}); }},
      {"RandomBrightness", [] { return RandomBrightness(0.3, {.name = "a"}); }},
      {"RandomColorDegeneration", [] { return RandomColorDegeneration(0.6, {.name = "a"}); }},
      {"RandomColorJitter",
       [] {
         return RandomColorJitter(
             {.brightness_factor = 0.1, .contrast_factor = 0.2, .hue_factor = 0.3, .name = "a"});
       }},
      {"RandomContrast", [] { return RandomContrast(0.4, {.name = "a"}); }},
      {"RandomCrop", [] { return RandomCrop(3, 2, {.name = "a"}); }},
      {"RandomErasing",
       [] {
         return RandomErasing({0.9, 1}, {.name = "a"});
       }},
      {"RandomFlip", [] { return RandomFlip("horizontal_and_vertical", {.name = "a"}); }},
      {"RandomGrayscale", [] { return RandomGrayscale(0.6, {.name = "a"}); }},
      {"RandomHue", [] { return RandomHue(0.4, {.name = "a"}); }},
      {"RandomPerspective",
       [] {
         return RandomPerspective({0.8, 1}, 0.5, {.name = "a"});
       }},
      {"RandomPosterization",
       [] {
         return RandomPosterization({2, 6}, {.name = "a"});
       }},
      {"RandomRotation", [] { return RandomRotation(0.3, {.name = "a"}); }},
      {"RandomSaturation",
       [] {
         return RandomSaturation({0.2, 0.7}, {.name = "a"});
       }},
      {"RandomSharpness", [] { return RandomSharpness(0.4, {.name = "a"}); }},
      {"RandomShear", [] { return RandomShear(0.4, 0.3, {.name = "a"}); }},
      {"RandomTranslation", [] { return RandomTranslation(0.3, 0.4, {.name = "a"}); }},
      {"RandomZoom", [] { return RandomZoom(0.4, {.width_factor = 0.2, .name = "a"}); }},
      {"Solarization", [] { return Solarization(0.2, 0.6, {.name = "a"}); }}};
  return made;
}

/// The layer in float64, whatever the global dtype policy.
LayerHandle in_float64(const LayerHandle& layer) {
  Json json = layer_json(*layer.layer());
  json["config"]["dtype"] = "float64";
  return layer_from_config(json, JsonPath("layer"));
}

at::Tensor images(int64_t rows, int64_t height = 5, int64_t width = 4) {
  return at::rand({rows, height, width, 3}) * 255;
}

DTensor rows_over(const at::Tensor& x, const Mesh& mesh) {
  return pack(x, Layout::from_axes(mesh, {{0}, {}, {}, {}}));
}

/// Returns an image whose pixel (y, x) is 10 y + x, so that outputs show which pixels they hold.
at::Tensor grid(int64_t height, int64_t width) {
  const at::Tensor y = at::arange(height, at::kFloat).view({-1, 1, 1}) * 10;
  return (y + at::arange(width, at::kFloat).view({1, -1, 1})).unsqueeze(0);
}

}  // namespace

TEST_CASE("augmentation layers under every layout") {
  // In half precision values round to other levels or leave the range.
  const std::set<std::string> in_steps = {"AutoContrast", "Equalization", "RandomColorDegeneration",
                                          "RandomColorJitter", "RandomPosterization"};
  for (const auto& [name, make] : all_layers()) {
    if (name == "RandAugment" || name == "Pipeline") continue;
    CAPTURE(name);
    const Shape made = name == "RandomCrop" ? Shape{3, 3, 2, 3} : Shape{3, 5, 4, 3};
    const auto wide = [&make = make] { return in_float64(make()); };
    run_golden_layer_test(
        {.make = in_steps.contains(name) ? std::function<LayerHandle()>(wide) : make,
         .input = {{3, 5, 4, 3}, at::kDouble, 1, 250},
         .output = made});
  }
}

TEST_CASE("RandAugment under every layout", "[nightly]") {
  run_golden_layer_test({.make = [] { return RandAugment({.name = "a", .dtype = "float64"}); },
                         .input = {{3, 5, 4, 3}, at::kDouble, 1, 250},
                         .output = {3, 5, 4, 3}});
}

TEST_CASE("images are augmented bit for bit equally on every mesh, and in training only") {
  const at::Tensor x = images(5);
  for (const auto& [name, make] : all_layers()) {
    CAPTURE(name);
    const AugmentationHandle layer = make();
    const at::Tensor one = layer(rows_over(x, virtual_mesh({1})), training_step(3)).full();
    for (const Mesh& mesh : {virtual_mesh({2}), virtual_mesh({2, 2})}) {
      const at::Tensor more = layer(rows_over(x, mesh), training_step(3)).full();
      CHECK(more.equal(one));
    }
    const bool draws = name != "AutoContrast" && name != "Equalization";
    const DTensor halves = rows_over(x, virtual_mesh({2}));
    bool differs = false;
    for (int64_t step = 4; step < 8; ++step) {
      differs = differs || !layer(halves, training_step(step)).full().equal(one);
    }
    CHECK(differs == draws);
    if (name == "AutoContrast" || name == "RandomCrop") continue;
    CHECK_FALSE(one.equal(x));
    CHECK(layer(rows_over(x, virtual_mesh({2}))).full().equal(x));
  }
}

TEST_CASE("a row's draws do not depend on the number of rows") {
  const at::Tensor x = images(6);
  for (const auto& [name, make] : all_layers()) {
    const bool batch = name == "MixUp" || name == "CutMix" || name == "Pipeline" ||
                       name == "Equalization" || name == "RandAugment";
    if (batch) continue;
    CAPTURE(name);
    const AugmentationHandle layer = make();
    CHECK(layer(x, 7).narrow(0, 0, 4).equal(layer(x.narrow(0, 0, 4), 7)));
  }
}

TEST_CASE("on host tensors a layer equals itself in a model with that seed") {
  const at::Tensor x = images(4);
  for (const auto& [name, make] : all_layers()) {
    CAPTURE(name);
    const AugmentationHandle layer = make();
    const at::Tensor here = layer(x, 12);
    CHECK(here.equal(layer(rows_over(x, virtual_mesh({2})), training_step(0, 12)).full()));
    CHECK(here.equal(layer(x.clone(), Seed{12, 0})));
    CHECK(layer(x, Seed{12, 3})
              .equal(layer(rows_over(x, virtual_mesh({2})), training_step(3, 12)).full()));
    // A single row is a batch of one.
    CHECK(layer(x[1], 5).equal(layer(x.narrow(0, 1, 1), 5)[0]));
    const at::Tensor each = layer(x, std::vector<Seed>{{1, 0}, {5, 0}, {1, 2}, {9, 0}});
    CHECK(each[1].equal(layer(x[1], 5)));
    CHECK(each.size(0) == 4);
  }
  CHECK_THROWS_WITH(RandomFlip()(x, std::vector<Seed>{{1, 0}, {2, 0}}),
                    Contains("2 seeds for (4, 5, 4"));
}

TEST_CASE("several threads may call one layer at once") {
  const at::Tensor x = images(8);
  const Pipeline layer({RandomFlip(), RandomZoom(0.3), RandomContrast(0.5)});
  std::vector<at::Tensor> made(8);
  {
    std::vector<std::jthread> threads;
    for (int64_t row = 0; row < 8; ++row) {
      threads.emplace_back([&, row] { made[size_t(row)] = layer(x[row], 100 + row); });
    }
  }
  for (int64_t row = 0; row < 8; ++row) CHECK(made[size_t(row)].equal(layer(x[row], 100 + row)));
}

TEST_CASE("augmentation with channels first equals that with channels last") {
  const at::Tensor x = images(4), turned = x.permute({0, 3, 1, 2}).contiguous();
  CHECK(RandomRotation(0.2, {.data_format = "channels_first", .name = "a"})(turned, 3)
            .permute({0, 2, 3, 1})
            .equal(RandomRotation(0.2, {.name = "a"})(x, 3)));
  CHECK(RandomCrop(2, 3, {.data_format = "channels_first", .name = "a"})(turned, 3).sizes().vec() ==
        Shape{4, 3, 2, 3});
}

TEST_CASE("uint8 images are augmented in the compute dtype") {
  const at::Tensor x = images(3).to(at::kByte);
  const AugmentationHandle layer = RandomBrightness(0.3, {.name = "a"});
  CHECK(layer(x, 4).equal(layer(x.to(at::kFloat), 4)));
}

TEST_CASE("RandomFlip mirrors half of the images") {
  const at::Tensor x = grid(2, 3).expand({2000, 2, 3, 1}).contiguous();
  const auto share = [&](const std::string& mode, const std::vector<int64_t>& axes) {
    const at::Tensor y = RandomFlip(mode)(x, 3);
    const at::Tensor turned = y.eq(x.flip(axes)).flatten(1).all(1);
    CHECK(y.eq(x).flatten(1).all(1).logical_xor(turned).all().item<bool>());
    return turned.to(at::kFloat).mean().item<double>();
  };
  CHECK(share("horizontal", {2}) == Approx(0.5).margin(0.04));
  CHECK(share("vertical", {1}) == Approx(0.5).margin(0.04));
  CHECK(share("horizontal_and_vertical", {1, 2}) == Approx(0.5).margin(0.04));
}

TEST_CASE("RandomTranslation moves down and right by uniform fractions") {
  // Along the middle row and column a linear image shows how far it moved.
  const at::Tensor x = grid(41, 41).expand({1500, 41, 41, 1}).contiguous();
  const at::Tensor y = RandomTranslation({0.1, 0.3}, {-0.2, 0})(x, 3);
  const at::Tensor shift = (x - y).select(1, 20).select(1, 20).flatten();
  // 10 · 41 · (0.2 ± 0.2 / √12), and - 41 · (0.1 ± 0.2 / √12).
  check_moments(shift, 410 * 0.2 - 41 * 0.1, std::hypot(410, 41) * 0.2 / std::sqrt(12.0));
}

TEST_CASE("RandomBrightness adds uniform fractions of the range") {
  const at::Tensor x = at::full({4000, 1, 1, 3}, 0.5);
  const at::Tensor y = RandomBrightness({-0.1, 0.3}, {.value_range = {0, 1}})(x, 3);
  check_moments(y.select(3, 0).flatten() - 0.5, 0.1, 0.4 / std::sqrt(12.0));
}

TEST_CASE("RandomCrop takes all corners equally often") {
  const at::Tensor x = grid(6, 9);
  const AugmentationHandle layer = RandomCrop(4, 7);
  std::map<float, int> corners;
  for (int64_t seed = 0; seed < 900; ++seed) {
    const at::Tensor y = layer(x, seed);
    const float corner = y[0][0][0][0].item<float>();
    ++corners[corner];
    CHECK(y.equal(grid(4, 7) + corner));
  }
  REQUIRE(corners.size() == 9);
  for (const auto& [corner, count] : corners) CHECK(count == Approx(100).margin(40));
}

TEST_CASE("RandomCrop takes the centre in inference, and resizes images that are too small") {
  const DTensor x = pack(grid(6, 6), Layout::replicated(default_mesh(), 4));
  CHECK(RandomCrop(6, 6)(x).full().equal(x.full()));
  CHECK(RandomCrop(3, 3)(x).shape() == Shape{1, 3, 3, 1});
  CHECK(RandomCrop(12, 12)(x, training_step(0)).shape() == Shape{1, 12, 12, 1});
  CHECK(RandomCrop(12, 12)(x, training_step(0)).full().equal(RandomCrop(12, 12)(x).full()));
}

TEST_CASE("MixUp mixes by beta-distributed weights, in a random order") {
  const int64_t n = 3000;
  // Labels that equal the pixels.
  const at::Tensor x = at::arange(n, at::kFloat).view({n, 1, 1, 1}).expand({n, 2, 2, 1});
  for (const double alpha : {0.2, 1.0, 2.5}) {
    const auto layer = MixUp(alpha);
    const at::Tensor labels = at::stack({at::ones({n}), x.flatten(1).select(1, 0)}, 1);
    const std::vector<at::Tensor> y = layer({x, labels}, 3);
    CHECK(y[1].select(1, 0).sub(1).abs().max().item<float>() < 1e-5);
    CHECK(at::allclose(y[1].select(1, 1), y[0].flatten(1).select(1, 0)));
  }
  // With two rows in another order, row 0 shows the weight of the other row.
  std::vector<at::Tensor> weights;
  const at::Tensor pair = at::tensor({0.F, 1.F}).view({2, 1, 1, 1});
  const auto layer = MixUp(0.7);
  for (int64_t seed = 0; seed < 3000; ++seed) {
    const at::Tensor y = layer(pair, seed);
    if (!y.equal(pair)) weights.push_back(y[1].flatten().narrow(0, 0, 1));
  }
  CHECK(weights.size() == Approx(1500).margin(120));
  check_moments(at::cat(weights), 0.5, std::sqrt(1 / (4 * (2 * 0.7 + 1))));
}

TEST_CASE("CutMix replaces a rectangle and mixes labels by its area") {
  const int64_t n = 64;
  const at::Tensor x = at::arange(n, at::kFloat).view({n, 1, 1, 1}).expand({n, 20, 20, 1});
  const at::Tensor own = at::eye(n);
  const std::vector<at::Tensor> y = CutMix()({x.contiguous(), own}, 3);
  const at::Tensor unchanged = y[0].eq(x).to(at::kFloat).flatten(1).mean(1);
  // A rectangle's border may fall between pixels: off by at most one row and one column of 20.
  CHECK((y[1].diagonal() - unchanged).abs().max().item<float>() < 0.11);
  CHECK(at::allclose(y[1].sum(1), at::ones({n})));
}

TEST_CASE("RandomErasing erases the given fractions of images and pixels") {
  const at::Tensor x = at::full({2000, 12, 12, 1}, 5.0);
  const at::Tensor y = RandomErasing({0.5, 0.5}, {.scale = {0.25, 0.25}, .fill_value = 0.0})(x, 3);
  const at::Tensor gone = y.eq(0).to(at::kFloat).flatten(1).mean(1);
  CHECK(gone.gt(0).to(at::kFloat).mean().item<double>() == Approx(0.5).margin(0.05));
  CHECK(gone.sum().div(gone.gt(0).sum()).item<double>() == Approx(0.25).margin(0.005));
  const at::Tensor noise = RandomErasing({1, 1}, {.scale = {1, 1}, .value_range = {-90, 10}})(x, 3);
  // Normal numbers times 10; those below one standard deviation are not clipped.
  check_moments(noise.masked_select(noise.lt(10)), -2.876, 7.935);
}

TEST_CASE("labels of other shapes, and layers that take none, are refused by name") {
  const at::Tensor x = images(3);
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
  } factors[] = {{"factor", -1, 1, [](const Factor& f) { RandomBrightness{f}; }},
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
  CHECK_THROWS_WITH(RandomFlip("vertical", {.data_format = "first"}), Contains("data_format"));
}

}  // namespace augmentation_test
