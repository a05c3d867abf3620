"""Writes keras_sequences.json: layers of sequences and of normalization of Keras on TensorFlow.

Made with keras 3.15.1, tensorflow-cpu 2.21.0 and numpy 2.4.6 from PyPI. Run it in this folder:
python3 make_keras_sequences.py
"""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np

from keras_golden import compact, layer_case, serialized, write

L, R, C, I = keras.layers, keras.regularizers, keras.constraints, keras.initializers
rng = np.random.default_rng(29)


def normal(*shape, dtype=np.float32):
    return rng.normal(0, 1.5, shape).astype(dtype)


def whole(limit, *shape, dtype=np.int32):
    return rng.integers(0, limit, shape).astype(dtype)


class SmallWeights:
    """An initializer whose weights do not saturate the gates of a recurrent layer."""

    def normal(self, mean, deviation, shape):
        return rng.normal(mean, deviation / 3, shape)


def case(layer, *inputs, **options):
    """Returns a layer's case; the configuration is read before the layer is built."""
    config = serialized(layer)
    recurrent = isinstance(layer, (L.RNN, L.Bidirectional))
    golden = layer_case(SmallWeights() if recurrent else rng, layer, *inputs, **options)
    if "build_config" in golden["layer"]:
        config["build_config"] = golden["layer"]["build_config"]
    golden["layer"] = config
    return golden


def norm_cases():
    return [
        case(L.LayerNormalization(), normal(3, 5)),
        case(L.LayerNormalization(epsilon=1e-5), normal(3, 2, 5) + 2),
        case(L.LayerNormalization(axis=1), normal(3, 4, 5)),
        case(L.LayerNormalization(axis=(1, 3), center=False), normal(2, 3, 2, 5)),
        case(L.LayerNormalization(axis=[3, 2, 4], scale=False), normal(2, 3, 2, 2, 3)),
        case(L.LayerNormalization(axis=(-2, -1), center=False, scale=False), normal(5, 3, 2)),
        case(L.LayerNormalization(dtype="float64", gamma_regularizer="l2",
                                  beta_regularizer=R.L1(0.1), gamma_constraint="non_neg",
                                  beta_constraint=C.MaxNorm(2.0, axis=0), name="full",
                                  gamma_initializer=I.Constant(0.5),
                                  beta_initializer=I.RandomNormal(seed=3)),
             normal(3, 7, dtype=np.float64)),
        case(L.RMSNormalization(), normal(3, 5)),
        case(L.RMSNormalization(epsilon=0.1), normal(3, 2, 5)),
        case(L.RMSNormalization(axis=(2, 3)), normal(2, 3, 2, 5)),
        case(L.RMSNormalization(axis=[-1, -2], dtype="float64"),
             normal(2, 3, 5, dtype=np.float64)),
        case(L.GroupNormalization(groups=2), normal(3, 6)),
        case(L.GroupNormalization(groups=3, epsilon=0.01), normal(2, 5, 6)),
        case(L.GroupNormalization(groups=2, axis=1), normal(2, 4, 3, 2)),
        case(L.GroupNormalization(groups=-1, scale=False), normal(2, 3, 2, 5)),
        case(L.GroupNormalization(groups=1, axis=-2, center=False), normal(2, 2, 3, 1, 5)),
        case(L.GroupNormalization(groups=2, axis=2, dtype="float64", center=False, scale=False,
                                  name="plain"), normal(2, 3, 4, dtype=np.float64)),
        case(L.GroupNormalization(groups=5, gamma_regularizer=R.L2(0.1), beta_regularizer="l1",
                                  gamma_constraint=C.UnitNorm(), beta_constraint="non_neg",
                                  gamma_initializer=I.Constant(2.0),
                                  beta_initializer="ones"), normal(3, 1, 5)),
    ]


def embedding_cases():
    return [
        case(L.Embedding(7, 3), whole(7, 5)),
        case(L.Embedding(11, 4, embeddings_regularizer="l2"), whole(11, 3, 5)),
        case(L.Embedding(5, 2, mask_zero=True), whole(5, 2, 3, 2, dtype=np.int64)),
        case(L.Embedding(6, 5, embeddings_initializer=I.RandomNormal(seed=2),
                         embeddings_constraint=C.UnitNorm(axis=1), dtype="float64", name="words"),
             whole(6, 4, 3)),
    ]


