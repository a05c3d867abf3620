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


def case(name, options, y_true, y_pred, weight=None, reductions=REDUCTIONS, mask=None):
    """Returns a case of one loss with every reduction; the mask is the predictions' mask."""
    results = []
    for reduction in reductions:
        made = getattr(keras.losses, name)(reduction=reduction, **options)
        pred = tf.constant(y_pred)
        if mask is not None:
            pred._keras_mask = tf.constant(mask)
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
    if mask is not None:
        golden["mask"] = compact(mask)
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
    """Returns sample weights: none, per sample, per sample and step, and in a column."""
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
    """Returns cases with unusual labels, broadcasting and ignored classes."""
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


def focal_cases():
    binary, categorical = "BinaryFocalCrossentropy", "CategoricalFocalCrossentropy"
    kinds = [
        (binary, {}, bits, chances),
        (binary, {"from_logits": True, "gamma": 1.5, "label_smoothing": 0.1}, bits, normal),
        (binary, {"apply_class_balancing": True, "alpha": 0.7, "axis": 1}, bits, chances),
        (categorical, {}, one_hot, distribution),
        (categorical, {"from_logits": True, "alpha": 0.6, "gamma": 3.0}, one_hot, normal),
        (categorical, {"label_smoothing": 0.2}, one_hot, chances),
    ]
    cases = []
    for name, options, y_true, y_pred in kinds:
        for shape in SHAPES:
            for weight in weightings(shape) if "axis" not in options else (None,):
                cases.append(case(name, options, y_true(*shape), y_pred(*shape), weight))
    return cases + [
        case(categorical, {"alpha": [0.2, 0.5, 1.5]}, one_hot(4, 3), chances(4, 3)),
        case(categorical, {"axis": 1, "label_smoothing": 0.2},
             one_hot(3, 2, 4).transpose(0, 2, 1), chances(3, 4, 2)),
    ]


def overlap_cases():
    cases = []
    for name, extra in (("Dice", {}), ("Tversky", {"alpha": 0.3, "beta": 0.8})):
        cases += [
            case(name, {}, bits(5, 3), chances(5, 3)),
            case(name, extra, bits(4, 3, 2), chances(4, 3, 2)),
            case(name, {**extra, "axis": [1, 2]}, bits(4, 3, 2), chances(4, 3, 2)),
            case(name, {"axis": [1, 2, 3]}, bits(3, 2, 3, 2), chances(3, 2, 3, 2), weights(3)),
            case(name, {"axis": -1}, bits(3, 2, 4), chances(3, 2, 4), weights(3, 2)),
            case(name, {}, bits(5, 3), chances(5, 3), weights(5)),
            case(name, {}, np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32)),
        ]
    return cases


def unit(*shape):
    x = rng.normal(0, 1, shape)
    return (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(np.float32)


def other_cases():
    generalized = "CategoricalGeneralizedCrossEntropy"
    labels = np.array([0, 1, 1, 0, 2, 1])
    cases = [case(generalized, {}, rng.integers(0, 4, 5), distribution(5, 4), weight)
             for weight in (None, weights(5))]
    cases += [
        case(generalized, {"q": 0.2}, rng.integers(0, 4, (3, 2)), distribution(3, 2, 4),
             weights(3, 2)),
        case("Circle", {}, labels, unit(6, 4)),
        case("Circle", {"gamma": 10.0, "margin": 0.2}, labels, unit(6, 3), weights(6)),
        case("Circle", {"gamma": 5.0}, labels.reshape(6, 1), unit(6, 3)),
        case("Circle", {"gamma": 2.0, "remove_diagonal": False}, labels,
             (unit(6, 3) * 0.7).astype(np.float32)),
        case("Circle", {}, np.zeros(4, int), unit(4, 3)),
    ]
    # A full sequence, shorter ones, an empty one and repeated labels.
    sequences = np.array([[1, 2, 3], [2, 2, 0], [0, 0, 0], [3, 1, 1], [4, 0, 0]])
    for weight in (None, weights(5)):
        cases.append(case("CTC", {}, sequences, normal(5, 7, 5), weight))
    return cases + [case("CTC", {}, sequences[:2, :1], normal(2, 1, 4))]


def masked_cases():
    cases = []
    for name, y_true, y_pred in (
            ("MeanSquaredError", normal, normal),
            ("CategoricalCrossentropy", one_hot, distribution),
            ("BinaryFocalCrossentropy", bits, chances)):
        for weight in (None, weights(3, 4), weights(3, 1)):
            cases.append(case(name, {}, y_true(3, 4, 2), y_pred(3, 4, 2), weight,
                              mask=bits(3, 4).astype(bool)))
    sparse = "SparseCategoricalCrossentropy"
    labels = np.array([0, 1, 1, 0, 2, 1])
    return cases + [
        case(sparse, {"ignore_class": 1}, rng.integers(0, 3, (3, 4)), distribution(3, 4, 3),
             mask=bits(3, 4).astype(bool)),
        case("Circle", {}, labels, unit(6, 3), mask=np.array([1, 1, 0, 1, 0, 1], bool)),
        case("MeanSquaredError", {}, normal(3, 2, 2), normal(3, 2, 2),
             mask=np.zeros((3, 2), bool)),
    ]


def main():
    cases = []
    for name, options, y_true, y_pred in KINDS:
        for shape in SHAPES:
            for weight in weightings(shape):
                if options.get("axis") == 1:
                    weight = None if weight is None else weights(shape[0], *shape[2:])
                cases.append(case(name, options, y_true(*shape), y_pred(*shape), weight))
    cases += special() + focal_cases() + overlap_cases() + other_cases() + masked_cases()
    write("keras_losses.json", {
        "made_with": {"keras": keras.__version__, "tensorflow": tf.__version__},
        "losses": cases})


if __name__ == "__main__":
    main()
