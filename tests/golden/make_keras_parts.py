"""Writes keras_parts.json: Keras models whose layers have layers as activations, nested models or
fixed batch sizes, with their outputs and the paths of their weights in ".weights.h5".

Made with keras 3.15.1, jax 0.10.2, h5py 3.14.0 and numpy 2.4.6 from PyPI. Run it in this folder:
python3 make_keras_parts.py
"""

import json
import os
import tempfile

os.environ["KERAS_BACKEND"] = "jax"

import h5py
import keras
import numpy as np

K, L = keras, keras.layers
rng = np.random.default_rng(11)


def tensor(value):
    array = np.asarray(value)
    values = [float(str(x)) for x in array.ravel()]
    return {"dtype": str(array.dtype), "shape": list(array.shape), "values": values}


def datasets(model):
    """Returns the sorted paths and shapes of the weights in Keras' file."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        model.save_weights(folder + "/x.weights.h5")
        with h5py.File(folder + "/x.weights.h5") as file:
            file.visititems(lambda name, one: found.append(["/" + name, list(one.shape)])
                            if isinstance(one, h5py.Dataset) and "optimizer" not in name
                            else None)
    return sorted(found)


def case(name, model, calls=1):
    if name == "dense" or name == "convolutions":
        # A layer used as an activation creates its weights at the first call.
        model(np.zeros((4, *model.input_shape[1:]), np.float32))
    for weight in model.weights:
        values = rng.normal(0, 0.5, weight.shape).astype(np.float32)
        weight.assign(values**2 + 0.1 if weight.name.endswith("variance") else values)
    x = rng.normal(0, 1, (4, *model.input_shape[1:])).astype(np.float32)
    golden = {"name": name, "model": json.loads(model.to_json()), "x": tensor(x),
              "weights": [tensor(w.numpy()) for w in model.weights],
              "paths": [w.path for w in model.weights], "datasets": datasets(model),
              # predict() would keep no states on JAX.
              "outputs": [tensor(model(x)) for _ in range(calls)]}
    # Last, because it updates the moving statistics.
    return {**golden, "training_output": tensor(np.asarray(model(x, training=True)))}


def activations():
    dense = K.Sequential([K.Input((6,)), L.Dense(5, activation=L.PReLU()),
                          L.Activation(L.LeakyReLU(0.1)), L.Dense(4, activation=L.Softmax())])
    x = K.Input((8, 3))
    y = L.Conv1D(4, 3, activation=L.ReLU(max_value=1.0, negative_slope=0.1))(x)
    y = L.SeparableConv1D(4, 2, activation=L.PReLU(shared_axes=[1]))(y)
    y = L.EinsumDense("abc,cd->abd", (None, 3), activation=L.ELU(0.7))(y)
    y = L.LSTM(3, activation=L.LeakyReLU(0.2), return_sequences=True)(y)
    convolutions = K.Model(x, L.GRU(2, recurrent_activation=L.Activation("hard_sigmoid"))(y))
    return [case("dense", dense), case("convolutions", convolutions)]


def batches():
    states = K.Sequential([K.Input(batch_shape=(4, 3, 2)),
                           L.LSTM(3, stateful=True, return_sequences=True),
                           L.Bidirectional(L.GRU(2, stateful=True))])
    x = K.Input((3, 2), batch_size=4)
    plain = K.Model(x, L.Dense(2)(L.Flatten()(x)))
    return [case("states", states, 2), case("plain", plain, 2)]


def models():
    inner = K.Sequential([K.Input((4,)), L.Dense(3, "tanh"), L.BatchNormalization()])
    inner.compile("sgd", "mse")  # The compile configuration must be ignored.
    chain = K.Sequential([K.Input((3, 4)), L.TimeDistributed(inner), L.Dense(2)])
    i = K.Input((4,))
    graph = K.Model(i, L.Add()([L.Dense(4)(i), K.Sequential([L.Dense(4, "relu")])(i)]))
    x = K.Input((3, 4))
    residual = K.Model(x, L.LSTM(2)(L.TimeDistributed(graph, name="each")(x)))
    images = K.Sequential([K.Input((2, 6, 6, 1)), L.TimeDistributed(K.Sequential([
        L.Conv2D(3, 3, activation="relu"), L.MaxPooling2D(), L.Flatten(), L.Dense(4)])),
        L.GRU(3)])
    return [case("chain", chain), case("residual", residual), case("images", images)]


def cells():
    states = K.Sequential([K.Input(batch_shape=(4, 3, 2)),
                           L.RNN([L.LSTMCell(3), L.GRUCell(2), L.LSTMCell(2)], stateful=True,
                                 return_sequences=True),
                           L.Bidirectional(L.RNN(L.GRUCell(2), stateful=True))])
    x = K.Input((3, 2))
    both = {"return_sequences": True, "return_state": True}
    y, *states_of_y = L.RNN([L.LSTMCell(3), L.GRUCell(2)], **both)(x)
    more = L.RNN([L.LSTMCell(3), L.GRUCell(2)])(y, initial_state=states_of_y)
    stacked = K.Model(x, more)
    x = K.Input((3, 6, 2))
    y, h, c = L.ConvLSTM1D(2, 3, padding="same", **both)(x)
    y = L.ConvLSTM1D(2, 2, padding="same")(y, initial_state=[h, c])
    sequences = K.Model(x, L.Dense(2)(L.Flatten()(y)))
    images = K.Sequential([K.Input((3, 5, 4, 1)), L.ConvLSTM2D(2, 3, return_sequences=True),
                           L.Bidirectional(L.ConvLSTM2D(2, 2)), L.Flatten()])
    return [case("states", states, 2), case("stacked", stacked), case("sequences", sequences),
            case("images", images)]


def volumes():
    video = K.Sequential([
        K.Input((4, 6, 4, 1)), L.ZeroPadding3D((0, 1, 1)), L.Conv3D(3, (1, 3, 3), activation="relu"),
        L.MaxPooling3D((1, 2, 2)), L.Conv3D(2, 2, padding="same"), L.AveragePooling3D((2, 1, 1)),
        L.UpSampling3D((1, 1, 2)), L.Conv3DTranspose(3, 3, strides=(2, 1, 1), padding="same"),
        L.Cropping3D(((1, 0), (0, 0), (1, 1))), L.AdaptiveMaxPooling3D((2, 2, 1)),
        L.AdaptiveAveragePooling3D((1, 2, 1)), L.GlobalAveragePooling3D(), L.Dense(2)])
    return [case("video", video)]


def wrappers():
    x = K.Input((5, 4, 2))
    y = L.SpectralNormalization(L.Conv2D(3, 2, activation="relu"), power_iterations=2)(x)
    y = L.SpectralNormalization(L.Conv2D(3, 2, use_bias=False))(y)
    y = L.SpectralNormalization(L.Dense(2))(L.Flatten()(y))
    return [case("spectral", K.Model(x, L.Dense(1)(y)))]


golden = {"activations": activations(), "batches": batches(), "models": models(),
          "cells": cells(), "volumes": volumes(), "wrappers": wrappers()}
with open("keras_parts.json", "w") as file:
    file.write(json.dumps(golden) + "\n")
