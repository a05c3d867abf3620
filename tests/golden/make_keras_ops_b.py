"""Writes keras_ops_b.json: functions of keras.ops on indices, segments and images, and random
numbers of keras.random, of Keras on TensorFlow, with gradients.

Made with keras 3.15.1, tensorflow-cpu 2.21.0 and numpy 2.4.6 from PyPI. Run it in this folder:
python3 make_keras_ops_b.py
"""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf

from keras_golden import tensor, upstream, write

rng = np.random.default_rng(83)
ops = keras.ops


def floats(*shape, dtype=np.float64):
    return rng.normal(0, 2, shape).astype(dtype)


def integers(low, high, *shape, dtype=np.int64):
    return rng.integers(low, high, shape).astype(dtype)


def case(name, inputs, arguments=None, gradient=True):
    """Calls a function of keras.ops; its tensors come first."""
    arguments = arguments or {}
    function = ops
    for part in name.split("."):
        function = getattr(function, part)
    tensors = [tf.constant(x) for x in inputs]
    floating = [x for x in tensors if x.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(floating)
        y = function(*tensors, **arguments)
        first = y[0] if isinstance(y, (tuple, list)) else y
        differentiable = gradient and floating and first.dtype.is_floating
        loss = None
        if differentiable:
            loss = tf.reduce_sum(first * upstream(first.shape).astype(first.dtype.as_numpy_dtype))
    golden = {"name": name, "arguments": arguments, "inputs": [tensor(x) for x in inputs],
              "y": tensor(first.numpy())}
    if first is not y:
        golden["second"] = tensor(y[1].numpy())
    if differentiable:
        gradients = tape.gradient(loss, floating, unconnected_gradients="zero")
        golden["gradients"] = [tensor(tf.convert_to_tensor(g).numpy()) for g in gradients]
    return golden


def segments():
    ids = np.array([2, 0, 1, 2, 0, 1, 0])
    for name in ("segment_sum", "segment_max", "segment_min"):
        yield case(name, [floats(7), ids], {"num_segments": 3})
        yield case(name, [floats(7, 3), ids], {"num_segments": 3})
        yield case(name, [floats(7, 2, 3), ids], {"num_segments": 3})
        yield case(name, [integers(-9, 9, 7, 2, dtype=np.int32), ids], {"num_segments": 3})
        yield case(name, [np.round(floats(7, 3)), ids], {"num_segments": 3})
    yield case("segment_sum", [floats(7, 3), ids * 2], {"num_segments": 6})


def scatters():
    pairs = np.array([[1, 2], [0, 1], [1, 2], [3, 0], [2, 2]])
    rows = np.array([[1], [0], [4], [1]])
    yield case("scatter", [pairs, floats(5)], {"shape": [4, 3]})
    yield case("scatter", [pairs, floats(5, 2)], {"shape": [4, 3, 2]})
    yield case("scatter", [rows, floats(4, 3)], {"shape": [5, 3]})
    yield case("scatter", [pairs.reshape(5, 1, 2), floats(5, 1)], {"shape": [4, 3]})
    yield case("scatter", [rows, integers(-9, 9, 4, 3, dtype=np.int32)], {"shape": [5, 3]})
    for reduction in (None, "add", "max", "min"):
        # TensorFlow adds the gradients of updates that another one replaces.
        distinct = reduction is None
        at = pairs[1:] if distinct else pairs
        yield case("scatter_update", [floats(4, 3), at, floats(len(at))], {"reduction": reduction})
        at = rows[:3] if distinct else rows
        yield case("scatter_update", [floats(5, 3), at, floats(len(at), 3)],
                   {"reduction": reduction})
        yield case("scatter_update", [integers(-9, 9, 5, 3), rows, integers(-9, 9, 4, 3)],
                   {"reduction": reduction})
    for start, shape in (([1, 0], [2, 3]), ([0, 1], [5, 2]), ([2, 1], [2, 1]), ([0, 0], [5, 3])):
        yield case("slice_update", [floats(5, 3), np.array(start, np.int32), floats(*shape)],
                   gradient=False)
    yield case("slice", [floats(5, 4)], {"start_indices": [1, 2], "shape": [3, 2]})
    yield case("slice", [floats(5, 4, 3)], {"start_indices": [0, 1, 2], "shape": [5, 3, 1]})


def indices():
    yield case("take", [floats(5, 3), np.array([0, -1, 3, -5])], {"axis": 0})
    yield case("take", [floats(5, 3), np.array([[0, -1], [2, 1]])], {"axis": 1})
    yield case("take", [floats(5, 3), np.array([14, -15, 7])], {"axis": None})
    yield case("multi_hot", [np.array([0, 2, 2])], {"num_classes": 4})
    yield case("multi_hot", [np.array([[0, 2], [3, -1], [1, 1]])], {"num_classes": 4})
    sequence = np.sort(floats(6))
    for side in ("left", "right"):
        values = np.concatenate([floats(5), sequence[:2]])
        yield case("searchsorted", [sequence, values], {"side": side}, gradient=False)
    bins = [-1.5, 0.0, 0.5, 2.0]
    yield case("digitize", [np.array([-2, -1.5, 0.2, 0.5, 7])], {"bins": bins}, gradient=False)
    yield case("digitize", [integers(-3, 4, 4, 2)], {"bins": bins}, gradient=False)


def counts():
    x = integers(0, 5, 11, dtype=np.int32)
    yield case("bincount", [x], {"minlength": 7})
    yield case("bincount", [x, floats(11)], {"minlength": 7}, gradient=False)
    yield case("bincount", [integers(0, 4, 3, 5, dtype=np.int32)], {"minlength": 6})
    yield case("histogram", [floats(40)], gradient=False)
    yield case("histogram", [floats(30)], {"bins": 4}, gradient=False)
    # TensorFlow computes the edges of a range in float32: these are exact.
    yield case("histogram", [floats(40)], {"bins": 5, "range": (-1.0, 2.75)}, gradient=False)
    yield case("histogram", [floats(9)], {"bins": 1}, gradient=False)


def resizes():
    images = floats(2, 5, 4, 3, dtype=np.float32)
    # TensorFlow rounds the offsets of "bicubic" to 1/1024 if it does not antialias; the layer Resizing
    # is compared with Keras on NumPy.
    for interpolation in ("nearest", "bilinear", "lanczos3", "lanczos5"):
        yield case("image.resize", [images], {"size": [7, 3], "interpolation": interpolation})
    for interpolation in ("bilinear", "bicubic"):
        yield case("image.resize", [images], {"size": [3, 2], "interpolation": interpolation,
                                              "antialias": True})
    yield case("image.resize", [images], {"size": [4, 6], "crop_to_aspect_ratio": True})
    yield case("image.resize", [images], {"size": [4, 6], "pad_to_aspect_ratio": True,
                                          "fill_value": 0.5})
    yield case("image.resize", [images[0]], {"size": [3, 6]})


def images():
    yield from resizes()
    wide = floats(2, 6, 5, 3)
    for arguments in ({"size": [2, 2]}, {"size": [3, 2], "strides": [1, 2]},
                      {"size": [2, 3], "strides": 2, "padding": "same"},
                      {"size": [2, 2], "strides": 1, "dilation_rate": 2},
                      {"size": [3, 3], "strides": 1, "padding": "same", "dilation_rate": 2}):
        yield case("image.extract_patches", [wide], arguments)
    yield case("image.extract_patches", [wide[0]], {"size": [3, 2]})
    yield case("image.extract_patches", [floats(1, 4, 5, 3, 2)], {"size": [2, 2, 1]})
    yield case("image.extract_patches", [floats(1, 4, 5, 3, 2)],
               {"size": [2, 3, 2], "strides": [1, 2, 1], "padding": "same"})
    yield case("image.rgb_to_grayscale", [wide])
    yield case("image.rgb_to_grayscale", [wide[0]])
    yield case("image.rgb_to_grayscale", [integers(0, 256, 2, 3, 2, 3, dtype=np.uint8)])
    yield case("image.rgb_to_grayscale", [wide[..., :1]])
    first = np.moveaxis(wide, -1, 1)
    yield case("image.rgb_to_grayscale", [first], {"data_format": "channels_first"})
    for arguments in ({"top_padding": 1, "bottom_padding": 2, "left_padding": 0,
                       "target_width": 8},
                      {"bottom_padding": 1, "target_height": 9, "left_padding": 2,
                       "right_padding": 3}):
        yield case("image.pad_images", [wide], arguments)
    for arguments in ({"top_cropping": 1, "bottom_cropping": 2, "left_cropping": 0,
                       "target_width": 4},
                      {"bottom_cropping": 1, "target_height": 2, "left_cropping": 2,
                       "right_cropping": 1}):
        yield case("image.crop_images", [wide], arguments)
        yield case("image.crop_images", [first], {**arguments, "data_format": "channels_first"})


def random_case(name, **arguments):
    y = getattr(keras.random, name)(**arguments)
    return {"name": name, "arguments": arguments, "y": tensor(y)}


def numbers():
    for seed in (7, 1337):
        yield random_case("randint", shape=[4, 3], minval=-5, maxval=100, seed=seed)
        yield random_case("randint", shape=[7], minval=0, maxval=2**40, seed=seed, dtype="int64")
        yield random_case("randint", shape=[2, 5], minval=0, maxval=9, seed=seed, dtype="uint8")
        for alpha in (0.3, 1.0, 2.5, 40.0):
            yield random_case("gamma", shape=[3, 5], alpha=alpha, seed=seed)
        yield random_case("gamma", shape=[2, 3], alpha=[[0.5, 1.0, 2.0], [3.0, 4.0, 9.0]],
                          seed=seed, dtype="float64")
        for a, b in ((0.5, 0.5), (2.0, 5.0)):
            yield random_case("beta", shape=[3, 5], alpha=a, beta=b, seed=seed)
        for n, p in ((100.0, 0.5), (1000.0, 0.02), (60.0, 0.75)):
            yield random_case("binomial", shape=[3, 5], counts=n, probabilities=p, seed=seed)
        x = np.arange(12.0).reshape(4, 3)
        for axis in (0, 1):
            golden = random_case("shuffle", x=x, axis=axis, seed=seed)
            golden["arguments"]["x"] = tensor(x)
            yield golden


def main():
    write("keras_ops_b.json", {
        "segments": list(segments()),
        "scatters": list(scatters()),
        "indices": list(indices()),
        "counts": list(counts()),
        "images": list(images()),
        "random": list(numbers()),
    })


if __name__ == "__main__":
    main()