def mask(rows, steps):
    """Returns a mask with some steps of each row, not all of the first row, and none of the last
    but one."""
    counts = rng.random((rows, steps)) < 0.6
    counts[0, 0], counts[0, -1] = False, True
    counts[-2] = False
    return counts


def with_states(layer, x, *states):
    return layer(x, initial_state=list(states))


def with_mask_and_states(layer, x, *states):
    """Calls a layer with its mask: Keras does not pass masks automatically if initial states are
    given."""
    return layer(x, initial_state=list(states), mask=x._keras_mask)


def recurrent_options(gated):
    """Returns option sets for all recurrent layers."""
    full = dict(activation="softplus", use_bias=True, kernel_initializer="he_normal",
                recurrent_initializer=I.RandomNormal(stddev=0.2, seed=3),
                bias_initializer=I.Constant(0.3), kernel_regularizer="l2",
                recurrent_regularizer=R.L1(0.02), bias_regularizer=R.L2(0.1),
                activity_regularizer=R.L2(0.05), kernel_constraint="non_neg",
                recurrent_constraint=C.MaxNorm(2.0), bias_constraint=C.MaxNorm(1.5),
                dropout=0.25, recurrent_dropout=0.5, seed=5, return_sequences=True,
                return_state=True, go_backwards=True, unroll=True, name="full")
    if gated:
        full["recurrent_activation"] = "relu6"
    return [{}, dict(return_sequences=True, use_bias=False),
            dict(return_sequences=True, return_state=True, go_backwards=True), full]


def recurrent_cases(kind, states, **given):
    x = lambda **options: normal(3, 4, 5, **options) * 0.4
    cases = [case(kind(2, **options, **given), x())
             for options in recurrent_options(kind is not L.SimpleRNN)]
    first = [normal(3, 2) for _ in range(states)]
    return cases + [
        case(kind(3, dtype="float64", return_state=True, **given), x(dtype=np.float64)),
        case(kind(1, **given), normal(2, 1, 3) * 0.2),
        case(kind(2, return_state=True, return_sequences=True, **given), x(), *first,
             call=with_states),
        case(kind(2, **given), x(), masks=[mask(3, 4)]),
        case(kind(2, return_sequences=True, return_state=True, **given), x(), masks=[mask(3, 4)]),
        case(kind(2, return_sequences=True, go_backwards=True, zero_output_for_mask=True,
                  **given), x(), masks=[mask(3, 4)]),
        case(kind(2, zero_output_for_mask=True, **given), x(), masks=[mask(3, 4)]),
        case(kind(2, return_state=True, return_sequences=True, **given), x(), *first,
             masks=[mask(3, 4)], call=with_mask_and_states),
    ]


def bidirectional_cases():
    x = lambda: normal(3, 4, 5) * 0.4
    states = [normal(3, 2) for _ in range(4)]
    both = dict(return_sequences=True, return_state=True)
    B = L.Bidirectional
    return [
        case(B(L.LSTM(2)), x()),
        case(B(L.GRU(2, return_sequences=True), merge_mode="sum"), x()),
        case(B(L.SimpleRNN(3), merge_mode="mul"), x()),
        case(B(L.GRU(2, return_sequences=True, reset_after=False), merge_mode="ave"), x()),
        case(B(L.SimpleRNN(2, return_sequences=True), merge_mode=None), x()),
        case(B(L.LSTM(2, **both), name="both"), x(), *states, call=with_states),
        case(B(L.SimpleRNN(2, **both), merge_mode=None), x()),
        case(B(L.LSTM(2), backward_layer=L.GRU(3, go_backwards=True, name="other")), x()),
        case(B(L.LSTM(2, return_sequences=True)), x(), masks=[mask(3, 4)]),
        case(B(L.GRU(2), merge_mode="sum"), x(), masks=[mask(3, 4)]),
        case(B(L.GRU(2, return_sequences=True), merge_mode=None), x(), masks=[mask(3, 4)]),
    ]


