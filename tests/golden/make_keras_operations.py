"""Writes keras_operations.json: Functional models with operations between their layers, as Keras
writes and prints them, and their outputs; calls by name and dicts; steps of a residual model.

Made with keras 3.15.1, jax 0.10.2 and numpy 2.4.6 from PyPI. Run it in this folder:
python3 make_keras_operations.py
"""

import json
import os

os.environ["KERAS_BACKEND"] = "jax"
os.environ.pop("COLUMNS", None)

import keras
import numpy as np

L, ops = keras.layers, keras.ops
rng = np.random.default_rng(21)


def tensor(value):
    array = np.asarray(value)
    numbers = array.astype(int) if array.dtype == bool else array
    values = [float(str(x)) if array.dtype == np.float32 else float(x) if array.dtype.kind == "f"
              else int(x) for x in numbers.ravel()]
    return {"dtype": str(array.dtype), "shape": list(array.shape), "values": values}


def drawn(input_):
    shape = (4, *input_.shape[1:])
    if input_.dtype == "bool":
        return rng.random(shape) < 0.6
    if input_.dtype in ("int32", "uint8"):
        return rng.integers(0, 3, shape).astype(input_.dtype)
    return rng.uniform(0.2, 2, shape).astype(input_.dtype)


def summary(model):
    lines = []
    model.summary(print_fn=lines.append)
    return "".join(lines)


def give_weights(model):
    for weight in model.weights:
        values = rng.normal(0, 0.5, weight.shape).astype(np.float32)
        weight.assign(values**2 + 0.1 if weight.name.endswith("variance") else values)


def case(name, inputs, outputs):
    model = keras.Model(inputs, outputs, name=name)
    give_weights(model)
    x = [drawn(one) for one in model.inputs]
    given = dict(zip(sorted(inputs), x)) if isinstance(inputs, dict) else x
    y = model(given, training=False)
    y = [y[key] for key in sorted(y)] if isinstance(y, dict) else y
    y = y if isinstance(y, (list, tuple)) else [y]
    return {"model": json.loads(model.to_json()), "summary": summary(model),
            "x": [tensor(one) for one in x], "weights": [tensor(w.numpy()) for w in model.weights],
            "y": [tensor(one) for one in y]}


