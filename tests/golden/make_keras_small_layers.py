"""Writes keras_small_layers.json: activations as layers, and layers that regularize or normalize.

Made with keras 3.15.1, tensorflow-cpu 2.21.0 and numpy 2.4.6 from PyPI. Run it in this folder:
python3 make_keras_small_layers.py
"""

import functools
import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np

import keras_golden
from keras_golden import compact, write

L, R, C, I = keras.layers, keras.regularizers, keras.constraints, keras.initializers
rng = np.random.default_rng(52)
layer_case = functools.partial(keras_golden.layer_case, rng)


def normal(*shape, dtype=np.float32):
    return rng.normal(0, 2, shape).astype(dtype)


def double(*shape):
    return normal(*shape, dtype=np.float64)


def bits(*shape):
    return rng.integers(0, 2, shape).astype(bool)


def activation_layers():
    # Slopes and factors of float64 layers are exact in float32, in which Keras keeps them.
    return [
        layer_case(L.ReLU(), normal(5, 3)),
        layer_case(L.ReLU(max_value=1.5, negative_slope=0.2, threshold=0.3), normal(3, 2, 3)),
        layer_case(L.ReLU(max_value=6.0), normal(2, 3, 1, 3)),
        layer_case(L.ReLU(negative_slope=0.125, dtype="float64"), double(5, 3)),
        layer_case(L.LeakyReLU(), normal(5, 3)),
        layer_case(L.LeakyReLU(negative_slope=0.05, name="leaky"), normal(2, 3, 2, 1, 3)),
        layer_case(L.LeakyReLU(negative_slope=0.25, dtype="float64"), double(3, 3)),
        layer_case(L.ELU(), normal(5, 3)),
        layer_case(L.ELU(alpha=0.4), normal(3, 2, 3)),
        layer_case(L.ELU(alpha=2.5, dtype="float64"), double(3, 3)),
        layer_case(L.PReLU(), normal(5, 3)),
        layer_case(L.PReLU(shared_axes=[1]), normal(3, 4, 3)),
        layer_case(L.PReLU(shared_axes=[1, 2], alpha_initializer=I.Constant(0.3),
                           alpha_regularizer=R.L2(0.1), alpha_constraint=C.MinMaxNorm(),
                           name="slopes"), normal(3, 2, 3, 5)),
        layer_case(L.PReLU(shared_axes=[2], alpha_regularizer=R.L1(0.25), dtype="float64"),
                   double(2, 3, 5)),
    ] + [layer_case(L.Activation(name), normal(3, 4))
         for name in ("celu", "elu", "gelu", "glu", "hard_silu", "leaky_relu", "log_sigmoid",
                      "mish", "selu", "softsign", "sparsemax", "squareplus")]


def softmax_layers():
    with_mask = functools.partial(layer_case, call=lambda layer, x, mask: layer(x, mask=mask))
    return [
        layer_case(L.Softmax(), normal(5, 3)),
        layer_case(L.Softmax(axis=1), normal(3, 4, 3)),
        layer_case(L.Softmax(axis=(1, 2)), normal(3, 4, 3)),
        layer_case(L.Softmax(axis=(-1, 1), dtype="float64"), double(2, 3, 2, 5)),
        with_mask(L.Softmax(), normal(5, 4), bits(5, 4)),
        with_mask(L.Softmax(), normal(3, 2, 5), bits(3, 1, 5)),
        with_mask(L.Softmax(axis=[1, 2]), normal(3, 2, 5), bits(5)),
        with_mask(L.Softmax(dtype="float64"), double(3, 5), np.zeros((3, 5), bool)),
        layer_case(L.Softmax(), normal(3, 5), masks=[bits(3, 5)]),
    ]


def other_layers():
    sparse = normal(4, 5)
    sparse[1] = 0.001
    return [
        layer_case(L.ActivityRegularization(), normal(5, 3)),
        layer_case(L.ActivityRegularization(l1=0.1), normal(3, 2, 3)),
        layer_case(L.ActivityRegularization(l1=0.125, l2=0.5, dtype="float64"), double(5, 3)),
        layer_case(L.UnitNormalization(), sparse),
        layer_case(L.UnitNormalization(axis=1), normal(3, 4, 5)),
        layer_case(L.UnitNormalization(axis=[1, 3]), normal(2, 3, 2, 5)),
        layer_case(L.UnitNormalization(dtype="float64"), double(5, 3)),
        layer_case(L.Identity(), normal(3, 2, 1, 3)),
        layer_case(L.Identity(), normal(3, 4, 2), masks=[bits(3, 4)]),
        layer_case(L.ReLU(), normal(3, 4, 2), masks=[bits(3, 4)]),
        # Outside training, random layers are the identity.
        layer_case(L.GaussianNoise(0.3), normal(5, 3)),
        layer_case(L.GaussianNoise(0.3, seed=4), normal(5, 3, 2), masks=[bits(5, 3)]),
        layer_case(L.GaussianDropout(0.4, seed=5), normal(3, 5)),
        layer_case(L.AlphaDropout(0.4), normal(3, 5)),
        layer_case(L.AlphaDropout(0.4, noise_shape=(None, 1), seed=3), normal(3, 5)),
        layer_case(L.SpatialDropout1D(0.4, seed=6), normal(3, 5, 2)),
        layer_case(L.SpatialDropout2D(0.4), normal(3, 5, 2, 3)),
        layer_case(L.SpatialDropout2D(0.4, data_format="channels_first"), normal(3, 5, 2, 3)),
        layer_case(L.SpatialDropout3D(0.4, data_format="channels_first", seed=2),
                   normal(1, 3, 2, 5, 2)),
    ]


def spectral_layers():
    wrap = L.SpectralNormalization
    return [
        layer_case(wrap(L.Dense(3)), normal(2, 5)),
        layer_case(wrap(L.Conv2D(2, 2, strides=2, kernel_regularizer="l2"), power_iterations=3),
                   normal(1, 4, 3, 2)),
        layer_case(wrap(L.Conv1D(2, 2, padding="same", activation="relu", dtype="float64"),
                        dtype="float64"), double(2, 3, 4)),
    ]


def trained_spectral_layers():
    """Adds the weights after a call in training, which assigns the kernel and vector_u."""
    wrap = L.SpectralNormalization
    cases = []
    for layer, x in [
            (wrap(L.Dense(3, dtype="float64"), dtype="float64"), double(2, 5)),
            (wrap(L.Dense(4, use_bias=False, dtype="float64"), power_iterations=4,
                  dtype="float64"), double(3, 2)),
            (wrap(L.Conv2D(3, 2, dtype="float64"), power_iterations=2, dtype="float64"),
             double(1, 4, 3, 2)),
            (wrap(L.DepthwiseConv1D(2, depth_multiplier=2, dtype="float64"), dtype="float64"),
             double(2, 4, 3))]:
        golden = layer_case(layer, x, call=lambda layer, x: layer(x, training=True))
        cases.append({**golden, "after": [compact(w.numpy()) for w in layer.weights]})
    return cases


write("keras_small_layers.json", {
    "layers": activation_layers() + softmax_layers() + other_layers(),
    "SpectralNormalization": spectral_layers(),
    "SpectralNormalization in training": trained_spectral_layers()})
