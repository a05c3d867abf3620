"""Writes keras_losses.json: losses and their gradients of Keras on TensorFlow.

Made with keras 3.15.1, tensorflow-cpu 2.21.0 and numpy 2.4.6 from PyPI. Run it in this folder:
python3 make_keras_losses.py
"""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf

from keras_golden import compact, write

rng = np.random.default_rng(23)
REDUCTIONS = ("sum_over_batch_size", "sum", "mean", "mean_with_sample_weight", "none")
# Matrices, a short batch, sequences.
SHAPES = ((5, 3), (2, 4), (3, 2, 4))


def case(name, options, y_true, y_pred, weight=None, reductions=REDUCTIONS):
    """One loss with every reduction."""
    results = []
    for reduction in reductions:
        made = getattr(keras.losses, name)(reduction=reduction, **options)
        pred = tf.constant(y_pred)
        with tf.GradientTape() as tape:
            tape.watch(pred)
            value = made(y_true, pred, sample_weight=weight)
            total = tf.reduce_sum(value)
        results.append({"reduction": reduction, "loss": compact(value.numpy()),
                        "gradient": compact(tape.gradient(total, pred).numpy())})
    golden = {"name": name, "options": options, "y_true": compact(y_true),
              "y_pred": compact(y_pred), "results": results}
    if weight is not None:
        golden["sample_weight"] = compact(weight)
    return golden


def normal(*shape):
    return np.round(rng.normal(0, 2, shape), 4).astype(np.float32)


def positive(*shape):
    return np.round(rng.uniform(0.05, 4, shape), 4).astype(np.float32)


def chances(*shape):
    return np.round(rng.uniform(0.05, 0.95, shape), 4).astype(np.float32)


def distribution(*shape):
    x = chances(*shape)
    return (x / x.sum(-1, keepdims=True)).astype(np.float32)


def bits(*shape):
    return rng.integers(0, 2, shape).astype(np.float32)


def signs(*shape):
    return 2 * bits(*shape) - 1


def one_hot(*shape):
    return np.eye(shape[-1], dtype=np.float32)[rng.integers(0, shape[-1], shape[:-1])]


def weights(*shape):
    return rng.integers(0, 4, shape).astype(np.float32)


def weightings(shape):
    """Without weights, one a sample, one a sample and step, in a column."""
    kinds = [None, weights(shape[0])] if len(shape) == 2 else [None, weights(*shape[:-1])]
    if len(shape) == 3:
        kinds.append(weights(shape[0], 1))
    return kinds


KINDS = [
    ("MeanSquaredError", {}, normal, normal),
    ("MeanAbsoluteError", {}, normal, normal),
    ("MeanAbsolutePercentageError", {}, normal, normal),
    ("MeanSquaredLogarithmicError", {}, positive, positive),
    ("LogCosh", {}, normal, normal),
    ("Huber", {}, normal, normal),
    ("Huber", {"delta": 2.5}, normal, normal),
    ("CosineSimilarity", {}, normal, normal),
    ("CosineSimilarity", {"axis": 1}, normal, normal),
    ("Hinge", {}, signs, normal),
    ("Hinge", {}, bits, normal),
    ("SquaredHinge", {}, bits, normal),
    ("CategoricalHinge", {}, one_hot, normal),
    ("KLDivergence", {}, distribution, distribution),
    ("Poisson", {}, positive, positive),
    ("BinaryCrossentropy", {"from_logits": True}, bits, normal),
    ("BinaryCrossentropy", {"label_smoothing": 0.2}, bits, chances),
    ("CategoricalCrossentropy", {"from_logits": True}, one_hot, normal),
    ("CategoricalCrossentropy", {"label_smoothing": 0.1}, one_hot, distribution),
]


def special():
    """Labels out of the ordinary, broadcasts and ignored classes."""
    labels = rng.integers(0, 4, (3, 2))
    ignored = np.array([[0, -1], [3, 2], [-1, 1]])
    sparse = "SparseCategoricalCrossentropy"
    cases = [
        case("SquaredHinge", {}, normal(5, 3), normal(5, 3), reductions=("sum",)),
        case("BinaryCrossentropy", {"from_logits": True, "axis": 1}, bits(3, 2, 4),
             normal(3, 2, 4)),
        case("CategoricalCrossentropy", {"axis": 1, "label_smoothing": 0.2},
             one_hot(3, 2, 4).transpose(0, 2, 1), chances(3, 4, 2)),
        case("MeanAbsoluteError", {}, normal(6), normal(6, 1), weights(6)),
        case("Huber", {}, normal(4, 1), normal(4, 3)),
        case("KLDivergence", {}, one_hot(4, 3), np.array(
            [[0, 1, 0], [0.2, 0.8, 0], [1, 0, 0], [0.3, 0.3, 0.4]], np.float32),
             reductions=("none",)),
        case("MeanAbsolutePercentageError", {}, bits(4, 3), normal(4, 3), reductions=("sum",)),
        case("LogCosh", {}, np.zeros((2, 2), np.float32),
             np.array([[0, 1e-3], [60, -300]], np.float32), reductions=("none",)),
        case(sparse, {}, labels, distribution(3, 2, 4)),
    ]
    for weight in (None, weights(3, 2), weights(3, 1)):
        for options in ({"from_logits": True}, {}):
            cases.append(case(sparse, {"ignore_class": -1, **options}, ignored,
                              normal(3, 2, 4) if options else distribution(3, 2, 4), weight))
    cases += [
        case(sparse, {"ignore_class": 2, "from_logits": True}, np.array([[2], [0], [2], [1]]),
             normal(4, 3), weights(4)),
        case(sparse, {"ignore_class": 2, "from_logits": True}, np.array([2, 2]), normal(2, 3)),
    ]
    return cases


def main():
    cases = []
    for name, options, y_true, y_pred in KINDS:
        for shape in SHAPES:
            for weight in weightings(shape):
                if options.get("axis") == 1:
                    weight = None if weight is None else weights(shape[0], *shape[2:])
                cases.append(case(name, options, y_true(*shape), y_pred(*shape), weight))
    cases += special()
    write("keras_losses.json", {
        "made_with": {"keras": keras.__version__, "tensorflow": tf.__version__},
        "losses": cases})


if __name__ == "__main__":
    main()
