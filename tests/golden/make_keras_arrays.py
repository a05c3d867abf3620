"""Writes keras_arrays.json: pad_sequences, to_categorical, split_dataset and
timeseries_dataset_from_array of Keras on TensorFlow.

Made with keras 3.15.1, tensorflow-cpu 2.21.0 and numpy 2.4.6 from PyPI. Run it in this folder:
python3 make_keras_arrays.py
"""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np

from keras_golden import tensor, write

SEQUENCES = [[], [1], [2, 3], [4, 5, 6, 7, 8], [9, 10, 11]]
PADDINGS = [
    {}, {"maxlen": 3}, {"maxlen": 7}, {"maxlen": 3, "padding": "post"},
    {"maxlen": 3, "truncating": "post"}, {"padding": "post", "truncating": "post", "maxlen": 4},
    {"value": -1}, {"value": 0.5, "dtype": "float32"}, {"value": 1.75},
]
CLASSES = [
    {"x": [0, 2, 1]}, {"x": [0, 2, 1], "num_classes": 5}, {"x": [[1], [0]]},
    {"x": [[1, 0], [2, 2]]}, {"x": [[[3]]]}, {"x": [1], "num_classes": 0}, {"x": [1.9, 0.2]},
    {"x": 3},
]
SPLITS = [
    {"left_size": 0.8}, {"right_size": 0.25}, {"left_size": 3}, {"right_size": 4},
    {"left_size": 0.25, "right_size": 0.25}, {"left_size": 2, "right_size": 3},
    {"left_size": 0.45}, {"left_size": 0.15}, {"right_size": 0.35},
]
WINDOWS = [
    {"sequence_length": 4}, {"sequence_length": 4, "targets": True},
    {"sequence_length": 5, "sequence_stride": 3, "targets": True},
    {"sequence_length": 3, "sampling_rate": 4, "targets": True, "batch_size": 4},
    {"sequence_length": 3, "sampling_rate": 2, "sequence_stride": 2, "batch_size": 3},
    {"sequence_length": 4, "start_index": 5, "batch_size": 5},
    {"sequence_length": 4, "end_index": 12, "batch_size": 5, "targets": True},
    {"sequence_length": 2, "start_index": 3, "end_index": 11, "targets": True, "batch_size": 3},
    {"sequence_length": 20}, {"sequence_length": 1, "batch_size": 7, "targets": True},
]


def paddings():
    for options in PADDINGS:
        result = keras.utils.pad_sequences(SEQUENCES, **options)
        yield {"options": options, "result": tensor(result)}


def classes():
    for case in CLASSES:
        x = np.array(case["x"])
        result = keras.utils.to_categorical(x, case.get("num_classes"))
        yield {"x": tensor(x), "num_classes": case.get("num_classes"), "result": tensor(result)}


def splits():
    for options in SPLITS:
        sides = keras.utils.split_dataset(np.arange(10), **options)
        yield {"options": options,
               "sides": [[int(row) for row in side.as_numpy_iterator()] for side in sides]}


def windows():
    data = np.arange(40, dtype="float32").reshape(20, 2)
    for case in WINDOWS:
        options = dict(case)
        targets = np.arange(100, 115) if options.pop("targets", False) else None
        batches = keras.utils.timeseries_dataset_from_array(data, targets, **options)
        found = [batch if targets is not None else (batch,)
                 for batch in batches.as_numpy_iterator()]
        yield {"options": case, "batches": [[tensor(part) for part in batch] for batch in found]}


write("keras_arrays.json", {
    "sequences": SEQUENCES,
    "paddings": list(paddings()),
    "classes": list(classes()),
    "splits": list(splits()),
    "windows": list(windows()),
})
