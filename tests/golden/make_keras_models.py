"""Writes keras_models.json: models as written by keras.Model.to_json(), with the paths of their
weights and output shapes. Run with Keras 3 on TensorFlow from PyPI:

    python make_keras_models.py keras_models.json
"""
import json
import sys

import keras
from keras import layers


def mlp():
    return keras.Sequential([layers.Input((28, 28)), layers.Flatten(),
                             layers.Dense(128, activation="relu", name="hidden_1",
                                          kernel_initializer=keras.initializers.HeNormal(seed=3)),
                             layers.Dropout(0.2), layers.Dense(10, name="logits")], name="mlp")


def regularized():
    return keras.Sequential([
        layers.Input((6,)),
        layers.Dense(4, name="d", kernel_regularizer=keras.regularizers.L2(0.01),
                     bias_constraint=keras.constraints.NonNeg(), dtype="float64"),
        layers.Activation("softmax"), layers.Reshape((2, 2)), layers.Permute((2, 1))], name="reg")


def two():
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    shared = layers.Dense(4, name="shared")
    both = layers.Add(name="add")([shared(a), shared(b)])
    left = layers.Dense(2, name="left")(both)
    right = layers.Dense(3, name="right")(layers.Concatenate(name="join")([both, a, b]))
    return keras.Model([a, b], [left, right], name="two")


def nested():
    block = keras.Sequential([layers.Input((4,)), layers.Dense(4, name="inner"),
                              layers.Activation("tanh", name="act")], name="block")
    x = keras.Input((4,), name="x")
    y = layers.Rescaling(0.5, offset=1.0, name="scale")(block(x))
    return keras.Model(x, layers.Multiply(name="product")([y, x]), name="outer")


def paths(model, prefix=""):
    found = []
    for layer in model.layers:
        if hasattr(layer, "layers"):
            found += paths(layer, prefix + layer.name + "/")
        else:
            found += [f"{prefix}{layer.name}/{weight.name}" for weight in layer.weights]
    return found


def main():
    golden = {}
    for make in [mlp, regularized, two, nested]:
        model = make()
        outputs = model.output_shape
        shapes = outputs if isinstance(outputs, list) else [outputs]
        golden[make.__name__] = {"json": model.to_json(), "paths": paths(model),
                                 "params": model.count_params(),
                                 "output_shapes": [list(shape) for shape in shapes]}
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump(golden, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    main()
