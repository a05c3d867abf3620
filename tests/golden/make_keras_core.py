"""Writes keras_core.json: initializers, losses, metrics and optimizers of Keras on TensorFlow.

Made with keras 3.15.1, tensorflow-cpu 2.21.0 and numpy 2.4.6 from PyPI. Run it in this folder:
python3 make_keras_core.py
"""

import itertools
import json
import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(11)


def compact(value):
    """Returns the shape and the shortest decimals of an array, in row-major order."""
    array = np.asarray(value)
    numbers = array.ravel()
    if array.dtype == np.float32:
        numbers = [float(str(x)) for x in numbers]
    else:
        numbers = numbers.tolist()
    return {"shape": list(array.shape), "values": list(numbers)}


def initializers():
    shapes = {"vector": (5,), "matrix": (6, 4), "wide": (3, 7), "kernel": (3, 2, 4, 5)}
    classes = [
        ("Zeros", {}), ("Ones", {}), ("Constant", {"value": -1.5}),
        ("RandomUniform", {"seed": 3}), ("RandomUniform", {"minval": 1, "maxval": 4, "seed": 9}),
        ("RandomNormal", {"seed": 3}), ("RandomNormal", {"mean": 2, "stddev": 3, "seed": 4}),
        ("TruncatedNormal", {"seed": 3}), ("TruncatedNormal", {"mean": 1, "stddev": 2, "seed": 4}),
        ("GlorotUniform", {"seed": 1337}), ("GlorotNormal", {"seed": 1337}),
        ("HeUniform", {"seed": 7}), ("HeNormal", {"seed": 7}),
        ("LecunUniform", {"seed": 8}), ("LecunNormal", {"seed": 2**31 - 3}),
        ("Orthogonal", {"seed": 5}), ("Orthogonal", {"gain": 2, "seed": 6}),
        ("Identity", {}), ("Identity", {"gain": 3}),
    ]
    for mode, kind in itertools.product(("fan_in", "fan_out", "fan_avg"),
                                        ("truncated_normal", "untruncated_normal", "uniform")):
        options = {"scale": 0.7, "mode": mode, "distribution": kind, "seed": 21}
        classes.append(("VarianceScaling", options))
    cases = []
    for name, options in classes:
        for shape in shapes.values():
            if name == "Orthogonal" and len(shape) < 2:
                continue
            if name == "Identity" and len(shape) != 2:
                continue
            made = getattr(keras.initializers, name)(**options)
            cases.append({"name": name, "options": options, **compact(made(shape))})
    return cases


def loss_case(name, options, y_true, y_pred, weight):
    made = getattr(keras.losses, name)(**options)
    pred = tf.constant(y_pred)
    with tf.GradientTape() as tape:
        tape.watch(pred)
        value = made(y_true, pred, sample_weight=weight)
        total = tf.reduce_sum(value)
    case = {"name": name, "options": options, "y_true": compact(y_true), "y_pred": compact(y_pred),
            "loss": compact(value.numpy()), "gradient": compact(tape.gradient(total, pred).numpy())}
    if weight is not None:
        case["sample_weight"] = compact(weight)
    return case


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)).astype(np.float32)


def normal(*shape):
    return rng.normal(0, 2, shape).astype(np.float32)


def weights(*shape):
    return rng.integers(0, 4, shape).astype(np.float32)


