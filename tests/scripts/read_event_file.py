"""Reads a file of EventFileWriter with the real TensorBoard; skipped (77) if it is not
installed."""
import os
import subprocess
import sys
import tempfile

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray
except ImportError as missing:
    print(f'skipped: "read_event_file": {missing}; pip install tensorboard, or set PYTHONPATH '
          "to where it is")
    sys.exit(77)

with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.argv[1], "[.event_file_sample]"], check=True,
                   env={**os.environ, "TESSERA_EVENT_FOLDER": folder})
    events = EventAccumulator(folder, size_guidance={"tensors": 0}).Reload()
    tags = events.Tags()["tensors"]
    plugins = {tag: events.SummaryMetadata(tag).plugin_data.plugin_name for tag in tags}
    read = {tag: [(event.step, make_ndarray(event.tensor_proto).tolist())
                  for event in events.Tensors(tag)] for tag in tags}
    version = events.file_version

expected = {
    "epoch_accuracy": [(0, 0.5)],
    "epoch_loss": [(0, 1.0), (1, 0.5), (2, 0.3333333432674408), (3, 0.25), (4, 0.20000000298023224)],
    "kernel": [(2, [[0.0, 1.0, 1.0], [1.0, 2.0, 1.0], [2.0, 3.0, 3.0]])],
    "note": [(1, b"**synthetic**")],
}
expected_plugins = {"epoch_accuracy": "scalars", "epoch_loss": "scalars", "kernel": "histograms",
                    "note": "text"}
good = (read, plugins, version) == (expected, expected_plugins, 2)
print(f"TensorBoard read {sum(map(len, read.values()))} values" if good else
      f"expected {expected}, {expected_plugins}, 2\nreceived {read}, {plugins}, {version}")
sys.exit(0 if good else 1)