def time_distributed_cases():
    T = L.TimeDistributed
    return [
        case(T(L.Dense(3, activation="tanh", kernel_regularizer="l2")), normal(3, 4, 5)),
        case(T(L.Flatten()), normal(2, 3, 2, 5)),
        case(T(L.LayerNormalization()), normal(3, 2, 4)),
        case(T(L.SimpleRNN(2), name="inner"), normal(2, 3, 2, 4) * 0.4),
        case(T(L.Dense(2)), normal(3, 4, 5), masks=[mask(3, 4)]),
    ]


def einsum_dense_cases():
    E = L.EinsumDense
    return [
        case(E("ab,bc->ac", 3), normal(5, 4)),
        case(E("abc,cd->abd", (None, 3), bias_axes="d", activation="relu"), normal(2, 3, 5)),
        case(E("abc,cde->abde", (3, 2, 3), bias_axes="de", kernel_regularizer="l2",
               bias_regularizer=R.L1(0.1), activity_regularizer=R.L2(0.03),
               kernel_constraint="non_neg", bias_constraint=C.MaxNorm(1.0),
               bias_initializer="ones", name="full"), normal(2, 3, 4)),
        case(E("abde,dec->abc", (None, 3), bias_axes="c"), normal(2, 3, 2, 4)),
        case(E("...x,xy->...y", 3, bias_axes="y"), normal(2, 3, 1, 5)),
        case(E("ab...,bc->ac...", 3, bias_axes="c"), normal(3, 4, 2, 5)),
        case(E("abc,bd->adc", (2, None), bias_axes="d", dtype="float64"),
             normal(3, 4, 5, dtype=np.float64)),
    ]


def attention_case(layer, *inputs, masks=(), **given):
    """Returns a case; call arguments in Keras are options of the layer here; further inputs are key
    and mask."""
    names = ("query", "value", "key", "attention_mask")

    def call(layer, *tensors):
        return layer(**dict(zip(names, tensors)), **given)

    golden = case(layer, *inputs, call=call, masks=masks)
    golden["layer"]["config"].update(given)
    if masks:
        # Keras' softmax attaches its own mask to the scores.
        golden["output_masks"][1:] = [None] * len(golden["output_masks"][1:])
    return golden


def attention_cases():
    """Returns cases in float64: gradients of the keys' biases are 0 up to rounding. Keras rounds 1
    / sqrt(key_dim) to float32, which is exact for 4.
    """
    x, y = lambda *s: normal(*s, dtype=np.float64) * 0.6, rng.random((2, 3, 4)) < 0.6
    M = lambda *args, **options: L.MultiHeadAttention(*args, **options, dtype="float64")
    y[0, 0] = False
    pair = [mask(3, 4), mask(3, 5)]
    return [
        attention_case(M(2, 4), x(2, 3, 4), x(2, 5, 4)),
        attention_case(M(1, 4, use_bias=False), x(2, 3, 5), x(2, 3, 4), x(2, 3, 2)),
        attention_case(M(3, 4, value_dim=2, output_shape=5), x(2, 3, 4), x(2, 2, 3)),
        attention_case(M(2, 4, output_shape=(2, 3), kernel_regularizer=R.L2(0.25),
                         bias_regularizer=R.L1(0.125), activity_regularizer=R.L2(0.0625),
                         kernel_constraint="non_neg", bias_constraint=C.MaxNorm(1.5),
                         kernel_initializer="he_normal", bias_initializer=I.Constant(0.2),
                         dropout=0.5, seed=4, name="full"), x(2, 3, 4), x(2, 2, 4)),
        attention_case(M(2, 4), x(2, 3, 4), x(2, 4, 4), x(2, 4, 4), y),
        attention_case(M(2, 4), x(2, 3, 4), x(2, 4, 4), x(2, 4, 4), y,
                       return_attention_scores=True),
        attention_case(M(2, 4), x(2, 4, 4), x(2, 4, 4), use_causal_mask=True),
        attention_case(M(2, 4), x(2, 4, 4), x(2, 3, 4), use_causal_mask=True,
                       return_attention_scores=True),
        attention_case(M(2, 4, sliding_window=2), x(2, 4, 4), x(2, 4, 4)),
        attention_case(M(2, 4, value_dim=2, use_gate=True), x(2, 3, 4), x(2, 2, 4)),
        attention_case(M(2, 4, attention_axes=(2,)), x(2, 2, 3, 4), x(2, 2, 5, 4)),
        attention_case(M(2, 4, attention_axes=(1, 2)), x(2, 2, 3, 4), x(2, 2, 2, 4)),
        attention_case(M(2, 4), x(2, 2, 3, 4), x(2, 3, 2, 4), return_attention_scores=True),
        attention_case(M(2, 4), x(3, 4, 4), x(3, 5, 4), masks=pair),
        attention_case(M(2, 4), x(3, 4, 4), x(3, 5, 4), x(3, 5, 2), masks=[*pair, mask(3, 5)],
                       return_attention_scores=True),
        attention_case(M(2, 4, dropout=0.2), x(3, 4, 4), x(3, 4, 4), masks=[None, mask(3, 4)],
                       use_causal_mask=True),
        attention_case(L.MultiHeadAttention(2, 3, use_bias=False), normal(2, 3, 4) * 0.6,
                       normal(2, 2, 4) * 0.6),
    ]