def operations():
    """Returns one model per operation, with the inputs that its function takes of a, b: (2, 6), n:
    (3,) integers, m: (6,) bools, and c: (6, 3)."""
    cases = []

    def add(name, function):
        keras.backend.clear_session()
        makers = {"a": lambda: keras.Input((2, 6), name="a"),
                  "b": lambda: keras.Input((2, 6), name="b"),
                  "c": lambda: keras.Input((6, 3), name="c"),
                  "n": lambda: keras.Input((3,), dtype="int32", name="n"),
                  "m": lambda: keras.Input((6,), dtype="bool", name="m")}
        names = function.__code__.co_varnames[:function.__code__.co_argcount]
        inputs = [makers[one]() for one in names if one in makers]
        y = function(*inputs)
        cases.append(case(name, inputs, y if isinstance(y, (list, tuple)) else [y]))

    add("add", lambda a, b: a + b)
    add("add_number", lambda a: a + 2)
    add("number_add", lambda a: 2.5 + a)
    add("subtract", lambda a, b: a - b)
    add("number_subtract", lambda a: 1 - a)
    add("multiply", lambda a, b: a * b)
    add("multiply_number", lambda a: a * 0.5)
    add("divide", lambda a, b: a / b)
    add("divide_number", lambda a: a / 4)
    add("number_divide", lambda a: 1 / a)
    add("negative", lambda a: -a)
    add("whole_add", lambda n: n + 1)
    add("whole_fraction", lambda n: n + 1.5)
    add("whole_divide", lambda n: n / 2)
    add("truth_multiply", lambda m: m * 2)
    add("whole_and_floating", lambda c, n: c[:, 0] * n)
    add("chain", lambda a, b: (a + b) * (a - b) + 1 + a)
    add("item_place", lambda a: a[:, 0])
    add("item_slice", lambda a: a[:, :, 1:3])
    add("item_last", lambda a: a[..., -1])
    add("item_new_axis", lambda a: a[:, None, ::2])
    add("item_back", lambda a: a[:, ::-1, -2:])
    add("item_row", lambda a: a[0])
    add("slice", lambda a: a[:, :, 2:5])
    for name in ("sum", "mean", "max", "min", "prod", "logsumexp", "var"):
        function = getattr(ops, name)
        add(name, lambda a, function=function: function(a, axis=2))
        add(name + "_all", lambda a, function=function: function(a, axis=(1, 2), keepdims=True))
    add("sum_whole", lambda n: ops.sum(n, axis=1))
    add("mean_whole", lambda n: ops.mean(n, axis=1))
    add("mean_of_everything", lambda a: ops.mean(a))
    add("any", lambda m: ops.any(m, axis=1))
    add("all", lambda m: ops.all(m, axis=1))
    add("argmax", lambda a: ops.argmax(a, axis=-1))
    add("argmin", lambda a: ops.argmin(a, axis=1))
    for name in ("abs", "sign", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "square",
                 "reciprocal", "sin", "cos", "tanh", "erf", "sigmoid", "relu", "softplus", "floor",
                 "ceil", "round", "isfinite", "relu6", "hard_sigmoid", "hard_silu", "log_sigmoid",
                 "selu", "silu", "softsign", "sparse_plus", "sparse_sigmoid", "tanh_shrink",
                 "stop_gradient", "elu", "leaky_relu", "hard_shrink", "soft_shrink",
                 "softmax", "log_softmax", "sparsemax"):
        function = getattr(ops, name)
        add(name, lambda a, function=function: function(a))
    add("squareplus", lambda a: ops.squareplus(a, 4.0))
    add("exp_whole", lambda n: ops.exp(n))
    add("logical_not", lambda m: ops.logical_not(m))
    add("gelu", lambda a: ops.gelu(a, approximate=False))
    add("gelu_tanh", lambda a: ops.gelu(a, approximate=True))
    add("threshold", lambda a: ops.threshold(a, 1.0, 0.5))
    add("softmax_axis", lambda a: ops.softmax(a, axis=1))
    for name in ("divide", "maximum", "minimum", "power", "floor_divide", "mod", "equal",
                 "not_equal", "less", "less_equal", "greater", "greater_equal"):
        function = getattr(ops, name)
        add("function_" + name, lambda a, b, function=function: function(a, b))
    add("maximum_number", lambda a: ops.maximum(a, 1.0))
    add("power_number", lambda a: ops.power(a, 2))
    add("logical_and", lambda m, a: ops.logical_and(m, ops.greater(a[:, 0], 1.0)))
    add("logical_or", lambda m, a: ops.logical_or(m, ops.greater(a[:, 0], 1.0)))
    add("clip", lambda a: ops.clip(a, 0.5, 1.5))
    add("cast", lambda n: ops.cast(n, "float32"))
    add("where", lambda a, b: ops.where(ops.less(a, b), a, 0.0))
    add("matmul", lambda a, c: ops.matmul(a, c))
    add("take", lambda a, n: ops.take(a, n, axis=2)[0])
    add("take_along_axis", lambda c, n: ops.take_along_axis(c[:, 0], n, axis=1))
    add("take_along_axis_back", lambda c, n: ops.take_along_axis(c, n[:, None] - 3, axis=-1))
    add("one_hot", lambda n: ops.one_hot(n, 4))
    add("einsum", lambda a, c: ops.einsum("bij,bjk->bki", a, c))
    add("einsum_dots", lambda a, c: ops.einsum("...j, ...jk", a[:, 0], c))
    add("cumsum", lambda a: ops.cumsum(a, axis=2))
    add("cumsum_truth", lambda m: ops.cumsum(m, axis=1))
    add("top_k", lambda a: ops.top_k(a, 3))
    add("top_k_whole", lambda n: ops.top_k(n, 2))
    add("top_k_places", lambda a, b: ops.take_along_axis(b, ops.top_k(a, 2)[1], axis=2))
    add("reshape", lambda a: ops.reshape(a, (-1, 3, 4)))
    add("transpose", lambda a: ops.transpose(a, (0, 2, 1)))
    add("transpose_all", lambda a: ops.transpose(a))
    add("expand_dims", lambda a: ops.expand_dims(a, 1))
    add("squeeze", lambda a: ops.squeeze(ops.sum(a, axis=1, keepdims=True), 1))
    add("broadcast_to", lambda a: ops.broadcast_to(ops.sum(a), (2, 3)))
    add("concatenate", lambda a, b: ops.concatenate([a, b], axis=1))
    add("stack", lambda a, b: ops.stack([a, b], axis=1))
    add("split", lambda a: ops.split(a, 3, axis=2))
    add("unstack", lambda a: ops.unstack(a, axis=1))
    add("tile", lambda a: ops.tile(a, (1, 2, 1)))
    add("flip", lambda a: ops.flip(a, axis=2))
    add("flip_all", lambda a: ops.flip(a))
    add("roll", lambda a: ops.roll(a, 2, axis=-1))
    add("roll_axes", lambda a: ops.roll(a, (1, -2), axis=(1, 2)))
    add("roll_flat", lambda a: ops.roll(a, 5))
    add("tril", lambda a: ops.tril(a))
    add("triu_above", lambda c: ops.triu(c, k=-1))
    add("pad", lambda a: ops.pad(a, [[0, 0], [0, 0], [1, 2]]))
    add("pad_value", lambda a: ops.pad(a, [[0, 0], [1, 0], [0, 0]], constant_values=0.5))
    return cases


