#include <ATen/ATen.h>

#include <cmath>
#include <map>

#include <tessera/datasets/pipeline/data_pipeline.hpp>
#include <tessera/framework/data/batch_loader.hpp>
#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/layers.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"

/// Labels, bounding boxes and segmentation masks that follow host images.
namespace labeled_images_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

/// Geometric augmentation layers by name; none of them shows an object twice.
std::map<std::string, AugmentationHandle> geometric_augmentation_layers() {
  const std::string xyxy = "xyxy", constant = "constant";
  return {
      {"flip", RandomFlip("horizontal_and_vertical", {.bounding_box_format = xyxy})},
      {"across", RandomFlip("horizontal", {.bounding_box_format = xyxy})},
      {"down", RandomFlip("vertical", {.bounding_box_format = xyxy})},
      {"translation",
       RandomTranslation(0.3, 0.4, {.fill_mode = constant, .bounding_box_format = xyxy})},
      {"rotation", RandomRotation(0.5, {.fill_mode = constant, .bounding_box_format = xyxy})},
      {"zoom",
       RandomZoom(0.4, {.width_factor = 0.3, .fill_mode = constant, .bounding_box_format = xyxy})},
      {"shear", RandomShear(0.4, 0.3, {.fill_mode = constant, .bounding_box_format = xyxy})},
      {"perspective", RandomPerspective({0.8, 1}, 0.8, {.bounding_box_format = xyxy})},
      {"crop", RandomCrop(30, 45, {.bounding_box_format = xyxy})},
      {"crop of less", RandomCrop(48, 60, {.bounding_box_format = xyxy})},
      {"any", RandAugment({.num_ops = 4, .factor = 0.06, .bounding_box_format = xyxy})},
      {"several",
       Pipeline({Resizing(60, 80, {.bounding_box_format = xyxy}),
                 RandomRotation(0.1, {.fill_mode = constant, .bounding_box_format = xyxy}),
                 RandomBrightness(0.2), Rescaling(0.5),
                 RandomShear(0.2, 0.2, {.fill_mode = constant, .bounding_box_format = xyxy}),
                 CenterCrop(50, 50, {.bounding_box_format = xyxy})})}};
}

/// Images of 40 by 60 with one object: a rectangle that the masks mark and the box encloses.
LabeledImages objects(int64_t rows) {
  const at::Tensor masks = at::zeros({rows, 40, 60, 1}, at::kByte);
  masks.slice(1, 16, 25).slice(2, 22, 37).fill_(3);
  const at::Tensor box = at::tensor({22.F, 16.F, 37.F, 25.F}).expand({rows, 1, 4}).clone();
  return {.images = masks.to(at::kFloat).expand({rows, 40, 60, 3}) * 50,
          .bounding_boxes = {box, at::full({rows, 1}, 3, at::kLong)},
          .segmentation_masks = masks};
}

/// Returns the smallest box around the nonzero pixels of a mask (height, width, 1); empty without
/// any.
std::vector<double> box_around(const at::Tensor& mask) {
  const at::Tensor cells = mask.squeeze(2).nonzero();
  if (cells.size(0) == 0) return {};
  const at::Tensor first = std::get<0>(cells.min(0)), last = std::get<0>(cells.max(0));
  const auto number = [](const at::Tensor& x, int64_t i) { return x[i].item<double>(); };
  return {number(first, 1), number(first, 0), number(last, 1) + 1, number(last, 0) + 1};
}

LabeledImages detection(int64_t rows) {
  const at::Tensor corner = at::rand({rows, 2, 2}) * 10;
  return {.images = at::rand({rows, 24, 18, 3}),
          .labels = at::rand({rows, 4}),
          .bounding_boxes = {at::cat({corner, corner + at::rand({rows, 2, 2}) * 8}, 2),
                             at::randint(5, {rows, 2})},
          .segmentation_masks = at::randint(5, {rows, 24, 18, 1}, at::kInt)};
}

bool equal(const LabeledImages& a, const LabeledImages& b) {
  return a.images.equal(b.images) && a.labels.equal(b.labels) &&
         a.bounding_boxes.boxes.equal(b.bounding_boxes.boxes) &&
         a.bounding_boxes.labels.equal(b.bounding_boxes.labels) &&
         a.segmentation_masks.equal(b.segmentation_masks);
}

