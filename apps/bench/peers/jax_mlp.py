"""The step of the MLP (784-700-500-10, batch 128, Adam) in JAX, jitted, on N virtual devices: the
batch cut over them, the weights on all."""
import functools
import os
import sys

devices = int(sys.argv[2])
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from lines import answer_steps, batch, read

x, y = read(sys.argv[1], 784)
mesh = Mesh(np.array(jax.devices()), ("batch",))
on_all = NamedSharding(mesh, PartitionSpec())
cut = NamedSharding(mesh, PartitionSpec("batch"))


def dense(key, inputs, units):
    kernel = jax.nn.initializers.glorot_uniform()(key, (inputs, units))
    return {"kernel": kernel, "bias": jnp.zeros(units)}


sizes = (784, 700, 500, 10)
keys = jax.random.split(jax.random.PRNGKey(0), 3)
weights = jax.device_put([dense(*part) for part in zip(keys, sizes, sizes[1:])], on_all)
adam = optax.adam(1e-3, eps=1e-7)
state = jax.device_put(adam.init(weights), on_all)


def loss_of(weights, images, labels):
    h = images
    for layer in weights[:-1]:
        h = jax.nn.relu(h @ layer["kernel"] + layer["bias"])
    logits = h @ weights[-1]["kernel"] + weights[-1]["bias"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


@functools.partial(jax.jit, donate_argnums=(0, 1))
def train(weights, state, images, labels):
    loss, gradients = jax.value_and_grad(loss_of)(weights, images, labels)
    updates, state = adam.update(gradients, state, weights)
    return optax.apply_updates(weights, updates), state, loss


def step(i):
    global weights, state
    images, labels = jax.device_put(batch(i, 128, x, y), cut)
    weights, state, loss = train(weights, state, images, labels)
    float(loss)


answer_steps(step)
