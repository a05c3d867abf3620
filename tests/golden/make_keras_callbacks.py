"""Writes keras_callbacks.json: the behaviour of Keras' fit on TensorFlow with options and
callbacks.

Made with keras 3.15.1, tensorflow-cpu 2.21.0, tensorboard 2.21.0 and numpy 2.4.6 from PyPI. Run it
in this folder: python3 make_keras_callbacks.py
"""

import contextlib
import io
import json
import os
import pathlib
import tempfile

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf
from keras import callbacks

rng = np.random.default_rng(5)


def finite(values):
    """Replaces non-finite numbers, which JSON does not have."""
    return [float(v) if np.isfinite(v) else None for v in np.ravel(values)]


def draw(*shape):
    return rng.uniform(-1, 1, shape).astype("float32")


X = draw(14, 3)
DATA = {
    "x": X,
    "y": (X @ np.array([[1.0], [-0.5], [0.25]]) + 0.1 * draw(14, 1)).astype("float32"),
    # Validation data on which the loss gets worse during training.
    "x_val": draw(5, 3),
    "y_val": draw(5, 1),
    "labels": rng.integers(0, 3, 14).astype("int64"),
    "weight": rng.uniform(0.2, 2, 14).astype("float32"),
    "weight_b": rng.uniform(0.2, 2, 14).astype("float32"),
}
ONE_HOT = np.eye(3, dtype="float32")[DATA["labels"]]
WEIGHTS = {
    "hidden/kernel": draw(3, 4), "hidden/bias": draw(4),
    "out/kernel": draw(4, 1), "out/bias": draw(1),
    "classes/kernel": draw(4, 3), "classes/bias": draw(3),
}


def model_of(*heads, penalty=0.0):
    x = keras.Input((3,), name="x")
    regularizer = keras.regularizers.L2(penalty) if penalty else None
    hidden = keras.layers.Dense(4, "tanh", name="hidden", kernel_regularizer=regularizer)(x)
    layers = {"out": keras.layers.Dense(1, name="out"),
              "classes": keras.layers.Dense(3, "softmax", name="classes")}
    outputs = [layers[head](hidden) for head in heads]
    model = keras.Model(x, outputs[0] if len(outputs) == 1 else outputs)
    for layer in model.layers[1:]:
        layer.set_weights([WEIGHTS[f"{layer.name}/kernel"], WEIGHTS[f"{layer.name}/bias"]])
    return model


def regression(rate=0.1, **compile_options):
    model = model_of("out")
    model.compile(optimizer=keras.optimizers.SGD(rate), loss="mse", **compile_options)
    return model


def classification(loss="sparse_categorical_crossentropy", **compile_options):
    model = model_of("classes")
    model.compile(optimizer=keras.optimizers.SGD(0.2), loss=loss, **compile_options)
    return model


def both(**compile_options):
    model = model_of("out", "classes", penalty=0.05)
    model.compile(optimizer=keras.optimizers.SGD(0.1), **compile_options)
    return model


CASES = []
part = "callbacks"


def case(name, model, x, y, file="", **options):
    out = io.StringIO()
    fit = {"batch_size": 4, "shuffle": False, "verbose": 0, **options}
    with contextlib.redirect_stdout(out):
        history = model.fit(x, y, **fit)
    CASES.append({
        "part": part, "name": name, "epoch": history.epoch, "text": out.getvalue(), "file": file,
        "history": [[key, finite(values)] for key, values in history.history.items()],
        "rate": float(keras.ops.convert_to_numpy(model.optimizer.learning_rate)),
        "weights": {v.path: finite(v.numpy()) for v in model.trainable_variables},
    })


def early_stopping(name, rate=0.1, epochs=8, validated=True, **options):
    validation = (DATA["x_val"], DATA["y_val"]) if validated else None
    case(name, regression(rate), DATA["x"], DATA["y"], epochs=epochs, validation_data=validation,
         callbacks=[callbacks.EarlyStopping(verbose=1, **options)])


early_stopping("stop", patience=2)
early_stopping("stop and restore", patience=1, restore_best_weights=True)
early_stopping("stop late", patience=1, start_from_epoch=4)
early_stopping("stop at delta", monitor="loss", min_delta=0.05, patience=1)
early_stopping("stop at baseline", monitor="loss", baseline=0.01, patience=3,
               restore_best_weights=True)