def group_query_cases():
    """Returns cases in float64 with a head_dim of 4, as in attention_cases()."""
    x, y = lambda *s: normal(*s, dtype=np.float64) * 0.6, rng.random((2, 3, 4)) < 0.6
    G = lambda *args, **options: L.GroupQueryAttention(*args, **options, dtype="float64")
    y[0, 0] = False
    pair = [mask(3, 4), mask(3, 5)]
    return [
        attention_case(G(4, 4, 2), x(2, 3, 4), x(2, 5, 4)),
        attention_case(G(4, 6, 2, use_bias=False), x(2, 3, 4), x(2, 3, 4), x(2, 3, 2)),
        attention_case(G(4, 3, 1, kernel_regularizer=R.L2(0.25), bias_regularizer=R.L1(0.125),
                         activity_regularizer=R.L2(0.0625), kernel_constraint="non_neg",
                         bias_constraint=C.MaxNorm(1.5), kernel_initializer="he_normal",
                         bias_initializer=I.Constant(0.2), dropout=0.5, seed=4, name="full"),
                       x(2, 3, 4), x(2, 2, 4)),
        attention_case(G(4, 2, 2), x(2, 3, 4), x(2, 4, 4), x(2, 4, 4), y),
        attention_case(G(4, 4, 1), x(2, 3, 4), x(2, 4, 4), x(2, 4, 4), y,
                       return_attention_scores=True),
        attention_case(G(4, 4, 2), x(2, 4, 4), x(2, 4, 4), use_causal_mask=True),
        attention_case(G(4, 2, 1), x(2, 4, 4), x(2, 3, 4), use_causal_mask=True,
                       return_attention_scores=True),
        attention_case(G(4, 4, 2, sliding_window=2), x(2, 4, 4), x(2, 4, 4)),
        attention_case(G(4, 4, 2, sliding_window=2), x(2, 5, 4), x(2, 5, 4),
                       use_causal_mask=True),
        attention_case(G(4, 4, 2, use_gate=True), x(2, 3, 4), x(2, 2, 4)),
        attention_case(G(4, 4, 2), x(3, 4, 4), x(3, 5, 4), masks=pair),
        attention_case(G(4, 4, 2), x(3, 4, 4), x(3, 5, 4), x(3, 5, 2), masks=[*pair, mask(3, 5)],
                       return_attention_scores=True),
        attention_case(G(4, 2, 1, dropout=0.2), x(3, 4, 4), x(3, 4, 4), masks=[None, mask(3, 4)],
                       use_causal_mask=True),
        attention_case(L.GroupQueryAttention(3, 4, 2, use_bias=False), normal(2, 3, 4) * 0.6,
                       normal(2, 2, 4) * 0.6),
    ]


