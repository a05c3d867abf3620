"""Writes keras_cells.json: RNN and its cells, ConvLSTM and ReversibleEmbedding of Keras on
TensorFlow.

Made with keras 3.15.1, tensorflow-cpu 2.21.0 and numpy 2.4.6 from PyPI. Run it in this folder:
python3 make_keras_cells.py
"""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np

from keras_golden import layer_case, serialized, write

L, R, C, I = keras.layers, keras.regularizers, keras.constraints, keras.initializers
rng = np.random.default_rng(31)


def normal(*shape, dtype=np.float32):
    return rng.normal(0, 0.6, shape).astype(dtype)


class SmallWeights:
    """An initializer whose weights do not saturate the gates."""

    def normal(self, mean, deviation, shape):
        return rng.normal(mean, deviation / 3, shape)


@keras.saving.register_keras_serializable()
class MixingCell(L.Layer):
    """A cell with two states of different extents and another output."""

    def __init__(self, units, outputs, **kwargs):
        super().__init__(**kwargs)
        self.units, self.output_size = units, outputs
        self.state_size = [units, outputs]

    def build(self, shape):
        self.kernel = self.add_weight(name="kernel", shape=(shape[-1], self.units))
        self.recurrent_kernel = self.add_weight(name="recurrent_kernel",
                                                shape=(self.units, self.output_size))

    def call(self, inputs, states):
        h = keras.ops.tanh(keras.ops.matmul(inputs, self.kernel) + states[0])
        y = keras.ops.matmul(h, self.recurrent_kernel)
        return y - states[1], [h, y]

    def get_config(self):
        return {**super().get_config(), "units": self.units, "outputs": self.output_size}


def flat(value):
    return keras.tree.flatten(value)


def case(layer, *inputs, call=None, masks=()):
    """Returns a layer's case; the configuration is read before the layer is built. Outputs may be
    nested."""
    config = serialized(layer)
    call = call or (lambda layer, *tensors: layer(*tensors))
    golden = layer_case(SmallWeights(), layer, *inputs, masks=masks,
                        call=lambda layer, *tensors: flat(call(layer, *tensors)))
    if "build_config" in golden["layer"]:
        config["build_config"] = golden["layer"]["build_config"]
    golden["layer"] = config
    return golden


def mask(rows, steps):
    """Returns a mask with some steps of each row, not all of the first row, and none of the last
    but one."""
    counts = rng.random((rows, steps)) < 0.6
    counts[0, 0], counts[0, -1] = False, True
    counts[-2] = False
    return counts


def with_states(*counts):
    """Returns a call with initial states, nested by cell if there are several counts."""
    def call(layer, x, *states):
        nested, rest = [], list(states)
        for count in counts:
            nested.append(rest[:count])
            rest = rest[count:]
        nested = nested[0] if len(nested) == 1 else nested
        # Keras does not pass masks automatically if initial states are given.
        return layer(x, initial_state=nested, mask=getattr(x, "_keras_mask", None))
    return call


def one_step(layer, x, *states):
    return layer(x, list(states))


def full_options(gated):
    full = dict(activation="softplus", kernel_initializer="he_normal",
                recurrent_initializer=I.RandomNormal(stddev=0.2, seed=3),
                bias_initializer=I.Constant(0.3), kernel_regularizer="l2",
                recurrent_regularizer=R.L1(0.02), bias_regularizer=R.L2(0.1),
                kernel_constraint="non_neg", recurrent_constraint=C.MaxNorm(2.0),
                bias_constraint=C.MaxNorm(1.5), dropout=0.25, recurrent_dropout=0.5, seed=5,
                name="full")
    if gated:
        full["recurrent_activation"] = "relu6"
    return full


def kinds():
    """Returns each kind of cell, its number of states and its options."""
    return [(L.SimpleRNNCell, 1, {}), (L.LSTMCell, 2, {}), (L.GRUCell, 1, {}),
            (L.GRUCell, 1, dict(reset_after=False))]


