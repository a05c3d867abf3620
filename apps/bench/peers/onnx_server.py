"""A server of predictions in ONNX Runtime, on uvicorn and starlette: WORK DATA THREADS PROCESSES.

The network is PyTorch's, exported; DATA.json has the shape of a row. Answers every line with the
port, and ends with its input."""
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile

import torch

from lines import quiet, read_sizes
from torch_networks import make

PR_SET_PDEATHSIG = 1

work, data, threads, processes = sys.argv[1:]
sizes = read_sizes(data)
folder = tempfile.TemporaryDirectory()
network = os.path.join(folder.name, "network.onnx")
with quiet():
    torch.onnx.export(make(work, sizes).eval(), (torch.zeros(1, *sizes["row"]),), network,
                      dynamo=False)
listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
# Connections inherit it; uvicorn does not set it for the sockets of a descriptor.
listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
# Also ends if this process is killed.
server = subprocess.Popen(
    [sys.executable, "-B", "-m", "uvicorn", "onnx_app:app", "--fd", str(listening.fileno()),
     "--workers", processes, "--log-level", "warning", "--no-access-log"],
    cwd=os.path.dirname(os.path.abspath(__file__)), pass_fds=[listening.fileno()],
    stdout=subprocess.DEVNULL, env={**os.environ, "NETWORK": network, "THREADS": threads},
    preexec_fn=lambda: ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM))
for _ in sys.stdin:
    if server.poll() is not None:
        sys.exit("uvicorn has ended")
    print(json.dumps({"port": listening.getsockname()[1]}), flush=True)
server.terminate()
server.wait()
