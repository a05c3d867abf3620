"""Training steps in PyTorch on one device, from a batch on the host to its loss; fused Adam.

WORK DATA [DEVICE [MODE]]: a work of `bench compare --device`, whose sizes are in DATA.json (the
MLP's are fixed); cpu or cuda; and eager, compile (torch.compile), graphs (torch.compile with CUDA
graphs), resident (eager, with batches on the device) or predict (predictions instead)."""
import contextlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

import torch_networks
from lines import answer_steps, batch, read, read_sizes

work, data, device, mode = sys.argv[1:] + ["cpu", "eager"][len(sys.argv) - 3:]
sizes = read_sizes(data)
# As in Tessera: no TF32 in products and convolutions.
torch.backends.cudnn.allow_tf32 = False


class GptBlock(nn.Module):
    """A post-norm block: attention and two dense layers, each with a residual connection."""

    def __init__(self):
        super().__init__()
        width, inner = sizes["width"], sizes["heads"] * sizes["head_dim"]
        self.norms = nn.ModuleList(nn.LayerNorm(width, eps=1e-6) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * inner), nn.Linear(inner, width)
        self.wide, self.narrow = nn.Linear(width, sizes["hidden"]), nn.Linear(sizes["hidden"], width)

    def forward(self, x):
        qkv = self.qkv(x).unflatten(-1, (3, sizes["heads"], -1)).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(*qkv, is_causal=True)
        x = self.norms[0](x + self.out(attended.transpose(1, 2).flatten(2)))
        return self.norms[1](x + self.narrow(F.relu(self.wide(x))))


class Gpt(nn.Module):
    """Keras' miniature GPT."""

    def __init__(self):
        super().__init__()
        width, words = sizes["width"], sizes["words"]
        self.tokens = nn.Embedding(words, width)
        self.positions = nn.Parameter(torch.rand(sizes["length"], width))
        self.blocks = nn.Sequential(*(GptBlock() for _ in range(sizes["layers"])))
        self.head = nn.Linear(width, words)

    def forward(self, x):
        return self.head(self.blocks(self.tokens(x) + self.positions)).flatten(0, 1)


def cnn():
    return nn.Sequential(nn.Unflatten(1, (1, 28)), nn.Conv2d(1, 32, 3), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Dropout(0.5), nn.Linear(1600, 10))


class Images(nn.Module):
    """A CNN on images with channels last in memory, as in the data."""

    def __init__(self):
        super().__init__()
        self.convolutions = nn.Sequential(nn.Conv2d(3, 64, 7, 4), nn.ReLU(),
                                          nn.Conv2d(64, 64, 3, 2), nn.ReLU())
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.convolutions(x.permute(0, 3, 1, 2)).mean((2, 3)))


def read_tensors():
    """Returns the data, each row in its shape; for a GPU in pinned memory."""
    if work in torch_networks.OF_WORDS + ("gpt",):
        x, y = read(data, sizes["length"], dtype="int64")
    elif "row" in sizes:
        x, y = read(data, *sizes["row"])
    elif work == "upload":
        x, y = read(data, sizes["pixels"], sizes["pixels"], 3)
    else:
        x, y = read(data, *{"mlp": [784], "cnn": [28, 28]}[work])
    tensors = [torch.from_numpy(part) for part in (x, y.reshape(len(x), -1))]
    if mode == "resident":
        return [part.to(device) for part in tensors]
    return [part.pin_memory() for part in tensors] if device == "cuda" else tensors


x, y = read_tensors()
torch.manual_seed(0)
if "row" in sizes or work in torch_networks.OF_WORDS:
    model = torch_networks.make(work, sizes)
else:
    model = {"mlp": torch_networks.mlp, "cnn": cnn, "upload": Images, "gpt": Gpt}[work]()
if work in ("cnn", "upload"):
    model = model.to(memory_format=torch.channels_last)
model = model.to(device)
dense = [p for p in model.parameters() if not (sizes.get("lazy") and len(p) == sizes["words"])]
optimizers = [torch.optim.Adam(dense, 1e-3, eps=1e-7, fused=True)]
if sizes.get("lazy"):
    optimizers.append(torch.optim.SparseAdam([model[0].weight], 1e-3, eps=1e-7))
mixed = sizes.get("dtype") == "mixed_bfloat16"


def forward(inputs, labels):
    with torch.autocast(device, torch.bfloat16) if mixed else contextlib.nullcontext():
        return F.cross_entropy(model(inputs), labels.flatten())


if mode in ("compile", "graphs"):
    forward = torch.compile(forward, mode="reduce-overhead" if mode == "graphs" else None)


def step(i):
    inputs, labels = (part.to(device, non_blocking=True)
                      for part in batch(i, sizes["batch"], x, y))
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss = forward(inputs, labels)
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    loss.item()


def predict(i):
    inputs = batch(i, sizes["batch"], x, y)[0].to(device)
    with torch.inference_mode():
        model(inputs).cpu()


if mode == "predict":
    model.eval()
answer_steps(predict if mode == "predict" else step)
