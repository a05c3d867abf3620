"""What the generators of keras_*.json share."""

import json

import numpy as np


def compact(value):
    """Shape and shortest decimals of an array, in row-major order."""
    array = np.asarray(value)
    numbers = array.ravel()
    if array.dtype == np.float32:
        numbers = [float(str(x)) for x in numbers]
    else:
        numbers = numbers.tolist()
    return {"shape": list(array.shape), "values": list(numbers)}


def dump(value):
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def write(path, golden):
    """One line for each item of the lists of `golden`."""
    parts = []
    for key, value in golden.items():
        if isinstance(value, list):
            rows = ",\n".join(dump(row) for row in value)
            parts.append(f'"{key}":[\n{rows}\n]')
        else:
            parts.append(f'"{key}":{dump(value)}')
    with open(path, "w", encoding="utf-8") as out:
        out.write("{\n" + ",\n".join(parts) + "\n}\n")