def dot_attention_cases():
    x = lambda *s, **options: normal(*s, **options) * 0.6

    def made(layer, *inputs, masks=(), **given):
        golden = case(layer, *inputs, masks=masks,
                      call=lambda layer, *tensors: layer(list(tensors), **given))
        golden["layer"]["config"].update(given)
        return golden

    cases = []
    for kind in (lambda **o: L.Attention(**o), lambda **o: L.AdditiveAttention(**o),
                 lambda **o: L.Attention(score_mode="concat", **o)):
        cases += [
            made(kind(), x(2, 3, 4), x(2, 5, 4)),
            made(kind(use_scale=True, dropout=0.25, seed=3, name="full"), x(2, 3, 4), x(2, 5, 2),
                 x(2, 5, 4), use_causal_mask=True, return_attention_scores=True),
            made(kind(use_scale=False), x(3, 4, 2), x(3, 5, 2), masks=[mask(3, 4), mask(3, 5)]),
            made(kind(dtype="float64"), x(3, 4, 2, dtype=np.float64), x(3, 5, 2, dtype=np.float64),
                 masks=[None, mask(3, 5)], use_causal_mask=True),
        ]
    return cases


def with_list(layer, *tensors):
    return layer(list(tensors))


def masked_cases():
    zeros = normal(3, 4, 2)
    zeros[0, 1], zeros[2, 0], zeros[1, 2, 0] = 0, 0, 0
    ones = np.where(rng.random((2, 3, 2, 3)) < 0.4, 1, normal(2, 3, 2, 3)).astype(np.float32)
    m = lambda: mask(3, 4)
    x = lambda: normal(3, 4, 2)
    cases = [
        case(L.Masking(), zeros, masks=[None]),
        case(L.Masking(mask_value=1.0), ones, masks=[None]),
        case(L.Embedding(5, 2, mask_zero=True), whole(3, 3, 4), masks=[None]),
        case(L.Embedding(5, 2), whole(3, 3, 4), masks=[None]),
        case(L.Dot(2), x(), x(), call=with_list, masks=[m(), m()]),
        case(L.Flatten(), x(), masks=[m()]),
        case(L.RMSNormalization(), x(), masks=[m()]),
    ]
    for layer in (L.Dense(2), L.Activation("relu"), L.Dropout(0.3), L.Rescaling(0.5),
                  L.LayerNormalization(), L.GroupNormalization(1), L.BatchNormalization()):
        cases.append(case(layer, x(), masks=[m()]))
    for kind in (L.Add, L.Multiply, L.Average, L.Maximum, L.Minimum):
        cases += [case(kind(), x(), x(), x(), call=with_list, masks=[m(), m(), m()]),
                  case(kind(), x(), x(), call=with_list, masks=[m(), None]),
                  case(kind(), x(), x(), call=with_list, masks=[None, m()])]
    cases.append(case(L.Subtract(), x(), x(), call=with_list, masks=[m(), m()]))
    for axis in (-1, 1):
        cases += [case(L.Concatenate(axis=axis), x(), x(), call=with_list, masks=[m(), m()]),
                  case(L.Concatenate(axis=axis), x(), x(), call=with_list, masks=[m(), None])]
    return cases


def training_norms():
    """Returns cases of BatchNormalization in training, which computes moments of unmasked
    values."""
    cases = []
    for options, shape in (({}, (3, 4, 2)), (dict(axis=1, epsilon=0.1), (3, 4, 2)),
                           (dict(renorm=True), (3, 4, 2)), ({}, (3, 2, 2, 3))):
        counts = mask(3, int(np.prod(shape[1:-1]))).reshape(shape[:-1])
        layer = L.BatchNormalization(momentum=0.5, **options)
        cases.append(case(layer, normal(*shape), masks=[counts],
                          call=lambda layer, x: layer(x, training=True)))
        cases[-1]["moved"] = [compact(w.numpy()) for w in layer.non_trainable_weights]
    return cases


def main():
    write("keras_sequences.json", {
        "norms": norm_cases(),
        "embeddings": embedding_cases(),
        "SimpleRNN": recurrent_cases(L.SimpleRNN, 1),
        "LSTM": recurrent_cases(L.LSTM, 2) + [case(L.LSTM(2, unit_forget_bias=False),
                                                   normal(3, 4, 5))],
        "Bidirectional": bidirectional_cases(),
        "TimeDistributed": time_distributed_cases(),
        "EinsumDense": einsum_dense_cases(),
        "MultiHeadAttention": attention_cases(),
        "Attention": dot_attention_cases(),
        "masked": masked_cases(),
        "training": training_norms(),
        "GRU": recurrent_cases(L.GRU, 1) + recurrent_cases(L.GRU, 1, reset_after=False),
        "GroupQueryAttention": group_query_cases(),
    })


main()
