"""Writes keras_gpt.json: losses and greedy words of Keras' miniature GPT, as in the example "Text
generation with a miniature GPT", at small sizes and at full size, and the example's token ids: of a
few texts, and as hashes of the IMDB reviews.

Weights and words come from formulas and need not be stored. Made with keras 3.15.1 on jax 0.10.2
and tensorflow 2.21.0 from PyPI. Run it in this folder: python3 make_keras_gpt.py FOLDER, where
FOLDER is $TESSERA_DATA.
"""
import hashlib
import json
import os
import pathlib
import re
import string
import sys
import tarfile

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

TEXTS = [
    "This movie is GREAT!<br /><br />Isn't it?",
    "a path\\to nowhere: [sic] {50%} $5 & more... #1",
    "caf\u00e9 \u201cquoted\u201d <b>bold</b><br/>and <br />",
    "don't-stop_now (really) 10/10 @home ~ ^ ` | = +",
    "the movie is the movie is the movie",
]


def numbers(shape, seed):
    """Returns numbers from -1 to 1 that do not depend on a generator's version."""
    index = np.arange(np.prod(shape, dtype=int), dtype=np.int64)
    values = (index * 7919 + seed * 104729 + index * index * 31) % 2003
    return (values / 1001 - 1).reshape(shape).astype(np.float32)


def give_weights(model):
    for i, weight in enumerate(model.trainable_weights):
        values = numbers(weight.shape, i)
        if weight.path.endswith("gamma"):
            values = 1 + 0.1 * values
        elif len(weight.shape) < 2 or "bias" in weight.path:
            values = 0.1 * values
        else:
            values = values * np.sqrt(3 / weight.shape[0])
        weight.assign(values)


class TransformerBlock(layers.Layer):
    def __init__(self, width, heads, head_dim, hidden, pre_norm, **kwargs):
        super().__init__(**kwargs)
        self.att = layers.MultiHeadAttention(heads, head_dim)
        self.up = layers.Dense(hidden, activation="relu")
        self.down = layers.Dense(width)
        self.norm_1 = layers.LayerNormalization(epsilon=1e-6)
        self.norm_2 = layers.LayerNormalization(epsilon=1e-6)
        self.pre_norm = pre_norm

    def call(self, x):
        if self.pre_norm:
            seen = self.norm_1(x)
            x = x + self.att(seen, seen, use_causal_mask=True)
            return x + self.down(self.up(self.norm_2(x)))
        x = self.norm_1(x + self.att(x, x, use_causal_mask=True))
        return self.norm_2(x + self.down(self.up(x)))


class TokenAndPositionEmbedding(layers.Layer):
    def __init__(self, length, vocabulary, width):
        super().__init__()
        self.tokens = layers.Embedding(vocabulary, width)
        self.positions = layers.Embedding(length, width)

    def call(self, x):
        return self.tokens(x) + self.positions(ops.arange(0, ops.shape(x)[-1], 1))


def gpt(size):
    words = layers.Input((size["length"],), dtype="int32")
    x = TokenAndPositionEmbedding(size["length"], size["vocabulary"], size["width"])(words)
    for _ in range(size["blocks"]):
        x = TransformerBlock(size["width"], size["heads"], size["head_dim"], size["hidden"], size["pre_norm"])(x)
    if size["pre_norm"]:
        x = layers.LayerNormalization(epsilon=1e-6)(x)
    return keras.Model(words, layers.Dense(size["vocabulary"])(x))


def words_of(rows, length, vocabulary):
    """Returns rows of token ids with learnable order."""
    row, step = np.mgrid[:rows, :length + 1]
    kinds = 9973 if vocabulary > 9973 else 97
    return ((row * 31 + step * step * 7 + step * row) % kinds * 2 + (step % 2)) % vocabulary


def add_noise(model, random):
    """Moves each weight by one ulp, up or down."""
    for weight in model.trainable_weights:
        values = keras.ops.convert_to_numpy(weight)
        ways = np.where(random.random(values.shape) < 0.5, np.inf, -np.inf)
        weight.assign(np.nextafter(values, ways.astype(np.float32)))


def greedy_words(model, first, length):
    """Returns the most probable words after the first ones."""
    words = list(map(int, first))
    for _ in range(12):
        padded = words + [0] * (length - len(words))
        logits = model(np.array([padded]))[0, len(words) - 1]
        words.append(int(np.argmax(logits)))
    return words


