"""Writes keras_preprocessing.json: preprocessing layers and FeatureSpace.

Made with keras 3.15.1, tensorflow-cpu 2.21.0 and numpy 2.4.6 from PyPI. Run it in this folder:
python3 make_keras_preprocessing.py
"""

import json
import os

# NumPy's resizing is exact; TensorFlow reads cubic weights from a table.
os.environ["KERAS_BACKEND"] = "numpy"

import keras
import numpy as np

from keras_golden import compact, serialized, tensor, write

L, F = keras.layers, keras.utils.FeatureSpace
rng = np.random.default_rng(83)
ENCODINGS = ("int", "one_hot", "multi_hot", "count")


def normal(*shape):
    return rng.normal(0, 1.5, shape).astype(np.float32)


def whole(low, high, *shape):
    return rng.integers(low, high, shape).astype(np.int64)


def case(layer, *inputs, **named):
    output = layer(*inputs, **named)
    return {"layer": serialized(layer),
            "inputs": [tensor(x) for x in (*inputs, *named.values())],
            "output": tensor(np.asarray(output))}


def resizing():
    cases = []
    for how in ("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"):
        for height, width in ((7, 3), (3, 8), (1, 5)):
            for antialias in (False, True):
                cases.append(case(L.Resizing(height, width, how, antialias=antialias),
                                  normal(2, 5, 6, 2)))
        cases.append(case(L.Resizing(4, 3, how, data_format="channels_first"), normal(1, 2, 3, 7)))
        pixels = whole(0, 256, 1, 6, 5, 3).astype(np.uint8)
        cases.append(case(L.Resizing(9, 4, how), pixels))
    for size in ((4, 4), (3, 8), (8, 3), (5, 6), (1, 7)):
        for shape in ((1, 5, 8, 2), (2, 7, 4, 1)):
            cases += [case(L.Resizing(*size, crop_to_aspect_ratio=True), normal(*shape)),
                      case(L.Resizing(*size, "nearest", pad_to_aspect_ratio=True, fill_value=2.5),
                           normal(*shape))]
    return cases


def center_crop():
    cases = [case(L.CenterCrop(*size), normal(2, 5, 6, 2))
             for size in ((5, 6), (2, 3), (3, 4), (1, 1), (7, 4), (4, 9), (8, 8))]
    cases.append(case(L.CenterCrop(2, 3, data_format="channels_first"), normal(1, 2, 5, 5)))
    cases.append(case(L.CenterCrop(3, 2), whole(0, 256, 1, 4, 5, 3).astype(np.uint8)))
    return cases


def category_encoding():
    cases = []
    for mode in ENCODINGS[1:]:
        for shape in ((5, 3), (4, 1), (6,)):
            cases.append(case(L.CategoryEncoding(4, mode), whole(0, 4, *shape)))
    cases.append(case(L.CategoryEncoding(3, "one_hot"), whole(0, 3, 2, 3, 2)))
    cases.append(case(L.CategoryEncoding(4, "count"), whole(0, 4, 5, 3),
                      count_weights=normal(5, 3)))
    return cases


def discretization():
    x = normal(5, 3)
    x[0] = [-1, 0.5, np.inf]
    x[1] = [-np.inf, -1.5, 2]
    cases = [case(L.Discretization([-1.0, 0.5, 2.0], output_mode=mode), x.clip(-9, 9))
             for mode in ENCODINGS]
    cases += [case(L.Discretization([-1.0, 0.5], output_mode="one_hot"), normal(4, 1)),
              case(L.Discretization([-1.0, 0.5], output_mode="multi_hot"), normal(4, 1)),
              case(L.Discretization([1.0, 2.0]), whole(-1, 5, 4, 2))]
    return cases


def learned_bins():
    cases = []
    for bins, epsilon, rows, batch in ((4, 0.01, 8, 0), (3, 0.1, 100, 0), (5, 0.05, 500, 64),
                                       (10, 0.01, 1000, 32), (2, 0.3, 7, 3), (32, 0.01, 40, 32)):
        data = normal(rows, 1)
        layer = L.Discretization(num_bins=bins, epsilon=epsilon)
        layer.adapt(np.split(data, range(batch, rows, batch)) if batch else data)
        cases.append({"num_bins": bins, "epsilon": epsilon, "batch": batch, "data": tensor(data),
                      "layer": serialized(layer), "output": tensor(np.asarray(layer(data)))})
    return cases


def hashing():
    numbers = np.concatenate([whole(-9, 99, 8, 2), whole(-2**50, 2**50, 8, 2)])
    cases = []
    for mode in ENCODINGS:
        for options in ({}, {"salt": 133}, {"salt": [7, -3]}, {"mask_value": 5}):
            layer = L.Hashing(11, output_mode=mode, **options)
            numbers[1, 0] = 5
            cases.append(case(layer, numbers))
    cases += [case(L.Hashing(3, output_mode="one_hot"), whole(0, 9, 6, 1)),
              case(L.Hashing(3, dtype="int32"), whole(0, 9, 6)),
              case(L.Hashing(1, mask_value=4), whole(0, 9, 6))]
    return cases


TEXTS = ["", "a", "ab", "abcd", "1234567", "12345678", "Zürich", "sixteen bytes !!",
         "seventeen bytes !", "thirty-two bytes thirty-two byte", "x" * 33, "y" * 64, "z" * 65,
         "long " * 50]


def text_hashing():
    cases = []
    for mode in ENCODINGS:
        for options in ({}, {"salt": 133}, {"salt": [7, -3]}, {"mask_value": "ab"},
                        {"mask_value": "", "salt": 9}):
            layer = L.Hashing(13, output_mode=mode, **options)
            cases.append({"layer": serialized(layer), "texts": TEXTS,
                          "output": tensor(np.asarray(layer(TEXTS)))})
    return cases


