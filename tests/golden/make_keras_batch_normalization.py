"""Writes keras_batch_normalization.json: the layer in training, inference and frozen.

Made with keras 3.15.1, tensorflow-cpu 2.21.0 and numpy 2.4.6 from PyPI. Run it in this folder:
python3 make_keras_batch_normalization.py
"""

import json
import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf

from keras_golden import compact, write

I, R, C = keras.initializers, keras.regularizers, keras.constraints
BatchNormalization = keras.layers.BatchNormalization
rng = np.random.default_rng(31)


def normal(*shape):
    return (rng.normal(0, 1.5, shape) + rng.normal(0, 2, shape[-1:])).astype(np.float32)


def upstream(shape):
    """Returns the output gradient: (i mod 7) / 2 - 1.25, in row-major order."""
    return (np.arange(np.prod(shape, dtype=int)) % 7 / 2 - 1.25).reshape(shape).astype(np.float32)


def step(layer, x, training):
    """Returns output, penalties and the gradients of upstream · output + penalties."""
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x, training=training)
        loss = tf.reduce_sum(tf.cast(y, tf.float32) * upstream(y.shape)) + sum(layer.losses)
    trainable = [w.value for w in layer.trainable_weights]
    gradients = tape.gradient(loss, [x] + trainable)
    return {"output": compact(y.numpy().astype(np.float32)),
            "losses": [float(v) for v in layer.losses],
            "gradients": [compact(g.numpy()) for g in gradients]}


def is_spread(weight):
    return weight.name in ("moving_variance", "moving_stddev", "renorm_stddev")


def case(layer, *shape):
    batches = [normal(*shape), normal(shape[0] - 1, *shape[1:]), normal(*shape) + 3]
    layer(batches[0])
    for weight in layer.weights:
        values = rng.normal(0, 1.5, weight.shape).astype(np.float32)
        weight.assign(values**2 + 0.1 if is_spread(weight) else values)
    weights = [compact(w.numpy().astype(np.float32)) for w in layer.weights]
    config = json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))
    training = [step(layer, x, True) for x in batches]
    moved = [compact(w.numpy().astype(np.float32)) for w in layer.non_trainable_weights]
    inference = step(layer, batches[0], False)
    layer.trainable = False
    frozen = step(layer, batches[1], True)
    return {"layer": config, "batches": [compact(x) for x in batches], "weights": weights,
            "training": training, "moved": moved, "inference": inference, "frozen": frozen}


write("keras_batch_normalization.json", {"cases": [
    case(BatchNormalization(), 5, 3),
    case(BatchNormalization(center=False, scale=False, epsilon=1e-5), 6, 4),
    case(BatchNormalization(center=False), 4, 3),
    case(BatchNormalization(scale=False, momentum=0.5), 4, 3),
    case(BatchNormalization(axis=1), 4, 3, 5),
    case(BatchNormalization(axis=1), 3, 2, 3, 2),
    case(BatchNormalization(axis=-2, momentum=0.9, epsilon=0.01), 3, 2, 3),
    case(BatchNormalization(), 3, 2, 2, 3),
    case(BatchNormalization(beta_initializer=I.Constant(0.5), gamma_initializer="he_normal",
                            moving_mean_initializer=I.Constant(-1.0),
                            moving_variance_initializer=I.Constant(2.0),
                            beta_regularizer=R.L1(0.1), gamma_regularizer=R.L2(0.2),
                            beta_constraint=C.NonNeg(), gamma_constraint=C.MaxNorm(1.5),
                            synchronized=True, name="full"), 5, 3),
    case(BatchNormalization(dtype="mixed_bfloat16"), 5, 3),
    case(BatchNormalization(renorm=True, momentum=0.9, renorm_momentum=0.8), 5, 3),
    case(BatchNormalization(axis=1, renorm=True, center=False, scale=False,
                            renorm_clipping={"rmin": 0.5, "rmax": 1.5, "dmax": 0.7}), 3, 2, 3),
    case(BatchNormalization(renorm=True, scale=False, renorm_clipping={"rmax": 0.9}), 4, 3),
]})
