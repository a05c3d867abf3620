"""The step of the MLP (784-700-500-10, batch 128, Adam) in PyTorch, eager, one device."""
import sys

import torch
from torch import nn

from lines import answer_steps, batch, read

x, y = map(torch.from_numpy, read(sys.argv[1], 784))
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(784, 700), nn.ReLU(), nn.Linear(700, 500), nn.ReLU(),
                      nn.Linear(500, 10))
optimizer = torch.optim.Adam(model.parameters(), 1e-3, eps=1e-7, fused=True)
loss_of = nn.CrossEntropyLoss()


def step(i):
    images, labels = batch(i, 128, x, y)
    optimizer.zero_grad()
    loss = loss_of(model(images), labels)
    loss.backward()
    optimizer.step()
    loss.item()


answer_steps(step)
