"""Writes keras_activations.json: activations of Keras on TensorFlow and their gradients.

Made with keras 3.15.1, tensorflow-cpu 2.21.0 and numpy 2.4.6 from PyPI. Run it in this folder:
python3 make_keras_activations.py
"""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf

from keras_golden import tensor, upstream, write

rng = np.random.default_rng(41)
# Kinks and points next to them.
NEAR = sorted({sign * (kink + step) for sign in (-1, 1) for kink in (0, 0.5, 1, 2, 3, 6)
               for step in (0, 1e-3, -1e-3, 0.3)} | {1e-6, -1e-6, -7.5, 7.5})
FAR = [-1e4, -300, -60, -20, 20, 60, 300, 1e4]

ELEMENTWISE = {
    "celu": [{}, {"alpha": 0.3}],
    "elu": [{}, {"alpha": 0.3}],
    "exponential": [{}],
    "gelu": [{}, {"approximate": True}],
    "hard_shrink": [{}, {"threshold": 1.0}],
    "hard_sigmoid": [{}],
    "hard_silu": [{}],
    "hard_swish": [{}],
    "hard_tanh": [{}],
    "leaky_relu": [{}, {"negative_slope": 0.5}],
    "linear": [{}],
    "log_sigmoid": [{}],
    "mish": [{}],
    "relu": [{}, {"negative_slope": 0.125}, {"max_value": 6.0}, {"max_value": 2.0},
             {"threshold": 1.0}, {"negative_slope": 0.2, "max_value": 3.0, "threshold": 0.5},
             {"negative_slope": 0.2, "max_value": 6.0}],
    "relu6": [{}],
    "selu": [{}],
    "sigmoid": [{}],
    "silu": [{}],
    "soft_shrink": [{}, {"threshold": 1.0}],
    "softplus": [{}],
    "softsign": [{}],
    "sparse_plus": [{}],
    "sparse_sigmoid": [{}],
    "squareplus": [{}, {"b": 0.5}],
    "swish": [{}],
    "tanh": [{}],
    "tanh_shrink": [{}],
    "threshold": [{"threshold": 0.5, "default_value": -2.0}],
}
ALONG_AXIS = ("glu", "log_softmax", "softmax", "sparsemax")


def case(name, arguments, x):
    function = getattr(keras.activations, name)
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x, **arguments)
        loss = tf.reduce_sum(y * upstream(y.shape).astype(x.dtype.as_numpy_dtype))
    gradient = tape.gradient(loss, x)
    return {"name": name, "arguments": arguments, "x": tensor(x.numpy()), "y": tensor(y.numpy()),
            "gradient": tensor(gradient.numpy())}


def points(name, where):
    if name == "exponential" and where is FAR:
        return [-1e4, -60, 20]
    # Keras' celu has derivative 2 at 0: it adds the derivatives of both halves.
    return [x for x in where if x != 0 or name != "celu"]


def is_exact(dtype, name, arguments):
    """Returns whether TensorFlow computes it exactly: leaky_relu's slope and gelu's sqrt(2) are
    float32."""
    return dtype == np.float32 or name not in ("leaky_relu", "gelu") or arguments


def main():
    cases = []
    for dtype in (np.float32, np.float64):
        for name, choices in ELEMENTWISE.items():
            for arguments in filter(lambda a: is_exact(dtype, name, a), choices):
                for where in (NEAR, FAR):
                    cases.append(case(name, arguments, np.array(points(name, where), dtype)))
        for name in ALONG_AXIS:
            for shape, arguments in (((3, 4), {}), ((2, 4, 3), {"axis": 1}),
                                     ((2, 2, 6), {"axis": -1})):
                for spread in (0.3, 20):
                    x = rng.normal(0, spread, shape).astype(dtype)
                    cases.append(case(name, arguments, x))
    write("keras_activations.json", {"cases": cases})


if __name__ == "__main__":
    main()
