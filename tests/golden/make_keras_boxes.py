"""Writes keras_boxes.json: bounding boxes and segmentation masks under image augmentation layers,
with the random draws of each case, and keras.utils.bounding_boxes.

Made with keras 3.15.1, tensorflow-cpu 2.21.0 (imported alone), numpy 2.4.6 and scipy 1.17.1 from
PyPI. Run it in this folder: python3 make_keras_boxes.py

Where Keras' layers move boxes differently from images, the functions here call Keras in another
way, as each one documents, so that all results are still Keras'.
"""

import numpy as np

import make_keras_augmentation as images_of
from keras_golden import compact, serialized, tensor, write
from make_keras_augmentation import L, ROWS, rand_augment, table_of, with_columns

from keras.utils import bounding_boxes as B

rng = images_of.rng = np.random.default_rng(31)
FORMATS = ("xyxy", "yxyx", "xywh", "center_xywh", "center_yxhw", "rel_xyxy", "rel_yxyx", "rel_xywh",
           "rel_center_xywh")


def boxes_in(height, width, count=4):
    """Returns boxes of an image in "xyxy"; the last one is padding."""
    x, y = (np.sort(rng.random((ROWS, count, 2)) * most, -1) for most in (width, height))
    boxes = np.stack([x[..., 0], y[..., 0], x[..., 1], y[..., 1]], -1).astype(np.float32)
    labels = rng.integers(0, 5, (ROWS, count)).astype(np.int32)
    boxes[:, -1], labels[:, -1] = 0, -1
    return boxes, labels


def converted(boxes, source, target, height, width):
    return np.asarray(B.convert_format(boxes.copy(), source, target, height, width))


def called(layer, images, masks, boxes, labels, again=()):
    """Returns the layer's output for copies of these, and its draws."""
    data = {"images": images.copy()}
    if masks is not None:
        data["segmentation_masks"] = masks.copy()
    if boxes is not None:
        data["bounding_boxes"] = {"boxes": boxes.copy(), "labels": labels.copy()}
    return with_columns(layer, lambda: layer(data, training=True), again)


def written(layer, inputs, columns, made, masks):
    images, boxes, labels, given_masks = inputs
    draws = table_of(columns)
    return {"layer": serialized(layer), "images": tensor(images), "boxes": tensor(boxes),
            "labels": tensor(labels), "masks": tensor(given_masks),
            "draws": None if draws is None else tensor(draws),
            "made_boxes": compact(np.asarray(made["boxes"], np.float32)),
            "made_labels": compact(np.asarray(made["labels"])),
            "made_masks": compact(np.asarray(masks, np.float32))}


def inputs_of(layer, height=6, width=8, channels=3):
    form = layer.bounding_box_format or "xyxy"
    boxes, labels = boxes_in(height, width)
    images = (rng.random((ROWS, height, width, channels)) * 255).astype(np.float32)
    masks = rng.integers(0, 7, (ROWS, height, width, 1)).astype(np.uint8)
    return images, converted(boxes, "xyxy", form, height, width), labels, masks


def case(layer, *size):
    inputs = inputs_of(layer, *size)
    images, boxes, labels, masks = inputs
    made, columns = called(layer, images, masks, boxes, labels)
    return written(layer, inputs, columns, made["bounding_boxes"], made["segmentation_masks"])


def in_corners(layer, *size):
    """Calls a layer with "xyxy" boxes, with conversions before and after: RandomRotation treats
    boxes of any format as "xyxy", and RandomPerspective returns "xyxy"."""
    form, layer.bounding_box_format = layer.bounding_box_format, "xyxy"
    inputs = images, boxes, labels, masks = inputs_of(layer, *size)
    made, columns = called(layer, images, masks, boxes, labels)
    extent = images.shape[1:3]
    corners = made["bounding_boxes"]
    layer.bounding_box_format = form
    inputs = images, converted(boxes, "xyxy", form, *extent), labels, masks
    boxes = {"boxes": converted(np.asarray(corners["boxes"]), "xyxy", form, *extent),
             "labels": corners["labels"]}
    return written(layer, inputs, columns, boxes, made["segmentation_masks"])


