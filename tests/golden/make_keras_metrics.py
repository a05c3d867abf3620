"""Writes keras_metrics.json: metrics of Keras on TensorFlow over several batches, the last short.

Made with keras 3.15.1, tensorflow-cpu 2.21.0 and numpy 2.4.6 from PyPI. Run it in this folder:
python3 make_keras_metrics.py
"""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf

from keras_golden import compact, write

rng = np.random.default_rng(29)
SIZES = (6, 6, 3)
CLASSES = 4


def case(name, options, y_true, y_pred, weight=None, sizes=SIZES):
    """Returns a metric's case; `y_true`, `y_pred` and `weight` are functions of the number of
    samples."""
    made = getattr(keras.metrics, name)(**options)
    steps = []
    for size in sizes:
        data = {} if y_true is None else {"y_true": y_true(size)}
        data["y_pred"] = y_pred(size)
        if weight is not None:
            data["sample_weight"] = weight(size)
        made.update_state(*(data[k] for k in ("y_true", "y_pred") if k in data),
                          sample_weight=data.get("sample_weight"))
        steps.append({key: compact(value) for key, value in data.items()})
        result = np.asarray(made.result(), np.float32)
        steps[-1]["result"] = compact(result)["values"]
    return {"name": name, "options": options, "batches": steps}


def normal(*axes):
    return lambda n: np.round(rng.normal(0, 2, (n, *axes)), 3).astype(np.float32)


def positive(*axes):
    return lambda n: np.round(rng.uniform(0.05, 4, (n, *axes)), 3).astype(np.float32)


def chances(*axes):
    """Returns probabilities with two decimals, so that some equal thresholds."""
    return lambda n: np.round(rng.uniform(0, 1, (n, *axes)), 2).astype(np.float32)


def distribution(*axes):
    def made(n):
        x = rng.uniform(0.05, 0.95, (n, *axes))
        return (x / x.sum(-1, keepdims=True)).astype(np.float32)
    return made


def bits(*axes):
    return lambda n: rng.integers(0, 2, (n, *axes)).astype(np.float32)


def label(*axes):
    return lambda n: rng.integers(0, CLASSES, (n, *axes))


def one_hot(*axes):
    return lambda n: np.eye(CLASSES, dtype=np.float32)[rng.integers(0, CLASSES, (n, *axes))]


def weights(*axes):
    return lambda n: rng.integers(0, 4, (n, *axes)).astype(np.float32)


def means():
    kinds = [
        ("MeanSquaredError", {}, normal, normal),
        ("RootMeanSquaredError", {}, normal, normal),
        ("MeanAbsoluteError", {}, normal, normal),
        ("MeanAbsolutePercentageError", {}, normal, normal),
        ("MeanSquaredLogarithmicError", {}, positive, positive),
        ("LogCoshError", {}, normal, normal),
        ("CosineSimilarity", {}, normal, normal),
        ("Hinge", {}, bits, normal),
        ("SquaredHinge", {}, bits, normal),
        ("KLDivergence", {}, distribution, distribution),
        ("Poisson", {}, positive, positive),
        ("BinaryCrossentropy", {}, bits, chances),
        ("BinaryCrossentropy", {"from_logits": True, "label_smoothing": 0.1}, bits, normal),
    ]
    cases = []
    for name, options, y_true, y_pred in kinds:
        for weight in (None, weights()):
            cases.append(case(name, options, y_true(3), y_pred(3), weight))
        cases.append(case(name, options, y_true(2, 3), y_pred(2, 3), weights(2)))
    for name, options, y_pred in (
            ("CategoricalHinge", {}, normal(CLASSES)),
            ("CategoricalCrossentropy", {}, distribution(CLASSES)),
            ("CategoricalCrossentropy", {"from_logits": True, "label_smoothing": 0.2},
             normal(CLASSES)),
            ("TopKCategoricalAccuracy", {"k": 2}, normal(CLASSES))):
        cases += [case(name, options, one_hot(), y_pred, w) for w in (None, weights())]
    for name, options, y_pred in (
            ("SparseCategoricalCrossentropy", {}, distribution(CLASSES)),
            ("SparseCategoricalCrossentropy", {"from_logits": True}, normal(CLASSES)),
            ("SparseCategoricalCrossentropy", {"from_logits": True, "ignore_class": 1},
             normal(CLASSES)),
            ("SparseTopKCategoricalAccuracy", {"k": 3}, normal(CLASSES))):
        cases += [case(name, options, label(), y_pred, w) for w in (None, weights())]
    return cases + [
        case("CosineSimilarity", {"axis": 1}, normal(2, 3), normal(2, 3)),
        case("CategoricalCrossentropy", {"from_logits": True, "axis": 1},
             lambda n: one_hot(2)(n).transpose(0, 2, 1), normal(CLASSES, 2)),
        case("MeanSquaredError", {}, normal(), normal(1), weights()),
        case("RootMeanSquaredError", {}, normal(), normal(1), weights()),
        case("SparseTopKCategoricalAccuracy", {"k": 2}, label(3), normal(3, CLASSES), weights(3)),
        case("SparseTopKCategoricalAccuracy", {"k": 2, "from_sorted_ids": True}, label(),
             lambda n: rng.permuted(np.tile(np.arange(CLASSES), (n, 1)), axis=1)
             .astype(np.float32)),
        case("SparseTopKCategoricalAccuracy", {"k": 2}, label(),
             lambda n: rng.integers(0, 2, (n, CLASSES)).astype(np.float32)),
        case("Sum", {}, None, normal()),
        case("Sum", {}, None, normal(3), weights()),
        case("Sum", {}, None, normal(3), weights(3)),
    ]


