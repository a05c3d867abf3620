#include <ATen/ATen.h>

#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/augmentation.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/keras_layers.hpp"

/// Bounding boxes and segmentation masks against Keras, given the draws of Keras' layers.
namespace keras_boxes_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

LabeledImages batch_of(const Json& golden) {
  return {.images = input_tensor(golden.at("images")),
          .bounding_boxes = {input_tensor(golden.at("boxes")), input_tensor(golden.at("labels"))},
          .segmentation_masks = input_tensor(golden.at("masks"))};
}

void check_boxes(const BoundingBoxes& made, const Json& golden) {
  CHECK(unlike(made.boxes, golden.at("made_boxes")) == "");
  CHECK(unlike(made.labels, golden.at("made_labels")) == "");
}

}  // namespace

TEST_CASE("boxes and masks follow layers as in Keras for its draws") {
  for (const Json& golden : golden_part("keras_boxes.json", "following")) {
    CAPTURE(golden.at("layer").dump());
    check_config(golden);
    const LayerHandle handle = layer_from_config(golden.at("layer"), JsonPath("golden"));
    const auto layer = as_augmentation(handle);
    const LabeledImages batch = batch_of(golden);
    const Shape shape = batch.images.sizes().vec();
    const Json& table = golden.at("draws");
    const at::Tensor rows =
        table.is_null() ? at::zeros({shape[0], layer->draws(shape)}) : input_tensor(table);
    const ImageDraws draws(packed_on_host(rows), packed_on_host(rows.narrow(0, 0, 1)));
    const DTensor masks = layer->transform_masks(packed_on_host(batch.segmentation_masks), draws);
    CHECK(unlike(masks.full(), golden.at("made_masks")) == "");
    if (layer->class_name() == "CutMix") {
      CHECK_THROWS_WITH(layer->transform_boxes(batch.bounding_boxes, shape, draws),
                        Catch::Matchers::Contains("[CutMix ") &&
                            Catch::Matchers::Contains("To fix: leave the boxes out"));
    } else {
      check_boxes(layer->transform_boxes(batch.bounding_boxes, shape, draws), golden);
    }
  }
}

TEST_CASE("images get as many boxes as in Keras") {
  for (const Json& golden : golden_part("keras_boxes.json", "counted")) {
    CAPTURE(golden.at("layer").dump());
    check_config(golden);
    const LayerHandle layer = layer_from_config(golden.at("layer"), JsonPath("golden"));
    const LabeledImages batch = batch_of(golden);
    const LabeledImages made = call_labeled(*layer.layer(), batch, {});
    check_boxes(made.bounding_boxes, golden);
    CHECK(made.images.equal(batch.images));
    CHECK(made.segmentation_masks.equal(batch.segmentation_masks));
  }
}

TEST_CASE("boxes and masks follow layers that change the size as in Keras") {
  for (const std::string part : {"resized", "small_crop"}) {
    for (const Json& golden : golden_part("keras_boxes.json", part)) {
      CAPTURE(golden.at("layer").dump());
      check_config(golden);
      const LayerHandle layer = layer_from_config(golden.at("layer"), JsonPath("golden"));
      const LabeledImages made = call_labeled(*layer.layer(), batch_of(golden), {});
      check_boxes(made.bounding_boxes, golden);
      CHECK(made.images.size(1) == made.segmentation_masks.size(1));
      if (part == "resized") CHECK(unlike(made.segmentation_masks, golden.at("made_masks")) == "");
    }
  }
}

}  // namespace keras_boxes_test