def layers():
    """Returns models with operations between layers, which share names and numbering."""
    cases = []

    def add(name, make):
        keras.backend.clear_session()
        cases.append(case(name, *make()))

    def residual():
        x = keras.Input((8,), name="x")
        first = L.Dense(8, activation="relu")(x)
        y = x + first
        second = L.Dense(8)(y)
        return [x], [L.Dense(2)(0.5 * second + y)]

    def shared_counter():
        x = keras.Input((3,), name="x")
        y = x + 1.0
        z = L.Add()([x, y])
        return [x], [z + y, L.Multiply()([x, y * z])]

    def nested():
        x = keras.Input((3,), name="x")
        inner_x = keras.Input((3,), name="inner_x")
        scale = L.Dense(3, name="scale")(inner_x)
        inner = keras.Model(inner_x, scale * 2.0 - inner_x, name="inner")
        return [x], [inner(x) + x]

    def nested_ends():
        x = keras.Input((3,), name="x")
        inner_x = keras.Input((3,), name="inner_x")
        inner = keras.Model(inner_x, [L.Dense(3, name="same")(inner_x),
                                      L.Dense(2, name="other")(inner_x)], name="inner")
        first = inner(x)
        second = inner(first[0])
        return [x], [first[1], second[0]]

    def masked():
        x = keras.Input((4,), dtype="int32", name="ids")
        words = L.Embedding(3, 3, mask_zero=True, name="words")(x)
        return [x], [L.LSTM(2, name="lstm")(words * 2.0)]

    add("residual", residual)
    add("shared_counter", shared_counter)
    add("nested", nested)
    add("nested_ends", nested_ends)
    add("masked", masked)
    return cases


