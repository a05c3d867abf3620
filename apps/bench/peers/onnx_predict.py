"""Predictions in ONNX Runtime: WORK DATA, as in torch_step.py. The network is PyTorch's, exported."""
import os
import sys
import tempfile

import onnxruntime
import torch

from lines import answer_steps, batch, quiet, read, read_sizes
from torch_networks import OF_WORDS, make

work, data = sys.argv[1:]
sizes = read_sizes(data)
if work in OF_WORDS:
    x, y = read(data, sizes["length"], dtype="int64")
else:
    x, y = read(data, *sizes["row"])
network = make(work, sizes).eval()
with tempfile.TemporaryDirectory() as folder, quiet():
    path = os.path.join(folder, "network.onnx")
    torch.onnx.export(network, (torch.from_numpy(x[:sizes["batch"]]),), path, dynamo=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(path, options)
name = session.get_inputs()[0].name


def step(i):
    session.run(None, {name: batch(i, sizes["batch"], x, y)[0]})


answer_steps(step)
