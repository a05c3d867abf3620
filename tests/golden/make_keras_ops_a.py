"""Writes keras_ops_a.json: functions of keras.ops on jax, and their gradients.

Made with keras 3.15.1, jax 0.10.2 and numpy 2.4.6 from PyPI. Run it in this folder:
python3 make_keras_ops_a.py
"""

import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np

from keras_golden import write
from keras_ops_golden import jax_case

rng = np.random.default_rng(53)
# Of x / z, where z is 0: they are about NaN and infinities, which JSON lacks.
OF_QUOTIENTS = ("isnan", "isinf", "isfinite", "nan_to_num")
# Their derivative is 0, or is taken elsewhere.
NO_GRADIENT = OF_QUOTIENTS + ("floor", "ceil", "round", "trunc", "sign", "floor_divide")
OF_LISTS = ("concatenate",)


def floats(shape, lo=-2.0, hi=2.0):
    return rng.uniform(lo, hi, shape).round(3).astype(np.float32)


def distinct(shape):
    """Returns numbers that differ, so that maxima and orders do not tie."""
    return (rng.permutation(np.prod(shape)) / 8 - 1.3).round(3).reshape(shape).astype(np.float32)


def integers(shape, lo=-9, hi=10):
    return rng.integers(lo, hi, shape).astype(np.int32)


def bools(shape):
    return rng.integers(0, 2, shape).astype(bool)


def elementwise():
    for name in ("exp2", "expm1", "square", "sin", "cos", "tan", "tanh", "arctan", "sinh", "cosh",
                 "arcsinh", "erf", "erfc", "floor", "ceil", "trunc", "absolute", "negative"):
        yield name, {}, [floats((3, 5), -1.4, 1.4)]
    for name in ("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal"):
        yield name, {}, [floats((3, 5), 0.2, 3)]
    for name in ("arcsin", "arccos", "arctanh", "erfinv"):
        yield name, {}, [floats((3, 5), -0.9, 0.9)]
    yield "arccosh", {}, [floats((3, 5), 1.1, 4)]
    yield "round", {}, [np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.2], np.float32)]
    yield "sign", {}, [np.array([-2.5, 0, 3], np.float32)]
    for name in OF_QUOTIENTS[:3]:
        yield name, {}, [np.array([0, 1, -1, 2], np.float32), np.array([0, 0, 0, 1], np.float32)]
    for attributes in ({}, {"nan": 1.5, "posinf": 2.5, "neginf": -3.5}):
        yield "nan_to_num", attributes, [np.array([0, 1, -1, 2], np.float32),
                                         np.array([0, 0, 0, 1], np.float32)]


def pairs():
    for name in ("subtract", "multiply", "divide", "true_divide", "arctan2", "hypot", "logaddexp"):
        yield name, {}, [floats((3, 5), 0.3, 2), floats((5,), 0.4, 2)]
    yield "arctan2", {}, [np.array([1, -1, 2, -2], np.float32),
                          np.array([-1, -1, 1, 0.5], np.float32)]
    yield "logaddexp", {}, [np.array([90, -90, 1], np.float32), np.array([88, 5, 1], np.float32)]
    yield "power", {}, [floats((3, 5), 0.3, 2), floats((3, 1))]
    for name in ("mod", "fmod", "floor_divide"):
        yield name, {}, [floats((3, 5), -7, 7), np.array([2.3, -1.7, 3.1, -2.9, 0.8], np.float32)]
        yield name, {}, [integers((3, 5)), np.array([2, -3, 4, -5, 1], np.int32)]
    for name in ("logical_and", "logical_or", "logical_xor"):
        yield name, {}, [bools((3, 5)), bools((5,))]
    yield "logical_not", {}, [bools((3, 5))]
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        yield name, {}, [integers((3, 5)), integers((5,))]
    for name in ("bitwise_not", "bitwise_invert"):
        yield name, {}, [integers((3, 5))]
    for name in ("bitwise_left_shift", "left_shift", "bitwise_right_shift", "right_shift"):
        yield name, {}, [integers((3, 5)), integers((5,), 0, 4)]


