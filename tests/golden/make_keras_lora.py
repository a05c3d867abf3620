"""Writes keras_lora.json: layers with adapters (LoRA), what they store, and alpha after from_config.

Made with keras 3.15.1, tensorflow-cpu 2.21.0 and numpy 2.4.6 from PyPI. Run it in this folder:
python3 make_keras_lora.py
"""

import functools
import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np

import keras_golden
from keras_golden import compact, write

L, R = keras.layers, keras.regularizers
rng = np.random.default_rng(816)


def normal(*shape):
    return rng.normal(0, 1, shape).astype(np.float32)


def ids(*shape):
    return rng.integers(0, 6, shape).astype(np.int32)


def enabled(layer, x, rank, alpha=None):
    """Returns the layer, built for x, after enable_lora()."""
    layer.build(x.shape)
    layer.enable_lora(rank, lora_alpha=alpha)
    return layer


def case(layer, x, rank=None, alpha=None, quantize=None):
    """Returns a layer_case() with the variables that the layer stores in a file."""
    if rank:
        enabled(layer, x, rank, alpha)
    golden = keras_golden.layer_case(rng, layer, x, quantize=quantize)
    stored = {}
    layer.save_own_variables(stored)
    golden["stored"] = [compact(np.asarray(stored[key])) for key in sorted(stored, key=int)]
    return golden


def dense(**options):
    case_of = functools.partial(case, **options)
    return [
        case_of(L.Dense(3, lora_rank=2), normal(4, 5)),
        case_of(L.Dense(4, activation="relu", kernel_regularizer=R.L2(0.1),
                        activity_regularizer=R.L2(0.01), name="hidden"), normal(4, 6), 3, 5),
        # build() forgets alpha, so that it is the rank.
        case_of(L.Dense(2, use_bias=False, lora_rank=1, lora_alpha=4), normal(4, 5)),
        case_of(L.Dense(4, activation="tanh"), normal(3, 2, 5), 2, 1),
    ]


def einsum_dense(**options):
    case_of = functools.partial(case, **options)
    return [
        case_of(L.EinsumDense("ab,bc->ac", 3, bias_axes="c", lora_rank=2, lora_alpha=4),
                normal(4, 5)),
        case_of(L.EinsumDense("abc,cde->abde", (None, 2, 3), bias_axes="de"), normal(3, 2, 4), 2, 3),
        case_of(L.EinsumDense("abcd,cde->abe", (None, 4), bias_axes="e", activation="relu"),
                normal(3, 2, 3, 4), 2),
    ]


def einsum_dense_of_floats():
    """Equations with which integer arithmetic fails in Keras."""
    return [
        case(L.EinsumDense("abc,cd->adb", (4, None)), normal(3, 2, 5), 2, 5),
        case(L.EinsumDense("abc,dc->abd", (None, 4)), normal(3, 2, 5), 2, 3),
        case(L.EinsumDense("abc,bcd->abd", (2, 4)), normal(3, 2, 5), 2, 3),
        case(L.EinsumDense("...c,cd->...d", 4, bias_axes="d"), normal(3, 2, 5), 2, 3),
    ]


def embedding(**options):
    case_of = functools.partial(case, **options)
    return [
        case_of(L.Embedding(6, 4), ids(5), 2),
        case_of(L.Embedding(6, 3, embeddings_regularizer="l2", name="words"), ids(4, 3), 2, 5),
    ]


def alpha_after_from_config():
    """Keras: Dense and Embedding lose alpha in build(), EinsumDense keeps it."""
    layers = {
        "Dense": (L.Dense(3), (4, 5)),
        "EinsumDense": (L.EinsumDense("ab,bc->ac", 3), (4, 5)),
        "Embedding": (L.Embedding(6, 4), (5,)),
    }
    alphas = {}
    for name, (layer, shape) in layers.items():
        layer.build(shape)
        layer.enable_lora(2, lora_alpha=8)
        again = type(layer).from_config(layer.get_config())
        again.build(shape)
        alphas[name] = again.lora_alpha
    return alphas


keras.utils.set_random_seed(3)
write("keras_lora.json", {
    "Dense": dense(),
    "EinsumDense": einsum_dense() + einsum_dense_of_floats(),
    "Embedding": embedding(),
    "ReversibleEmbedding": [case(L.ReversibleEmbedding(6, 3), ids(4, 3), 2, 3)],
    "int8": dense(quantize="int8") + einsum_dense(quantize="int8") + embedding(quantize="int8"),
    "alpha": [alpha_after_from_config()],
})
