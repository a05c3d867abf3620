"""Writes keras_ops_c.json: further functions of keras.ops on jax, and their gradients.

Made with keras 3.15.1, jax 0.10.2 and numpy 2.4.6 from PyPI. Run it in this folder:
python3 make_keras_ops_c.py
"""

import os

os.environ["KERAS_BACKEND"] = "jax"

import jax.numpy as jnp
import keras
import numpy as np

from keras_golden import write
from keras_ops_golden import jax_case

rng = np.random.default_rng(97)
# The last input, a mask, says where the first one is NaN, which JSON lacks.
OF_HOLES = ("nansum", "nanmean", "nanmax", "nanmin", "nanprod", "nanstd", "nanvar", "nancumsum",
            "nancumprod", "fmax", "fmin")
# Of x / z, where z is 0.
OF_QUOTIENTS = ("isposinf", "isneginf")
OF_LISTS = ("hstack", "vstack", "dstack")


def floats(shape, lo=-2.0, hi=2.0):
    return rng.uniform(lo, hi, shape).round(3).astype(np.float32)


def distinct(shape):
    """Returns numbers that differ, so that maxima do not tie."""
    return (rng.permutation(np.prod(shape)) / 8 - 1.3).round(3).reshape(shape).astype(np.float32)


def integers(shape, lo=-9, hi=10):
    return rng.integers(lo, hi, shape).astype(np.int32)


def holes(shape):
    """Returns a mask of every fifth element; no row is NaN throughout."""
    return (np.arange(np.prod(shape)) % 5 == 1).reshape(shape)


def reductions():
    shape = (2, 4, 3)
    for name in OF_HOLES[:7]:
        for attributes in ({}, {"axis": 1}, {"axis": [0, 2], "keepdims": True}):
            yield name, attributes, [distinct(shape), holes(shape)]
    for name in OF_HOLES[7:9]:
        for axis in (0, 1):
            yield name, {"axis": axis}, [floats(shape), holes(shape)]
    for attributes in ({}, {"axis": 1}, {"axis": [0, 2]}):
        yield "count_nonzero", attributes, [integers(shape, -1, 2)]
        yield "average", attributes, [floats(shape)]
        yield "average", attributes, [floats(shape), floats(shape, 0.2, 2)]
        yield "ptp", attributes, [distinct(shape)]
    yield "average", {"axis": 1}, [floats(shape), floats((4,), 0.2, 2)]
    yield "count_nonzero", {"axis": 0}, [floats((3, 5)).round()]
    yield "ptp", {"axis": 1, "keepdims": True}, [integers(shape)]
    for attributes in ({}, {"n": 2}, {"n": 0}, {"axis": 0}, {"n": 5, "axis": 1}):
        yield "diff", attributes, [floats(shape)]
    yield "diff", {}, [integers((3, 5))]
    yield "diff", {"axis": 0}, [holes((4, 3))]
    for attributes in ({}, {"dx": 0.5, "axis": 1}):
        yield "trapezoid", attributes, [floats(shape)]
    yield "trapezoid", {"axis": 1}, [floats(shape), np.sort(floats((4,)))]
    yield "trapezoid", {"axis": 1}, [floats(shape), floats(shape)]
    for k in (1, 2):
        yield "in_top_k", {"k": k}, [integers((6,), 0, 4), distinct((6, 4))]


def elementwise():
    yield "deg2rad", {}, [floats((3, 5), -180, 180)]
    yield "rad2deg", {}, [floats((3, 5), -3, 3)]
    for name in ("deg2rad", "fabs"):
        yield name, {}, [integers((3, 5))]
    yield "fabs", {}, [floats((3, 5))]
    for name in OF_QUOTIENTS:
        yield name, {}, [np.array([0, 1, -1, 2], np.float32), np.array([0, 0, 0, 1], np.float32)]
    for name in ("fmax", "fmin"):
        yield name, {}, [floats((3, 5)), floats((5,)), holes((3, 5))]
    divisors = floats((3, 5), 0.5, 2)
    divisors[0, 1] = divisors[2, 3] = 0
    yield "divide_no_nan", {}, [floats((3, 5)), divisors]
    yield "heaviside", {}, [np.array([-1.5, 0, 2, 0], np.float32), floats((4,))]
    yield "logaddexp2", {}, [floats((3, 5)), floats((5,))]
    yield "logaddexp2", {}, [np.array([130, -130, 1], np.float32),
                             np.array([128, 5, 1], np.float32)]
    x = floats((3, 5), 1, 2)
    y = x * np.array([1, 1 + 5e-6, 1.001, 1.5, 1], np.float32)
    for attributes in ({}, {"rtol": 0.01}, {"rtol": 0.0, "atol": 0.6}, {"rtol": 1.0}):
        yield "isclose", attributes, [x, y]
        yield "allclose", attributes, [x, y]
    yield "isclose", {}, [integers((5,), 0, 3), integers((5,), 0, 3)]
    yield "celu", {}, [floats((3, 5))]
    yield "celu", {"alpha": 0.5}, [floats((3, 5))]
    yield "glu", {}, [floats((3, 4))]
    yield "glu", {"axis": 0}, [floats((4, 3))]
    for name in ("hard_tanh", "hard_swish", "swish"):
        yield name, {}, [floats((3, 5), -4, 4)]
    for invert in (False, True):
        yield "isin", {"invert": invert}, [integers((4, 5), 0, 9), integers((2, 3), 0, 12)]
    yield "isin", {}, [floats((7,)).round(), floats((3,)).round()]


