"""Epochs on digits in a custom PyTorch loop: Flatten-128-10, or two channels-last convolutions;
shuffled batches of 128, Adam, loss and accuracy. Answers with milliseconds per step."""
import sys
import time

import torch
from torch import nn

from lines import answer, read

x, y = map(torch.from_numpy, read(sys.argv[1], 28, 28))
torch.manual_seed(0)
if sys.argv[2] == "cnn":
    x = x.unsqueeze(1)
    model = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3),
                          nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.5),
                          nn.Linear(1600, 10)).to(memory_format=torch.channels_last)
else:
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), 1e-3, eps=1e-7, fused=True)
loss_of = nn.CrossEntropyLoss()


def epoch():
    order = torch.randperm(len(x))
    total, right = 0.0, 0
    parts = order.split(128)
    for rows in parts:
        images, labels = x[rows], y[rows]
        optimizer.zero_grad()
        logits = model(images)
        loss = loss_of(logits, labels)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
        right += (logits.argmax(1) == labels).sum().item()
    return len(parts)


def run(epochs):
    start = time.perf_counter()
    steps = sum(epoch() for _ in range(epochs))
    return [1e3 * (time.perf_counter() - start) / steps]


answer(run)
