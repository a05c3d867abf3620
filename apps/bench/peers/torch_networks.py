"""Networks of `bench compare` in PyTorch; apps/bench/networks.cpp and step_works.cpp have the same.
Images come with channels last, as in the data."""
import torch
from torch import nn
from torch.nn import functional as F

OF_WORDS = ("encoder", "decoder", "embedding")


def convolution(inputs, filters, window, stride=1, groups=1):
    return nn.Sequential(
        nn.Conv2d(inputs, filters, window, stride, window // 2, groups=groups, bias=False),
        nn.BatchNorm2d(filters))


class Bottleneck(nn.Module):
    def __init__(self, inputs, filters, stride, first):
        super().__init__()
        self.inner = nn.Sequential(convolution(inputs, filters, 1, stride), nn.ReLU(True),
                                   convolution(filters, filters, 3), nn.ReLU(True),
                                   convolution(filters, 4 * filters, 1))
        self.shortcut = convolution(inputs, 4 * filters, 1, stride) if first else nn.Identity()
        self.relu = nn.ReLU(True)

    def forward(self, x):
        return self.relu(self.inner(x) + self.shortcut(x))


class InvertedResidual(nn.Module):
    def __init__(self, inputs, filters, factor, stride):
        super().__init__()
        wide = factor * inputs
        expand = [convolution(inputs, wide, 1), nn.ReLU6(True)] if factor > 1 else []
        self.inner = nn.Sequential(*expand, convolution(wide, wide, 3, stride, wide),
                                   nn.ReLU6(True), convolution(wide, filters, 1))
        self.adds = stride == 1 and inputs == filters

    def forward(self, x):
        return x + self.inner(x) if self.adds else self.inner(x)


class ChannelsFirst(nn.Module):
    def forward(self, x):
        return x.permute(0, 3, 1, 2)


def mlp():
    return nn.Sequential(nn.Linear(784, 700), nn.ReLU(), nn.Linear(700, 500), nn.ReLU(),
                         nn.Linear(500, 10))


def resnet50():
    layers = [ChannelsFirst(), convolution(3, 64, 7, 2), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for filters, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(blocks):
            layers.append(Bottleneck(inputs, filters, stride if i == 0 else 1, i == 0))
            inputs = 4 * filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10))


def mobilenet_v2():
    layers = [ChannelsFirst(), convolution(3, 32, 3, 2), nn.ReLU6(True)]
    inputs = 32
    for factor, filters, blocks, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2),
                                            (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                                            (6, 320, 1, 1)):
        for i in range(blocks):
            layers.append(InvertedResidual(inputs, filters, factor, stride if i == 0 else 1))
            inputs = filters
    return nn.Sequential(*layers, convolution(inputs, 1280, 1), nn.ReLU6(True),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 10))


class LastOf(nn.Module):
    """Logits from the output of a recurrent layer's last step."""

    def __init__(self, layer, sizes):
        super().__init__()
        self.layer = layer(sizes["features"], sizes["units"], batch_first=True)
        self.head = nn.Linear(sizes["units"], 10)

    def forward(self, x):
        return self.head(self.layer(x)[0][:, -1])


class Block(nn.Module):
    """A pre-norm block: attention and two dense layers, each with a residual connection."""

    def __init__(self, sizes, causal):
        super().__init__()
        self.sizes, self.causal = sizes, causal
        width = sizes["width"]
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(sizes["dropout"])

    def forward(self, x):
        qkv = self.qkv(self.norms[0](x)).unflatten(-1, (3, self.sizes["heads"], -1))
        attended = F.scaled_dot_product_attention(
            *qkv.permute(2, 0, 3, 1, 4), dropout_p=self.sizes["dropout"] if self.training else 0,
            is_causal=self.causal)
        x = x + self.dropout(self.out(attended.transpose(1, 2).flatten(2)))
        return x + self.dropout(self.narrow(F.gelu(self.wide(self.norms[1](x)))))


class Transformer(nn.Module):
    """Classifies a text or, if causal, predicts the next word at each position."""

    def __init__(self, sizes, causal):
        super().__init__()
        self.causal = causal
        width, words = sizes["width"], sizes["words"]
        self.body = nn.Sequential(nn.Embedding(words, width),
                                  *(Block(sizes, causal) for _ in range(sizes["layers"])),
                                  nn.LayerNorm(width))
        self.head = nn.Linear(width, words if causal else 10)

    def forward(self, x):
        x = self.body(x)
        return self.head(x).flatten(0, 1) if self.causal else self.head(x.mean(1))


class MeanOfWords(nn.Module):
    def forward(self, x):
        return x.mean(1)


def make(work, sizes):
    """Returns the network of this name; of images, in channels_last memory."""
    if work == "mlp":
        return mlp()
    if work in ("encoder", "decoder"):
        return Transformer(sizes, work == "decoder")
    if work == "embedding":
        table = nn.Embedding(sizes["words"], sizes["width"], sparse=sizes["lazy"])
        return nn.Sequential(table, MeanOfWords(), nn.Linear(sizes["width"], 10))
    if work in ("lstm", "gru"):
        return LastOf(nn.LSTM if work == "lstm" else nn.GRU, sizes)
    network = resnet50() if work == "resnet50" else mobilenet_v2()
    return network.to(memory_format=torch.channels_last)
