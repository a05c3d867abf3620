"""Writes keras.applications to FOLDER/NAME.keras, with weights from an integer formula, an input
and Keras' outputs, like write_cases.py.

The outputs of the small models are committed in applications.json next to this script, because
compiling all models takes minutes; --golden writes that file.

Without --only, MobileNetV2, which a test trains, and another small model, drawn by
$TESSERA_TEST_SEED or a random seed, which is printed; all_applications.py writes every model.

Usage: write_applications.py FOLDER [--only NAME] [--golden]
"""
import argparse
import contextlib
import io
import json
import os
import pathlib
import random

from peer import import_keras

keras = import_keras("jax", "keras_applications")
import numpy as np

GOLDEN = pathlib.Path(__file__).with_name("applications.json")
# Models of at most ten million parameters; NASNet and Inception need larger pictures.
SMALL = {"DenseNet121": 64, "EfficientNetB0": 64, "EfficientNetV2B0": 64, "MobileNet": 64,
         "MobileNetV2": 64, "MobileNetV3Large": 64, "MobileNetV3Small": 64, "NASNetMobile": 64}


def drawn():
    seed = int(os.environ.get("TESSERA_TEST_SEED") or random.randrange(1 << 32))
    print(f"TESSERA_TEST_SEED={seed}")
    return ["MobileNetV2"] + random.Random(seed).sample(sorted(set(SMALL) - {"MobileNetV2"}), 1)


def all_names():
    found = [name for name, value in vars(keras.applications).items()
             if callable(value) and name[0].isupper()]
    return sorted(found)


def integers(count, salt):
    """Returns numbers in [-0.5, 0.5) that are easy to compute in any language."""
    i = np.arange(count, dtype=np.uint64) + np.uint64(salt) * np.uint64(7919)
    mixed = (i * np.uint64(2654435761) + np.uint64(12345)) % np.uint64(1 << 32)
    mixed = (mixed ^ (mixed >> np.uint64(15))) * np.uint64(2246822519) % np.uint64(1 << 32)
    return mixed.astype(np.float64) / (1 << 32) - 0.5


def fill(model):
    for salt, weight in enumerate(model.weights):
        value = integers(int(np.prod(weight.shape)), salt).reshape(weight.shape)
        name = weight.path.rsplit("/", 1)[-1]
        if "variance" in name:
            value = value + 1.5
        elif name == "gamma":
            value = 1 + value * 0.2
        elif len(weight.shape) > 1:
            # Scales weights so that outputs are about as large as inputs.
            fan_in = np.prod(weight.shape[:-1]) if "depthwise" not in name else np.prod(
                weight.shape[:2])
            value = value * np.sqrt(24 / fan_in)
        weight.assign(value.astype("float32"))


def picture(size):
    return ((integers(2 * size * size * 3, 1) + 0.5) * 255).reshape(2, size, size, 3).astype(
        "float32")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", metavar="NAME")
    parser.add_argument("--golden", action="store_true")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    some = [arguments.only] if arguments.only else sorted(SMALL) if arguments.golden else drawn()
    for name in some:
        keras.backend.clear_session()
        size = SMALL.get(name, 96)
        make = getattr(keras.applications, name)
        model = make(weights=None, input_shape=(size, size, 3), classes=10,
                     classifier_activation=None)
        fill(model)
        x = picture(size)
        if arguments.golden or name not in golden:
            golden[name] = np.asarray(model.predict(x, verbose=0), dtype="float64").tolist()
        model.save(arguments.folder / f"{name}.keras")
        np.save(arguments.folder / f"{name}.x0.npy", x)
        np.save(arguments.folder / f"{name}.y0.npy", np.array(golden[name], dtype="float32"))
        # Counts have 32 bits in Keras on JAX, but 64 on TensorFlow and here; the lines below
        # convert them.
        if any(weight.dtype == "int32" for weight in model.weights):
            continue
        with contextlib.redirect_stdout(io.StringIO()) as summary:
            model.summary()
        (arguments.folder / f"{name}.summary.txt").write_text(summary.getvalue())
    if arguments.golden:
        kept = {name: golden[name] for name in sorted(SMALL)}
        GOLDEN.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