def losses():
    reductions = ("sum_over_batch_size", "sum", "mean_with_sample_weight", "none")
    cases = []
    logits, labels = normal(7, 5), rng.integers(0, 5, 7)
    one_hot = np.eye(5, dtype=np.float32)[labels]
    bits = rng.integers(0, 2, (7, 5)).astype(np.float32)
    sure = np.array([[1, 0, 0], [0, 0, 1], [0.2, 0.3, 0.5]], np.float32)
    data = [
        ("SparseCategoricalCrossentropy", labels, logits, softmax(logits), {}),
        ("CategoricalCrossentropy", one_hot, logits, softmax(logits), {}),
        ("CategoricalCrossentropy", one_hot, logits, softmax(logits), {"label_smoothing": 0.1}),
        ("BinaryCrossentropy", bits, logits, 1 / (1 + np.exp(-logits)), {}),
        ("BinaryCrossentropy", bits, logits, 1 / (1 + np.exp(-logits)), {"label_smoothing": 0.2}),
    ]
    weightings = (None, weights(7), weights(7, 1))
    for name, y_true, scores, chances, extra in data:
        for from_logits, reduction in itertools.product((True, False), reductions):
            y_pred = scores if from_logits else chances
            options = {"from_logits": from_logits, "reduction": reduction, **extra}
            for weight in weightings if not extra else (None,):
                cases.append(loss_case(name, options, y_true, y_pred, weight))
    for reduction, weight in itertools.product(reductions, weightings):
        cases.append(loss_case("MeanSquaredError", {"reduction": reduction}, normal(7, 5), logits,
                               weight))
    deep, steps = normal(3, 4, 5), rng.integers(0, 5, (3, 4))
    for weight in (None, weights(3, 4), weights(3, 1), weights(4)):
        for reduction in reductions:
            options = {"from_logits": True, "reduction": reduction}
            cases.append(loss_case("SparseCategoricalCrossentropy", options, steps, deep, weight))
    name = "SparseCategoricalCrossentropy"
    cases += [
        loss_case(name, {}, np.array([0, 1, 2]), sure, None),
        loss_case(name, {}, np.array([0, 1, 2]), sure * 2, None),
        loss_case(name, {"from_logits": True}, labels.reshape(7, 1), logits, None),
        loss_case(name, {"from_logits": True}, labels, logits, np.zeros(7, np.float32)),
        loss_case(name, {"from_logits": True, "reduction": "mean_with_sample_weight"}, labels,
                  logits, np.zeros(7, np.float32)),
        loss_case("CategoricalCrossentropy", {}, np.eye(3, dtype=np.float32), sure * 2, None),
        loss_case("CategoricalCrossentropy", {"from_logits": True, "axis": 1},
                  softmax(normal(2, 5, 3).transpose(0, 2, 1)).transpose(0, 2, 1),
                  normal(2, 5, 3), None),
        loss_case("BinaryCrossentropy", {"from_logits": True}, rng.integers(0, 2, 6), normal(6, 1),
                  None),
        loss_case("BinaryCrossentropy", {"from_logits": True}, rng.integers(0, 2, 6), normal(6, 1),
                  weights(6)),
        loss_case("BinaryCrossentropy", {}, np.eye(3, dtype=np.float32), sure, None),
        loss_case("MeanSquaredError", {}, normal(6), normal(6, 1), weights(6)),
        loss_case("MeanSquaredError", {}, normal(6), normal(6), None),
    ]
    return cases


def metric_case(name, options, batches):
    made = getattr(keras.metrics, name)(**options)
    steps = []
    for batch in batches:
        *data, weight = batch
        made.update_state(*data, sample_weight=weight)
        step = {"result": float(made.result())}
        step["y_pred"] = compact(data[-1])
        if len(data) == 2:
            step["y_true"] = compact(data[0])
        if weight is not None:
            step["sample_weight"] = compact(weight)
        steps.append(step)
    return {"name": name, "options": options, "batches": steps}