early_stopping("stop at maximum", monitor="loss", mode="max", patience=2)
early_stopping("restore at the end", monitor="loss", patience=9, epochs=2,
               restore_best_weights=True)


def reduce_rate(name, epochs=7, **options):
    case(name, regression(0.1), DATA["x"], DATA["y"], epochs=epochs,
         validation_data=(DATA["x_val"], DATA["y_val"]),
         callbacks=[callbacks.ReduceLROnPlateau(verbose=1, **options)])


reduce_rate("reduce", patience=1)
reduce_rate("reduce and cool", factor=0.5, patience=1, cooldown=2)
reduce_rate("reduce to a minimum", factor=0.3, patience=1, min_lr=0.02)
reduce_rate("reduce at delta", monitor="loss", factor=0.25, patience=2, min_delta=0.03)

case("schedule", regression(0.1), DATA["x"], DATA["y"], epochs=4,
     callbacks=[callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.1 ** epoch,
                                                verbose=1)])
case("initial epoch", regression(0.1), DATA["x"], DATA["y"], initial_epoch=2, epochs=4,
     callbacks=[callbacks.LearningRateScheduler(lambda epoch, rate: 0.5 / (epoch + 1), verbose=1)])
case("terminate", regression(1e20), DATA["x"], DATA["y"], epochs=4,
     callbacks=[callbacks.TerminateOnNaN()])


class WeightLog(callbacks.Callback):
    """Logs the weights that callbacks after it would save."""

    def on_epoch_end(self, epoch, logs=None):
        logs["bias"] = float(self.model.get_layer("out").bias.numpy()[0])


def averaged(name, optimizer, swap_on_epoch=False):
    model = regression()
    model.compile(optimizer=optimizer, loss="mse")
    case(name, model, DATA["x"], DATA["y"], epochs=4, validation_freq=2,
         validation_data=(DATA["x_val"], DATA["y_val"]),
         callbacks=[callbacks.SwapEMAWeights(swap_on_epoch), WeightLog()])


EMA = {"use_ema": True, "ema_momentum": 0.9}
averaged("swap", keras.optimizers.SGD(0.1, **EMA))
averaged("swap on epoch", keras.optimizers.SGD(0.1, **EMA), True)
averaged("swap inside a loss scale",
         keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1, **EMA), 4.0), True)

part = "data"
case("validation split", regression(), DATA["x"], DATA["y"], epochs=3, validation_split=0.25)
case("validation split, weighted", regression(weighted_metrics=["mae"]), DATA["x"], DATA["y"],
     epochs=2, validation_split=0.3, sample_weight=DATA["weight"])
case("validation every 2", regression(), DATA["x"], DATA["y"], epochs=5, validation_freq=2,
     validation_data=(DATA["x_val"], DATA["y_val"]), validation_batch_size=2)
case("validation at 1 and 4", regression(), DATA["x"], DATA["y"], epochs=5, validation_freq=[1, 4],
     validation_data=(DATA["x_val"], DATA["y_val"]), validation_steps=1, validation_batch_size=2)
case("steps", regression(), DATA["x"], DATA["y"], epochs=1, steps_per_epoch=2)

CLASS_WEIGHT = {0: 2.0, 2: 0.25}
case("class weight", classification(metrics=["accuracy"], weighted_metrics=["accuracy"]),
     DATA["x"], DATA["labels"], epochs=3, class_weight=CLASS_WEIGHT)
case("class weight of columns", classification(metrics=["acc"]), DATA["x"],
     DATA["labels"][:, None], epochs=2, class_weight=CLASS_WEIGHT)
case("class weight of one-hot labels",
     classification("crossentropy", metrics=["accuracy"]), DATA["x"], ONE_HOT, epochs=2,
     class_weight=CLASS_WEIGHT)
case("sample weight", classification("crossentropy", metrics=["accuracy"],
                                     weighted_metrics=["accuracy"]),
     DATA["x"], DATA["labels"], epochs=3, sample_weight=DATA["weight"])

# A multiple of the batch size: on TensorFlow a short batch counts like any other in an output's
# loss.
WHOLE = 12
X_WHOLE, Y_WHOLE = DATA["x"][:WHOLE], [DATA["y"][:WHOLE], DATA["labels"][:WHOLE]]
part = "outputs"
case("outputs", both(loss={"out": "mse", "classes": "sparse_categorical_crossentropy"},
                     loss_weights={"out": 0.5, "classes": 2.0},
                     metrics={"classes": ["accuracy"], "out": ["mae"]}), X_WHOLE, Y_WHOLE, epochs=3)
