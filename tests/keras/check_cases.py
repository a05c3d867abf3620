"""Checks that Keras reads what Tessera wrote of its models, NAME.back.keras next to NAME.keras:
every weight and optimizer variable bit for bit, and the same groups, datasets and attributes. A
model of Tessera's own, own/scale.keras, has a layer class that is registered here, and gives
Tessera's outputs.

Usage: check_cases.py FOLDER
"""
import pathlib
import sys

import peer

keras = peer.import_keras("numpy", "keras_check")
import numpy as np

peer.register_scale(keras)


def values(model):
    optimizer = model.optimizer.variables if getattr(model, "optimizer", None) else []
    return [np.asarray(variable) for variable in [*model.weights, *optimizer]]


def differences(path, back):
    yield from peer.differences(peer.listing(path), peer.listing(back))
    one, other = (values(keras.saving.load_model(file)) for file in (path, back))
    if len(one) != len(other):
        yield f"{len(other)} variables instead of {len(one)}"
    for number, (a, b) in enumerate(zip(one, other)):
        if a.dtype != b.dtype or a.shape != b.shape or a.tobytes() != b.tobytes():
            yield f"variable {number} is another"


def wrong_own(folder):
    """Returns what is wrong with the model that has a layer class of one's own."""
    if not (folder / "scale.keras").exists():
        return "was not written"
    model = keras.saving.load_model(folder / "scale.keras")
    names = [type(layer).__name__ for layer in model.layers]
    if names != ["Dense", "Scale"] or model.layers[-1].factor != 1.5:
        return f"has other layers: {names}"
    x, expected = (np.load(folder / f"scale.{letter}.npy") for letter in "xy")
    actual = np.asarray(model(x))
    if actual.shape != expected.shape or np.abs(actual - expected).max() > 1e-5:
        return "gives other outputs"
    return ""


def main():
    folder = pathlib.Path(sys.argv[1])
    files = sorted(path for path in folder.glob("*.keras") if not path.stem.endswith(".back"))
    offenders = 0
    for path in files:
        back = path.with_suffix(".back.keras")
        lines = list(differences(path, back)) if back.exists() else ["was not written"]
        keras.backend.clear_session()
        for line in lines[:5]:
            print(f"{back.name}: {line}")
        offenders += bool(lines)
    wrong = wrong_own(folder / "own")
    if wrong:
        print(f"own/scale.keras: {wrong}")
    print(f"{len(files) - offenders} of {len(files)} models that Tessera wrote equal Keras'")
    return 1 if offenders or wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
