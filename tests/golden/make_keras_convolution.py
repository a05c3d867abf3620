"""Writes keras_convolution.json: convolutions, poolings and related layers of Keras on TensorFlow.

Made with keras 3.15.1, tensorflow-cpu 2.21.0 and numpy 2.4.6 from PyPI. Run it in this folder:
python3 make_keras_convolution.py
"""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np

from keras_golden import layer_case, write

L, R, C = keras.layers, keras.regularizers, keras.constraints
rng = np.random.default_rng(41)


def normal(*shape, dtype=np.float32):
    return rng.normal(0, 1, shape).astype(dtype)


def distinct(*shape, dtype=np.float32):
    """Returns distinct numbers, so that maxima have no ties."""
    count = int(np.prod(shape))
    return (rng.permutation(count).reshape(shape) / count - 0.5).astype(dtype)


def case(layer, *inputs):
    return layer_case(rng, layer, *inputs)


def conv_cases():
    return [
        case(L.Conv2D(3, 3), normal(2, 6, 5, 2)),
        case(L.Conv2D(4, (3, 2), strides=(2, 1), padding="same", activation="relu"),
             normal(1, 7, 6, 3)),
        case(L.Conv2D(2, 2, strides=3, padding="same", use_bias=False), normal(2, 8, 7, 1)),
        case(L.Conv2D(4, 3, dilation_rate=(2, 1), padding="same", groups=2), normal(1, 6, 5, 4)),
        case(L.Conv2D(6, (1, 3), groups=3, activation="tanh"), normal(2, 3, 4, 3)),
        case(L.Conv2D(3, (5, 4), padding="same", kernel_regularizer="l2",
                      bias_regularizer=R.L1(0.02), activity_regularizer="l2"),
             normal(1, 3, 5, 2)),
        case(L.Conv2D(2, 3, kernel_constraint=C.MaxNorm(1.5, axis=[0, 1, 2]), dtype="float64"),
             normal(2, 5, 4, 2, dtype=np.float64)),
        case(L.Conv2D(2, 3, strides=2, padding="same", data_format="channels_last"),
             normal(1, 5, 6, 3)),
        case(L.Conv1D(3, 3), normal(2, 7, 2)),
        case(L.Conv1D(2, 4, strides=2, padding="same", activation="elu"), normal(2, 9, 3)),
        case(L.Conv1D(2, 3, dilation_rate=2, padding="causal"), normal(1, 8, 2)),
        case(L.Conv1D(4, 2, strides=3, padding="causal", groups=2, use_bias=False),
             normal(2, 7, 4)),
        case(L.Conv1D(2, 5, padding="same", dtype="float64"), normal(1, 3, 2, dtype=np.float64)),
        case(L.Conv3D(2, 2, padding="same"), normal(1, 3, 4, 2, 2)),
        case(L.Conv3D(1, (2, 1, 3), strides=(1, 2, 1)), normal(2, 3, 3, 4, 1)),
    ]


def depthwise_cases():
    return [
        case(L.DepthwiseConv2D(3), normal(2, 5, 6, 2)),
        case(L.DepthwiseConv2D((2, 3), strides=2, padding="same", depth_multiplier=3,
                               activation="relu"), normal(1, 7, 6, 3)),
        case(L.DepthwiseConv2D(2, dilation_rate=2, use_bias=False, depthwise_regularizer="l1"),
             normal(1, 5, 5, 4)),
        case(L.DepthwiseConv1D(3, strides=2, padding="same"), normal(2, 8, 3)),
        case(L.DepthwiseConv1D(4, depth_multiplier=2), normal(1, 7, 2)),
        case(L.SeparableConv2D(4, 3), normal(2, 5, 5, 2)),
        case(L.SeparableConv2D(3, (2, 3), padding="same", depth_multiplier=2, strides=2,
                               activation="sigmoid", pointwise_regularizer="l2"),
             normal(1, 6, 5, 3)),
        case(L.SeparableConv1D(3, 3, padding="same"), normal(2, 7, 2)),
        case(L.SeparableConv1D(2, 2, depth_multiplier=3, use_bias=False), normal(1, 6, 2)),
    ]