def along_axes():
    for shape, attributes in (((3, 5), {}), ((5, 3), {"axis": 0}), ((2, 4, 3), {"axis": 1})):
        yield "sort", attributes, [distinct(shape)]
        yield "argsort", attributes, [distinct(shape)]
    yield "sort", {}, [integers((3, 7), 0, 3)]
    yield "argsort", {}, [integers((3, 7), 0, 3)]
    zeros = floats((3, 5))
    zeros[0, 1] = zeros[1, 0] = zeros[1, 3] = zeros[2, 4] = 0
    yield "cumprod", {"axis": 1}, [zeros]
    yield "cumprod", {"axis": 0}, [zeros]
    yield "cumprod", {"axis": 1}, [floats((2, 4, 3))]
    yield "cumprod", {"axis": 0}, [integers((5,), -3, 4)]
    for attributes in ({}, {"axis": 1}, {"axis": [0, 2], "keepdims": True}):
        for name in ("std", "var", "amax", "amin"):
            yield name, attributes, [distinct((2, 4, 3))]


def norms():
    for attributes in ({}, {"keepdims": True}, {"axis": 1}, {"axis": [0, 2], "keepdims": True}):
        yield "norm", attributes, [floats((2, 4, 3))]
    for order in (0, 1, 2, 3, "inf", "-inf"):
        yield "norm", {"ord": order, "axis": 1}, [distinct((2, 5, 3))]
    for order in ("fro", 1, -1, "inf", "-inf"):
        yield "norm", {"ord": order, "axis": [0, 2]}, [distinct((4, 2, 5))]
    yield "norm", {"ord": 1, "axis": [2, 0], "keepdims": True}, [distinct((4, 2, 5))]
    yield "norm", {"ord": "inf"}, [floats((4, 5))]
    yield "norm", {"ord": 1}, [integers((5,))]
    for attributes in ({}, {"axis": 0}, {"axis": 1, "order": 1}, {"order": 3},
                       {"epsilon": 2.0}, {"order": 1, "epsilon": 3.0}):
        yield "normalize", attributes, [floats((3, 5), 0.1, 2)]


def moves():
    x = (2, 3, 4)
    for attributes in ({"axis1": 0, "axis2": 1}, {"axis1": -1, "axis2": 0}):
        yield "swapaxes", attributes, [floats(x)]
    for source, destination in ((0, 2), (-1, 0), ([0, 1], [-1, 0]), ([2, 0], [0, 1])):
        yield "moveaxis", {"source": source, "destination": destination}, [floats(x)]
    yield "ravel", {}, [floats(x)]
    for attributes in ({}, {"k": 2}, {"k": -1, "axes": [0, 2]}, {"k": 4}, {"k": 1, "axes": [2, 1]}):
        yield "rot90", attributes, [floats(x)]
    yield "fliplr", {}, [floats(x)]
    yield "flipud", {}, [floats(x)]
    for attributes in ({"repeats": 2}, {"repeats": 3, "axis": 1}, {"repeats": 0, "axis": 1},
                       {"repeats": [2, 0, 3], "axis": 1}):
        yield "repeat", attributes, [floats(x)]
    yield "tile", {"repeats": [2, 1, 3]}, [floats(x)]
    yield "expand_dims", {"axis": 1}, [floats(x)]
    yield "squeeze", {"axis": 1}, [floats((3, 1, 4))]
    yield "concatenate", {"axis": 1}, [floats((2, 3)), floats((2, 1))]


def diagonals():
    for k in (0, 2, -1):
        yield "diag", {"k": k}, [floats((4,))]
        yield "diag", {"k": k}, [floats((4, 5))]
    yield "diag", {"k": 7}, [floats((4, 5))]
    for attributes in ({}, {"offset": 1}, {"offset": -2, "axis1": 2, "axis2": 0},
                       {"axis1": 1, "axis2": 2}):
        yield "diagonal", attributes, [floats((3, 4, 5))]
        yield "trace", attributes, [floats((3, 4, 5))]
    yield "trace", {}, [integers((4, 3))]


