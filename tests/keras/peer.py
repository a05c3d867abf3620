"""Imports the Keras of build/deps/python, which `./run test` installs, and lists its files.

It also has a layer class of a user's own, which files_test.cpp has too.
"""
import io
import os
import sys
import warnings
import zipfile


def import_keras(backend, entry):
    """Returns Keras on a backend; if it is not installed, exits with ctest's status for skipped."""
    os.environ["KERAS_BACKEND"] = backend
    try:
        import keras
    except ImportError:
        print(f'skipped: "{entry}": there is no Keras in build/deps/python')
        sys.exit(77)
    # Random graphs drop masks in many places, and Keras warns each time.
    warnings.filterwarnings("ignore")
    return keras


def register_scale(keras):
    """Returns a layer class, registered as my>Scale: a factor, and a weight for each feature."""

    @keras.saving.register_keras_serializable(package="my")
    class Scale(keras.layers.Layer):
        def __init__(self, factor, **options):
            super().__init__(**options)
            self.factor = factor

        def build(self, input_shape):
            self.gain = self.add_weight(name="gain", shape=(input_shape[-1],), initializer="ones")

        def call(self, inputs):
            return inputs * self.gain * self.factor

        def get_config(self):
            return {**super().get_config(), "factor": self.factor}

    return Scale


def listing(path):
    """Returns a line for each group and dataset of the weights in a model's archive."""
    import h5py
    import numpy as np

    lines = []

    def add(name, item):
        # Step counts have 32 bits in Keras on JAX, 64 on TensorFlow.
        kind = (f"{item.shape} {item.dtype}".replace("int32", "int64")
                if isinstance(item, h5py.Dataset) else "group")
        attributes = {key: np.asarray(value).tolist() for key, value in item.attrs.items()}
        lines.append(f"/{name}: {kind} {attributes}")

    with zipfile.ZipFile(path) as archive:
        with h5py.File(io.BytesIO(archive.read("model.weights.h5"))) as file:
            add("", file)
            file.visititems(add)
    return lines


def differences(expected, written):
    """Yields lines that only one of two listings has."""
    yield from (f"lacks {line}" for line in expected if line not in written)
    yield from (f"has beyond {line}" for line in written if line not in expected)
