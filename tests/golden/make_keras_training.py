"""Writes keras_training.zip: models that Keras on JAX saved after three steps, and 20 more losses.

Each "NAME.keras" is an archive as written by Model.save(), except for dates and addresses;
"losses.json" has the data and the losses of continued training. Made with keras 3.15.1, jax 0.10.2,
h5py 3.16.0 and numpy 2.4.6 from PyPI. Run it in this folder: python3 make_keras_training.py
"""

import io
import json
import os
import re
import tempfile
import zipfile

os.environ["KERAS_BACKEND"] = "jax"

import h5py
import keras
import numpy as np

layers, optimizers, schedules = keras.layers, keras.optimizers, keras.optimizers.schedules
losses, metrics = keras.losses, keras.metrics

BEFORE, AFTER = 3, 20
FIXED = (1980, 1, 1, 0, 0, 0)
METADATA = {"keras_version": keras.__version__, "date_saved": "1980-01-01@00:00:00"}


def numbers(shape, seed):
    """Returns numbers from -1 to 1 that do not depend on a generator's version."""
    index = np.arange(np.prod(shape, dtype=int), dtype=np.int64)
    values = (index * 7919 + seed * 104729 + index * index * 31) % 2003
    return (values / 1001 - 1).reshape(shape).astype(np.float32)


def give_weights(model):
    for i, weight in enumerate(model.weights):
        values = 0.7 * numbers(weight.shape, i)
        weight.assign(values**2 + 0.1 if weight.path.endswith("variance") else values)


def small():
    return keras.Sequential([keras.Input((4,)),
                             layers.Dense(5, activation="tanh", name="hidden"),
                             layers.Dense(3, name="logits")])


def frozen():
    model = small()
    model.layers[0].trainable = False
    return model


def deep():
    """Returns a model of many kinds of layers, to test the order of variables in Keras'
    optimizers."""
    x = keras.Input((6, 4))
    y = layers.Bidirectional(layers.GRU(3, return_sequences=True))(x)
    y = layers.MultiHeadAttention(2, 3)(y, y)
    y = layers.LSTM(4, return_sequences=True)(layers.LayerNormalization()(y))
    y = layers.BatchNormalization()(layers.Conv1D(3, 2)(y))
    inner = keras.Sequential([layers.Dense(4, activation="relu"), layers.Dense(2)])
    y = layers.Flatten()(layers.TimeDistributed(layers.Dense(3, use_bias=False))(y))
    return keras.Model(x, layers.Dense(3)(inner(y)))


def two():
    x = keras.Input((4,))
    y = layers.Dense(5, activation="tanh", name="hidden")(x)
    return keras.Model(x, [layers.Dense(3, name="age")(y),
                           layers.Dense(3, activation="softmax", name="kind")(y)])


DATA = {
    "small": ([numbers((8, 4), 1)], [numbers((8, 3), 2)]),
    "deep": ([numbers((8, 6, 4), 3)], [numbers((8, 3), 4)]),
    "two": ([numbers((8, 4), 5)], [numbers((8, 3), 6), np.arange(8, dtype=np.float32) % 3]),
}