def products():
    for a, b in (((), (3,)), ((5,), (5,)), ((3, 5), (5,)), ((3, 5), (5, 2)),
                 ((2, 3, 5), (4, 5, 2)), ((5,), (2, 5, 3))):
        yield "dot", {}, [floats(a), floats(b)]
    for a, b in (((5,), (5,)), ((2, 5), (3, 4, 5)), ((2, 5), ())):
        yield "inner", {}, [floats(a), floats(b)]
    yield "vdot", {}, [floats((5,)), floats((5,))]
    yield "vdot", {}, [floats((2, 5)), floats((2, 5))]
    yield "outer", {}, [floats((3,)), floats((5,))]
    yield "outer", {}, [floats((2, 3)), floats(())]
    yield "dot", {}, [integers((3, 5)), integers((5,))]
    yield "tensordot", {}, [floats((2, 3, 4)), floats((3, 4, 5))]
    yield "tensordot", {"axes": 1}, [floats((3, 4)), floats((4, 5))]
    yield "tensordot", {"axes": 0}, [floats((3,)), floats((2, 2))]
    yield "tensordot", {"axes": [[2, 0], [0, 1]]}, [floats((2, 3, 4)), floats((4, 2, 5))]


def constants():
    for name in ("zeros_like", "ones_like"):
        yield name, {}, [floats((3, 4))]
        yield name, {"dtype": "int32"}, [floats((3, 4))]
    yield "full_like", {"fill_value": 2.5}, [floats((3, 4))]
    yield "full", {"shape": [3, 2], "fill_value": -1.5}, []
    yield "zeros", {"shape": [3, 2]}, []
    yield "ones", {"shape": [3, 2]}, []
    for numbers in ({"start": 5}, {"start": 1, "stop": 8, "step": 3},
                    {"start": 0.5, "stop": 3, "step": 0.5}, {"start": 7, "stop": 0, "step": -2},
                    {"start": 3, "stop": 1}, {"start": 0, "stop": 4, "dtype": "float32"}):
        yield "arange", numbers, []
    for numbers in ({"num": 5}, {"num": 4, "endpoint": False}, {"num": 1}, {"num": 0}, {}):
        yield "linspace", {"start": -1, "stop": 2.5, **numbers}, []
    for numbers in ({"N": 3}, {"N": 3, "M": 5, "k": 1}, {"N": 4, "M": 2, "k": -2, "dtype": "int32"}):
        yield "eye", numbers, []
        yield "tri", numbers, []
    yield "identity", {"n": 3}, []


def is_constant(name, attributes):
    """Returns whether the derivative is 0 or the function has none."""
    return name in NO_GRADIENT or name.endswith("_like") or attributes.get("ord") == 0


def given(key, value):
    """Returns an attribute as Keras takes it."""
    if value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, list) and key == "repeats":
        return np.array(value)
    return tuple(value) if isinstance(value, list) else value


def case(name, attributes, inputs):
    function = getattr(keras.ops, name)
    options = {key: given(key, value) for key, value in attributes.items()}

    def call(*tensors):
        if name in OF_QUOTIENTS:
            tensors = [tensors[0] / tensors[1]]
        if name in OF_LISTS:
            tensors = [list(tensors)]
        return function(*tensors, **options)

    return jax_case(name, attributes, inputs, call, not is_constant(name, attributes))


def main():
    groups = {"elementwise": elementwise, "pairs": pairs, "along_axes": along_axes, "norms": norms,
              "moves": moves, "diagonals": diagonals, "products": products,
              "constants": constants}
    write("keras_ops_a.json", {group: [case(*row) for row in rows()]
                               for group, rows in groups.items()})


if __name__ == "__main__":
    main()
