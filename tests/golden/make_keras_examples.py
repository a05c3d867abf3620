"""Writes keras_examples.json: the losses and metrics of the programs in apps/examples, each written
with Keras, after every epoch.

Data and initial weights are those of apps/common/formula.cpp; rows are not shuffled. Made with keras
3.15.1 on jax 0.10.2 from PyPI. Run it in this folder: python3 make_keras_examples.py
"""
import json
import os

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np
from keras import layers, ops

EPOCHS = 3


# ---- apps/common/formula.cpp ---------------------------------------------------------------------

def hashes(shape, seed):
    """Returns a 32-bit hash of each index."""
    mask = 0xffffffff
    h = np.arange(np.prod(shape), dtype=np.int64) + seed * 0x9e3779b1 & mask
    for _ in range(2):
        h = (h ^ h >> 16) * 0x45d9f3b & mask
    return (h ^ h >> 16).reshape(shape)


def hashed_numbers(shape, seed):
    return (hashes(shape, seed) >> 8).astype(np.float32) * np.float32(1 / (1 << 24))


def hashed_integers(shape, seed, count):
    return hashes(shape, seed) % count


def set_hashed_weights(model):
    weights = model.get_weights()
    for i, weight in enumerate(weights):
        if weight.ndim >= 2:
            out = weight.shape[-1]
            limit = np.sqrt(6 / (weight.size // out + out)).astype(np.float32)
            weights[i] = (hashed_numbers(weight.shape, i + 1) * 2 - 1) * limit
            assert weights[i].dtype == np.float32
    model.set_weights(weights)


def hashed_digits(classes, seed):
    squares = (hashed_numbers((10, 7, 7), 10) > 0.5).astype(np.float32)
    patterns = np.repeat(np.repeat(squares, 4, 1), 4, 2)[..., None]
    noise = hashed_numbers((len(classes), 28, 28, 1), seed)
    return patterns[classes] * np.float32(0.25) + noise * np.float32(0.75)


def hashed_rectangles(rows, size, seed):
    first = hashed_integers((rows, 2), seed, size // 2)
    end = first + hashed_integers((rows, 2), seed + 1, size // 4) + size // 4
    index = np.arange(size)
    tall, wide = ((index >= first[:, axis:axis + 1]) & (index < end[:, axis:axis + 1])
                  for axis in (0, 1))
    return (tall[:, :, None] & wide[:, None, :])[..., None].astype(np.float32)


# ---- the programs --------------------------------------------------------------------------------

def fit(model, x, y, batch_size=32):
    return model.fit(x, y, batch_size=batch_size, epochs=EPOCHS, validation_split=0.2,
                     shuffle=False, verbose=0).history


def autoencoder():
    clean = hashed_rectangles(640, 28, 1)
    noisy = clean * np.float32(0.5) + hashed_numbers((640, 28, 28, 1), 3) * np.float32(0.5)
    options = {"activation": "relu", "padding": "same"}
    picture = keras.Input((28, 28, 1))
    x = layers.Conv2D(32, 3, **options)(picture)
    x = layers.MaxPooling2D(2, padding="same")(x)
    x = layers.Conv2D(32, 3, **options)(x)
    x = layers.MaxPooling2D(2, padding="same")(x)
    x = layers.Conv2DTranspose(32, 3, strides=2, **options)(x)
    x = layers.Conv2DTranspose(32, 3, strides=2, **options)(x)
    x = layers.Conv2D(1, 3, activation="sigmoid", padding="same")(x)
    model = keras.Model(picture, x)
    set_hashed_weights(model)
    model.compile(optimizer=keras.optimizers.Adam(1e-4), loss="binary_crossentropy")
    return fit(model, noisy, clean)


def contrastive_loss(y, distance):
    same = (1 - y) * ops.square(distance)
    different = y * ops.square(ops.maximum(1.0 - distance, 0.0))
    return ops.mean(same + different, axis=-1)


def siamese():
    classes = hashed_integers((640,), 1, 10)
    differ = np.arange(640) % 2
    others = (classes + differ * (1 + hashed_integers((640,), 2, 9))) % 10
    pictures = {"left": hashed_digits(classes, 3), "right": hashed_digits(others, 4)}
    tower = keras.Sequential([
        keras.Input((28, 28, 1)),
        layers.Conv2D(4, 5, activation="tanh"),
        layers.AveragePooling2D(2),
        layers.Conv2D(16, 5, activation="tanh"),
        layers.AveragePooling2D(2),
        layers.Flatten(),
        layers.Dense(10, activation="tanh"),
    ], name="tower")
    left = keras.Input((28, 28, 1), name="left")
    right = keras.Input((28, 28, 1), name="right")
    squares = ops.sum(ops.square(tower(left) - tower(right)), axis=1, keepdims=True)
    model = keras.Model([left, right], ops.sqrt(ops.maximum(squares, 1e-7)))
    set_hashed_weights(model)
    model.compile(optimizer="rmsprop", loss=contrastive_loss,
                  metrics=[keras.metrics.BinaryAccuracy(name="accuracy")])
    return fit(model, pictures, differ.astype(np.float32)[:, None])


class Distiller(keras.Model):
    def __init__(self, student, teacher):
        super().__init__()
        self.student, self.teacher = student, teacher
        self.student_loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.distillation_loss = keras.losses.KLDivergence()
        self.alpha, self.temperature = 0.1, 3.0

    def call(self, x):
        return self.student(x)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        expected = ops.softmax(self.teacher(x, training=False) / self.temperature)
        softened = ops.softmax(y_pred / self.temperature)
        distilled = self.distillation_loss(expected, softened) * self.temperature ** 2
        return self.alpha * self.student_loss(y, y_pred) + (1 - self.alpha) * distilled


def classifier(filters, name):
    return keras.Sequential([
        keras.Input((28, 28, 1)),
        layers.Conv2D(filters, 3, strides=2, padding="same"),
        layers.LeakyReLU(negative_slope=0.2),
        layers.MaxPooling2D(2, strides=1, padding="same"),
        layers.Conv2D(2 * filters, 3, strides=2, padding="same"),
        layers.Flatten(),
        layers.Dense(10),
    ], name=name)


def distillation():
    labels = hashed_integers((640,), 1, 10)
    pictures = hashed_digits(labels, 2)
    teacher, student = classifier(32, "teacher"), classifier(8, "student")
    set_hashed_weights(teacher)
    set_hashed_weights(student)
    teacher.compile(optimizer=keras.optimizers.Adam(1e-4), metrics=["accuracy"],
                    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    fit(teacher, pictures, labels)
    teacher.trainable = False
    distiller = Distiller(student, teacher)
    distiller.compile(optimizer=keras.optimizers.Adam(1e-3), metrics=["accuracy"])
    return fit(distiller, pictures, labels)


def convolutions(x, filters):
    for _ in range(2):
        x = layers.Conv2D(filters, 3, activation="relu", padding="same")(x)
    return x


def unet():
    front, behind = hashed_rectangles(320, 32, 1), hashed_rectangles(320, 32, 3)
    classes = np.where(front > 0, np.float32(2), behind)
    noise = hashed_numbers((320, 32, 32, 1), 5)
    pictures = classes * np.float32(0.25) + noise * np.float32(0.5)
    picture = keras.Input((32, 32, 1))
    fine = convolutions(picture, 8)
    coarse = convolutions(layers.MaxPooling2D()(fine), 16)
    x = convolutions(layers.MaxPooling2D()(coarse), 32)
    x = layers.Conv2DTranspose(16, 3, strides=2, padding="same")(x)
    x = convolutions(layers.Concatenate()([x, coarse]), 16)
    x = layers.Conv2DTranspose(8, 3, strides=2, padding="same")(x)
    x = convolutions(layers.Concatenate()([x, fine]), 8)
    model = keras.Model(picture, layers.Conv2D(3, 1, activation="softmax")(x))
    set_hashed_weights(model)
    model.compile(optimizer=keras.optimizers.Adam(1e-4), loss="sparse_categorical_crossentropy",
                  metrics=["accuracy", keras.metrics.MeanIoU(3, name="mean_iou",
                                                             sparse_y_pred=False)])
    return fit(model, pictures, classes[..., 0].astype(np.int32), batch_size=16)


def addition_rnn():
    characters = "0123456789+ "
    numbers = hashed_integers((2, 1280), 1, 100)
    questions = [f"{a}+{b}".ljust(5)[::-1] for a, b in numbers.T]
    answers = [str(a + b).ljust(3) for a, b in numbers.T]
    x, y = (np.eye(12, dtype=np.float32)[[[characters.index(c) for c in text] for text in texts]]
            for texts in (questions, answers))
    model = keras.Sequential([
        keras.Input((5, 12)),
        layers.LSTM(64),
        layers.RepeatVector(3),
        layers.LSTM(64, return_sequences=True),
        layers.TimeDistributed(layers.Dense(12, activation="softmax")),
    ])
    set_hashed_weights(model)
    model.compile(optimizer="adam", loss="categorical_crossentropy", metrics=["accuracy"])
    return fit(model, x, y)


@keras.saving.register_keras_serializable(package="examples")
class Antirectifier(layers.Layer):
    def __init__(self, initializer="he_normal", **options):
        super().__init__(**options)
        self.initializer = initializer

    def build(self, shape):
        self.kernel = self.add_weight(shape=(2 * shape[-1], shape[-1]), name="kernel",
                                      initializer=self.initializer)

    def call(self, x):
        x = x - ops.mean(x, axis=-1, keepdims=True)
        return ops.matmul(ops.concatenate([ops.relu(x), ops.relu(-x)], axis=-1), self.kernel)

    def get_config(self):
        return {**super().get_config(), "initializer": self.initializer}


def own_layer():
    labels = hashed_integers((640,), 1, 10)
    pictures = hashed_digits(labels, 2).reshape(640, -1)
    model = keras.Sequential([keras.Input((28 * 28,)), layers.Dense(64), Antirectifier(),
                              layers.Dense(64), Antirectifier(), layers.Dense(10)])
    set_hashed_weights(model)
    model.compile(optimizer="rmsprop",
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=[keras.metrics.SparseCategoricalAccuracy()])
    return fit(model, pictures, labels)


def main():
    golden = {}
    for program in (addition_rnn, autoencoder, distillation, own_layer, siamese, unet):
        golden[program.__name__] = {name: [float(value) for value in values]
                                    for name, values in program().items()}
    with open(os.environ.get("GOLDEN", "keras_examples.json"), "w", encoding="utf-8") as file:
        json.dump(golden, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