def plain_cases():
    """Yields cases of optimizers with a model of two layers."""
    o = optimizers
    decay = schedules.ExponentialDecay(0.1, 2, 0.7)
    yield "sgd", o.SGD(0.1)
    yield "sgd_momentum", o.SGD(0.1, momentum=0.9)
    yield "sgd_nesterov", o.SGD(0.1, momentum=0.9, nesterov=True)
    yield "rmsprop", o.RMSprop(0.01)
    yield "rmsprop_momentum", o.RMSprop(0.01, momentum=0.5)
    yield "rmsprop_centered", o.RMSprop(0.01, centered=True)
    yield "rmsprop_both", o.RMSprop(0.01, momentum=0.5, centered=True)
    yield "adam", o.Adam(0.01)
    yield "adam_amsgrad", o.Adam(0.01, beta_2=0.6, amsgrad=True)
    yield "adamw", o.AdamW(0.01)
    yield "adamw_amsgrad", o.AdamW(0.01, beta_2=0.6, amsgrad=True)
    yield "adagrad", o.Adagrad(0.1)
    yield "adadelta", o.Adadelta(1.0)
    yield "adamax", o.Adamax(0.01)
    yield "nadam", o.Nadam(0.01)
    yield "lion", o.Lion(0.003)
    yield "lamb", o.Lamb(0.01)
    yield "adafactor", o.Adafactor(0.1)
    yield "ftrl", o.Ftrl(0.5)
    yield "muon", o.Muon(0.01)
    yield "schedule_free", o.ScheduleFreeAdamW(0.02)
    every = {"weight_decay": 0.05, "clipnorm": 0.5, "use_ema": True, "ema_momentum": 0.8,
             "ema_overwrite_frequency": 3, "gradient_accumulation_steps": 2,
             "loss_scale_factor": 4.0}
    for name in ("SGD", "RMSprop", "Adam", "AdamW", "Adagrad", "Adadelta", "Adamax", "Nadam",
                 "Lion", "Lamb", "Adafactor", "Ftrl", "Muon", "ScheduleFreeAdamW"):
        own = {"Adam": {"amsgrad": True}, "SGD": {"momentum": 0.9},
               "RMSprop": {"momentum": 0.5, "centered": True}}.get(name, {})
        rate = {"Ftrl": 0.5, "Lion": 0.003, "Adadelta": 1.0}.get(name, 0.02)
        yield f"{name.lower()}_everything", getattr(o, name)(rate, **own, **every)
    for name, options in (("clipnorm", {"clipnorm": 0.1}), ("clipvalue", {"clipvalue": 0.02}),
                          ("global_clipnorm", {"global_clipnorm": 0.1}),
                          ("weight_decay", {"weight_decay": 0.1}), ("ema", {"use_ema": True}),
                          ("accumulation", {"gradient_accumulation_steps": 2}),
                          ("loss_scale_factor", {"loss_scale_factor": 8.0})):
        yield f"adam_{name}", o.Adam(0.01, **options)
    yield "sgd_schedule", o.SGD(decay, momentum=0.9)
    yield "adam_cosine", o.Adam(schedules.CosineDecay(0.0, 30, warmup_target=0.02, warmup_steps=5))
    yield "adam_piecewise", o.Adam(schedules.PiecewiseConstantDecay([4, 9], [0.02, 0.01, 0.005]))
    yield "nadam_polynomial", o.Nadam(schedules.PolynomialDecay(0.02, 12, 0.001))
    yield "lion_inverse", o.Lion(schedules.InverseTimeDecay(0.004, 6, 0.5))
    yield "lamb_restarts", o.Lamb(schedules.CosineDecayRestarts(0.02, 4))
    growing = {"initial_scale": 1024.0, "dynamic_growth_steps": 2}
    yield "loss_scale", o.LossScaleOptimizer(o.Adam(0.01))
    yield "loss_scale_growing", o.LossScaleOptimizer(
        o.SGD(decay, momentum=0.9, use_ema=True, gradient_accumulation_steps=2), **growing)
    yield "multi", o.MultiOptimizer(o.OptimizerMap(
        o.SGD(0.1, momentum=0.9),
        {".*logits/kernel": o.RMSprop(0.01, centered=True), ".*/bias": o.Nadam(decay)}))
    yield "loss_scale_multi", o.LossScaleOptimizer(o.MultiOptimizer(o.OptimizerMap(
        o.Adam(0.01), {".*/bias": o.Adam(0.02, amsgrad=True), "nothing": o.Lion(0.1)})), **growing)