def transpose_cases():
    return [
        case(L.Conv2DTranspose(2, 3), normal(2, 4, 3, 3)),
        case(L.Conv2DTranspose(3, 3, strides=2, padding="same", activation="relu"),
             normal(1, 3, 4, 2)),
        case(L.Conv2DTranspose(2, (2, 4), strides=(3, 2), use_bias=False), normal(2, 3, 2, 1)),
        case(L.Conv2DTranspose(1, 4, strides=2, padding="same"), normal(1, 5, 3, 2)),
        case(L.Conv2DTranspose(2, 3, strides=2, padding="valid", output_padding=1),
             normal(1, 3, 4, 2)),
        case(L.Conv2DTranspose(2, 3, strides=2, padding="same", output_padding=(1, 0)),
             normal(1, 3, 4, 2)),
        case(L.Conv1DTranspose(3, 3, strides=2, padding="same"), normal(2, 5, 2)),
        case(L.Conv1DTranspose(2, 2, strides=3), normal(1, 4, 3)),
        case(L.Conv1DTranspose(2, 4, dtype="float64"), normal(1, 4, 3, dtype=np.float64)),
    ]


def pooling_cases():
    return [
        case(L.MaxPooling2D(), distinct(2, 5, 6, 2)),
        case(L.MaxPooling2D(3, strides=2, padding="same"), distinct(1, 6, 7, 3)),
        case(L.MaxPooling2D((2, 3), strides=(1, 2)), distinct(2, 4, 7, 1)),
        case(L.MaxPooling2D(4, strides=1, padding="same", dtype="float64"),
             distinct(1, 3, 5, 2, dtype=np.float64)),
        case(L.MaxPooling1D(), distinct(2, 7, 3)),
        case(L.MaxPooling1D(3, strides=2, padding="same"), distinct(1, 8, 2)),
        case(L.AveragePooling2D(2), normal(2, 5, 6, 2)),
        case(L.AveragePooling2D(3, strides=2, padding="same"), normal(1, 6, 7, 3)),
        case(L.AveragePooling2D((4, 2), strides=(3, 1), padding="same"), normal(2, 5, 3, 1)),
        case(L.AveragePooling1D(3, strides=1), normal(2, 7, 3)),
        case(L.AveragePooling1D(4, strides=2, padding="same"), normal(1, 9, 2)),
        case(L.GlobalMaxPooling1D(), distinct(2, 5, 3)),
        case(L.GlobalMaxPooling2D(keepdims=True), distinct(2, 3, 4, 2)),
        case(L.GlobalAveragePooling1D(keepdims=True), normal(2, 5, 3)),
        case(L.GlobalAveragePooling2D(), normal(2, 3, 5, 2)),
        layer_case(rng, L.GlobalAveragePooling1D(), normal(2, 4, 3),
                   masks=[np.array([[1, 1, 0, 1], [0, 1, 0, 0]], bool)]),
    ]


def size_cases():
    return [
        case(L.UpSampling1D(3), normal(2, 3, 2)),
        case(L.UpSampling2D(), normal(2, 3, 2, 3)),
        case(L.UpSampling2D((1, 3)), normal(1, 3, 2, 1)),
        case(L.UpSampling2D((2, 3), interpolation="bilinear"), normal(1, 4, 3, 2)),
        case(L.UpSampling2D(2, interpolation="bicubic"), normal(1, 5, 3, 1)),
        case(L.ZeroPadding1D(2), normal(2, 3, 2)),
        case(L.ZeroPadding1D((0, 3)), normal(1, 4, 2)),
        case(L.ZeroPadding2D(), normal(2, 3, 2, 1)),
        case(L.ZeroPadding2D((1, 2)), normal(1, 3, 2, 2)),
        case(L.ZeroPadding2D(((0, 2), (3, 1))), normal(1, 3, 4, 1)),
        case(L.Cropping1D(1), normal(2, 5, 2)),
        case(L.Cropping1D((0, 2)), normal(1, 5, 2)),
        case(L.Cropping2D(((1, 2), (0, 1))), normal(2, 6, 4, 2)),
        case(L.Cropping2D((2, 1)), normal(1, 5, 6, 1)),
    ]


