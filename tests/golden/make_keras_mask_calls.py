"""Writes keras_mask_calls.json: Functional models of Keras whose calls get masks, or whose
operations compute masks, with their outputs.

Made with keras 3.15.1 and numpy 2.4.6 from PyPI. Run it in this folder: python3 make_keras_mask_calls.py
"""

import json
import os

os.environ["KERAS_BACKEND"] = "numpy"

import keras
import numpy as np

L = keras.layers
rng = np.random.default_rng(17)


def tensor(value):
    array = np.asarray(value)
    numbers = array.astype(int) if array.dtype == bool else array
    values = [float(str(x)) if array.dtype == np.float32 else int(x) for x in numbers.ravel()]
    return {"dtype": str(array.dtype), "shape": list(array.shape), "values": values}


def drawn(input_):
    """Returns values for an Input: ids from 0 to 6, a mask that keeps something in each row, or
    numbers."""
    shape = (3, *input_.shape[1:])
    if input_.dtype == "bool":
        mask = rng.random(shape) < 0.6
        mask[..., 0] = True
        return mask
    if input_.dtype == "int32":
        return rng.integers(0, 3, shape).astype(np.int32)
    values = rng.normal(0, 1, shape).astype(np.float32)
    # Values that Masking masks.
    if len(shape) == 3:
        values[0, 1:], values[2, 2] = 0.5, 0.5
    return values


def case(name, inputs, output, loss="mse", metrics=()):
    model = keras.Model(inputs, output, name=name)
    for weight in model.weights:
        values = rng.normal(0, 0.5, weight.shape).astype(np.float32)
        weight.assign(values**2 + 0.1 if weight.name.endswith("variance") else values)
    x = [drawn(one) for one in inputs]
    y = rng.normal(0, 1, (3, *output.shape[1:])).astype(np.float32)
    y = np.abs(y) if loss != "mse" else y
    model.compile(loss=loss, metrics=list(metrics))
    golden = {"model": json.loads(model.to_json()), "x": [tensor(one) for one in x],
              "weights": [tensor(w.numpy()) for w in model.weights],
              "output": tensor(model.predict(x, verbose=0)), "y": tensor(y),
              "loss": json.loads(json.dumps(keras.saving.serialize_keras_object(loss))),
              "logs": model.evaluate(x, y, verbose=0, return_dict=True)}
    # Last, because it updates the moving statistics.
    return {**golden, "training_output": tensor(np.asarray(model(x, training=True)))}


def steps(features=3):
    return keras.Input((4, features), name="x"), keras.Input((4,), dtype="bool", name="m")


def given():
    """Returns models with masks that are Inputs, passed to the calls."""
    cases = []

    def add(name, call, **more):
        x, m = steps()
        cases.append(case(name, [x, m, *more.values()], call(x, m, *more.values())))

    other = lambda: keras.Input((4, 3), name="other")
    number = keras.Input((4,), dtype="int32", name="number")
    add("lstm", lambda x, m: L.LSTM(3, name="lstm")(x, mask=m))
    add("gru_sequences", lambda x, m: L.GRU(3, return_sequences=True, name="gru")(x, mask=m))
    add("rnn_states", lambda x, m, h: L.SimpleRNN(2, name="rnn")(x, initial_state=h, mask=m),
        h=keras.Input((2,), name="h"))
    add("bidirectional", lambda x, m: L.Bidirectional(L.LSTM(3, name="lstm"), name="both")(
        x, mask=m))
    add("pooling", lambda x, m: L.GlobalAveragePooling1D(name="mean")(x, mask=m))
    add("pooling_by_place", lambda x, m: L.GlobalAveragePooling1D(name="mean")(x, m))
    add("normalization", lambda x, m: L.BatchNormalization(name="norm")(x, mask=m))
    add("softmax", lambda x, m: L.LSTM(2, name="lstm")(L.Reshape((4, 1), name="steps")(
        L.Softmax(name="softmax")(L.Flatten(name="flat")(L.Dense(1, name="dense")(x)), mask=m))))
    add("steps", lambda x, m: L.LSTM(2, name="lstm")(
        L.TimeDistributed(L.Dense(2, name="dense"), name="each")(x, mask=m)))
    add("whole_numbers", lambda x, m, n: L.LSTM(3, name="lstm")(x, mask=n), n=number)
    add("passed_on", lambda x, m: L.LSTM(2, name="last")(L.Dense(3, name="dense")(
        L.LSTM(3, return_sequences=True, name="lstm")(x, mask=m))))
    block = keras.Sequential([L.Input((4, 3)), L.GRU(2, name="gru")], name="block")
    add("nested", lambda x, m: block(x, mask=m))

    def attention(name, **masks):
        add(name, lambda x, m, o: L.MultiHeadAttention(2, 2, name="heads")(
            x, o, **{key: m for key in masks}), o=other())

    attention("key_mask", key_mask=True)
    attention("value_mask", value_mask=True)
    attention("query_mask", query_mask=True)
    attention("all_masks", query_mask=True, value_mask=True, key_mask=True)
    add("attention_mask", lambda x, m, o, a: L.MultiHeadAttention(2, 2, name="heads")(
        x, o, attention_mask=a, value_mask=m), o=other(),
        a=keras.Input((4, 4), dtype="bool", name="a"))
    add("scores", lambda x, m: L.Attention(name="scores")([x, x], mask=[m, m]))
    add("value_scores", lambda x, m: L.AdditiveAttention(name="scores")([x, x], mask=[None, m]))
    # A mask passed to the call replaces the input's own.
    ids = keras.Input((4,), dtype="int32", name="ids")
    words = L.Embedding(3, 3, mask_zero=True, name="words")
    add("in_place", lambda x, m, ids: L.LSTM(3, name="lstm")(words(ids), mask=m), ids=ids)
    return cases