def counts():
    cases = []
    options = [{}, {"thresholds": 0.3}, {"thresholds": [0.8, 0.2]}, {"thresholds": [0, 0.5, 1]}]
    for name in ("TruePositives", "TrueNegatives", "FalsePositives", "FalseNegatives",
                 "Precision", "Recall"):
        for o in options:
            cases.append(case(name, o, bits(), chances(), weights()))
        cases += [case(name, {}, bits(3), chances(3)),
                  case(name, {"thresholds": [0.25, 0.5]}, bits(2), chances(2), weights()),
                  case(name, {}, bits(2), chances(2), weights(2)),
                  case(name, {}, bits(), chances(1), weights()),
                  case(name, {}, bits(2, 2), chances(2, 2))]
    for name in ("Precision", "Recall"):
        for o in ({"top_k": 2}, {"class_id": 1}, {"top_k": 2, "class_id": 0},
                  {"top_k": 3, "thresholds": 0.6}):
            cases.append(case(name, o, bits(CLASSES), chances(CLASSES), weights()))
        cases.append(case(name, {"top_k": 2}, bits(CLASSES), bits(CLASSES)))
    return cases


def areas():
    cases = []
    for curve in ("ROC", "PR", "PRGAIN"):
        for method in ("interpolation", "minoring", "majoring"):
            o = {"curve": curve, "summation_method": method}
            cases += [case("AUC", o, bits(), chances(), weights(), sizes=(9, 5)),
                      case("AUC", {"num_thresholds": 5, **o}, bits(), chances(), sizes=(9, 5))]
    two = bits(2), chances(2)
    return cases + [
        case("AUC", {}, *two),
        case("AUC", {"num_thresholds": 2}, *two),
        case("AUC", {"num_thresholds": 11}, *two),
        case("AUC", {"thresholds": [0.7, 0.1, 0.45]}, *two, weights()),
        case("AUC", {"thresholds": [0.75, 0.25, 0.5]}, *two),
        case("AUC", {"from_logits": True}, bits(), normal()),
        case("AUC", {"label_weights": [0.5, 2.0]}, *two),
        case("AUC", {"multi_label": True}, *two, weights()),
        case("AUC", {"multi_label": True, "num_labels": 2, "curve": "PR"}, *two),
        case("AUC", {"multi_label": True, "label_weights": [0.5, 2.0]}, *two),
        case("AUC", {"multi_label": True, "thresholds": [0.3, 0.6]}, *two),
        case("AUC", {}, lambda n: np.ones(n, np.float32), chances()),
    ]


def scores():
    cases = []
    for average in (None, "micro", "macro", "weighted"):
        o = {"average": average}
        cases += [case("F1Score", o, one_hot(), normal(CLASSES)),
                  case("F1Score", {"threshold": 0.5, **o}, bits(3), chances(3), weights()),
                  case("FBetaScore", {"beta": 2.0, **o}, one_hot(), normal(CLASSES), weights()),
                  case("FBetaScore", {"beta": 0.5, "threshold": 0.3, **o}, bits(3), chances(3))]
    cases.append(case("F1Score", {}, one_hot(), lambda n: np.zeros((n, CLASSES), np.float32)))
    return cases