def cell_cases():
    cases = []
    for kind, states, given in kinds():
        gated = kind is not L.SimpleRNNCell
        first = lambda **options: [normal(3, 2, **options) for _ in range(states)]
        cases += [
            case(kind(2, **given), normal(3, 5), *first(), call=one_step),
            case(kind(2, use_bias=False, dtype="float64", **given), normal(3, 5, dtype=np.float64),
                 *first(dtype=np.float64), call=one_step),
            case(kind(2, **full_options(gated), **given), normal(3, 5), *first(), call=one_step),
        ]
    cases.append(case(L.LSTMCell(2, unit_forget_bias=False), normal(3, 4), normal(3, 2),
                      normal(3, 2), call=one_step))
    return cases


def rnn_cases():
    x = lambda: normal(3, 4, 5)
    cases = []
    for kind, states, given in kinds():
        first = [normal(3, 2) for _ in range(states)]
        made = lambda **options: kind(2, **options, **given)
        both = dict(return_sequences=True, return_state=True)
        cases += [
            case(L.RNN(made()), x()),
            case(L.RNN(made(**full_options(kind is not L.SimpleRNNCell)), go_backwards=True,
                       unroll=True, name="loop", **both), x()),
            case(L.RNN(made(), **both), x(), *first, call=with_states(states)),
            case(L.RNN(made()), x(), masks=[mask(3, 4)]),
            case(L.RNN(made(), **both), x(), *first, masks=[mask(3, 4)],
                 call=with_states(states)),
            case(L.RNN(made(), return_sequences=True, go_backwards=True,
                       zero_output_for_mask=True), x(), masks=[mask(3, 4)]),
        ]
    return cases


def stacked_cases():
    x = lambda: normal(3, 4, 5)
    cells = lambda: [L.LSTMCell(2), L.GRUCell(3), L.SimpleRNNCell(2)]
    both = dict(return_sequences=True, return_state=True)
    states = [normal(3, 2), normal(3, 2), normal(3, 3), normal(3, 2)]
    return [
        case(L.RNN(cells()), x()),
        case(L.RNN(L.StackedRNNCells(cells(), name="stack"), **both), x()),
        case(L.RNN([L.LSTMCell(2), L.LSTMCell(3)], go_backwards=True, **both), x()),
        case(L.RNN(cells(), **both), x(), *states, call=with_states(2, 1, 1)),
        case(L.RNN(cells(), return_sequences=True), x(), masks=[mask(3, 4)]),
    ]


def own_cases():
    x = lambda: normal(3, 4, 5)
    both = dict(return_sequences=True, return_state=True)
    return [
        case(L.RNN(MixingCell(3, 2)), x()),
        case(L.RNN(MixingCell(3, 2), **both), x(), normal(3, 3), normal(3, 2),
             call=with_states(2)),
        case(L.RNN(MixingCell(2, 3), **both), x(), masks=[mask(3, 4)]),
        case(L.RNN([MixingCell(3, 2), L.GRUCell(2)]), x()),
    ]


def bidirectional_cases():
    x = lambda: normal(3, 4, 5)
    both = dict(return_sequences=True, return_state=True)
    B = L.Bidirectional
    return [
        case(B(L.RNN(L.LSTMCell(2))), x()),
        case(B(L.RNN(L.GRUCell(2), return_sequences=True), merge_mode="sum"), x(),
             masks=[mask(3, 4)]),
        case(B(L.RNN(L.SimpleRNNCell(2), **both), name="both"), x(), normal(3, 2), normal(3, 2),
             call=with_states(2)),
        case(B(L.RNN([L.GRUCell(2), L.SimpleRNNCell(3)], return_sequences=True)), x()),
        case(B(L.RNN(L.GRUCell(2)), backward_layer=L.LSTM(3, go_backwards=True, name="other")),
             x()),
        case(B(L.ConvLSTM1D(2, 2, return_sequences=True), merge_mode="ave"), normal(2, 3, 4, 2)),
        case(B(L.ConvLSTM1D(2, 3, padding="same")), normal(3, 3, 4, 2), masks=[mask(3, 3)]),
    ]


