"""Checks that Keras reads Tessera's model configurations and computes the same with the same
weights; skipped (77) if Keras is not installed."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("KERAS_BACKEND", "numpy")
try:
    import keras
    import numpy as np
except ImportError as missing:
    print(f'skipped: "read_model_json": {missing}; pip install keras, or set PYTHONPATH to where it '
          "is")
    sys.exit(77)


def tensor(sample):
    return np.array(sample["values"], "float32").reshape(sample["shape"])


def difference(sample):
    model = keras.models.model_from_json(sample["json"])
    model.set_weights([tensor(weight) for weight in sample["weights"]])
    inputs = [tensor(one) for one in sample["inputs"]]
    outputs = model(inputs if len(inputs) > 1 else inputs[0], training=False)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    assert len(outputs) == len(sample["outputs"])
    return max(float(np.abs(np.asarray(actual) - tensor(expected)).max())
               for actual, expected in zip(outputs, sample["outputs"]))


with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.argv[1], "[.model_json_sample]"], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "TESSERA_SAMPLE_FOLDER": folder})
    samples = [json.loads(path.read_text()) for path in sorted(pathlib.Path(folder).iterdir())]

worst = [difference(sample) for sample in samples]
print(f"Keras {keras.__version__} read {len(samples)} models; its outputs differ by {worst}")
sys.exit(0 if len(samples) == 3 and max(worst) < 1e-5 else 1)