def crossing():
    def columns(count, *shape):
        return [whole(-5, 50, *shape) for _ in range(count)]

    cases = []
    for mode in ("int", "one_hot"):
        for count, shape in ((2, (6, 1)), (3, (5, 1)), (2, (7,))):
            layer = L.HashedCrossing(9, output_mode=mode)
            inputs = columns(count, *shape)
            cases.append({"layer": serialized(layer), "inputs": [tensor(x) for x in inputs],
                          "output": tensor(np.asarray(layer(inputs)))})
    return cases


def text_crossing():
    cases = []
    for mode in ("int", "one_hot"):
        layer = L.HashedCrossing(17, output_mode=mode)
        numbers = whole(0, 9, len(TEXTS))
        output = layer([np.array(TEXTS), numbers, np.array(TEXTS[::-1])])
        cases.append({"layer": serialized(layer), "texts": TEXTS, "numbers": tensor(numbers),
                      "output": tensor(np.asarray(output))})
    return cases


def integer_lookup():
    vocabulary = [12, 36, -7, 42]
    x = rng.choice([12, 36, -7, 42, 0, 1000, -1, 37], (6, 3))
    cases = []
    for mode in ENCODINGS:
        for options in ({}, {"mask_token": 0}, {"num_oov_indices": 3},
                        {"num_oov_indices": 2, "oov_method": "farmhash"},
                        {"num_oov_indices": 3, "oov_method": "farmhash", "salt": [3, 4]},
                        {"max_tokens": 9, "pad_to_max_tokens": True, "oov_token": -9}):
            layer = L.IntegerLookup(vocabulary=vocabulary, output_mode=mode, **options)
            cases.append(case(layer, x))
    known = rng.choice(vocabulary, (4, 2))
    cases += [
        case(L.IntegerLookup(vocabulary=vocabulary, num_oov_indices=0), known),
        case(L.IntegerLookup(vocabulary=[-1] + vocabulary), x),
        case(L.IntegerLookup(vocabulary=vocabulary, output_mode="tf_idf",
                             idf_weights=[0.25, 0.75, 0.6, 0.4]), x),
        case(L.IntegerLookup(vocabulary=vocabulary, invert=True), whole(-1, 7, 4, 3)),
        case(L.IntegerLookup(vocabulary=vocabulary, mask_token=0, num_oov_indices=2, invert=True),
             whole(0, 8, 4, 3)),
        case(L.IntegerLookup(vocabulary=vocabulary, output_mode="one_hot"), whole(30, 45, 5, 1)),
    ]
    return cases


def learned_integers():
    cases = []
    for options in ({}, {"max_tokens": 4}, {"mask_token": 3, "num_oov_indices": 2},
                    {"output_mode": "tf_idf"}, {"output_mode": "multi_hot", "max_tokens": 5}):
        data = whole(-3, 6, 20, 3)
        layer = L.IntegerLookup(**options)
        config = serialized(layer)
        layer.adapt(data)
        cases.append({"layer": config, "data": tensor(data),
                      "vocabulary": [int(v) for v in layer.get_vocabulary()],
                      "output": tensor(np.asarray(layer(data)))})
    return cases


def column(values):
    return values if isinstance(values[0], str) else tensor(values)


def feature_space(table, features, **options):
    space = F(features, **options)
    config = json.loads(json.dumps(space.get_config()))
    space.adapt(table)
    output = space(table)
    if isinstance(output, dict):
        output = {name: tensor(np.asarray(value)) for name, value in output.items()}
    else:
        output = tensor(np.asarray(output))
    return {"config": config, "output": output,
            "table": {name: column(values) for name, values in table.items()}}


def feature_spaces():
    rows = 70
    table = {"age": normal(rows) * 20 + 40, "bmi": normal(rows), "sex": whole(0, 2, rows),
             "code": whole(10, 19, rows),
             "thal": rng.choice(["a", "b", "normal"], rows).tolist(),
             "city": rng.choice(["Zürich", "Bern", "Genf"], rows).tolist()}

    def some(*names):
        return {name: table[name] for name in names}

    return [
        feature_space(some("age", "bmi", "sex"), {
            "sex": F.integer_categorical(num_oov_indices=0), "age": F.float(),
            "bmi": F.float_rescaled(0.5, -1)}),
        feature_space(some("age", "bmi"), {"age": "float_normalized", "bmi": "float_discretized"},
                      num_discretization_bins=5),
        feature_space(some("code", "thal", "city", "sex"), {
            "code": F.integer_categorical(max_tokens=5), "thal": "string_categorical",
            "city": F.string_hashed(7), "sex": F.integer_hashed(4)},
            crosses=[("thal", "code"), F.cross(("city", "sex"), 5)], crossing_dim=9),
        feature_space(some("age", "sex", "thal"), {
            "age": F.float_discretized(4, output_mode="int"), "thal": F.string_categorical(
                output_mode="int"), "sex": "integer_hashed"},
            output_mode="dict", crosses=[F.cross(("age", "thal"), 6, output_mode="int")],
            hashing_dim=3),
    ]


write("keras_preprocessing.json", {
    "images": resizing() + center_crop(),
    "categories": (category_encoding() + discretization() + hashing() + crossing()
                   + integer_lookup()),
    "learned_bins": learned_bins(),
    "learned_integers": learned_integers(),
    "text_hashing": text_hashing(),
    "text_crossing": text_crossing(),
    "feature_spaces": feature_spaces(),
})
