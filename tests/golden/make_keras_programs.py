"""Writes keras_programs.zip: small data files, models for them as in Keras' guides, with weights
from a formula, the losses of their first twenty batches, and losses and metrics of each epoch of a
fit.

heart/, weather/, reviews/ and shapes/ have the data: a table, a series, texts and pictures.
NAME.weights.h5 are the initial weights; "losses.json" has the loss of each batch, "epochs.json" the
history of fit(), with training and validation. Made with keras 3.15.1 on jax 0.10.2, tensorflow
2.21.0 and pillow 13.0.0 from PyPI. Run it in this folder: python3 make_keras_programs.py
"""
import csv
import json
import os
import pathlib
import re
import shutil
import string
import tempfile
import zipfile

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np
import tensorflow as tf
from keras import layers
from keras.utils import FeatureSpace
from keras.src.utils.dataset_utils import get_training_or_validation_split, index_directory
from PIL import Image

# A stable sort: the order of equal values decides where Keras' bins end.
argsort = np.argsort
np.argsort = lambda values, **options: argsort(values, **{"kind": "stable", **options})

STEPS = 20
EPOCHS = {"heart": 20, "weather": 10, "reviews": 10, "shapes": 30}
FIXED = (1980, 1, 1, 0, 0, 0)


def numbers(shape, seed):
    """Returns numbers from -1 to 1 that do not depend on a generator's version."""
    index = np.arange(np.prod(shape, dtype=int), dtype=np.int64)
    values = (index * 7919 + seed * 104729 + index * index * 31) % 2003
    return (values / 1001 - 1).reshape(shape).astype(np.float32)


def give_weights(model):
    for i, weight in enumerate(model.trainable_weights):
        fan_in = np.prod(weight.shape[:-1]) if len(weight.shape) > 1 else 4
        weight.assign(numbers(weight.shape, i) * np.sqrt(3 / fan_in))


def pick(seed, row, choices):
    return choices[(row * 7919 + seed * 104729 + row * row * 31) % 2003 % len(choices)]


# ---- a table -------------------------------------------------------------------------------------

def write_heart(folder):
    """Writes 303 patients with the columns of the guide's heart.csv."""
    with open(folder / "heart.csv", "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang",
                      "oldpeak", "slope", "ca", "thal", "target"])
        for row in range(303):
            age = 29 + pick(1, row, range(49))
            sex, cp = pick(2, row, range(2)), pick(3, row, range(5))
            thal = pick(4, row, ["normal", "fixed", "reversible"])
            oldpeak, ca = pick(5, row, range(62)) / 10, pick(6, row, range(4))
            score = age / 20 + cp + ca + 2 * (thal == "reversible") + oldpeak - 2 * sex
            out.writerow([age, sex, cp, 94 + pick(7, row, range(107)),
                          126 + pick(8, row, range(439)), pick(9, row, range(2)),
                          pick(10, row, range(3)), 71 + pick(11, row, range(132)),
                          pick(12, row, range(2)), oldpeak, 1 + pick(13, row, range(3)), ca, thal,
                          int(score > 9)])