def rates():
    cases = []
    for name, key in (("SensitivityAtSpecificity", "specificity"),
                      ("SpecificityAtSensitivity", "sensitivity"),
                      ("PrecisionAtRecall", "recall"), ("RecallAtPrecision", "precision")):
        cases += [case(name, {key: 0.5}, bits(), chances()),
                  case(name, {key: 0.7}, bits(), chances(), weights()),
                  case(name, {key: 0.3, "num_thresholds": 1}, bits(), chances()),
                  case(name, {key: 0.3, "num_thresholds": 2}, bits(), chances()),
                  case(name, {key: 0.6, "num_thresholds": 7}, bits(2), chances(2), weights(2)),
                  case(name, {key: 0.4, "class_id": 1}, bits(3), chances(3), weights()),
                  case(name, {key: 1.0}, bits(2), chances(2))]
    return cases


def unions():
    wide = lambda n: rng.integers(-1, CLASSES + 1, n)
    parts = lambda n: np.round(rng.uniform(0, 3, n), 2).astype(np.float32)
    several = {"num_classes": CLASSES}
    cases = []
    for name, o in (("IoU", {**several, "target_class_ids": [0, 2]}), ("MeanIoU", several)):
        cases += [case(name, o, label(), label()),
                  case(name, o, label(3), label(3), weights(3)),
                  case(name, o, wide, wide, weights()),
                  case(name, {**o, "ignore_class": 1}, label(), label(1), parts),
                  case(name, {**o, "ignore_class": -1, "dtype": "float32"}, wide, label(), parts),
                  case(name, {**o, "sparse_y_pred": False}, label(2), normal(2, CLASSES)),
                  case(name, {**o, "sparse_y_true": False}, normal(CLASSES), label())]
    cases.append(case("MeanIoU", {"num_classes": 9}, label(), label()))
    for name, o in (("OneHotIoU", {**several, "target_class_ids": [3]}),
                    ("OneHotMeanIoU", several)):
        cases += [case(name, o, one_hot(), normal(CLASSES)),
                  case(name, o, one_hot(), normal(CLASSES), weights()),
                  case(name, {**o, "sparse_y_pred": True, "ignore_class": 2}, one_hot(), label()),
                  case(name, {"num_classes": 3, **{k: [0, 1] for k in o if k[0] == "t"}},
                       one_hot(), normal(CLASSES))]
    return cases + [
        case("BinaryIoU", {}, bits(), chances()),
        case("BinaryIoU", {"threshold": 0.3}, bits(2), chances(2), weights(2)),
        case("BinaryIoU", {"target_class_ids": [1], "dtype": "float32"}, bits(), chances(1), parts),
        case("BinaryIoU", {"target_class_ids": [0]}, lambda n: np.ones(n, np.float32), chances())]


def regressions():
    cases = []
    for name in ("PearsonCorrelation", "ConcordanceCorrelation"):
        cases += [case(name, {}, normal(4), normal(4)),
                  case(name, {}, normal(4), normal(4), weights()),
                  case(name, {}, normal(2, 3), normal(2, 3), weights(2)),
                  case(name, {"axis": 1}, normal(3, 2), normal(3, 2)),
                  case(name, {"axis": 0}, normal(2), normal(2)),
                  case(name, {}, normal(4, 1), normal(4))]
    for o in ({}, {"class_aggregation": None}, {"class_aggregation": "variance_weighted_average"},
              {"num_regressors": 2}, {"class_aggregation": None, "num_regressors": 3},
              {"num_regressors": 40}):
        cases += [case("R2Score", o, normal(3), normal(3)),
                  case("R2Score", o, normal(2), normal(2), weights(1)),
                  case("R2Score", o, normal(1), normal(1), positive())]
    constant = lambda n: np.ones((n, 2), np.float32)
    return cases + [case("R2Score", {}, normal(), normal(1)),
                    case("R2Score", {}, normal(2), normal(2), positive(2)),
                    case("R2Score", {}, constant, normal(2))]


def main():
    write("keras_metrics.json", {
        "made_with": {"keras": keras.__version__, "tensorflow": tf.__version__},
        "metrics": means() + counts() + areas() + scores() + rates() + unions()
                   + regressions()})


if __name__ == "__main__":
    main()
