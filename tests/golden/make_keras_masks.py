"""Writes keras_masks.json: masks in losses, metrics and training of Keras on TensorFlow.

Made with keras 3.15.1, tensorflow-cpu 2.21.0 and numpy 2.4.6 from PyPI. Run it in this folder:
python3 make_keras_masks.py
"""

import json
import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf

from keras_golden import compact, give_weights, masked, serialized, tensor, write

L = keras.layers
rng = np.random.default_rng(31)


def normal(*shape):
    return rng.normal(0, 1, shape).astype(np.float32)


def steps(rows, count):
    counts = rng.random((rows, count)) < 0.6
    counts[0, 0], counts[0, 1] = False, True
    return counts


def loss_case(loss, y_true, y_pred, mask, weight=None):
    x = tf.constant(y_pred)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = loss(y_true, masked(tf.identity(x), mask), weight)
        total = tf.reduce_sum(value)
    case = {"loss": serialized(loss), "y_true": tensor(y_true), "y_pred": tensor(y_pred),
            "mask": tensor(mask), "value": compact(value.numpy()),
            "gradient": compact(tape.gradient(total, x).numpy())}
    return case if weight is None else {**case, "weight": tensor(weight)}


def losses():
    cases = []
    reductions = ("sum_over_batch_size", "sum", "mean", "mean_with_sample_weight", "none")
    for reduction in reductions:
        mse = keras.losses.MeanSquaredError(reduction=reduction)
        mask, weight = steps(3, 4), rng.random((3, 4)).astype(np.float32)
        y, x = normal(3, 4, 2), normal(3, 4, 2)
        cases += [loss_case(mse, y, x, mask), loss_case(mse, y, x, mask, weight),
                  loss_case(mse, y, x, mask, weight[:, :1])]
        crossed = keras.losses.SparseCategoricalCrossentropy(True, reduction=reduction,
                                                             ignore_class=1)
        labels = rng.integers(0, 5, (3, 4)).astype(np.int32)
        cases += [loss_case(crossed, labels, normal(3, 4, 5), mask),
                  loss_case(crossed, labels, normal(3, 4, 5), mask, weight)]
    cases.append(loss_case(keras.losses.MeanAbsoluteError(), normal(3, 4, 2), normal(3, 4, 2),
                           np.zeros((3, 4), bool)))
    cases.append(loss_case(keras.losses.BinaryCrossentropy(from_logits=True),
                           (rng.random((3, 1)) < 0.5).astype(np.float32), normal(3, 1),
                           np.array([[True], [False], [True]])))
    return cases


def metric_case(metric, *batches):
    rows = []
    for y_true, y_pred, mask, weight in batches:
        metric.update_state(y_true, masked(tf.constant(y_pred), mask), weight)
        row = {"y_true": tensor(y_true), "y_pred": tensor(y_pred)}
        if mask is not None:
            row["mask"] = tensor(mask)
        if weight is not None:
            row["weight"] = tensor(weight)
        rows.append(row)
    return {"metric": serialized(metric), "batches": rows, "result": float(metric.result())}


def metrics():
    M = keras.metrics
    labels = lambda: rng.integers(0, 3, (3, 4)).astype(np.int32)
    whole = lambda: (labels(), normal(3, 4, 3), steps(3, 4), None)
    weighted = lambda: (labels(), normal(3, 4, 3), steps(3, 4),
                        rng.random((3, 4)).astype(np.float32))
    pair = lambda: (normal(3, 4, 2), normal(3, 4, 2), steps(3, 4), None)
    flags = lambda: ((rng.random((3, 4, 1)) < 0.5).astype(np.float32),
                     rng.random((3, 4, 1)).astype(np.float32), steps(3, 4), None)
    return [
        metric_case(M.SparseCategoricalAccuracy(), whole(), whole()),
        metric_case(M.SparseCategoricalAccuracy(), weighted(), whole()),
        metric_case(M.SparseCategoricalCrossentropy(from_logits=True), weighted(), weighted()),
        metric_case(M.MeanSquaredError(), pair(), pair()),
        metric_case(M.MeanAbsoluteError(), pair(), (normal(2, 4, 2), normal(2, 4, 2), None, None)),
        metric_case(M.BinaryAccuracy(), flags(), flags()),
    ]


