"""The step of the DTensor tutorial's model (1200-48-2 with batch norm, batch 64, SGD on the summed
loss) in PyTorch, eager, one device."""
import sys

import torch
from torch import nn

from lines import answer_steps, batch, read

x, y = map(torch.from_numpy, read(sys.argv[1], 1200))
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1200, 48), nn.ReLU(), nn.BatchNorm1d(48, affine=False),
                      nn.Linear(48, 2))
optimizer = torch.optim.SGD(model.parameters(), 1e-2, fused=True)
loss_of = nn.CrossEntropyLoss(reduction="sum")


def step(i):
    rows, labels = batch(i, 64, x, y)
    optimizer.zero_grad()
    loss = loss_of(model(rows), labels)
    loss.backward()
    optimizer.step()
    loss.item()


answer_steps(step)