LabeledImages row_of(const LabeledImages& all, int64_t row) {
  return {all.images[row],
          all.labels[row],
          {all.bounding_boxes.boxes[row], all.bounding_boxes.labels[row]},
          all.segmentation_masks[row]};
}

}  // namespace

TEST_CASE("boxes enclose the object that masks mark") {
  const int64_t rows = 12;
  for (const auto& [name, layer] : geometric_augmentation_layers()) {
    int64_t compared = 0;
    for (int64_t seed = 0; seed < 4; ++seed) {
      const LabeledImages made = layer(objects(rows), seed);
      const int64_t height = made.images.size(1), width = made.images.size(2);
      for (int64_t row = 0; row < rows; ++row) {
        CAPTURE(name, seed, row);
        const at::Tensor box = made.bounding_boxes.boxes[row][0].to(at::kDouble);
        const double* at = box.const_data_ptr<double>();
        const bool kept = made.bounding_boxes.labels[row][0].item<int64_t>() == 3;
        const std::vector<double> shown = box_around(made.segmentation_masks[row]);
        if (shown.empty()) continue;
        CHECK(kept);
        // Half a pixel, as Keras rotates boxes around pixel centres, and the corner of a pixel
        // whose centre is outside.
        const double margin = 2;
        CHECK((at[0] < shown[0] + margin && at[1] < shown[1] + margin));
        CHECK((at[2] > shown[2] - margin && at[3] > shown[3] - margin));
        const bool inside =
            shown[0] > 0 && shown[1] > 0 && shown[2] < double(width) && shown[3] < double(height);
        // A box around a rotated box is larger.
        if (!inside || name == "several" || name == "any") continue;
        ++compared;
        for (size_t i = 0; i < 4; ++i) CHECK(at[i] == Approx(shown[i]).margin(margin));
      }
    }
    CAPTURE(name);
    CHECK((compared >= rows || name == "several" || name == "any"));
  }
}

TEST_CASE("images are augmented equally with and without labels, boxes and masks") {
  for (const auto& [name, layer] : geometric_augmentation_layers()) {
    CAPTURE(name);
    const LabeledImages data = objects(3);
    CHECK(layer(data, 8).images.equal(layer(data.images, 8)));
    const LabeledImages alone = layer(LabeledImages{.images = data.images}, 8);
    CHECK(alone.images.equal(layer(data.images, 8)));
    CHECK_FALSE(alone.segmentation_masks.defined());
  }
}

TEST_CASE("one image is a batch of one, and rows may have their own seeds") {
  const Pipeline layer({RandomFlip("horizontal", {.bounding_box_format = "xyxy"}),
                        RandomZoom(0.3, {.bounding_box_format = "xyxy"}), RandomContrast(0.4)});
  const LabeledImages all = detection(4);
  const LabeledImages each = layer(all, std::vector<Seed>{{1, 0}, {5, 0}, {1, 2}, {9, 0}});
  CHECK(equal(row_of(each, 1), layer(row_of(all, 1), 5)));
  CHECK(equal(row_of(each, 2), layer(row_of(all, 2), Seed{1, 2})));
  CHECK(each.labels.equal(all.labels));
  CHECK(each.segmentation_masks.scalar_type() == at::kInt);
  CHECK_THAT(error_line([&] { layer(all, std::vector<Seed>{{1, 0}}); }), Contains("1 seeds for"));
}

