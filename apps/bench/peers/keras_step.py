"""Training steps in Keras on a backend, from a batch on the host to its loss; Adam.

WORK DATA [BACKEND [MODE]]: a work of `bench compare` on a CPU, whose sizes are in DATA.json; jax or
tensorflow; and step or predict (predictions instead)."""
import os
import sys

work, data, backend, mode = sys.argv[1:] + ["jax", "step"][len(sys.argv) - 3:]
os.environ["KERAS_BACKEND"] = backend
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

from lines import answer_steps, batch, quiet, read, read_sizes

with quiet():
    import keras
    from keras import layers

    import keras_networks

sizes = read_sizes(data)


def attention(x, head_dim, causal):
    return layers.MultiHeadAttention(sizes["heads"], head_dim)(x, x, use_causal_mask=causal)


def encoder(words):
    """A pre-norm block: attention and two dense layers, each with a residual connection."""
    x = layers.Embedding(sizes["words"], sizes["width"])(words)
    for _ in range(sizes["layers"]):
        x = x + attention(layers.LayerNormalization(epsilon=1e-5)(x),
                          sizes["width"] // sizes["heads"], causal=False)
        wide = layers.Dense(4 * sizes["width"], activation="gelu")(
            layers.LayerNormalization(epsilon=1e-5)(x))
        x = x + layers.Dense(sizes["width"])(wide)
    x = layers.LayerNormalization(epsilon=1e-5)(x)
    return layers.Dense(10)(layers.GlobalAveragePooling1D()(x))


class Positions(layers.Layer):
    def build(self, shape):
        self.embeddings = self.add_weight(shape=shape[1:], initializer="uniform")

    def call(self, x):
        return x + self.embeddings


def gpt(words):
    """Keras' example, post-norm."""
    x = Positions()(layers.Embedding(sizes["words"], sizes["width"])(words))
    for _ in range(sizes["layers"]):
        x = layers.LayerNormalization(epsilon=1e-6)(x + attention(x, sizes["head_dim"], True))
        wide = layers.Dense(sizes["hidden"], activation="relu")(x)
        x = layers.LayerNormalization(epsilon=1e-6)(x + layers.Dense(sizes["width"])(wide))
    return layers.Dense(sizes["words"])(x)


def embedding(words):
    x = layers.Embedding(sizes["words"], sizes["width"])(words)
    return layers.Dense(10)(layers.GlobalAveragePooling1D()(x))


def of_words():
    words = layers.Input((sizes["length"],), dtype="int32")
    network = {"encoder": encoder, "gpt": gpt, "embedding": embedding}[work]
    return keras.Model(words, network(words))


if "row" in sizes:
    x, y = read(data, *sizes["row"])
    model = keras_networks.make(work, sizes)
else:
    x, y = read(data, sizes["length"], dtype="int64")
    y = y.reshape(len(x), -1) if work == "gpt" else y
    model = of_words()
# The faster choice of each on TensorFlow: XLA's steps of convolutions take 1.6 to 5 times as long.
compiles = backend == "jax" or (mode == "predict" and work != "mobilenet_v2")
model.compile(optimizer=keras.optimizers.Adam(1e-3), jit_compile=compiles,
              loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))


def step(i):
    model.reset_metrics()
    float(model.train_on_batch(*batch(i, sizes["batch"], x, y)))


def predict(i):
    model.predict_on_batch(batch(i, sizes["batch"], x, y)[0])


answer_steps(predict if mode == "predict" else step)
