"""Writes keras_layers.json: layers, regularizers and constraints of Keras on TensorFlow.

Made with keras 3.15.1, tensorflow-cpu 2.21.0 and numpy 2.4.6 from PyPI. Run it in this folder:
python3 make_keras_layers.py
"""

import functools
import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf

import keras_golden
from keras_golden import compact, serialized, tensor, write

L, R, C, I = keras.layers, keras.regularizers, keras.constraints, keras.initializers
rng = np.random.default_rng(12)
layer_case = functools.partial(keras_golden.layer_case, rng)


def normal(*shape):
    return rng.normal(0, 1.5, shape).astype(np.float32)


def whole(*shape):
    return rng.integers(0, 200, shape).astype(np.int32)


def dense_cases():
    return [
        layer_case(L.Dense(3), normal(5, 7)),
        layer_case(L.Dense(5, activation="relu", use_bias=False), normal(3, 2, 3)),
        layer_case(L.Dense(2, activation="softmax", kernel_regularizer="l2",
                           bias_regularizer=R.L1(0.02)), normal(3, 2, 1, 3)),
        layer_case(L.Dense(4, activation="tanh", kernel_regularizer=R.L1L2(l1=0.1, l2=0.03),
                           activity_regularizer=R.L2(0.05), kernel_constraint=C.MaxNorm(1.5),
                           bias_constraint="non_neg", kernel_initializer=I.HeNormal(seed=4),
                           bias_initializer=I.Constant(0.5), name="full"), normal(5, 3)),
        layer_case(L.Dense(3, kernel_regularizer=R.OrthogonalRegularizer(0.4),
                           kernel_constraint=C.MinMaxNorm(0.5, 1.5, 0.7, axis=1)), normal(2, 5)),
    ]


def reshaping_cases():
    return [
        layer_case(L.Flatten(), normal(3, 2, 5)), layer_case(L.Flatten(), normal(2, 3, 1, 2, 3)),
        layer_case(L.Flatten("channels_first"), normal(2, 3, 2, 2)),
        layer_case(L.Reshape((3, 5)), normal(3, 15)), layer_case(L.Reshape((-1,)), normal(3, 2, 3)),
        layer_case(L.Reshape((2, -1, 3)), normal(1, 6, 5)),
        layer_case(L.Reshape((6, 5)), normal(2, 3, 2, 5)),
        layer_case(L.Reshape((3, 1, 2, -1)), normal(2, 18)),
        layer_case(L.Permute((1,)), normal(3, 5)), layer_case(L.Permute((2, 1)), normal(3, 2, 5)),
        layer_case(L.Permute((3, 1, 2)), normal(2, 3, 2, 5)),
        layer_case(L.Permute((2, 4, 1, 3)), normal(2, 3, 2, 1, 5)),
        layer_case(L.RepeatVector(3), normal(5, 3)), layer_case(L.RepeatVector(1), normal(2, 5)),
    ]


def merge_cases():
    cases = []
    for kind in (L.Add, L.Multiply, L.Average, L.Maximum, L.Minimum):
        cases += [
            layer_case(kind(), normal(3, 5), normal(3, 5), normal(3, 5)),
            layer_case(kind(), normal(3, 1, 5), normal(3, 4, 1)),
            layer_case(kind(), normal(2, 5), normal(2, 3, 5), normal(2, 3, 1)),
            layer_case(kind(), normal(1, 3, 1, 2, 3), normal(1, 1, 5, 2, 1)),
            layer_case(kind(), normal(5, 3)),
        ]
    cases += [
        layer_case(L.Subtract(), normal(3, 5), normal(3, 5)),
        layer_case(L.Subtract(), normal(3, 5), normal(3, 2, 1)),
        layer_case(L.Add(), whole(3, 2), normal(3, 2)),
    ]
    return cases


def joining_cases():
    return [
        layer_case(L.Concatenate(), normal(3, 5), normal(3, 2), normal(3, 1)),
        layer_case(L.Concatenate(axis=1), normal(3, 5, 2), normal(3, 3, 2)),
        layer_case(L.Concatenate(axis=0), normal(3, 5), normal(2, 5)),
        layer_case(L.Concatenate(axis=-2), normal(2, 1, 3, 2), normal(2, 1, 5, 2)),
        layer_case(L.Concatenate(axis=3), normal(1, 2, 3, 2, 2), normal(1, 2, 3, 1, 2)),
        layer_case(L.Dot(1), normal(5, 3), normal(5, 3)),
        layer_case(L.Dot(-1, normalize=True), normal(5, 3), normal(5, 3)),
        layer_case(L.Dot(2), normal(3, 4, 5), normal(3, 2, 5)),
        layer_case(L.Dot((1, 2)), normal(3, 5, 2), normal(3, 4, 5)),
        layer_case(L.Dot((2, 1), normalize=True), normal(3, 2, 5), normal(3, 5, 4)),
        layer_case(L.Dot((1, 2)), normal(3, 5), normal(3, 2, 5)),
        layer_case(L.Dot((3, 1)), normal(2, 3, 2, 5), normal(2, 5)),
        layer_case(L.Dot((2, -1)), normal(2, 3, 5, 2), normal(2, 3, 5)),
    ]