def cases():
    """Yields name, model, data, compile() arguments and the number of steps before saving."""
    o = optimizers
    for name, optimizer in plain_cases():
        yield name, small, "small", {"optimizer": optimizer, "loss": "mse"}, BEFORE
    yield "untrained", small, "small", {"optimizer": o.Adam(0.01), "loss": "mse"}, 0
    yield ("untrained_loss_scale", small, "small",
           {"optimizer": o.LossScaleOptimizer(o.Adam(0.01)), "loss": "mse"}, 0)
    yield "rate_set", small, "small", {"optimizer": o.Adam(0.01), "loss": "mse"}, BEFORE
    yield "int64_iteration", small, "small", {"optimizer": o.Adam(0.01), "loss": "mse"}, BEFORE
    yield "frozen", frozen, "small", {"optimizer": o.Adam(0.01), "loss": "mse"}, BEFORE
    yield "deep", deep, "deep", {"optimizer": o.Adam(0.003, use_ema=True), "loss": "mse"}, BEFORE
    yield ("half", small, "small",
           {"optimizer": o.Adam(0.01), "loss": "mse"}, BEFORE)
    yield ("eager", small, "small",
           {"optimizer": o.SGD(0.1), "loss": losses.LogCosh(), "run_eagerly": True,
            "metrics": ["mae", metrics.RootMeanSquaredError()],
            "weighted_metrics": [metrics.MeanAbsoluteError(name="weighted")]}, BEFORE)
    yield ("functions", small, "small",
           {"optimizer": o.SGD(0.1), "loss": losses.mean_absolute_error, "loss_weights": [0.5],
            "metrics": [metrics.mean_squared_error], "steps_per_execution": 2,
            "jit_compile": False}, BEFORE)
    yield ("lists", two, "two",
           {"optimizer": o.SGD(0.1),
            "loss": ["mse", losses.SparseCategoricalCrossentropy(ignore_class=2)],
            "loss_weights": [1.0, 0.5],
            "metrics": [["mae", "mse"],
                        ["accuracy", metrics.SparseTopKCategoricalAccuracy(2)]]}, BEFORE)
    yield ("dicts", two, "two",
           {"optimizer": o.SGD(0.1),
            "loss": {"age": losses.LogCosh(reduction="sum"),
                     "kind": "sparse_categorical_crossentropy"},
            "loss_weights": {"age": 0.25, "kind": 2.0},
            "metrics": {"age": metrics.MeanAbsoluteError(), "kind": ["accuracy"]},
            "weighted_metrics": ["mse", None]}, BEFORE)
    yield ("one_loss", two, "two",
           {"optimizer": o.SGD(0.1), "loss": ["mse", None], "metrics": ["mae", "accuracy"]}, BEFORE)


def trained(model, data, steps):
    x, y = DATA[data]
    y = y if len(y) > 1 else y[0]
    return [float(str(np.float32(model.train_on_batch(x[0], y, return_dict=True)["loss"])))
            for _ in range(steps)]


def with_int64_iteration(weights):
    """Stores the iteration as int64, as Keras on TensorFlow does."""
    buffer = io.BytesIO(weights)
    with h5py.File(buffer, "r+") as file:
        group = file["optimizer/vars"]
        steps = group["0"][()]
        del group["0"]
        group.create_dataset("0", data=np.int64(steps))
    return buffer.getvalue()


def add(archive, name, content, method):
    info = zipfile.ZipInfo(name, FIXED)
    info.compress_type = method
    archive.writestr(info, content)


def with_small_ids(config):
    """Replaces addresses, by which Keras numbers shared objects, by small ids."""
    ids = {}
    return re.sub(rb'"shared_object_id": (\d+)', lambda found: b'"shared_object_id": %d' %
                  ids.setdefault(found[1], len(ids) + 1), config)


def saved(model, name):
    """Returns an archive without what differs from run to run."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        model.save(path)
        with zipfile.ZipFile(path) as archive:
            members = {info.filename: archive.read(info) for info in archive.infolist()}
    members["metadata.json"] = json.dumps(METADATA)
    members["config.json"] = with_small_ids(members["config.json"])
    if name == "int64_iteration":
        members["model.weights.h5"] = with_int64_iteration(members["model.weights.h5"])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for member, content in members.items():
            add(archive, member, content, zipfile.ZIP_STORED)
    return buffer.getvalue()


def tensor(array):
    return {"shape": list(array.shape), "values": [float(str(x)) for x in array.ravel()]}


def main():
    golden = {"made_with": {"keras": keras.__version__},
              "data": {name: {"x": [tensor(x) for x in xs], "y": [tensor(y) for y in ys]}
                       for name, (xs, ys) in DATA.items()},
              "cases": []}
    with zipfile.ZipFile("keras_training.zip", "w") as archive:
        for name, make, data, options, steps in cases():
            keras.backend.clear_session()
            keras.config.set_dtype_policy("mixed_float16" if name == "half" else "float32")
            model = make()
            give_weights(model)
            model.compile(**options)
            trained(model, data, steps)
            if name == "rate_set":
                model.optimizer.learning_rate = 0.003
            add(archive, f"{name}.keras", saved(model, name), zipfile.ZIP_DEFLATED)
            golden["cases"].append({"name": name, "data": data, "before": steps,
                                    "losses": trained(model, data, AFTER)})
        text = json.dumps(golden, separators=(",", ":"), allow_nan=False)
        add(archive, "losses.json", text.replace('{"name"', '\n{"name"') + "\n",
            zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main()