def read():
    """Returns models that are read but not written in the same way: operations that only Keras'
    functions make, arguments by name, arrays, masks of operations, dicts."""
    cases = []
    x, y = keras.Input((4, 6), name="x"), keras.Input((4, 6), name="y")
    ids = keras.Input((4,), dtype="int32", name="ids")

    def add(name, inputs, outputs):
        cases.append(case(name, inputs, outputs if isinstance(outputs, (list, dict)) else [outputs]))

    add("relu_of_activations", [x], keras.activations.relu(x - 1, negative_slope=0.1, max_value=0.5))
    add("std", [x], ops.std(x, axis=1))
    add("swapaxes", [x], ops.swapaxes(x, 1, 2))
    add("moveaxis", [x], ops.moveaxis(x, 1, -1))
    add("repeat", [x], ops.repeat(x, 2, axis=1))
    add("take_list", [x], ops.take(x, [0, -1], axis=1))
    add("take_place", [x], ops.take(x, 1, axis=-1))
    add("split_at", [x], list(ops.split(x, [1, 3], axis=2)))
    add("squeeze_all", [x], ops.squeeze(x[:, 0:1]))
    add("cumsum_flat", [ids], ops.cumsum(ids, dtype="float32"))
    add("einsum_alone", [x], ops.einsum("b...->...b", x))
    add("top_k_unsorted", [x], list(ops.top_k(x, 2, sorted=False)))
    add("take_along_all", [x], ops.take_along_axis(x, np.array([3, -1]), axis=None))
    add("likes", [x], [ops.ones_like(x), ops.zeros_like(x)])
    add("others", [x], [ops.celu(x - 1), ops.hard_tanh(x), ops.glu(x)])
    add("array", [x], x + np.arange(6, dtype="float32"))
    once = keras.src.ops.numpy.Add(name="once")
    add("one_operation_twice", [x, y], once(once(x, y), y))
    add("mask_of_others", [x, ids], L.LSTM(2, name="lstm")(x, mask=ops.not_equal(ids, 0)))
    add("mask_of_many", [x, ids], L.LSTM(2, name="lstm")(
        x, mask=ops.logical_and(ops.greater(ids, 0), ops.any(ops.greater(x, 1.0), axis=-1))))
    embedded = L.Embedding(3, 3, mask_zero=True, name="words")(ids)
    mask = embedded._keras_mask
    add("mask_over_layers", [ids], L.LSTM(2, name="lstm")(
        L.Conv1D(3, 3, padding="same", name="conv")(embedded), mask=mask))
    add("mask_turned", [ids], L.LSTM(2, name="lstm")(embedded, mask=ops.logical_not(mask)))
    add("mask_as_number", [ids], L.LSTM(2, name="lstm")(embedded) + ops.sum(
        ops.cast(mask, "float32"), axis=1, keepdims=True))
    heads = L.MultiHeadAttention(2, 3, name="heads")
    add("heads_by_name", [x, y], heads(query=x, value=y, key=y))
    add("layer_by_name", [x], L.LSTM(2, name="lstm")(sequences=L.Dense(3, name="dense")(inputs=x)))
    m = keras.Input((4,), dtype="bool", name="m")
    add("list_of_masks", [x, y, m], L.Attention(name="scores")([x, y], mask=[m, m]))
    b, a = keras.Input((3,), name="b"), keras.Input((2,), name="a")
    dense = {"q": L.Dense(2, name="first")(b), "p": L.Dense(3, name="second")(a)}
    add("dicts", {"b": b, "a": a}, dense)
    inner = keras.Model({"b": b, "a": a}, dense, name="inner")
    u, v = keras.Input((2,), name="u"), keras.Input((3,), name="v")
    add("dict_of_a_model", [u, v], inner({"a": u, "b": v}))
    return cases


def refused():
    """Returns models that Tessera refuses, with a part of the error."""
    x = keras.Input((4, 6), name="x")
    model = keras.Model(x, L.Dense(2, name="dense")(ops.sort(x, axis=1) + 1.0), name="unknown")
    reflects = keras.Model(x, ops.pad(x, [[0, 0], [1, 1], [0, 0]], mode="reflect"), name="reflect")
    once = keras.src.ops.numpy.Add(name="once")
    twice = keras.Model(x, once(once(x, 1.0), 2.0), name="twice")
    return [{"model": json.loads(one.to_json())} for one in (model, reflects, twice)]


def trained():
    """Returns losses and weights of a residual model's training steps."""
    keras.backend.clear_session()
    x = keras.Input((6,), name="x")
    y = x + L.Dense(6, activation="tanh", name="first")(x)
    y = ops.maximum(y, 0.1 * y) / (1.0 + ops.mean(ops.square(y), axis=-1, keepdims=True))
    z = L.Dense(3, name="second")(
        ops.concatenate([y[:, :3], ops.sqrt(ops.abs(x[:, 3:]) + 1.0)], axis=-1))
    model = keras.Model([x], [ops.softmax(z - ops.max(z, axis=-1, keepdims=True))], name="steps")
    give_weights(model)
    golden = {"model": json.loads(model.to_json()),
              "weights": [tensor(w.numpy()) for w in model.weights]}
    data, labels = rng.normal(0, 1, (8, 6)).astype(np.float32), rng.integers(0, 3, 8)
    model.compile(keras.optimizers.SGD(0.2), "sparse_categorical_crossentropy")
    losses = []
    for _ in range(5):
        losses.append(float(model.evaluate(data, labels, verbose=0)))
        model.train_on_batch(data, labels)
    return [{**golden, "x": tensor(data), "y": tensor(labels), "losses": losses,
             "trained": [tensor(w.numpy()) for w in model.weights]}]


def write(path, golden):
    parts = []
    for key, cases in golden.items():
        rows = ",\n".join(json.dumps(one, separators=(",", ":"), allow_nan=False,
                                     ensure_ascii=False) for one in cases)
        parts.append(f'"{key}":[\n{rows}\n]')
    with open(path, "w", encoding="utf-8") as out:
        out.write("{\n" + ",\n".join(parts) + "\n}\n")


write("keras_operations.json", {"operations": operations(), "layers": layers(), "read": read(),
                                "refused": refused(), "trained": trained()})
