"""Writes event_file.json: an event file of TensorFlow and the calls that made it.

Made with tensorflow-cpu 2.21.0 and tensorboard 2.21.0 from PyPI. Run it in this folder:
python3 make_event_file.py
"""

import json
import pathlib
import struct
import tempfile

import tensorflow as tf

SCALARS = [("epoch_loss", 0.5, 0), ("epoch_loss", 0.1, 1), ("epoch_accuracy", float("nan"), 300),
           ("batch_loss", -1e-30, 2**40), ("Größe & more", 0.0, -1)]
TEXTS = [("note", "| a | b |\n|---|---|\n| 1 | grün |", 2), ("empty", "", 3)]
HISTOGRAMS = [("dense/kernel", [0.1 * i * i - 0.3 for i in range(9)], 4, 4),
              ("single", [2.5, 2.5, 2.5], 5, 2), ("none", [], 6, 2)]


def payloads(data):
    """Returns the bytes of each record, without length and checksums."""
    at = 0
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        yield data[at + 12:at + 12 + size]
        at += size + 16


with tempfile.TemporaryDirectory() as folder:
    writer = tf.summary.create_file_writer(folder)
    with writer.as_default():
        for tag, value, step in SCALARS:
            tf.summary.scalar(tag, value, step)
        for tag, value, step in TEXTS:
            tf.summary.text(tag, value, step)
        for tag, values, step, buckets in HISTOGRAMS:
            tf.summary.histogram(tag, tf.constant(values, tf.float64), step, buckets)
    writer.close()
    (path,) = pathlib.Path(folder).iterdir()
    data = path.read_bytes()

times = [struct.unpack_from("<d", payload, 1)[0] for payload in payloads(data)]
golden = {
    "tensorflow": tf.__version__,
    "wall_times": times,
    "scalars": [[tag, "nan" if value != value else value, step] for tag, value, step in SCALARS],
    "texts": TEXTS,
    "histograms": HISTOGRAMS,
    "bytes": data.hex(),
}
out = pathlib.Path(__file__).with_name("event_file.json")
out.write_text(json.dumps(golden) + "\n")
