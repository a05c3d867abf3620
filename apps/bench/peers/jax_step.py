"""Training steps in JAX, jitted, from a batch on the host to its loss; Adam.

WORK DATA DEVICES: a work of `bench compare --device`, whose sizes are in DATA.json (the MLP's are
fixed); the number of virtual devices, over which the batch is sharded and weights are replicated,
or "cuda" for one GPU."""
import functools
import os
import sys

work, data, devices = sys.argv[1:]
os.environ["JAX_PLATFORMS"] = "cuda" if devices == "cuda" else "cpu"
# The other programs need GPU memory too.
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
if devices != "cuda":
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from lines import answer_steps, batch, read, read_sizes

sizes = read_sizes(data)
compute = jnp.bfloat16 if sizes.get("dtype") == "mixed_bfloat16" else jnp.float32
if compute == jnp.float32:
    # As in Tessera: no TF32.
    jax.config.update("jax_default_matmul_precision", "highest")
mesh = Mesh(np.array(jax.devices()[:1] if devices == "cuda" else jax.devices()), ("batch",))
on_all = NamedSharding(mesh, PartitionSpec())
cut = NamedSharding(mesh, PartitionSpec("batch"))
keys = iter(jax.random.split(jax.random.PRNGKey(0), 1000))


def layer(*shape):
    kernel = jax.nn.initializers.glorot_uniform()(next(keys), shape)
    return {"kernel": kernel, "bias": jnp.zeros(shape[-1])}


def dense(h, weights):
    return h @ weights["kernel"].astype(h.dtype) + weights["bias"].astype(h.dtype)


def dropped(h, rate, key):
    if rate == 0:
        return h
    kept = jax.random.bernoulli(key, 1 - rate, h.shape)
    return jnp.where(kept, h / (1 - rate), 0).astype(h.dtype)


class Mlp:
    @staticmethod
    def weights():
        return [layer(784, 700), layer(700, 500), layer(500, 10)]

    @staticmethod
    def logits(weights, h, key):
        for part in weights[:-1]:
            h = jax.nn.relu(dense(h, part))
        return dense(h, weights[-1])


class Cnn:
    @staticmethod
    def weights():
        return [layer(3, 3, 1, 32), layer(3, 3, 32, 64), layer(1600, 10)]

    @staticmethod
    def logits(weights, h, key):
        h = h[..., None]
        for part in weights[:2]:
            h = jax.lax.conv_general_dilated(h, part["kernel"], (1, 1), "VALID",
                                             dimension_numbers=("NHWC", "HWIO", "NHWC"))
            h = jax.nn.relu(h + part["bias"])
            h = jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1),
                                      "VALID")
        return dense(dropped(h.reshape(len(h), -1), 0.5, key), weights[2])


class Transformer:
    """Classifies a text, or in the decoder predicts the next word at each position."""

    @staticmethod
    def weights():
        width, words = sizes["width"], sizes["words"]

        def norm():
            return {"kernel": jnp.ones(width), "bias": jnp.zeros(width)}

        blocks = [{"norms": [norm(), norm()], "qkv": layer(width, 3 * width),
                   "out": layer(width, width), "wide": layer(width, 4 * width),
                   "narrow": layer(4 * width, width)} for _ in range(sizes["layers"])]
        return {"words": 0.05 * jax.random.normal(next(keys), (words, width)), "blocks": blocks,
                "norm": norm(), "head": layer(width, words if work == "decoder" else 10)}

    @staticmethod
    def normalized(h, weights):
        wide = h.astype(jnp.float32)
        wide = (wide - wide.mean(-1, keepdims=True)) * jax.lax.rsqrt(
            wide.var(-1, keepdims=True) + 1e-5)
        return (wide * weights["kernel"] + weights["bias"]).astype(h.dtype)

    @staticmethod
    def attended(h, weights, key):
        q, k, v = jnp.moveaxis(
            dense(h, weights["qkv"]).reshape(*h.shape[:2], 3, sizes["heads"], -1), 2, 0)
        if sizes["dropout"] == 0:
            out = jax.nn.dot_product_attention(q, k, v, is_causal=work == "decoder")
        else:
            scores = jnp.einsum("bthd,bshd->bhts", q, k) / q.shape[-1] ** 0.5
            shares = dropped(jax.nn.softmax(scores), sizes["dropout"], key)
            out = jnp.einsum("bhts,bshd->bthd", shares, v)
        return dense(out.reshape(h.shape), weights["out"])

    @classmethod
    def logits(cls, weights, words, key):
        h = weights["words"].astype(compute)[words]
        for block, part in zip(weights["blocks"], jax.random.split(key, sizes["layers"])):
            parts = jax.random.split(part, 3)
            out = cls.attended(cls.normalized(h, block["norms"][0]), block, parts[0])
            h = h + dropped(out, sizes["dropout"], parts[1])
            wide = jax.nn.gelu(dense(cls.normalized(h, block["norms"][1]), block["wide"]),
                               approximate=False)
            h = h + dropped(dense(wide, block["narrow"]), sizes["dropout"], parts[2])
        h = cls.normalized(h, weights["norm"])
        return dense(h if work == "decoder" else h.mean(1), weights["head"])