def tagger():
    """Returns a model that classifies every step; padding has no effect."""
    return keras.Sequential([
        L.Input((4,), dtype="int32"), L.Embedding(7, 3, mask_zero=True, name="words"),
        L.Bidirectional(L.LSTM(2, return_sequences=True, name="lstm"), name="both"),
        L.LayerNormalization(name="norm"), L.Dense(3, name="logits")], name="tagger")


def attention():
    """Returns a model that scores a sentence: masks pass through a Functional and a nested
    model."""
    x = keras.Input((4,), dtype="int32", name="ids")
    inner = keras.Sequential([L.Input((4, 4)), L.Dense(4, activation="tanh", name="dense"),
                              L.GRU(4, return_sequences=True, name="gru")], name="block")
    y = inner(L.Embedding(7, 4, mask_zero=True, name="words")(x))
    # Keras' attention removes the mask from its input tensor itself.
    besides = L.Rescaling(0.5, name="half")(y)
    attended = L.MultiHeadAttention(2, 2, name="attention")(y, y, use_causal_mask=True)
    z = L.Add(name="add")([besides, attended])
    return keras.Model(x, L.Dense(1, name="out")(L.SimpleRNN(3, name="last")(z)), name="scorer")


def features():
    return keras.Sequential([
        L.Input((4, 2)), L.Masking(name="masking"),
        L.TimeDistributed(L.Dense(3, activation="relu", name="dense"), name="each"),
        L.GRU(3, return_sequences=True, name="gru"), L.Dense(1, name="out")], name="features")


def ids(rows):
    values = rng.integers(1, 7, (rows, 4)).astype(np.int32)
    for row, length in enumerate(rng.integers(1, 5, rows)):
        values[row, length:] = 0
    return values


def model_case(model, x, y, loss, metric, weight=None):
    for layer in model.layers:
        if layer.weights:
            give_weights(layer, np.random.default_rng(5))
    for w in model.weights:
        w.assign(w * 0.4)
    case = {"model": json.loads(model.to_json()), "x": tensor(x), "y": tensor(y),
            "loss": serialized(loss), "metric": serialized(metric),
            "weights": [compact(w.numpy()) for w in model.weights]}
    model.compile(keras.optimizers.SGD(0.1), loss=loss, metrics=[metric],
                  weighted_metrics=[type(metric)(name="weighted")])
    if weight is not None:
        case["weight"] = tensor(weight)
    case["before"] = [float(v) for v in model.evaluate(x, y, sample_weight=weight, verbose=0)]
    history = model.fit(x, y, sample_weight=weight, batch_size=2, epochs=2, shuffle=False,
                        verbose=0).history
    case["history"] = {key: history[key] for key in ("loss", metric.name, "weighted")}
    case["predictions"] = compact(model.predict(x, verbose=0))
    case["after"] = [compact(w.numpy()) for w in model.weights]
    return case


def models():
    classes = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    labels = rng.integers(0, 3, (6, 4)).astype(np.int32)
    weight = rng.random((6, 4)).astype(np.float32)
    data = normal(6, 4, 2)
    data[1, 2:], data[4, 1:] = 0, 0
    accuracy = lambda: keras.metrics.SparseCategoricalAccuracy()
    return [
        model_case(tagger(), ids(6), labels, classes, accuracy()),
        model_case(tagger(), ids(6), labels, classes, accuracy(), weight),
        model_case(attention(), ids(6), normal(6, 1), keras.losses.MeanSquaredError(),
                   keras.metrics.MeanAbsoluteError()),
        model_case(features(), data, normal(6, 4, 1), keras.losses.MeanSquaredError(),
                   keras.metrics.MeanAbsoluteError(), weight),
    ]


write("keras_masks.json", {"losses": losses(), "metrics": metrics(), "models": models()})
