"""Causal attention in PyTorch, forward and backward, with the sizes of `bench compare --work
attention`."""
import torch
from torch.nn import functional as F

from lines import answer_steps

torch.manual_seed(0)
# Heads come before steps in the shape but after them in memory.
q, k, v = (torch.randn(4, 512, 8, 64).transpose(1, 2).requires_grad_() for _ in range(3))


def step(_):
    torch.autograd.grad(F.scaled_dot_product_attention(q, k, v, is_causal=True).sum(), (q, k, v))


answer_steps(step)
