"""The Keras of build/deps/python, which `./run test` installs, and what its files hold."""
import io
import os
import sys
import warnings
import zipfile


def import_keras(backend, entry):
    """Keras on a backend; ends the program, with ctest's status for skipped, where there is none."""
    os.environ["KERAS_BACKEND"] = backend
    try:
        import keras
    except ImportError:
        print(f'skipped: "{entry}": there is no Keras in build/deps/python')
        sys.exit(77)
    # Graphs drawn at random end masks in many places, of which Keras tells each time.
    warnings.filterwarnings("ignore")
    return keras


def listing(path):
    """A line for each group and dataset of the weights in a model's archive."""
    import h5py
    import numpy as np

    lines = []

    def add(name, item):
        # Counts have 32 bits in Keras on JAX, 64 on TensorFlow.
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
    """Lines that tell what two listings do not share."""
    yield from (f"lacks {line}" for line in expected if line not in written)
    yield from (f"has beyond {line}" for line in written if line not in expected)