def made():
    """Returns models with masks of Embedding and Masking, as Keras writes them."""
    ids, others = (keras.Input((4,), dtype="int32", name=name) for name in ("ids", "others"))
    x = keras.Input((4, 2), name="x")
    words = L.Embedding(3, 3, mask_zero=True, name="words")
    a, b = words(ids), words(others)
    chain = L.LSTM(2, name="last")(L.Dense(3, name="dense")(
        L.GRU(3, return_sequences=True, name="gru")(a)))
    masking = L.Masking(0.5, name="masking")(x)
    features = L.LSTM(3, name="lstm")(L.TimeDistributed(L.Dense(2, name="inner"), name="each")(
        masking))
    merged = L.LSTM(3, name="lstm")(L.Add(name="add")([a, b]))
    joined = L.GRU(3, name="gru")(L.Concatenate(name="join")(
        [a, L.Conv1D(2, 3, padding="same", name="conv")(b)]))
    both = L.Bidirectional(L.LSTM(2, return_sequences=True, name="lstm"), name="both")(a)
    attended = L.GlobalAveragePooling1D(name="mean")(L.Attention(name="scores")([both, both]))
    return [case("chain", [ids], chain), case("features", [x], features),
            case("merged", [ids, others], merged), case("joined", [ids, others], joined),
            case("attended", [ids], attended)]


def judged():
    """Returns models on masked words, up to a layer that drops the mask."""
    cases = []

    def add(name, *layers, **options):
        ids = keras.Input((4,), dtype="int32", name="ids")
        y = L.Embedding(3, 3, mask_zero=True, name="words")(ids)
        for layer in layers:
            y = layer(y)
        cases.append(case(name, [ids], y, **options))

    dense = lambda units: L.Dense(units, name="dense")
    add("up_sampling", L.UpSampling1D(1, name="end"), dense(2))
    add("padding", L.ZeroPadding1D(0, name="end"), dense(2))
    add("cropping", L.Cropping1D(0, name="end"), dense(2))
    add("reshape", L.Reshape((4, 3), name="end"), dense(2))
    add("metrics", dense(2), metrics=[keras.metrics.RootMeanSquaredError(),
                                   keras.metrics.MeanSquaredError()])
    shares = lambda units: L.Dense(units, activation="sigmoid", name="dense")
    add("dice_of_time", shares(1), loss=keras.losses.Dice(axis=[1]))
    add("tversky_of_time", shares(1), loss=keras.losses.Tversky(axis=[1], reduction="sum"))
    add("dice_of_steps", shares(2), loss=keras.losses.Dice(axis=[2]))
    return cases


def write(path, golden):
    parts = []
    for key, cases in golden.items():
        rows = ",\n".join(json.dumps(one, separators=(",", ":"), allow_nan=False)
                          for one in cases)
        parts.append(f'"{key}":[\n{rows}\n]')
    with open(path, "w", encoding="utf-8") as out:
        out.write("{\n" + ",\n".join(parts) + "\n}\n")


write("keras_mask_calls.json", {"given": given(), "made": made(), "judged": judged()})