def scaling_cases():
    return [
        layer_case(L.Rescaling(1 / 255), whole(3, 5)),
        layer_case(L.Rescaling(0.7, offset=-1), normal(3, 2, 5)),
        layer_case(L.Rescaling([0.5, 2, -1], offset=[1, 0.1, 3]), normal(2, 5, 3)),
        layer_case(L.Rescaling(2, offset=[[1, 2, 3], [4, 5, 6]]), normal(5, 2, 3)),
        layer_case(L.Normalization(mean=3, variance=2), normal(5, 3)),
        layer_case(L.Normalization(axis=None, mean=3, variance=2), whole(5, 3, 2)),
        layer_case(L.Normalization(mean=[1, 2, 3], variance=[4, 0, 0.5]), normal(5, 3)),
        layer_case(L.Normalization(axis=(1, 3), mean=[[1, 2], [3, 4], [5, 6]],
                                   variance=[[1, 2], [3, 4], [5, 6]]), normal(2, 3, 5, 2)),
        layer_case(L.Normalization(axis=(3, 1), mean=[1, 2], variance=[3, 4]),
                   normal(2, 3, 5, 2)),
        layer_case(L.Normalization(invert=True), normal(5, 3)),
        layer_case(L.Normalization(axis=1), normal(2, 3, 2, 1, 3)),
        layer_case(L.Normalization(axis=None), normal(3, 5)),
    ]


def other_cases():
    names = ("relu", "sigmoid", "tanh", "softmax", "log_softmax", "softplus", "silu", "exponential",
             "linear", "relu6")
    cases = [layer_case(L.Activation(name), normal(3, 5)) for name in names]
    return cases + [layer_case(L.Dropout(0.4), normal(3, 5)),
                    layer_case(L.Dropout(0.4, noise_shape=(None, 1, 5), seed=3),
                               normal(3, 2, 5))]


def regularizer_case(regularizer, x):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = regularizer(x)
    return {"regularizer": serialized(regularizer), "x": compact(x.numpy()),
            "value": float(value), "gradient": compact(tape.gradient(value, x).numpy())}


def regularizers():
    made = (R.L1(), R.L1(0.3), R.L2(), R.L2(0.2), R.L1L2(0.1, 0.4))
    cases = [regularizer_case(r, normal(*s)) for r in made for s in ((5,), (5, 3), (3, 1, 2, 5))]
    for mode in ("rows", "columns"):
        cases += [regularizer_case(R.OrthogonalRegularizer(0.3, mode), normal(5, 3)),
                  regularizer_case(R.OrthogonalRegularizer(mode=mode), normal(3, 4))]
    return cases


def constraints():
    cases = []
    for kind, options in ((C.NonNeg, {}), (C.MaxNorm, {}), (C.MaxNorm, {"max_value": 0.5}),
                          (C.UnitNorm, {}), (C.MinMaxNorm, {}),
                          (C.MinMaxNorm, {"min_value": 0.5, "max_value": 2.0, "rate": 0.3})):
        axes = (0, 1, -1, [0, 1]) if kind is not C.NonNeg else (None,)
        for axis in axes:
            constraint = kind(**options) if axis is None else kind(**options, axis=axis)
            for shape in ((5, 3), (3, 2, 1, 5)):
                w = normal(*shape)
                w[:, 1] = 0
                cases.append({"constraint": serialized(constraint), "w": compact(w),
                              "value": compact(constraint(w).numpy())})
    return cases


def adapt_case(axis, data, batch=None):
    layer = L.Normalization(axis=axis)
    layer.adapt(tf.data.Dataset.from_tensor_slices(data).batch(batch) if batch else data)
    return {"axis": [] if axis is None else list(np.atleast_1d(axis).tolist()),
            "data": tensor(data), "mean": compact(layer.mean.numpy().reshape(layer.weights[0].shape)),
            "variance": compact(layer.variance.numpy().reshape(layer.weights[1].shape)),
            "output": compact(layer(data).numpy())}


def adaptations():
    far = (normal(13, 3) * [1, 10, 0.1] + [100, -3, 0]).astype(np.float32)
    return [adapt_case(-1, far), adapt_case(-1, far, 4), adapt_case(None, far),
            adapt_case(1, normal(5, 3, 2)), adapt_case((1, 2), normal(5, 3, 2)),
            adapt_case((1, 2), normal(7, 3, 2), 3), adapt_case((-1,), whole(5, 2, 3))]


def configurations():
    """Returns configurations of every class, with defaults and with all options."""
    seeded = (I.GlorotUniform, I.GlorotNormal, I.HeUniform, I.HeNormal, I.LecunUniform,
              I.LecunNormal)
    initializers = [kind(**options) for kind in seeded for options in ({}, {"seed": 7})]
    initializers += [
        I.Zeros(), I.Ones(), I.Constant(), I.Constant(-1.5), I.Identity(), I.RandomUniform(),
        I.RandomUniform(-1, 2.5, seed=3), I.RandomNormal(), I.RandomNormal(1, 0.25, seed=4),
        I.TruncatedNormal(), I.TruncatedNormal(0.5, 2, seed=5), I.VarianceScaling(),
        I.VarianceScaling(2.0, "fan_out", "uniform", seed=6),
        I.VarianceScaling(0.5, "fan_avg", "untruncated_normal"), I.Orthogonal(),
        I.Orthogonal(2.0, seed=8)]
    return [serialized(x) for x in initializers]


write("keras_layers.json", {
    "layers": (dense_cases() + reshaping_cases() + merge_cases() + joining_cases()
               + scaling_cases() + other_cases()),
    "regularizers": regularizers(),
    "constraints": constraints(),
    "adapt": adaptations(),
    "initializers": configurations(),
})
