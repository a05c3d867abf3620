"""The MLP of `bench processes` in PyTorch's DistributedDataParallel on Gloo: one thread per rank.

Reads a number of steps per line of input, trains, and answers (rank 0) with the times.
"""
import json
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
images = torch.rand(1024, 784)
labels = images[:, :10].argmax(1)
part = 128 // world

model = nn.parallel.DistributedDataParallel(
    nn.Sequential(nn.Linear(784, 700), nn.ReLU(), nn.Linear(700, 500), nn.ReLU(),
                  nn.Linear(500, 10)))
optimizer = torch.optim.Adam(model.parameters(), 1e-3, eps=1e-7, fused=True)
loss_of = nn.CrossEntropyLoss()

step = 0
for line in sys.stdin:
    times = []
    for _ in range(int(line)):
        begin = step % 8 * 128 + rank * part
        step += 1
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = loss_of(model(images[begin:begin + part]), labels[begin:begin + part])
        loss.backward()
        optimizer.step()
        loss.item()
        times.append(1e3 * (time.perf_counter() - start))
    if rank == 0:
        print(json.dumps({"milliseconds": times}), flush=True)
dist.destroy_process_group()
