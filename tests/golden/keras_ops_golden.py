"""Shared by the generators of keras_ops_*.json on jax."""

import jax
import jax.numpy as jnp
import numpy as np

from keras_golden import compact, tensor, upstream


def jax_case(name, attributes, inputs, call, differentiable=True):
    """Returns the result of call(*inputs), and the gradients of upstream · result."""
    tensors = [jnp.asarray(x) for x in inputs]
    y = call(*tensors)
    golden = {"name": name, "attributes": attributes, "inputs": [tensor(x) for x in inputs],
              "output": tensor(y)}
    floating = [i for i, x in enumerate(inputs) if x.dtype == np.float32]
    if floating and y.dtype == np.float32 and differentiable:
        def loss(*some):
            return jnp.sum(call(*tuple(
                some[floating.index(i)] if i in floating else x for i, x in enumerate(tensors)))
                * upstream(y.shape).astype(np.float32))
        gradients = jax.grad(loss, argnums=tuple(range(len(floating))))(
            *(tensors[i] for i in floating))
        golden["gradients"] = [compact(g) for g in gradients]
    return golden
