"""Checks that the Python package safetensors reads Tessera's files, and the reverse; skipped (77)
if it is not installed."""
import ctypes
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

try:
    import safetensors
except ImportError as missing:
    print(f'skipped: "read_safetensors": {missing}; pip install safetensors, or set PYTHONPATH '
          "to where it is")
    sys.exit(77)

SHAPES = {
    "hidden_1/kernel": [64, 32], "hidden_1/bias": [32], "hidden_2/kernel": [32, 24],
    "hidden_2/bias": [24], "logits/kernel": [24, 10], "logits/bias": [10],
}


def count(shape):
    return shape[0] * (shape[1] if len(shape) == 2 else 1)


def values(number, shape, sign=1):
    return struct.pack(f"<{count(shape)}f",
                       *[sign * (number + 0.5 * i) for i in range(count(shape))])


def run(folder):
    subprocess.run([sys.argv[1], "[.safetensors_sample]"], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "TESSERA_SAMPLE_FOLDER": str(folder)})


def read(path):
    return safetensors.deserialize(path.read_bytes())


def joined(pieces, shape):
    """Joins rectangles whose names end in "[begin:end,begin:end]" to a tensor."""
    whole = bytearray(count(shape) * 4)
    for name, piece in pieces:
        box = [(0, extent) for extent in shape]
        if name.endswith("]"):
            text = name[name.rindex("[") + 1:-1]
            box = [tuple(map(int, part.split(":"))) for part in text.split(",")]
        rows = box[0] if len(shape) == 2 else (0, 1)
        columns = box[-1]
        width = (columns[1] - columns[0]) * 4
        for i, row in enumerate(range(*rows)):
            start = (row * shape[-1] + columns[0]) * 4
            whole[start:start + width] = piece["data"][i * width:(i + 1) * width]
    return bytes(whole)


problems = []
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    run(folder)
    ours = dict(read(folder / "ours.safetensors"))
    shards = [entry for path in sorted((folder / "checkpoint").glob("*.safetensors"))
              for entry in read(path)]
    for number, (path, shape) in enumerate(SHAPES.items()):
        expected = values(number, shape)
        if ours[path]["shape"] != shape or bytes(ours[path]["data"]) != expected:
            problems.append(f"{path}: other values in the weights file")
        pieces = [(n, t) for n, t in shards if n == path or n.startswith(path + "[")]
        if joined(pieces, shape) != expected:
            problems.append(f"{path}: other values in the checkpoint's {len(pieces)} pieces")
    buffers = {path: ctypes.create_string_buffer(values(number, shape, -1), count(shape) * 4)
               for number, (path, shape) in enumerate(SHAPES.items())}
    theirs = {path: safetensors.TensorSpec(dtype="float32", shape=SHAPES[path], data_len=len(data),
                                           data_ptr=ctypes.addressof(data))
              for path, data in buffers.items()}
    safetensors.serialize_file(theirs, str(folder / "theirs.safetensors"), {"format": "pt"})
    run(folder)

print("\n".join(problems) or f"safetensors read {len(ours) + len(shards)} tensors")
sys.exit(1 if problems else 0)