TEST_CASE("a data pipeline makes the same boxes on any number of threads") {
  const LabeledImages data = detection(30);
  const Pipeline augment({RandomFlip("horizontal", {.bounding_box_format = "xyxy"}),
                          RandomRotation(0.1, {.bounding_box_format = "xyxy"}),
                          RandomCrop(16, 12, {.bounding_box_format = "xyxy"})});
  const auto epoch = [&](int64_t threads) {
    const DataPipeline rows =
        DataPipeline(Examples{.x = {data.images},
                              .y = {data.bounding_boxes.boxes, data.bounding_boxes.labels,
                                    data.segmentation_masks}})
            .map(
                [&](Examples row, Seed seed) {
                  const LabeledImages made =
                      augment(LabeledImages{.images = row.x[0],
                                            .bounding_boxes = {row.y[0], row.y[1]},
                                            .segmentation_masks = row.y[2]},
                              seed);
                  return Examples{.x = {made.images},
                                  .y = {made.bounding_boxes.boxes, made.bounding_boxes.labels,
                                        made.segmentation_masks}};
                },
                {.threads = threads})
            .batch(8);
    std::vector<at::Tensor> all;
    BatchLoader loader(rows, {});
    while (const std::optional<Examples> batch = loader.next()) {
      all.push_back(batch->x[0]);
      all.insert(all.end(), batch->y.begin(), batch->y.end());
    }
    return all;
  };
  const std::vector<at::Tensor> one = epoch(1), two = epoch(2);
  REQUIRE(one.size() == 16);
  REQUIRE(two.size() == 16);
  for (size_t i = 0; i < one.size(); ++i) CHECK(one[i].equal(two[i]));
  CHECK_FALSE(one[1].equal(data.bounding_boxes.boxes.slice(0, 0, 8)));
}

TEST_CASE("masks and boxes are the same with channels first") {
  const LabeledImages last = detection(3);
  LabeledImages first = last;
  first.images = last.images.permute({0, 3, 1, 2}).contiguous();
  first.segmentation_masks = last.segmentation_masks.permute({0, 3, 1, 2}).contiguous();
  const auto check = [&](const auto& make) {
    const LabeledImages a = make("channels_last")(last, 3), b = make("channels_first")(first, 3);
    CHECK(a.images.equal(b.images.permute({0, 2, 3, 1})));
    CHECK(a.segmentation_masks.equal(b.segmentation_masks.permute({0, 2, 3, 1})));
    CHECK(a.bounding_boxes.boxes.equal(b.bounding_boxes.boxes));
  };
  check([](const std::string& format) {
    return RandomRotation(0.2,
                          {.data_format = format, .bounding_box_format = "rel_xywh", .name = "a"});
  });
  check([](const std::string& format) {
    return Pipeline({Resizing(9, 30, {.data_format = format, .bounding_box_format = "xyxy"}),
                     CenterCrop(12, 12, {.data_format = format, .bounding_box_format = "xyxy"})});
  });
}

TEST_CASE("padding boxes stay padding") {
  LabeledImages data = objects(2);
  const at::Tensor more = at::full({2, 1, 4}, -1.0);
  data.bounding_boxes = {at::cat({data.bounding_boxes.boxes, more}, 1),
                         at::tensor({3, -1, 3, -1}).view({2, 2})};
  for (const auto& [name, layer] : geometric_augmentation_layers()) {
    CAPTURE(name);
    const at::Tensor labels = layer(data, 2).bounding_boxes.labels;
    CHECK(labels.select(1, 1).eq(-1).all().item<bool>());
  }
}

TEST_CASE("boxes far outside and NaN boxes become padding without an error") {
  LabeledImages data = objects(3);
  data.bounding_boxes.boxes[0].fill_(1e30);
  data.bounding_boxes.boxes[1].fill_(std::nan(""));
  data.bounding_boxes.boxes[2] = at::tensor({1e30, -1e30, 2e30, 2e30}).view({1, 4});
  for (const auto& [name, layer] : geometric_augmentation_layers()) {
    CAPTURE(name);
    const BoundingBoxes made = layer(data, 2).bounding_boxes;
    CHECK(made.labels[0].item<int64_t>() == -1);
    CHECK(made.labels[1].item<int64_t>() == -1);
  }
  data.bounding_boxes = {at::zeros({3, 0, 4}), at::zeros({3, 0}, at::kLong)};
  const AugmentationHandle layer = RandomRotation(0.2, {.bounding_box_format = "rel_xyxy"});
  CHECK(layer(data, 2).bounding_boxes.boxes.sizes().vec() == Shape{3, 0, 4});
}