def metrics():
    sizes = (8, 8, 3)
    classes = 4

    def batches(y_true, y_pred, weight):
        return [(y_true(n), y_pred(n), weight(n)) for n in sizes]

    def no_weight(n):
        return None

    def label(n):
        return rng.integers(0, classes, n)

    def one_hot(n):
        return np.eye(classes, dtype=np.float32)[label(n)]

    def bits(n):
        return rng.integers(0, 2, (n, 3)).astype(np.float32)

    def chances(n):
        return rng.random((n, 3), np.float32)

    def scores(n):
        return normal(n, classes)

    cases = []
    for weight in (no_weight, lambda n: weights(n)):
        cases += [
            metric_case("SparseCategoricalAccuracy", {}, batches(label, scores, weight)),
            metric_case("CategoricalAccuracy", {}, batches(one_hot, scores, weight)),
            metric_case("BinaryAccuracy", {}, batches(bits, chances, weight)),
            metric_case("Accuracy", {}, batches(label, lambda n: rng.integers(0, classes, n),
                                                weight)),
            metric_case("Mean", {}, [(normal(n), weight(n)) for n in sizes]),
            metric_case("Mean", {}, [(normal(n, 3), weight(n)) for n in sizes]),
        ]
    cases += [
        metric_case("SparseCategoricalAccuracy", {},
                    batches(lambda n: label(n).reshape(n, 1), scores, no_weight)),
        metric_case("SparseCategoricalAccuracy", {},
                    batches(lambda n: rng.integers(0, classes, (n, 5)),
                            lambda n: normal(n, 5, classes), lambda n: weights(n, 5))),
        metric_case("BinaryAccuracy", {"threshold": 0.8},
                    batches(lambda n: rng.integers(0, 2, n), lambda n: chances(n)[:, :1],
                            lambda n: weights(n))),
        metric_case("BinaryAccuracy", {}, batches(bits, chances, lambda n: weights(n, 3))),
        metric_case("Mean", {}, [(normal(n, 3, 2), weights(n, 3)) for n in sizes]),
        metric_case("Mean", {}, [(np.float32(x), np.float32(n)) for x, n in zip((2, 3, 5), sizes)]),
        metric_case("Mean", {}, [(normal(n), np.zeros(n, np.float32)) for n in sizes]),
    ]
    return cases


def optimizers():
    steps, marks = 10, (1, 2, 10)
    first = [normal(6, 4), normal(4)]
    # The last rows are small enough that epsilon matters.
    scale = np.array([1, 1, 1e-2, 1e-4, 1e-6, 1e-8], np.float32).reshape(6, 1)
    gradients = [[normal(6, 4) * scale, normal(4) * np.float32(0.1)] for _ in range(steps)]
    kinds = [
        ("SGD", {}), ("SGD", {"learning_rate": 0.1, "momentum": 0.9}),
        ("SGD", {"learning_rate": 0.1, "momentum": 0.8, "nesterov": True}),
        ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.05}),
        ("Adam", {}), ("Adam", {"learning_rate": 0.01, "epsilon": 1e-3}),
        ("Adam", {"learning_rate": 0.01, "beta_1": 0.8, "beta_2": 0.95}),
        ("Adam", {"learning_rate": 0.01, "beta_2": 0.6, "amsgrad": True}),
        ("Adam", {"learning_rate": 0.01, "weight_decay": 0.1}),
        ("AdamW", {"learning_rate": 0.01}),
        ("AdamW", {"learning_rate": 0.01, "weight_decay": 0.2, "amsgrad": True}),
    ]
    cases = []
    for name, options in kinds:
        made = getattr(keras.optimizers, name)(**options)
        variables = [keras.Variable(w) for w in first]
        after = []
        for step in range(steps):
            made.apply([tf.constant(g) for g in gradients[step]], variables)
            if step + 1 in marks:
                after.append([compact(v.numpy()) for v in variables])
        cases.append({"name": name, "options": options, "after": after})
    return {"first": [compact(w) for w in first],
            "gradients": [[compact(g) for g in step] for step in gradients],
            "marks": marks, "cases": cases}


def main():
    golden = {
        "made_with": {"keras": keras.__version__, "tensorflow": tf.__version__},
        "initializers": initializers(),
        "losses": losses(),
        "metrics": metrics(),
        "optimizers": optimizers(),
    }
    with open("keras_core.json", "w", encoding="utf-8") as out:
        parts = []
        for key, value in golden.items():
            if isinstance(value, list):
                rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in value)
                parts.append(f'"{key}":[\n{rows}\n]')
            else:
                parts.append(f'"{key}":{json.dumps(value, separators=(",", ":"))}')
        out.write("{\n" + ",\n".join(parts) + "\n}\n")


if __name__ == "__main__":
    main()
