"""Writes keras_quantized.json: layers whose kernels are int8.

Made with keras 3.15.1, tensorflow-cpu 2.21.0 and numpy 2.4.6 from PyPI. Run it in this folder:
python3 make_keras_quantized.py
"""

import functools
import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np

import keras_golden
from keras_golden import write

L, R = keras.layers, keras.regularizers
rng = np.random.default_rng(815)
layer_case = functools.partial(keras_golden.layer_case, rng, quantize="int8")


def normal(*shape, dtype=np.float32):
    return rng.normal(0, 2, shape).astype(dtype)


def ids(*shape):
    return rng.integers(0, 6, shape).astype(np.int32)


def dense():
    zeros = normal(4, 5)
    zeros[2] = 0
    return [
        layer_case(L.Dense(3), normal(4, 5)),
        layer_case(L.Dense(4, activation="relu", kernel_regularizer=R.L2(0.1),
                           activity_regularizer=R.L2(0.01), name="hidden"), normal(4, 6)),
        layer_case(L.Dense(2, use_bias=False), zeros),
        layer_case(L.Dense(4, activation="tanh"), normal(3, 2, 5)),
        layer_case(L.Dense(3), normal(2, 3, 1, 4)),
        layer_case(L.Dense(3, dtype="float64"), normal(4, 5, dtype=np.float64)),
        # Sums that float32 cannot hold before they are scaled.
        layer_case(L.Dense(1), np.abs(normal(2, 1100))),
    ]


def einsum_dense():
    return [
        layer_case(L.EinsumDense("ab,bc->ac", 3, bias_axes="c"), normal(4, 5)),
        layer_case(L.EinsumDense("abc,cd->abd", (None, 4), bias_axes="d", activation="relu"),
                   normal(3, 2, 5)),
        layer_case(L.EinsumDense("abc,cde->abde", (None, 2, 3), bias_axes="de"), normal(3, 2, 4)),
        layer_case(L.EinsumDense("abcd,cde->abe", (None, 4), bias_axes="e"), normal(3, 2, 3, 4)),
        layer_case(L.EinsumDense("abc,cd->adb", (4, None)), normal(3, 2, 5)),
        layer_case(L.EinsumDense("abc,bcd->abd", (2, 4)), normal(3, 2, 5)),
    ]


def embedding():
    return [
        layer_case(L.Embedding(6, 4), ids(5)),
        layer_case(L.Embedding(6, 3, name="words"), ids(4, 3)),
        layer_case(L.Embedding(6, 6, dtype="float64"), ids(2, 3)),
    ]


keras.utils.set_random_seed(3)
write("keras_quantized.json",
      {"Dense": dense(), "EinsumDense": einsum_dense(), "Embedding": embedding()})
