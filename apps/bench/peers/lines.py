"""The protocol of a peer's program with `bench compare`, and the data that they share.

A line of input is a number of steps; the answer is a line of JSON with their times.
"""
import contextlib
import json
import os
import sys
import time

import numpy as np


@contextlib.contextmanager
def quiet():
    """Silences standard error, for importing a library that writes there."""
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
    """Answers every line with the result of `run(count)`: milliseconds, one per step."""
    for line in sys.stdin:
        print(json.dumps({"milliseconds": run(int(line))}), flush=True)


def answer_steps(step):
    """Times `step(i)` for consecutive i, which runs a step on a batch and waits for its end."""
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
    """Returns the rows and labels at `path`; a row has the shape."""
    x = np.fromfile(path + ".x", dtype).reshape(-1, *shape)
    return x, np.fromfile(path + ".y", np.int64)


def read_sizes(path):
    """Returns the sizes of the work at `path`; the MLP on virtual devices has no such file."""
    if not os.path.exists(path + ".json"):
        return {"batch": 128}
    with open(path + ".json", encoding="utf-8") as file:
        return json.load(file)


def batch(i, size, x, y):
    """Returns batch i of the data, which repeat."""
    begin = i % (len(x) // size) * size
    return x[begin:begin + size], y[begin:begin + size]
