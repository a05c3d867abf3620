"""Checks that Keras continues training models that Tessera trained and saved, FOLDER/NAME.keras:
every variable bit for bit, the file that Keras saves again, and the next twenty losses in
losses.json.

Usage: check_training.py FOLDER
"""
import io
import json
import pathlib
import sys
import tempfile
import zipfile

from peer import differences, import_keras, listing

keras = import_keras("jax", "keras_check_training")
import h5py
import numpy as np

GOLDENS = pathlib.Path(__file__).parents[1] / "golden" / "keras_training.zip"


def array(tensor):
    return np.array(tensor["values"], np.float32).reshape(tensor["shape"])


def variables_of(path):
    """Returns the optimizer's variables in a file, in order."""
    with zipfile.ZipFile(path) as archive:
        with h5py.File(io.BytesIO(archive.read("model.weights.h5"))) as file:
            variables = file.get("optimizer/vars", {})
            return [variables[str(i)][()] for i in range(len(variables))]


def wrong(path, data, expected, scratch):
    """Yields lines that describe how Keras differs from Tessera with a model."""
    name = path.stem
    # Keras scales losses by the global policy, whatever the layers' policies are.
    keras.config.set_dtype_policy("mixed_float16" if name == "half" else "float32")
    model = keras.saving.load_model(path)
    again = scratch / "again.keras"
    if name.startswith("untrained"):
        # Reading creates variables that the file of an untrained model lacks.
        with zipfile.ZipFile(GOLDENS) as archive:
            again.write_bytes(archive.read(f"{name}.keras"))
    else:
        for number, saved in enumerate(variables_of(path)):
            variable = np.asarray(model.optimizer.variables[number])
            if variable.astype(saved.dtype).tobytes() != saved.tobytes():
                yield f"variable {number} of the optimizer is another"
        model.save(again)
    yield from differences(listing(again), listing(path))
    x, y = array(data["x"][0]), [array(labels) for labels in data["y"]]
    y = y if len(y) > 1 else y[0]
    bars = (1e-3, 1e-3) if name == "half" else (1e-6, 1e-5)
    # Keras moves averages and schedules in steps that only accumulate gradients (docs/keras.md).
    if name.endswith("_everything") or name == "loss_scale_growing":
        expected = expected[:1]
    for step, loss in enumerate(expected):
        received = float(model.train_on_batch(x, y, return_dict=True)["loss"])
        off = abs(received - loss) / abs(loss)
        if not off <= bars[step > 0]:
            yield f"step {step + 1}: {received} for {loss}, off by {off:.1e}"
            return


def main():
    folder = pathlib.Path(sys.argv[1])
    if not (folder / "losses.json").exists():
        print('skipped: "keras_check_training": Tessera saved no models')
        sys.exit(77)
    losses = json.loads((folder / "losses.json").read_text())
    with zipfile.ZipFile(GOLDENS) as archive:
        golden = json.loads(archive.read("losses.json"))
    offenders = 0
    with tempfile.TemporaryDirectory() as scratch:
        for case in golden["cases"]:
            name = case["name"]
            lines = list(wrong(folder / f"{name}.keras", golden["data"][case["data"]],
                               losses[name], pathlib.Path(scratch)))
            keras.backend.clear_session()
            for line in lines[:5]:
                print(f"{name}: {line}")
            offenders += bool(lines)
    print(f"Keras continues training {len(losses) - offenders} of {len(losses)} models")
    return 1 if offenders else 0


if __name__ == "__main__":
    sys.exit(main())