TEST_CASE("MixUp joins the boxes of both images and mixes the rest") {
  const LabeledImages data = detection(5);
  const AugmentationHandle layer = MixUp(1.0, {.name = "m"});
  const LabeledImages made = layer(data, 4);
  CHECK(made.bounding_boxes.boxes.sizes().vec() == Shape{5, 4, 4});
  CHECK(made.bounding_boxes.labels.sizes().vec() == Shape{5, 4});
  CHECK(made.bounding_boxes.boxes.narrow(1, 0, 2).equal(data.bounding_boxes.boxes));
  const std::vector<at::Tensor> without = layer({data.images, data.labels}, 4);
  CHECK(made.images.equal(without[0]));
  CHECK(made.labels.equal(without[1]));
  // The image is computed from what the boxes enclose.
  LabeledImages shown = data;
  shown.segmentation_masks = data.images.narrow(3, 0, 1).contiguous();
  CHECK(layer(shown, 4).segmentation_masks.equal(made.images.narrow(3, 0, 1)));
}

TEST_CASE("color augmentation leaves boxes and masks unchanged, without a box format") {
  const LabeledImages data = detection(3);
  for (const AugmentationHandle& layer : std::vector<AugmentationHandle>{
           RandomHue(0.2), RandomContrast(0.3), RandomGrayscale(0.5), RandomErasing(1.0),
           RandomInvert(), RandomGaussianBlur(), ContrastLimitedAdaptiveHistogramEqualization()}) {
    const LabeledImages made = layer(data, 2);
    CHECK(made.bounding_boxes.boxes.equal(data.bounding_boxes.boxes));
    CHECK(made.segmentation_masks.equal(data.segmentation_masks));
  }
}

TEST_CASE("RandomElasticTransform moves masks as it moves images, and refuses boxes") {
  const at::Tensor masks = at::randint(5, {6, 24, 18, 1}, at::kByte);
  const LabeledImages data{.images = masks.to(at::kFloat).expand({6, 24, 18, 3}),
                           .segmentation_masks = masks};
  const AugmentationHandle layer = RandomElasticTransform(
      {0.5, 0.9}, {.scale = {0.8, 1}, .interpolation = "nearest", .name = "e"});
  const LabeledImages made = layer(data, 2);
  CHECK(made.segmentation_masks.scalar_type() == at::kByte);
  CHECK_FALSE(made.segmentation_masks.equal(masks));
  CHECK(made.images.narrow(3, 0, 1).equal(made.segmentation_masks.to(at::kFloat)));
  CHECK_THAT(error_line([&] { layer(detection(2), 2); }),
             Contains("[RandomElasticTransform e] bounding boxes are not supported"));
}

TEST_CASE("AugMix mixes masks as it mixes images, by geometric steps") {
  const LabeledImages data{.images = at::rand({2, 9, 8, 3}),
                           .segmentation_masks = at::rand({2, 9, 8, 1})};
  // Without color changes in a chain, the mask of a channel is that channel.
  const AugmentationHandle layer = AugMix({.chain_depth = 0, .name = "a"});
  const LabeledImages made = layer(data, 3);
  CHECK(at::allclose(made.segmentation_masks, data.segmentation_masks));
  CHECK(at::allclose(made.images, data.images));
  const LabeledImages moved = AugMix({.chain_depth = 8, .name = "a"})(data, 3);
  CHECK_FALSE(at::allclose(moved.segmentation_masks, data.segmentation_masks));
}

TEST_CASE("MaxNumBoundingBoxes drops boxes or adds padding, and keeps the rest") {
  const LabeledImages data = detection(3);
  const LabeledImages less = MaxNumBoundingBoxes(1)(data, 2);
  CHECK(less.bounding_boxes.boxes.equal(data.bounding_boxes.boxes.narrow(1, 0, 1)));
  CHECK(less.bounding_boxes.labels.equal(data.bounding_boxes.labels.narrow(1, 0, 1)));
  CHECK(less.images.equal(data.images));
  CHECK(less.segmentation_masks.equal(data.segmentation_masks));
  const AugmentationHandle layer = MaxNumBoundingBoxes(5, {.fill_value = -7, .name = "m"});
  const LayerHandle read = layer_from_config(layer_json(*layer.layer()), JsonPath("again"));
  CHECK(read->config().at("fill_value") == -7);
  const LabeledImages more = layer(data, 2);
  CHECK(more.bounding_boxes.boxes.sizes().vec() == Shape{3, 5, 4});
  CHECK(more.bounding_boxes.boxes.narrow(1, 0, 2).equal(data.bounding_boxes.boxes));
  CHECK(more.bounding_boxes.boxes.narrow(1, 2, 3).eq(-7).all().item<bool>());
  CHECK(more.bounding_boxes.labels.narrow(1, 2, 3).eq(-7).all().item<bool>());
}

