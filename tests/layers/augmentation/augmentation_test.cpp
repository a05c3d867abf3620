#include <ATen/ATen.h>

#include <cmath>
#include <functional>
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
      {"AugMix", [] { return AugMix({.num_chains = 2, .chain_depth = 2, .name = "a"}); }},
      {"AutoContrast", [] { return AutoContrast({.name = "a"}); }},
      {"ContrastLimitedAdaptiveHistogramEqualization",
       [] {
         return ContrastLimitedAdaptiveHistogramEqualization({.tile_grid_size = 2, .name = "a"});
       }},
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
      {"RandomElasticTransform",
       [] {
         return RandomElasticTransform({0.9, 1}, {.scale = {0.8, 1}, .name = "a"});
       }},
      {"RandomErasing",
       [] {
         return RandomErasing({0.9, 1}, {.name = "a"});
       }},
      {"RandomFlip", [] { return RandomFlip("horizontal_and_vertical", {.name = "a"}); }},
      {"RandomGaussianBlur",
       [] {
         return RandomGaussianBlur({0.9, 1},
                                   {.kernel_size = {3, 5}, .sigma = {0.5, 1}, .name = "a"});
       }},
      {"RandomGrayscale", [] { return RandomGrayscale(0.6, {.name = "a"}); }},
      {"RandomHue", [] { return RandomHue(0.4, {.name = "a"}); }},
      {"RandomInvert",
       [] {
         return RandomInvert({0.8, 1}, {.name = "a"});
       }},
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

/// The layer with a dtype policy, whatever the global one.
LayerHandle with_dtype(const LayerHandle& layer, const std::string& policy) {
  Json json = layer_json(*layer.layer());
  json["config"]["dtype"] = policy;
  return layer_from_config(json, JsonPath("layer"));
}
LayerHandle in_float64(const LayerHandle& layer) { return with_dtype(layer, "float64"); }

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
  // In half precision values round to other levels or leave the range. The gradient of a hue jumps
  // at each sixth of the circle and where another channel is the largest: rounded images, which in
  // bfloat16 have steps of 1 from 128 on, are on the other side of some jumps, however exactly the
  // layer computes.
  const std::set<std::string> in_steps = {
      "AutoContrast",       "ContrastLimitedAdaptiveHistogramEqualization",
      "Equalization",       "RandomColorDegeneration",
      "RandomColorJitter",  "RandomHue",
      "RandomPosterization"};
  for (const auto& [name, make] : all_layers()) {
    if (name == "AugMix" || name == "RandAugment" || name == "Pipeline") continue;
    CAPTURE(name);
    const Shape made = name == "RandomCrop" ? Shape{3, 3, 2, 3} : Shape{3, 5, 4, 3};
    const auto wide = [&make = make] { return in_float64(make()); };
    run_golden_layer_test(
        {.make = in_steps.contains(name) ? std::function<LayerHandle()>(wide) : make,
         .input = {{3, 5, 4, 3}, at::kDouble, 1, 250},
         .output = made});
  }
}

TEST_CASE("RandAugment and AugMix under every layout", "[nightly]") {
  for (const char* name : {"RandAugment", "AugMix"}) {
    CAPTURE(name);
    run_golden_layer_test({.make = [name] { return in_float64(all_layers().at(name)()); },
                           .input = {{3, 5, 4, 3}, at::kDouble, 1, 250},
                           .output = {3, 5, 4, 3}});
  }
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
    const bool whenever =
        name == "AutoContrast" || name == "ContrastLimitedAdaptiveHistogramEqualization";
    const bool draws = !whenever && name != "Equalization";
    const DTensor halves = rows_over(x, virtual_mesh({2}));
    bool differs = false;
    for (int64_t step = 4; step < 8; ++step) {
      differs = differs || !layer(halves, training_step(step)).full().equal(one);
    }
    CHECK(differs == draws);
    if (whenever || name == "RandomCrop") continue;
    CHECK_FALSE(one.equal(x));
    CHECK(layer(rows_over(x, virtual_mesh({2}))).full().equal(x));
  }
}

TEST_CASE("a row's draws do not depend on the number of rows") {
  const at::Tensor x = images(6);
  for (const auto& [name, make] : all_layers()) {
    const bool batch = name == "MixUp" || name == "CutMix" || name == "Pipeline" ||
                       name == "Equalization" || name == "RandAugment" || name == "AugMix";
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

TEST_CASE("hues, kernels and tables of half precision images are float32, and rounded once") {
  for (const auto& [policy, dtype] :
       {std::pair("mixed_bfloat16", at::kBFloat16), {"mixed_float16", at::kHalf}}) {
    const DTensor x = rows_over(images(5).to(dtype).to(at::kFloat), virtual_mesh({1}));
    for (const char* name :
         {"ContrastLimitedAdaptiveHistogramEqualization", "RandomElasticTransform",
          "RandomGaussianBlur", "RandomHue", "RandomSaturation"}) {
      CAPTURE(policy, name);
      const LayerHandle layer = all_layers().at(name)();
      const at::Tensor wide = with_dtype(layer, "float32")(x, training_step(3)).full();
      CHECK(with_dtype(layer, policy)(x, training_step(3)).full().equal(wide.to(dtype)));
    }
  }
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

}  // namespace augmentation_test