def moves():
    yield "hstack", {}, [floats((3,)), floats((2,))]
    yield "hstack", {}, [floats((2, 3, 2)), floats((2, 1, 2))]
    yield "vstack", {}, [floats((3,)), floats((3,))]
    yield "vstack", {}, [floats((2, 3)), floats((1, 3))]
    yield "dstack", {}, [floats((3,)), floats((3,))]
    yield "dstack", {}, [floats((2, 3)), floats((2, 3))]
    yield "dstack", {}, [floats((2, 3, 1)), floats((2, 3, 4))]
    yield "append", {}, [floats((2, 3)), floats((4,))]
    yield "append", {"axis": 1}, [floats((2, 3)), floats((2, 1))]
    yield "array_split", {"indices_or_sections": 3}, [floats((7, 2))]
    yield "array_split", {"indices_or_sections": 4, "axis": 1}, [floats((2, 7))]
    yield "hsplit", {"indices_or_sections": 2}, [floats((4,))]
    for name, shape in (("hsplit", (2, 4)), ("vsplit", (4, 2)), ("dsplit", (2, 1, 4))):
        yield name, {"indices_or_sections": 2}, [floats(shape)]
        yield name, {"indices_or_sections": [1, 3]}, [floats(shape)]
    for indexing in ("xy", "ij"):
        yield "meshgrid", {"indexing": indexing}, [floats((2,)), floats((3,))]
        yield "meshgrid", {"indexing": indexing}, [floats((2,)), floats((3,)), floats((4,))]
    yield "diagflat", {"k": 1}, [floats((2, 3))]
    yield "diagflat", {"k": -2}, [floats((3,))]


def products():
    yield "cross", {}, [floats((5, 3)), floats((5, 3))]
    yield "cross", {}, [floats((2, 5, 3)), floats((5, 3))]
    yield "cross", {"axis": 0}, [floats((3, 4)), floats((3, 4))]
    yield "kron", {}, [floats((3, 2)), floats((2, 5))]
    yield "kron", {}, [floats((3,)), floats((2, 5))]
    yield "kron", {}, [floats((4,)), floats((3,))]
    yield "vander", {}, [floats((4,))]
    yield "vander", {"N": 3, "increasing": True}, [floats((5,))]
    for attributes in ({}, {"is_causal": True}, {"scale": 0.3}):
        yield "dot_product_attention", attributes, [floats((2, 5, 2, 4)) for _ in range(3)]
    inputs = [floats((2, 5, 2, 4)) for _ in range(3)]
    mask = rng.integers(0, 3, (2, 1, 5, 5)) > 0
    mask[..., 0] = True
    yield "dot_product_attention", {"given": ["mask"]}, [*inputs, mask]
    yield "dot_product_attention", {"given": ["bias"]}, [*inputs, floats((2, 2, 5, 5))]
    yield ("dot_product_attention", {"given": ["bias", "mask"]},
           [*inputs, floats((1, 2, 5, 5)), mask])