def crop(height, width, form, *size):
    """RandomCrop swaps top and left, and does not clip: it is called with "yxyx" boxes declared as
    "xyxy", followed by clip_to_image_size()."""
    layer = L.RandomCrop(height, width, seed=4, bounding_box_format="xyxy")
    images, boxes, labels, masks = inputs_of(layer, *size)
    made, columns = called(layer, images, masks, boxes[..., [1, 0, 3, 2]], labels)
    clipped = B.clip_to_image_size({k: np.asarray(v) for k, v in made["bounding_boxes"].items()},
                                   height=width, width=height)
    boxes_made = {"boxes": converted(np.asarray(clipped["boxes"])[..., [1, 0, 3, 2]], "xyxy", form,
                                     height, width), "labels": clipped["labels"]}
    layer.bounding_box_format = form
    inputs = images, converted(boxes, "xyxy", form, *images.shape[1:3]), labels, masks
    return written(layer, inputs, columns, boxes_made, made["segmentation_masks"])


def mix_up(**options):
    """MixUp concatenates labels along the batch and mixes mask pixels as numbers: labels are split
    again, and masks are passed as images, with the same draws."""
    layer = L.MixUp(bounding_box_format="xyxy", **options)
    inputs = images, boxes, labels, masks = inputs_of(layer)
    made, columns = called(layer, images, None, boxes, labels)
    joined = np.concatenate(np.split(np.asarray(made["bounding_boxes"]["labels"]), 2), 1)
    of_masks, _ = called(layer, masks.astype(np.float32), None, None, None, columns)
    return written(layer, inputs, columns,
                   {"boxes": made["bounding_boxes"]["boxes"], "labels": joined},
                   of_masks["images"])


def cut_mix(**options):
    """CutMix gives masks the images' channels, of which the first is taken; it does not support
    boxes."""
    layer = L.CutMix(**options)
    inputs = images, _, _, masks = inputs_of(layer)
    made, columns = called(layer, images, masks, None, None)
    no_boxes = {"boxes": np.zeros((0,)), "labels": np.zeros((0,))}
    return written(layer, inputs, columns, no_boxes, np.asarray(made["segmentation_masks"])[..., :1])


def augment(**options):
    """RandAugment moves boxes once by each drawn layer, in the order of its list: draws are
    selected for which images are transformed in the same way. Its RandomShear is approximate on
    boxes."""
    while True:
        layer = rand_augment(bounding_box_format="xyxy", **options)
        inputs = images, boxes, labels, masks = inputs_of(layer)
        made, columns = called(layer, images, masks, boxes, labels)
        drawn = [int(n) for n in np.floor(11 * columns[0][0])]
        moving = [number for number in drawn if number < 3]
        if moving and 0 not in moving and moving == sorted(set(moving)):
            return written(layer, inputs, columns, made["bounding_boxes"],
                           made["segmentation_masks"])


def following():
    return [case(L.RandomFlip(mode, seed=1, bounding_box_format=form))
            for mode in ("horizontal", "vertical", "horizontal_and_vertical")
            for form in ("xyxy", "rel_center_xywh")] + [
        case(L.RandomFlip(bounding_box_format=form)) for form in FORMATS] + [
        case(L.RandomTranslation(0.4, 0.7, bounding_box_format="xywh")),
        case(L.RandomTranslation(1.0, 0.2, fill_mode="constant", bounding_box_format="rel_yxyx")),
        case(L.RandomZoom(0.5, bounding_box_format="xyxy")),
        case(L.RandomZoom((0.2, 0.7), (-0.6, 0.1), fill_mode="constant", fill_value=3.0,
                          bounding_box_format="rel_xywh"), 9, 5),
        case(L.RandomShear(0.6, 0.0, bounding_box_format="xyxy"), 7, 7),
        case(L.RandomShear(0.0, (0.2, 0.7), bounding_box_format="center_xywh"), 7, 7),
        case(L.RandomErasing(1.0, bounding_box_format="xyxy")),
        case(L.RandomBrightness(0.3, bounding_box_format="rel_xyxy")),
        case(L.RandomContrast(0.5, bounding_box_format="xyxy")),
        in_corners(L.RandomRotation(0.4, bounding_box_format="xyxy")),
        in_corners(L.RandomRotation(0.2, bounding_box_format="center_yxhw"), 5, 9),
        in_corners(L.RandomPerspective(bounding_box_format="xyxy")),
        in_corners(L.RandomPerspective((0.7, 0.9), 0.6, bounding_box_format="rel_xywh"), 9, 6),
        crop(3, 5, "xyxy"), crop(2, 4, "rel_xyxy", 7, 9), crop(6, 5, "center_xywh"),
        mix_up(), mix_up(alpha=1.3), cut_mix(), cut_mix(factor=(0.4, 0.9)),
        augment(), augment(factor=0.8, num_ops=4)]