def heart(folder):
    with open(folder / "heart.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    table = {name: [row[name] for row in rows] for name in rows[0]}
    floats = {"oldpeak"}
    columns = {name: np.array(values) if name == "thal"
               else np.array(values, "float32" if name in floats else "int64")
               for name, values in table.items()}
    labels = columns.pop("target")
    space = FeatureSpace(
        features={
            "sex": FeatureSpace.integer_categorical(num_oov_indices=0),
            "cp": FeatureSpace.integer_categorical(num_oov_indices=0),
            "fbs": FeatureSpace.integer_categorical(num_oov_indices=0),
            "restecg": FeatureSpace.integer_categorical(num_oov_indices=0),
            "exang": FeatureSpace.integer_categorical(num_oov_indices=0),
            "ca": FeatureSpace.integer_categorical(num_oov_indices=0),
            "thal": FeatureSpace.string_categorical(num_oov_indices=0),
            "age": FeatureSpace.float_discretized(num_bins=30),
            "trestbps": FeatureSpace.float_normalized(),
            "chol": FeatureSpace.float_normalized(),
            "thalach": FeatureSpace.float_normalized(),
            "oldpeak": FeatureSpace.float_normalized(),
            "slope": FeatureSpace.float_normalized(),
        },
        crosses=[FeatureSpace.cross(feature_names=("sex", "age"), crossing_dim=64),
                 FeatureSpace.cross(feature_names=("thal", "ca"), crossing_dim=16)],
        output_mode="concat")
    # As in the guide, one row in five is held out for validation.
    held = np.arange(303) % 5 == 0
    train = {name: values[~held] for name, values in columns.items()}
    test = {name: values[held] for name, values in columns.items()}
    data = tf.data.Dataset.from_tensor_slices((train, labels[~held]))
    validation = tf.data.Dataset.from_tensor_slices((test, labels[held]))
    space.adapt(data.map(lambda x, _: x))
    data = data.batch(32).map(lambda x, y: (space(x), y))
    validation = validation.batch(32).map(lambda x, y: (space(x), y))
    inputs = keras.Input((space(next(iter(tf.data.Dataset.from_tensor_slices(train).batch(1)))).shape[1],))
    x = layers.Dense(32, activation="relu")(inputs)
    x = layers.Dropout(0)(x)
    model = keras.Model(inputs, layers.Dense(1, activation="sigmoid")(x))
    model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
    return model, data, validation


# ---- a series ------------------------------------------------------------------------------------

COLUMNS = ["p (mbar)", "T (degC)", "VPmax (mbar)", "VPdef (mbar)", "sh (g/kg)", "rho (g/m**3)",
           "wv (m/s)"]


def write_weather(folder):
    """Writes 1,500 observations of seven quantities."""
    with open(folder / "weather.csv", "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["Date Time", *COLUMNS])
        noise = numbers((1500, len(COLUMNS)), 5)
        for row in range(1500):
            day = 2 * np.pi * row / 144
            values = [np.sin(day + k) * (k + 1) + 10 * k + noise[row, k]
                      for k in range(len(COLUMNS))]
            stamp = f"{1 + row // 144:02}.01.2009 {row // 6 % 24:02}:{row % 6}0:00"
            out.writerow([stamp, *(f"{value:.2f}" for value in values)])


def weather(folder):
    with open(folder / "weather.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    values = np.array([[float(row[name]) for name in COLUMNS] for row in rows])
    split = int(0.715 * len(values))
    values = (values - values[:split].mean(0)) / values[:split].std(0)
    past, future, step = 72, 12, 6
    start = past + future

    def windows(first, last):
        return keras.utils.timeseries_dataset_from_array(
            values[first:last].astype("float32"),
            values[first + start:last + start, 1].astype("float32"),
            sequence_length=past // step, sampling_rate=step, batch_size=64)

    data, validation = windows(0, split), windows(split, len(values) - start)
    inputs = keras.Input((past // step, len(COLUMNS)))
    model = keras.Model(inputs, layers.Dense(1)(layers.LSTM(32)(inputs)))
    model.compile(optimizer=keras.optimizers.Adam(0.001), loss="mse", metrics=["mae"])
    return model, data, validation


# ---- texts ---------------------------------------------------------------------------------------

GOOD = "a wonderful film with a moving story and brilliant acting that i loved".split()
BAD = "an awful boring movie with a dull plot and terrible acting that i hated".split()


def write_reviews(folder):
    """Writes sixty texts per class, in folders like the guide's aclImdb/train."""
    for label, own in (("neg", BAD), ("pos", GOOD)):
        (folder / label).mkdir()
        for i in range(60):
            words = [pick(w, i, own if (w + i) % 3 else GOOD + BAD) for w in range(20 + i % 17)]
            (folder / label / f"{i}_{i % 10}.txt").write_text(
                " ".join(words) + ("!<br />" if i % 4 == 0 else "."), encoding="utf-8")


def rows_of(folder, formats, subset):
    """Returns files and labels of a subset, in the order of Keras' folder readers."""
    files, labels, _ = index_directory(str(folder), labels="inferred", formats=formats, seed=1337)
    return get_training_or_validation_split(files, labels, 0.2, subset)


def reviews(folder):
    def texts_of(subset):
        files, labels = rows_of(folder, (".txt",), subset)
        texts = [pathlib.Path(file).read_text(encoding="utf-8") for file in files]
        return texts, np.array(labels, "float32")

    def clean(text):
        text = tf.strings.regex_replace(tf.strings.lower(text), "<br />", " ")
        return tf.strings.regex_replace(text, f"[{re.escape(string.punctuation)}]", "")

    vectorize = layers.TextVectorization(standardize=clean, max_tokens=100, output_mode="int",
                                         output_sequence_length=40)
    vectorize.adapt(tf.data.Dataset.from_tensor_slices(texts_of("training")[0]).batch(16))

    def batches(subset):
        texts, labels = texts_of(subset)
        rows = np.asarray(vectorize(tf.constant(texts)))
        return tf.data.Dataset.from_tensor_slices((rows, labels)).batch(16)

    inputs = keras.Input((None,), dtype="int64")
    x = layers.Embedding(100, 32)(inputs)
    x = layers.Dropout(0)(x)
    x = layers.Conv1D(32, 7, padding="valid", activation="relu", strides=3)(x)
    x = layers.Conv1D(32, 7, padding="valid", activation="relu", strides=3)(x)
    x = layers.GlobalMaxPooling1D()(x)
    x = layers.Dropout(0)(layers.Dense(32, activation="relu")(x))
    model = keras.Model(inputs, layers.Dense(1, activation="sigmoid", name="predictions")(x))
    model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
    return model, batches("training"), batches("validation")


# ---- pictures ------------------------------------------------------------------------------------

def write_shapes(folder):
    """Writes forty pictures per class: discs and squares of any size, position and colour."""
    y, x = np.mgrid[:48, :40]
    for label in ("disc", "square"):
        (folder / label).mkdir()
        for i in range(40):
            place = pick(1, i, range(16, 30)), pick(2, i, range(14, 26)), pick(3, i, range(6, 12))
            away = np.stack([np.abs(y - place[0]), np.abs(x - place[1])])
            inside = (np.hypot(*away) if label == "disc" else away.max(0)) <= place[2]
            colour = np.array([pick(4 + c, i, range(256)) for c in range(3)])
            ground = (numbers((48, 40, 3), i) * 40 + 120).astype(np.uint8)
            Image.fromarray(np.where(inside[..., None], colour, ground).astype(np.uint8)).save(
                folder / label / f"{i:02}.png")


def shapes(folder):
    def batches(subset):
        files, labels = rows_of(folder, (".png",), subset)
        pictures = [tf.image.resize(tf.image.decode_png(tf.io.read_file(file)), (32, 32)).numpy()
                    for file in files]
        labels = np.array(labels, "float32")[:, None]
        return tf.data.Dataset.from_tensor_slices((np.stack(pictures), labels)).batch(16)

    inputs = keras.Input((32, 32, 3))
    x = layers.Rescaling(1.0 / 255)(inputs)
    x = layers.Conv2D(8, 3, strides=2, padding="same")(x)
    x = layers.Activation("relu")(layers.BatchNormalization()(x))
    previous = x
    for width in (16, 24):
        for _ in range(2):
            x = layers.Activation("relu")(x)
            x = layers.SeparableConv2D(width, 3, padding="same")(x)
            x = layers.BatchNormalization()(x)
        x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
        x = layers.add([x, layers.Conv2D(width, 1, strides=2, padding="same")(previous)])
        previous = x
    x = layers.SeparableConv2D(32, 3, padding="same")(x)
    x = layers.Activation("relu")(layers.BatchNormalization()(x))
    x = layers.Dropout(0)(layers.GlobalAveragePooling2D()(x))
    model = keras.Model(inputs, layers.Dense(1, activation="sigmoid")(x))
    model.compile(optimizer=keras.optimizers.Adam(3e-4),
                  loss=keras.losses.BinaryCrossentropy(),
                  metrics=[keras.metrics.BinaryAccuracy(name="acc")])
    return model, batches("training"), batches("validation")


def made(make, folder):
    """Returns a model with weights from the formula, and its training and validation data."""
    keras.backend.clear_session()
    model, data, validation = make(folder)
    give_weights(model)
    return model, data, validation


def main():
    golden, epochs = {}, {}
    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile("keras_programs.zip", "w") as out:
        for write, make in ((write_heart, heart), (write_weather, weather),
                            (write_reviews, reviews), (write_shapes, shapes)):
            name = make.__name__
            folder = pathlib.Path(scratch) / name
            folder.mkdir()
            write(folder)
            model, data, _ = made(make, folder)
            model.save_weights(folder.with_suffix(".weights.h5"))
            golden[name] = []
            for x, y in data.repeat().take(STEPS).as_numpy_iterator():
                model.reset_metrics()
                golden[name].append(float(model.train_on_batch(x, y, return_dict=True)["loss"]))
            model, data, validation = made(make, folder)
            if name == "shapes":
                model.optimizer.learning_rate = 1e-3  # with the example's rate it learns too slowly
            epochs[name] = model.fit(data, epochs=EPOCHS[name], validation_data=validation,
                                     shuffle=False, verbose=0).history
            print(name, model.count_params(), golden[name][:3], golden[name][-1],
                  {key: values[-1] for key, values in epochs[name].items()})
        (pathlib.Path(scratch) / "losses.json").write_text(json.dumps(golden, indent=1))
        (pathlib.Path(scratch) / "epochs.json").write_text(json.dumps(epochs, indent=1))
        for path in sorted(pathlib.Path(scratch).rglob("*")):
            if path.is_file():
                member = zipfile.ZipInfo(str(path.relative_to(scratch)), FIXED)
                member.compress_type = zipfile.ZIP_DEFLATED
                out.writestr(member, path.read_bytes())
    shutil.rmtree("__pycache__", ignore_errors=True)


if __name__ == "__main__":
    main()
