"""Writes keras_weight_order.json: the names and shapes of model.weights in Keras' order. Run with
Keras 3 on any backend from PyPI:

    KERAS_BACKEND=jax python make_keras_weight_order.py
"""
import json
import pathlib

import keras
from keras import layers


class Scaled(keras.layers.Layer):
    """Adds a weight that is not trained, then a sublayer, then one that is trained."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.inner = layers.Dense(6, name="inner")

    def build(self, shape):
        self.calls = self.add_weight(name="calls", shape=(1,), trainable=False)
        self.inner.build(shape)
        self.scale = self.add_weight(name="scale", shape=(6,))
        self.shift = self.add_weight(name="shift", shape=(1, 6), trainable=False)

    def call(self, x):
        return self.inner(x) * self.scale + self.shift


def chain():
    return keras.Sequential([keras.Input((5, 3)), layers.BatchNormalization(name="norm"),
                             layers.Dense(4, name="first"),
                             layers.BatchNormalization(name="second_norm"),
                             layers.TimeDistributed(layers.Dense(2), name="steps")])


def frozen():
    model = chain()
    model.layers[0].trainable = False
    model.layers[1].trainable = False
    return model


def own():
    return keras.Sequential([keras.Input((3,)), Scaled(name="scaled"), layers.Dense(2, name="last")])


def nested():
    x = keras.Input((5, 3), name="x")
    part = keras.Sequential([layers.Dense(7, name="a"), layers.BatchNormalization(name="b")],
                            name="part")
    inner_x = keras.Input((5, 7), name="inner_x")
    inner = keras.Model(inner_x, layers.LayerNormalization(name="d")(
        layers.Dense(8, name="c")(inner_x)), name="inner")
    right = layers.Bidirectional(layers.LSTM(3), name="both")(x)
    left = layers.GlobalAveragePooling1D(name="mean")(inner(part(x)))
    joined = layers.Concatenate(name="join")([left, right])
    return keras.Model(x, layers.Dense(9, name="out")(layers.BatchNormalization(name="e")(joined)))


def attention():
    x = keras.Input((5, 6), name="x")
    y = layers.MultiHeadAttention(2, 3, name="attention")(x, x)
    y = layers.GroupNormalization(3, name="groups")(y)
    return keras.Model(x, layers.GRU(4, name="gru")(y))


def order(model):
    return [[weight.name, list(weight.shape)] for weight in model.weights]


def main():
    cases = {make.__name__: order(make()) for make in (chain, frozen, own, nested, attention)}
    lines = ",\n".join(f'"{name}": {json.dumps(rows)}' for name, rows in cases.items())
    path = pathlib.Path(__file__).with_name("keras_weight_order.json")
    path.write_text("{\n" + lines + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