def volume_cases():
    def double(*shape):
        return normal(*shape, dtype=np.float64)

    return [
        case(L.Conv3DTranspose(2, 2), normal(1, 2, 3, 2, 3)),
        case(L.Conv3DTranspose(2, 3, strides=2, padding="same", activation="relu"),
             normal(1, 2, 3, 2, 2)),
        case(L.Conv3DTranspose(1, (2, 3, 1), strides=(1, 2, 3), use_bias=False),
             normal(2, 2, 3, 1, 2)),
        case(L.Conv3DTranspose(2, (3, 1, 2), strides=(2, 1, 2), padding="same",
                               output_padding=(1, 0, 1), dtype="float64"), double(1, 3, 2, 2, 1)),
        case(L.MaxPooling3D(), distinct(2, 5, 4, 3, 2)),
        case(L.MaxPooling3D(3, strides=2, padding="same"), distinct(1, 4, 5, 3, 2)),
        case(L.MaxPooling3D((1, 2, 3), strides=(2, 1, 2)), distinct(1, 5, 3, 4, 2)),
        case(L.AveragePooling3D(2), normal(2, 5, 4, 2, 2)),
        case(L.AveragePooling3D((3, 2, 2), strides=(2, 1, 2), padding="same"),
             normal(1, 4, 3, 5, 2)),
        case(L.AveragePooling3D((2, 1, 3), strides=1), normal(1, 4, 2, 3, 1)),
        case(L.GlobalMaxPooling3D(), distinct(2, 3, 2, 4, 2)),
        case(L.GlobalMaxPooling3D(keepdims=True), distinct(1, 3, 2, 2, 3)),
        case(L.GlobalAveragePooling3D(), normal(2, 3, 4, 2, 2)),
        case(L.GlobalAveragePooling3D(keepdims=True, dtype="float64"), double(1, 2, 3, 2, 2)),
        case(L.UpSampling3D(), normal(2, 2, 3, 1, 2)),
        case(L.UpSampling3D((1, 3, 2)), normal(1, 3, 2, 2, 2)),
        case(L.ZeroPadding3D(), normal(1, 2, 3, 2, 2)),
        case(L.ZeroPadding3D((2, 0, 1)), normal(1, 3, 2, 2, 2)),
        case(L.ZeroPadding3D(((0, 2), (1, 0), (3, 1))), normal(1, 2, 3, 4, 1)),
        case(L.Cropping3D(), normal(1, 5, 4, 3, 2)),
        case(L.Cropping3D((1, 0, 2)), normal(2, 4, 2, 5, 1)),
        case(L.Cropping3D(((1, 2), (0, 1), (2, 0))), normal(1, 6, 4, 3, 2)),
    ]


def adaptive_cases():
    """Sizes that divide the extent, have a common divisor with it, have none, and exceed it."""
    return [
        case(L.AdaptiveAveragePooling1D(3), normal(2, 6, 2)),
        case(L.AdaptiveAveragePooling1D(4), normal(2, 6, 2)),
        case(L.AdaptiveAveragePooling1D(5), normal(1, 7, 3)),
        case(L.AdaptiveAveragePooling2D((3, 2)), normal(2, 5, 4, 2)),
        case(L.AdaptiveAveragePooling2D(1), normal(1, 4, 3, 2)),
        case(L.AdaptiveAveragePooling2D((4, 5), dtype="float64"),
             normal(1, 6, 3, 2, dtype=np.float64)),
        case(L.AdaptiveAveragePooling3D((2, 3, 1)), normal(1, 5, 4, 3, 2)),
        case(L.AdaptiveMaxPooling1D(4), distinct(2, 6, 2)),
        case(L.AdaptiveMaxPooling1D(3), distinct(2, 8, 2)),
        case(L.AdaptiveMaxPooling2D((3, 2)), distinct(1, 5, 6, 2)),
        case(L.AdaptiveMaxPooling2D(3, dtype="float64"), distinct(2, 4, 7, 1, dtype=np.float64)),
        case(L.AdaptiveMaxPooling3D((2, 3, 2)), distinct(1, 4, 5, 2, 2)),
        case(L.AdaptiveMaxPooling3D(2), distinct(1, 3, 4, 5, 1)),
    ]


write("keras_convolution.json", {
    "conv": conv_cases(),
    "depthwise": depthwise_cases(),
    "transpose": transpose_cases(),
    "pooling": pooling_cases(),
    "size": size_cases(),
    "volume": volume_cases(),
    "adaptive": adaptive_cases(),
})