def trace(size, steps, batch, greedy_after=None, noise=None):
    """Returns losses, and the most probable words after some of the steps.

    `noise` is a seed: it perturbs the weights, and all sums over a batch by another order of rows.
    """
    model = gpt(size)
    give_weights(model)
    random = np.random.default_rng(noise)
    if noise is not None:
        add_noise(model, random)
    model.compile(keras.optimizers.Adam(1e-3),
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    rows = words_of(batch * 5, size["length"], size["vocabulary"])
    losses, words = [], []
    for step in range(steps):
        model.reset_metrics()
        some = rows[(step % 5) * batch:(step % 5 + 1) * batch]
        if noise is not None:
            some = random.permutation(some)
        losses.append(float(model.train_on_batch(some[:, :-1], some[:, 1:])))
        if step + 1 == greedy_after:
            words = greedy_words(model, rows[0, :5], size["length"])
    return {"size": size, "batch": batch, "paths": [w.path for w in model.trainable_weights],
            "losses": losses, "greedy": words}


def custom_standardization(text):
    """Standardizes texts as the example does."""
    lowercased = tf.strings.lower(text)
    stripped = tf.strings.regex_replace(lowercased, "<br />", " ")
    return tf.strings.regex_replace(stripped, f"([{string.punctuation}])", r" \1")


def texts():
    layer = layers.TextVectorization(standardize=custom_standardization, max_tokens=30 - 1,
                                     output_mode="int", output_sequence_length=13)
    layer.adapt(tf.data.Dataset.from_tensor_slices(TEXTS).batch(2))
    return {"texts": TEXTS, "standardized": [t.decode() for t in custom_standardization(TEXTS).numpy()],
            "vocabulary": layer.get_vocabulary(), "ids": np.asarray(layer(TEXTS)).tolist()}


def trace_with_drift(size, steps, batch, noises, greedy_after=None):
    """Returns a trace and the largest drift of its losses under noise."""
    plain = trace(size, steps, batch, greedy_after)
    losses = np.array(plain["losses"])
    drift = np.max([np.abs(np.array(trace(size, steps, batch, noise=seed)["losses"]) / losses - 1)
                    for seed in range(noises)], axis=0)
    return {**plain, "drift": [float(f"{d:.3g}") for d in drift]}


def reviews():
    """Returns hashes of the vocabulary of all reviews, and of the token ids of the first 1,000."""
    splits = {"train": {}, "test": {}}
    with tarfile.open(pathlib.Path(sys.argv[1]) / "imdb/aclImdb_v1.tar.gz") as archive:
        for member in archive:
            found = re.fullmatch(r"aclImdb/(train|test)/(neg|pos)/[^/]+\.txt", member.name)
            if found:
                splits[found[1]][member.name] = archive.extractfile(member).read()
    names = sorted(splits["train"])
    rows = [splits["train"][names[i * 7919 % len(names)]] for i in range(len(names))]
    layer = layers.TextVectorization(standardize=custom_standardization, max_tokens=20000 - 1,
                                     output_mode="int", output_sequence_length=81)
    layer.adapt(tf.data.Dataset.from_tensor_slices(rows + list(splits["test"].values())).batch(256))
    words = "".join(word + "\n" for word in layer.get_vocabulary())
    ids = np.concatenate([np.asarray(layer(rows[i:i + 100])) for i in range(0, 1000, 100)])
    return {"words": words.count("\n"), "vocabulary_sha256": hashlib.sha256(words.encode()).hexdigest(),
            "ids_sha256": hashlib.sha256(ids.astype("<i8").tobytes()).hexdigest()}


def main():
    small = {"blocks": 2, "heads": 3, "head_dim": 8, "width": 24, "hidden": 40, "length": 20, "vocabulary": 203}
    traces = [trace({**small, "pre_norm": pre_norm}, 20, 6, 20) for pre_norm in (False, True)]
    mini = {"blocks": 1, "heads": 2, "head_dim": 256, "width": 256, "hidden": 256, "length": 80, "vocabulary": 20000,
            "pre_norm": False}
    deep = {"blocks": 4, "heads": 4, "head_dim": 16, "width": 64, "hidden": 64, "length": 64, "vocabulary": 2000,
            "pre_norm": False}
    # Noise changes the mini model's most probable words from some step between the tenth and the
    # twentieth on.
    golden = json.dumps({"traces": traces, "mini": trace_with_drift(mini, 50, 128, 3, 10),
                         "long": trace_with_drift(deep, 300, 16, 3), "text": texts(), "reviews": reviews()},
                        ensure_ascii=False, indent=1)
    pathlib.Path("keras_gpt.json").write_text(golden + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