TEST_CASE("a box format is read, written and checked") {
  const LayerHandle layer = RandomZoom(0.2, {.bounding_box_format = "rel_yxyx", .name = "z"});
  CHECK(layer->config().at("bounding_box_format") == "rel_yxyx");
  const LayerHandle again = layer_from_config(layer_json(*layer.layer()), JsonPath("again"));
  CHECK(layer_json(*again.layer()) == layer_json(*layer.layer()));
  CHECK_FALSE(LayerHandle(RandomZoom(0.2))->config().contains("bounding_box_format"));
  CHECK_THAT(
      error_line([] { RandomFlip("vertical", {.bounding_box_format = "xyzw"}); }),
      Contains(
          "[RandomFlip] the bounding box format is known. Received: \"xyzw\". To fix: use one"));
  CHECK_THAT(error_line([] { Resizing(3, 4, {.bounding_box_format = "xyhw", .name = "r"}); }),
             Contains("[Resizing r]") && Contains("To fix: write \"xywh\"."));
  CHECK_THAT(error_line([] { CenterCrop(3, 4, {.bounding_box_format = "?"}); }),
             Contains("[CenterCrop]"));
}

TEST_CASE("labels, boxes and masks that do not fit the images are refused in one line, by name") {
  const AugmentationHandle layer =
      RandomFlip("vertical", {.bounding_box_format = "xyxy", .name = "f"});
  const LabeledImages fits = detection(3);
  const auto refused = [&](const auto& change) {
    LabeledImages data = fits;
    change(data);
    return error_line([&] { layer(data, 1); });
  };
  CHECK_THAT(refused([](auto& x) { x.images = at::Tensor(); }),
             Contains("[RandomFlip f] images are one"));
  CHECK_THAT(refused([](auto& x) { x.images = at::rand({3, 4}); }), Contains("Received: (3, 4)"));
  CHECK_THAT(refused([](auto& x) {
               x.labels = at::rand({2, 4});
             }),
             Contains("labels have one row for each of 3 images. Received: (2, 4)"));
  CHECK_THAT(refused([](auto& x) {
               x.bounding_boxes.boxes = at::rand({2, 2, 4});
             }),
             Contains("boxes are (3, boxes, 4)") && Contains("Received: (2, 2, 4)"));
  CHECK_THAT(refused([](auto& x) {
               x.bounding_boxes.boxes = at::rand({2, 4});
             }),
             Contains("Received: (2, 4)"));
  CHECK_THAT(refused([](auto& x) {
               x.bounding_boxes.boxes = at::rand({3, 2, 5});
             }),
             Contains("Received: (3, 2, 5)"));
  CHECK_THAT(refused([](auto& x) {
               x.bounding_boxes.labels = at::zeros({3, 3});
             }),
             Contains("labels of boxes are (3, 2). Received: (3, 3)"));
  CHECK_THAT(refused([](auto& x) { x.bounding_boxes.labels = at::Tensor(); }),
             Contains("Received: no labels"));
  CHECK_THAT(refused([](auto& x) {
               x.segmentation_masks = at::zeros({3, 24, 17, 1});
             }),
             Contains("segmentation_masks have the axes of the images") &&
                 Contains("(3, 24, 17, 1) for (3, 24, 18, 3)"));
  CHECK_THAT(refused([](auto& x) {
               x.segmentation_masks = at::zeros({3, 24, 18});
             }),
             Contains("with a channel axis"));
  CHECK_THAT(error_line([&] { RandomFlip("vertical", {.name = "g"})(fits, 1); }),
             Contains("[RandomFlip g] bounding_box_format must be set for bounding boxes") &&
                 Contains("such as \"xyxy\""));
  CHECK_THAT(error_line([&] { CutMix(1.0, {.name = "c"})(fits, 1); }), Contains("[CutMix c]"));
  CHECK_THAT(error_line([&] { Pipeline({ZeroPadding2D(2)})(fits, 1); }),
             Contains("must support boxes and masks, like Resizing"));
}

}  // namespace labeled_images_test