def conv_cases():
    full = full_options(True)
    full.update(activity_regularizer=R.L2(0.05), return_sequences=True, return_state=True,
                go_backwards=True)
    both = dict(return_sequences=True, return_state=True)
    return [
        case(L.ConvLSTM1D(2, 2), normal(3, 3, 5, 2)),
        case(L.ConvLSTM1D(3, 3, strides=2, padding="same", return_sequences=True),
             normal(2, 3, 5, 2)),
        case(L.ConvLSTM1D(2, 2, dilation_rate=2, **both), normal(2, 3, 5, 3)),
        case(L.ConvLSTM1D(2, 2, data_format="channels_first", **both), normal(2, 3, 3, 5)),
        case(L.ConvLSTM1D(2, 2, data_format="channels_first", activation="softmax"),
             normal(2, 2, 3, 5)),
        case(L.ConvLSTM1D(2, 2, **full), normal(2, 3, 5, 2)),
        case(L.ConvLSTM1D(2, 3, padding="same", use_bias=False, **both), normal(3, 4, 5, 2),
             normal(3, 5, 2), normal(3, 5, 2), call=with_states(2)),
        case(L.ConvLSTM1D(2, 2, **both), normal(3, 4, 5, 2), masks=[mask(3, 4)]),
        case(L.ConvLSTM1D(2, 2, return_sequences=True, zero_output_for_mask=True),
             normal(3, 4, 5, 2), masks=[mask(3, 4)]),
        case(L.ConvLSTM2D(2, 2), normal(2, 3, 4, 5, 2)),
        case(L.ConvLSTM2D(2, (3, 2), strides=(1, 2), padding="same", unit_forget_bias=False,
                          return_sequences=True), normal(2, 2, 5, 4, 3)),
        case(L.ConvLSTM2D(2, 2, dtype="float64"), normal(2, 2, 4, 3, 2, dtype=np.float64)),
        case(L.ConvLSTM3D(2, 2), normal(2, 2, 3, 4, 3, 2)),
        case(L.ConvLSTM3D(1, (2, 1, 3), padding="same", strides=(2, 1, 1), **both),
             normal(2, 2, 4, 3, 3, 2)),
    ]


def whole(limit, *shape):
    return rng.integers(0, limit, shape).astype(np.int32)


def embedding_cases():
    E = L.ReversibleEmbedding
    return [
        case(E(7, 3), whole(7, 5)),
        case(E(11, 4, embeddings_regularizer="l2", logit_soft_cap=3.0), whole(11, 3, 5)),
        case(E(5, 2, mask_zero=True), whole(5, 3, 4), masks=[None]),
        case(E(6, 5, embeddings_initializer=I.RandomNormal(seed=2), dtype="float64",
               embeddings_constraint=C.UnitNorm(axis=1), reverse_dtype="float32", name="words"),
             whole(6, 4, 3)),
    ]


def reverse(layer, x):
    return layer(x, reverse=True)


def reverse_cases():
    E = L.ReversibleEmbedding
    return [
        case(E(7, 3), normal(5, 3), call=reverse),
        case(E(7, 3, logit_soft_cap=0.5), normal(2, 5, 3), call=reverse),
        case(E(6, 4, tie_weights=False, embeddings_regularizer="l2"), normal(5, 4), call=reverse),
        case(E(5, 2, dtype="float64", reverse_dtype="float32", logit_soft_cap=2.0),
             normal(3, 2, dtype=np.float64), call=reverse),
    ]


def main():
    write("keras_cells.json", {
        "cells": cell_cases(),
        "RNN": rnn_cases(),
        "stacked": stacked_cases(),
        "own": own_cases(),
        "Bidirectional": bidirectional_cases(),
        "ConvLSTM": conv_cases(),
        "ReversibleEmbedding": embedding_cases(),
        "reverse": reverse_cases(),
    })


main()
