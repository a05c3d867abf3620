"""The step of the DTensor tutorial's model (1200-48-2 with batch norm, batch 64, SGD on the summed
loss) in JAX, jitted, on 8 virtual devices in one of the tutorial's schemes."""
import functools
import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from lines import answer_steps, batch, read

x, y = read(sys.argv[1], 1200)
# Mesh, and shardings of rows, first kernel, first bias and second kernel.
sizes, names, *parts = {
    "data": ((8,), ("batch",), P("batch"), P(), P(), P()),
    "model": ((4, 2), ("batch", "model"), P("batch"), P(None, "model"), P("model"),
              P("model", None)),
    "spatial": ((2, 2, 2), ("batch", "feature", "model"), P("batch", "feature"),
                P("feature", "model"), P("model"), P("model", None)),
}[sys.argv[2]]
mesh = Mesh(np.array(jax.devices()).reshape(sizes), names)
rows_cut, kernel1, bias1, kernel2 = (NamedSharding(mesh, part) for part in parts)
labels_cut = NamedSharding(mesh, P("batch"))

key1, key2 = jax.random.split(jax.random.PRNGKey(0))
glorot = jax.nn.initializers.glorot_uniform()
weights = [jax.device_put(glorot(key1, (1200, 48)), kernel1),
           jax.device_put(jnp.zeros(48), bias1),
           jax.device_put(glorot(key2, (48, 2)), kernel2),
           jax.device_put(jnp.zeros(2), NamedSharding(mesh, P()))]


def loss_of(weights, rows, labels):
    h = jax.nn.relu(rows @ weights[0] + weights[1])
    h = (h - h.mean(0)) * jax.lax.rsqrt(h.var(0) + 1e-5)
    log_p = jax.nn.log_softmax(h @ weights[2] + weights[3])
    return -log_p[jnp.arange(len(labels)), labels].sum()


@functools.partial(jax.jit, donate_argnums=0)
def train(weights, rows, labels):
    loss, gradients = jax.value_and_grad(loss_of)(weights, rows, labels)
    return [w - 1e-2 * g for w, g in zip(weights, gradients)], loss


def step(i):
    global weights
    rows, labels = batch(i, 64, x, y)
    weights, loss = train(weights, jax.device_put(rows, rows_cut),
                          jax.device_put(labels, labels_cut))
    float(loss)


answer_steps(step)