case("outputs by list", both(loss=["mse", "crossentropy"], loss_weights=[1.0, 0.3],
                             metrics=["mae", "accuracy"], weighted_metrics=[None, "accuracy"]),
     X_WHOLE, Y_WHOLE, epochs=2, sample_weight=[DATA["weight"][:WHOLE], DATA["weight_b"][:WHOLE]])
case("outputs, one loss", both(loss=[None, "crossentropy"], metrics={"classes": ["accuracy"]}),
     X_WHOLE, Y_WHOLE, epochs=2)


def logged(name, append, before="", **options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log.csv")
        if before:
            with open(path, "w", newline="") as f:
                f.write(before)
        case(name, regression(), DATA["x"], DATA["y"],
             callbacks=[callbacks.CSVLogger(path, append=append, **options.pop("log", {}))],
             **options)
        with open(path, newline="") as f:
            CASES[-1]["file"] = f.read()


part = "callbacks"
logged("log", False, before="gone\n", epochs=2)
logged("log, validated late", False, epochs=3, validation_freq=2,
       validation_data=(DATA["x_val"], DATA["y_val"]))
logged("log, separated", False, log={"separator": ";"}, epochs=2, validation_split=0.3)
logged("log, appended", True, before="epoch,loss\r\n0,1.0\r\n", epochs=2)


part = "checkpoints"


def saved(name, filename, epochs=3, validated=True, **options):
    """Renames files to Tessera's endings: none for folders, ".safetensors" for weights."""
    validation = (DATA["x_val"], DATA["y_val"]) if validated else None
    with tempfile.TemporaryDirectory() as folder:
        case(name, regression(), DATA["x"], DATA["y"], epochs=epochs, validation_data=validation,
             callbacks=[callbacks.ModelCheckpoint(os.path.join(folder, filename), verbose=1,
                                                  **options)])
        text = CASES[-1]["text"].replace(folder + os.sep, "")
        CASES[-1]["text"] = text.replace(".keras", "").replace(".weights.h5", ".safetensors")


saved("save", "model.keras")
saved("save best", "best.keras", epochs=5, save_best_only=True)
saved("save best by name", "{epoch:02d}-{val_loss:.2f}.keras", save_best_only=True)
saved("save best at maximum", "m.keras", monitor="loss", mode="max", save_best_only=True)
saved("save best under a threshold", "m.keras", epochs=5, validated=False, monitor="loss",
      save_best_only=True, initial_value_threshold=0.2)
saved("save weights", "{epoch}{{}}{loss:09.3e}.weights.h5", save_weights_only=True)
saved("save every 3 batches", "{epoch}-{batch:03d}-{loss:8.1f}.keras", save_freq=3)


def board(update_freq, **options):
    """Returns [folder, tag, step] of each scalar, in the order of the files."""
    with tempfile.TemporaryDirectory() as folder:
        regression().fit(
            DATA["x"], DATA["y"], batch_size=4, shuffle=False, verbose=0, epochs=2,
            validation_data=(DATA["x_val"], DATA["y_val"]), validation_batch_size=2,
            callbacks=[callbacks.TensorBoard(folder, write_graph=False, update_freq=update_freq,
                                             **options)])
        found = []
        for part in ("train", "validation"):
            for path in sorted(pathlib.Path(folder, part).iterdir()):
                for event in tf.compat.v1.train.summary_iterator(str(path)):
                    found += [[part, value.tag, event.step] for value in event.summary.value]
        return found


NUMBERS = [0.1, 0.001, 1e-4, 1e-5, 1.5e-7, 0.0, -2.5, 3.0, 123456.0, 1e15, 1e16, 1.25e22,
           float(np.float32(0.1)), float(np.float32(0.01)) * 0.1, 1 / 3, 5e-324]

with open("keras_callbacks.json", "w") as file:
    data = {key: {"shape": list(value.shape), "values": value.ravel().tolist()}
            for key, value in {**DATA, **WEIGHTS}.items()}
    boards = {"epoch": board("epoch"), "batch": board("batch"), "3": board(3),
              "histograms": board("epoch", histogram_freq=1)}
    json.dump({"data": data, "cases": CASES, "numbers": [[x, repr(x)] for x in NUMBERS],
               "boards": boards}, file)
    file.write("\n")