class Gpt:
    """Keras' miniature GPT, post-norm."""

    @staticmethod
    def weights():
        width, words, inner = sizes["width"], sizes["words"], sizes["heads"] * sizes["head_dim"]

        def norm():
            return {"kernel": jnp.ones(width), "bias": jnp.zeros(width)}

        blocks = [{"norms": [norm(), norm()], "qkv": layer(width, 3 * inner),
                   "out": layer(inner, width), "wide": layer(width, sizes["hidden"]),
                   "narrow": layer(sizes["hidden"], width)} for _ in range(sizes["layers"])]
        return {"words": 0.05 * jax.random.normal(next(keys), (words, width)),
                "positions": 0.05 * jax.random.normal(next(keys), (sizes["length"], width)),
                "blocks": blocks, "head": layer(width, words)}

    @staticmethod
    def logits(weights, words, key):
        h = weights["words"][words] + weights["positions"]
        for block in weights["blocks"]:
            q, k, v = jnp.moveaxis(dense(h, block["qkv"]).reshape(
                *h.shape[:2], 3, sizes["heads"], -1), 2, 0)
            out = jax.nn.dot_product_attention(q, k, v, is_causal=True)
            out = dense(out.reshape(*h.shape[:2], -1), block["out"])
            h = Transformer.normalized(h + out, block["norms"][0])
            wide = jax.nn.relu(dense(h, block["wide"]))
            h = Transformer.normalized(h + dense(wide, block["narrow"]), block["norms"][1])
        return dense(h, weights["head"])


class Lstm:
    @staticmethod
    def weights():
        units = sizes["units"]
        return {"inputs": layer(sizes["features"], 4 * units), "states": layer(units, 4 * units),
                "head": layer(units, 10)}

    @staticmethod
    def logits(weights, x, key):
        gates_of_inputs = jnp.moveaxis(dense(x, weights["inputs"]), 1, 0)

        def one(state, from_input):
            h, carry = state
            i, f, c, o = jnp.split(from_input + h @ weights["states"]["kernel"], 4, -1)
            carry = jax.nn.sigmoid(f) * carry + jax.nn.sigmoid(i) * jnp.tanh(c)
            return (jax.nn.sigmoid(o) * jnp.tanh(carry), carry), None

        zeros = jnp.zeros((len(x), sizes["units"]))
        (h, _), _ = jax.lax.scan(one, (zeros, zeros), gates_of_inputs)
        return dense(h, weights["head"])


shape, dtype = {"mlp": ((784,), "float32"), "cnn": ((28, 28), "float32"),
                "lstm": ((sizes.get("length"), sizes.get("features")), "float32")}.get(
                    work, ((sizes.get("length"),), "int64"))
x, y = read(data, *shape, dtype=dtype)
y = y.reshape(len(x), -1) if work in ("decoder", "gpt") else y
model = {"mlp": Mlp, "cnn": Cnn, "encoder": Transformer, "decoder": Transformer,
         "lstm": Lstm, "gpt": Gpt}[work]
weights = jax.device_put(model.weights(), on_all)
adam = optax.adam(1e-3, eps=1e-7)
state = jax.device_put(adam.init(weights), on_all)
key = next(keys)


def loss_of(weights, inputs, labels, i):
    logits = model.logits(weights, inputs, jax.random.fold_in(key, i)).astype(jnp.float32)
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


@functools.partial(jax.jit, donate_argnums=(0, 1))
def train(weights, state, inputs, labels, i):
    loss, gradients = jax.value_and_grad(loss_of)(weights, inputs, labels, i)
    updates, state = adam.update(gradients, state, weights)
    return optax.apply_updates(weights, updates), state, loss


def step(i):
    global weights, state
    inputs, labels = jax.device_put(batch(i, sizes["batch"], x, y), cut)
    weights, state, loss = train(weights, state, inputs, labels, i)
    float(loss)


answer_steps(step)
