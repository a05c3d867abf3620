"""Shared by the generators of keras_*.json, which select Keras' backend first."""

import json

import keras
import numpy as np
import tensorflow as tf


def compact(value):
    """Returns the shape and the shortest decimals of an array, in row-major order."""
    array = np.asarray(value)
    numbers = array.ravel()
    if array.dtype == np.float32:
        numbers = [float(str(x)) for x in numbers]
    elif array.dtype == bool:
        numbers = numbers.astype(int).tolist()
    else:
        numbers = numbers.tolist()
    return {"shape": list(array.shape), "values": list(numbers)}


def tensor(value):
    return {"dtype": str(np.asarray(value).dtype), **compact(value)}


def serialized(thing):
    """Returns Keras' configuration as JSON."""
    return json.loads(json.dumps(keras.saving.serialize_keras_object(thing)))


def upstream(shape):
    """Returns the output gradient: (i mod 7) / 2 - 1.25, in row-major order."""
    return (np.arange(np.prod(shape, dtype=int)) % 7 / 2 - 1.25).reshape(shape)


def merges(layer):
    """Returns whether the layer is called on a list."""
    layers = keras.layers
    return isinstance(layer, (layers.Add, layers.Subtract, layers.Multiply, layers.Average,
                              layers.Maximum, layers.Minimum, layers.Concatenate, layers.Dot))


def give_weights(layer, rng):
    for weight in layer.weights:
        if weight.name == "count":
            continue
        values = rng.normal(0, 1.5, weight.shape).astype(np.float32)
        positive = weight.name.endswith(("variance", "stddev"))
        weight.assign(values**2 + 0.1 if positive else values)
    if isinstance(layer, keras.layers.Normalization):
        layer.finalize_state()


def masked(value, mask):
    """Returns the value with Keras' mask, if there is one."""
    if mask is not None:
        value._keras_mask = tf.constant(mask)
    return value


def mask_of(value):
    mask = getattr(value, "_keras_mask", None)
    return None if mask is None else tensor(mask.numpy())


def layer_case(rng, layer, *inputs, call=None, masks=(), quantize=None):
    """Returns a layer's outputs, penalties, and gradients of upstream · outputs + penalties.

    Weights are drawn from `rng`. `call(layer, *tensors)` calls the layer, by default on all inputs
    in order. `masks` are the masks of the first inputs, None for none. `quantize`: the mode in which
    the layer is quantized after it has its weights, which are then in "floating".
    """
    tensors = [tf.constant(x) for x in inputs]

    def call_masked():
        # A call may remove the masks.
        for value, mask in zip(tensors, masks):
            masked(value, mask)
        return call(layer, *tensors)

    floating = [x for x in tensors if x.dtype.is_floating]
    if call is None and merges(layer):
        call = lambda layer, *tensors: layer(list(tensors))
    call = call or (lambda layer, *tensors: layer(*tensors))
    call_masked()
    give_weights(layer, rng)
    if quantize:
        floating_layer = {"layer": serialized(layer),
                          "weights": [compact(w.numpy()) for w in layer.weights]}
        layer.quantize(quantize)
    weights = [compact(w.numpy()) for w in layer.weights]
    with tf.GradientTape() as tape:
        tape.watch(floating)
        outputs = call_masked()
        outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        loss = sum(layer.losses)
        for y in outputs:
            loss += tf.reduce_sum(y * upstream(y.shape).astype(y.dtype.as_numpy_dtype))
    trainable = [w.value for w in layer.trainable_weights]
    gradients = tape.gradient(loss, floating + trainable, unconnected_gradients="zero")
    golden = {"layer": serialized(layer), "inputs": [tensor(x) for x in inputs],
              "weights": weights, "output": compact(outputs[0].numpy()),
              "losses": [float(x) for x in layer.losses],
              "gradients": [compact(tf.convert_to_tensor(g).numpy()) for g in gradients]}
    if len(outputs) > 1:
        golden["more_outputs"] = [compact(y.numpy()) for y in outputs[1:]]
    if quantize:
        golden["floating"] = floating_layer
    if masks:
        golden["masks"] = [None if mask is None else tensor(mask) for mask in masks]
        golden["output_masks"] = [mask_of(y) for y in outputs]
    return golden


def dump(value):
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def write(path, golden):
    """Writes one line for each item of the lists of `golden`."""
    parts = []
    for key, value in golden.items():
        if isinstance(value, list):
            rows = ",\n".join(dump(row) for row in value)
            parts.append(f'"{key}":[\n{rows}\n]')
        else:
            parts.append(f'"{key}":{dump(value)}')
    with open(path, "w", encoding="utf-8") as out:
        out.write("{\n" + ",\n".join(parts) + "\n}\n")
