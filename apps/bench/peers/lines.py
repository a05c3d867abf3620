"""How a peer's program talks to `bench compare`, and reads the data that it shares.

A line of the input is a number of steps; the answer is a line of JSON with what they took.
"""
import contextlib
import json
import os
import sys
import time

import numpy as np


@contextlib.contextmanager
def quiet():
    """For the import of a library that writes to the terminal before it can be asked not to."""
    sys.stderr.flush()
    terminal = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    try:
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)


def answer(run):
    """Answers every line with what `run(count)` returns: milliseconds, one for each step."""
    for line in sys.stdin:
        print(json.dumps({"milliseconds": run(int(line))}), flush=True)


def answer_steps(step):
    """The same for `step(i)`, where i counts on; it takes a batch and returns when it is done."""
    made = 0

    def run(count):
        nonlocal made
        times = []
        for _ in range(count):
            start = time.perf_counter()
            step(made)
            times.append(1e3 * (time.perf_counter() - start))
            made += 1
        return times

    answer(run)


def read(path, *shape, dtype="float32"):
    """The rows and labels at `path`; a row has the shape."""
    x = np.fromfile(path + ".x", dtype).reshape(-1, *shape)
    return x, np.fromfile(path + ".y", np.int64)


def read_sizes(path):
    """What is said of the work at `path`; of the MLP on virtual devices nothing is."""
    if not os.path.exists(path + ".json"):
        return {"batch": 128}
    with open(path + ".json", encoding="utf-8") as file:
        return json.load(file)


def batch(i, size, x, y):
    """Batch i of the data, which come round again."""
    begin = i % (len(x) // size) * size
    return x[begin:begin + size], y[begin:begin + size]