def resized():
    """Returns cases without draws: CenterCrop, whose masks are not resized here, and Resizing."""
    return [
        case(L.CenterCrop(4, 5, bounding_box_format="xyxy")),
        case(L.CenterCrop(3, 7, bounding_box_format="rel_center_xywh"), 8, 9),
        case(L.Resizing(9, 5, bounding_box_format="xyxy")),
        case(L.Resizing(4, 12, bounding_box_format="rel_yxyx"), 7, 5),
        case(L.Resizing(5, 9, crop_to_aspect_ratio=True, bounding_box_format="xyxy"), 8, 8),
        case(L.Resizing(9, 5, crop_to_aspect_ratio=True, bounding_box_format="xywh"), 6, 6),
        case(L.Resizing(8, 12, pad_to_aspect_ratio=True, bounding_box_format="xyxy"), 8, 8),
        case(L.Resizing(12, 6, pad_to_aspect_ratio=True, bounding_box_format="rel_xyxy"), 6, 6)]


def counted():
    """Returns cases of MaxNumBoundingBoxes, for images of four boxes."""
    return [case(L.MaxNumBoundingBoxes(number, bounding_box_format="xyxy"))
            for number in (2, 4, 7)]


def small_crop():
    """Returns only boxes of CenterCrop if the image is too small: its masks are interpolated."""
    layer = L.CenterCrop(9, 7, bounding_box_format="xyxy")
    inputs = inputs_of(layer)
    images, boxes, labels, masks = inputs
    made, columns = called(layer, images, None, boxes, labels)
    return [written(layer, inputs, columns, made["bounding_boxes"], np.zeros((0,)))]


def conversions():
    cases = []
    boxes, _ = boxes_in(40, 30)
    for source in FORMATS:
        given = converted(boxes, "xyxy", source, 40, 30)
        for target in FORMATS:
            cases.append({"source": source, "target": target, "boxes": tensor(given),
                          "made": compact(converted(given, source, target, 40, 30))})
    return cases


def utilities():
    """Returns cases of each function of keras.utils.bounding_boxes."""
    one, other = boxes_in(20, 30)[0], boxes_in(20, 30, 5)[0]
    far = (one * 2 - 15).astype(np.float32)
    labels = rng.integers(0, 5, one.shape[:2]).astype(np.int32)
    anchors = boxes_in(20, 30)[0][0][:3]
    near = one[:, :3] + 1
    clipped = {form: B.clip_to_image_size(
        {"boxes": far / scale, "labels": labels}, 20, 30, form)
        for form, scale in (("xyxy", 1), ("rel_xyxy", 20))}
    deltas = B.encode_box_to_deltas(anchors, near, "xyxy", "xyxy")
    scaled = B.encode_box_to_deltas(anchors, near, "xyxy", "xywh", "center_xywh", (0.1, 0.1, 0.2, 0.2))
    shape = (20, 30, 3)
    made = {
        "iou": B.compute_iou(one, other, "xyxy"), "iou_one": B.compute_iou(one[0], other, "xywh"),
        "iou_rel": B.compute_iou(one[0] / 30, other[0] / 30, "rel_xyxy", image_shape=shape),
        "iou_masked": B.compute_iou(far, far, "yxyx", use_masking=True, mask_val=-3),
        "ciou": B.compute_ciou(one, other[:, :4], "center_xywh"),
        "clip": clipped["xyxy"]["boxes"], "clip_labels": clipped["xyxy"]["labels"],
        "clip_rel": clipped["rel_xyxy"]["boxes"],
        "crop": B.crop(far, 3, 5, 10, 12), "pad": B.pad(far, 3, 5),
        "deltas": deltas, "deltas_scaled": scaled,
        "decoded": B.decode_deltas_to_boxes(anchors, deltas, "xyxy", "rel_xyxy",
                                            image_shape=shape),
        "decoded_scaled": B.decode_deltas_to_boxes(anchors, scaled, "xyxy", "xyxy", "center_xywh",
                                                   (0.1, 0.1, 0.2, 0.2))}
    given = {"one": one, "other": other, "far": far, "labels": labels, "anchors": anchors,
             "near": near.astype(np.float32), "deltas": np.asarray(deltas, np.float32),
             "deltas_scaled": np.asarray(scaled, np.float32)}
    return {"given": {name: tensor(np.asarray(x)) for name, x in given.items()},
            "made": {name: compact(np.asarray(x)) for name, x in made.items()}}


if __name__ == "__main__":
    write("keras_boxes.json", {"following": following(), "resized": resized(),
                               "small_crop": small_crop(), "conversions": conversions(),
                               "utilities": utilities(), "counted": counted()})