def windows():
    x = (2, 7, 6, 3)
    for attributes in ({"pool_size": [2, 3], "strides": [2, 2]},
                       {"pool_size": [3, 2], "strides": [2, 1], "padding": "same"}):
        yield "average_pool", attributes, [floats(x)]
    yield "adaptive_average_pool", {"output_size": [3, 4]}, [floats(x)]
    for attributes in ({"strides": [1, 1]}, {"strides": [2, 2], "padding": "same"},
                       {"strides": [1, 1], "dilation_rate": [2, 1]}):
        yield "depthwise_conv", attributes, [floats(x), floats((3, 2, 3, 2))]
        yield "separable_conv", attributes, [floats(x), floats((3, 2, 3, 2)), floats((1, 1, 6, 4))]


def normalizations():
    shape = (2, 4, 3)
    for axis in (1, -1):
        extent = shape[axis]
        moments = [floats((extent,)), floats((extent,), 0.3, 2)]
        yield "batch_normalization", {"axis": axis}, [floats(shape), *moments]
        yield ("batch_normalization", {"axis": axis, "epsilon": 0.1, "given": ["offset", "scale"]},
               [floats(shape), *moments, floats((extent,)), floats((extent,))])
        yield ("batch_normalization", {"axis": axis, "given": ["scale"]},
               [floats(shape), *moments, floats((extent,))])
    yield "layer_normalization", {}, [floats(shape)]
    yield "layer_normalization", {"epsilon": 0.2}, [floats(shape), floats((3,)), floats((3,))]
    yield "layer_normalization", {"axis": [1, 2]}, [floats(shape), floats((4, 3)), floats((4, 3))]
    yield "rms_normalization", {}, [floats(shape)]
    yield "rms_normalization", {"epsilon": 0.2}, [floats(shape), floats((3,))]
    yield "rms_normalization", {"axis": [1, 2]}, [floats(shape), floats((4, 3))]


def cross_entropies():
    shape = (2, 5, 3)
    for from_logits in (False, True):
        lo, hi = (-3, 3) if from_logits else (0.1, 0.9)
        logits = {"from_logits": from_logits}
        yield "binary_crossentropy", logits, [floats(shape, 0, 1), floats(shape, lo, hi)]
        yield "categorical_crossentropy", logits, [floats(shape, 0, 1), floats(shape, lo, hi)]
        yield ("categorical_crossentropy", {**logits, "axis": 1},
               [floats(shape, 0, 1), floats(shape, lo, hi)])
        yield "sparse_categorical_crossentropy", logits, [integers((2, 5), 0, 3),
                                                          floats(shape, lo, hi)]
        yield "sparse_categorical_crossentropy", logits, [integers((4, 1), 0, 3),
                                                          floats((4, 3), lo, hi)]


def constants():
    for numbers in ({"num": 5}, {"num": 4, "endpoint": False}, {"num": 1}, {"num": 0}):
        yield "logspace", {"start": -1, "stop": 1.5, **numbers}, []
        yield "geomspace", {"start": 0.5, "stop": 8, **numbers}, []
    yield "logspace", {"start": 0, "stop": 3, "num": 7, "base": 2}, []
    yield "geomspace", {"start": -3, "stop": -0.1, "num": 6}, []


# Their derivative is 0, or is taken elsewhere.
NO_GRADIENT = ("isposinf", "isneginf", "count_nonzero")


def case(name, attributes, inputs):
    function = getattr(keras.ops, name)
    options = {key: tuple(value) if isinstance(value, list) and key != "indices_or_sections"
               else value for key, value in attributes.items()}
    given = options.pop("given", ())

    def call(*tensors):
        if name in OF_HOLES:
            tensors = [jnp.where(tensors[-1], jnp.nan, tensors[0]), *tensors[1:-1]]
        if name in OF_QUOTIENTS:
            tensors = [tensors[0] / tensors[1]]
        if name in OF_LISTS:
            tensors = [list(tensors)]
        if name == "average" and len(tensors) == 2:
            return function(tensors[0], weights=tensors[1], **options)
        plain = len(tensors) - len(given)
        y = function(*tensors[:plain], **options, **dict(zip(given, tensors[plain:])))
        # Of several results, all elements.
        several = isinstance(y, (list, tuple))
        return jnp.concatenate([jnp.ravel(part) for part in y]) if several else jnp.asarray(y)

    return jax_case(name, attributes, inputs, call, name not in NO_GRADIENT)


def main():
    groups = {"reductions": reductions, "elementwise": elementwise, "moves": moves,
              "products": products, "windows": windows, "normalizations": normalizations,
              "cross_entropies": cross_entropies, "constants": constants}
    write("keras_ops_c.json", {group: [case(*row) for row in rows()]
                               for group, rows in groups.items()})


if __name__ == "__main__":
    main()
