#include <tessera/layers/preprocessing/bounding_boxes.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/keras_layers.hpp"

/// The functions of keras.utils.bounding_boxes.
namespace bounding_boxes_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using namespace tessera::bounding_boxes;
using Catch::Matchers::Contains;

namespace {

at::Tensor golden_input(const std::string& name) {
  return input_tensor(golden_part("keras_boxes.json", "utilities").at("given").at(name));
}

std::string unlike_keras(const std::string& name, const at::Tensor& made) {
  return unlike(made, golden_part("keras_boxes.json", "utilities").at("made").at(name));
}

}  // namespace

TEST_CASE("box formats are converted as in Keras") {
  const Json& all = golden_part("keras_boxes.json", "conversions");
  CHECK(all.size() == 81);
  for (const Json& golden : all) {
    const auto source = golden.at("source").get<std::string>();
    const auto target = golden.at("target").get<std::string>();
    CAPTURE(source, target);
    const at::Tensor boxes = input_tensor(golden.at("boxes"));
    CHECK(unlike(convert_format(boxes, source, target, 40, 30), golden.at("made")) == "");
  }
}

TEST_CASE("integers are computed in float32, float64 stays, and names are case-insensitive") {
  const at::Tensor boxes = at::tensor({10, 20, 30, 50}).view({1, 4});
  const at::Tensor made = convert_format(boxes, "XYXY", "Center_xyWH");
  CHECK(made.equal(at::tensor({20.F, 35.F, 20.F, 30.F}).view({1, 4})));
  CHECK(convert_format(boxes.to(at::kDouble), "xyxy", "yxyx").scalar_type() == at::kDouble);
}

TEST_CASE("functions on boxes match Keras") {
  const at::Tensor one = golden_input("one"), other = golden_input("other"),
                   far = golden_input("far");
  CHECK(unlike_keras("iou", compute_iou(one, other, "xyxy")) == "");
  CHECK(unlike_keras("iou_one", compute_iou(one[0], other, "xywh")) == "");
  const ComputeIouOptions sized{.height = 20, .width = 30};
  CHECK(unlike_keras("iou_rel", compute_iou(one[0] / 30, other[0] / 30, "rel_xyxy", sized)) == "");
  CHECK(unlike_keras("iou_masked",
                     compute_iou(far, far, "yxyx", {.use_masking = true, .mask_val = -3})) == "");
  CHECK(unlike_keras("ciou", compute_ciou(one, other.narrow(1, 0, 4), "center_xywh")) == "");
  const BoundingBoxes clipped = clip_to_image_size({far, golden_input("labels")}, 20, 30);
  CHECK(unlike_keras("clip", clipped.boxes) == "");
  CHECK(unlike_keras("clip_labels", clipped.labels) == "");
  const BoundingBoxes shares = clip_to_image_size({far / 20, {}}, 0, 0, "rel_xyxy");
  CHECK(unlike_keras("clip_rel", shares.boxes) == "");
  CHECK_FALSE(shares.labels.defined());
  CHECK(unlike_keras("crop", crop(far, 3, 5, 10, 12)) == "");
  CHECK(unlike_keras("pad", pad(far, 3, 5)) == "");
}

TEST_CASE("box deltas from anchors match Keras and decode to the boxes") {
  const at::Tensor anchors = golden_input("anchors"), near = golden_input("near");
  const at::Tensor deltas = encode_box_to_deltas(anchors, near, "xyxy", "xyxy");
  CHECK(unlike_keras("deltas", deltas) == "");
  CHECK(at::allclose(decode_deltas_to_boxes(anchors, deltas, "xyxy", "xyxy"), near, 1e-4, 1e-4));
  CHECK(unlike_keras("decoded", decode_deltas_to_boxes(anchors, golden_input("deltas"), "xyxy",
                                                       "rel_xyxy", {.height = 20, .width = 30})) ==
        "");
  const BoxDeltasOptions scaled{.encoding_format = "center_xywh", .variance = {0.1, 0.1, 0.2, 0.2}};
  CHECK(unlike_keras("deltas_scaled",
                     encode_box_to_deltas(anchors, near, "xyxy", "xywh", scaled)) == "");
  CHECK(
      unlike_keras("decoded_scaled", decode_deltas_to_boxes(anchors, golden_input("deltas_scaled"),
                                                            "xyxy", "xyxy", scaled)) == "");
}

TEST_CASE("labels whose dtype cannot hold -1 are converted") {
  const at::Tensor boxes = at::tensor({0.F, 0.F, 5.F, 5.F, 30.F, 0.F, 40.F, 5.F}).view({2, 4});
  const BoundingBoxes made = clip_to_image_size({boxes, at::tensor({3, 4}).to(at::kByte)}, 20, 20);
  CHECK(made.labels.equal(at::tensor({3, -1}, at::kInt)));
}

TEST_CASE("invalid boxes are refused in one line") {
  const at::Tensor boxes = at::rand({2, 3, 4});
  CHECK(error_line([&] { convert_format(boxes, "xyxy", "xyhw"); }) ==
        "[convert_format] the bounding box format is known. Received: \"xyhw\". To fix: write "
        "\"xywh\".");
  CHECK_THAT(error_line([&] { convert_format(boxes, "xyxy", "rel_xyxy", 0, 5); }),
             Contains("[convert_format] height and width are above 0"));
  CHECK_THAT(error_line([&] {
               convert_format(at::rand({3, 5}), "xyxy", "xywh");
             }),
             Contains("Received: (3, 5)"));
  CHECK_THAT(error_line([&] { convert_format({}, "xyxy", "xywh"); }),
             Contains("Received: an empty tensor"));
  CHECK_THAT(error_line([&] {
               clip_to_image_size({boxes, at::zeros({2, 4})}, 5, 5);
             }),
             Contains("labels are (2, 3), one for each box. Received: (2, 4)"));
  CHECK_THAT(error_line([&] {
               clip_to_image_size({boxes, {}}, 5, 5, "xywh");
             }),
             Contains("\"xyxy\" or \"rel_xyxy\""));
  CHECK_THAT(error_line([&] { compute_iou(boxes[0][0], boxes, "xyxy"); }),
             Contains("[compute_iou] boxes are (boxes, 4) or (batch, boxes, 4). Received: (4,)"));
  CHECK_THAT(error_line([&] { compute_ciou(boxes, boxes, "rel_xyxy"); }),
             Contains("[compute_ciou]"));
  CHECK_THAT(
      error_line([&] { encode_box_to_deltas(boxes, boxes, "xyxy", "xyxy", {.variance = {0.1}}); }),
      Contains("variance holds four numbers"));
}

}  // namespace bounding_boxes_test
