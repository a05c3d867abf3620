"""Writes Keras models and their outputs: FOLDER/NAME.keras with NAME.x0.npy, NAME.y0.npy, ...

There are random graphs of every layer with weights, from seeds, one of the image augmentation
layers, one with a layer class of one's own, one in bfloat16, one with int8 kernels and one with tied heads.
files_test.cpp reads them and writes each model again for check_cases.py.

Usage: write_cases.py FOLDER [--graphs 300]
"""
import argparse
import pathlib

from peer import import_keras, register_scale

keras = import_keras("numpy", "keras_write")
import numpy as np
from keras import layers

Scale = register_scale(keras)


class Graph:
    """A random model that grows layer by layer, determined by its seed."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.inputs, self.tensors, self.shared = [], [], {}

    def pick(self, *choices):
        return choices[self.random.integers(len(choices))]

    def some(self, low, high):
        return int(self.random.integers(low, high + 1))

    def options(self):
        return {"activation": self.pick(None, "relu", "tanh", "gelu", "sigmoid", "elu", "swish"),
                "use_bias": bool(self.random.random() < 0.8)}

    def begin(self):
        kind = self.pick("vector", "steps", "image", "ids", "volume")
        shape = {"vector": (self.some(3, 7),), "steps": (self.some(4, 7), self.some(2, 5)),
                 "image": (self.some(5, 8), self.some(5, 8), self.some(2, 4)),
                 "ids": (self.some(3, 6),), "volume": (4, 5, 4, self.some(1, 3))}[kind]
        x = keras.Input(shape, dtype="int32" if kind == "ids" else None)
        self.inputs.append(x)
        if kind == "ids":
            x = layers.Embedding(self.some(9, 12), self.some(2, 5),
                                 mask_zero=bool(self.random.random() < 0.3))(x)
        self.tensors.append(x)

    def any_rank(self, x):
        return [lambda: layers.Dense(self.some(2, 6), **self.options()),
                # Keras computes the variance as a difference of squares in float32: a small epsilon
                # would show its rounding.
                lambda: layers.LayerNormalization(epsilon=0.1), layers.BatchNormalization, layers.RMSNormalization,
                lambda: layers.Dropout(0.3), lambda: layers.LeakyReLU(0.1),
                lambda: layers.GroupNormalization(1), layers.UnitNormalization,
                lambda: layers.Activation(self.pick("softplus", "hard_sigmoid", "mish"))]

    def of_rank(self, x):
        rank, size = len(x.shape), x.shape[-1]
        padding, kernel = self.pick("same", "valid"), self.some(1, 3)
        stride = self.pick(1, 1, 2)
        if rank == 2:
            return [lambda: layers.PReLU(), lambda: layers.Reshape((size, 1)),
                    layers.Normalization, lambda: layers.Rescaling(0.5, offset=0.1),
                    lambda: layers.Discretization([-0.31, 0.17, 0.53], output_mode="multi_hot"),
                    lambda: layers.RepeatVector(self.some(2, 4)),
                    lambda: keras.Sequential([layers.Dense(4, activation="relu"),
                                              layers.Dense(self.some(2, 4))])]
        if rank == 3:
            units = self.some(2, 4)
            loop = self.pick(layers.SimpleRNN, layers.LSTM, layers.GRU)
            return [lambda: layers.Conv1D(units, kernel, stride, padding, **self.options()),
                    lambda: layers.Conv1DTranspose(units, kernel, stride, padding),
                    lambda: layers.DepthwiseConv1D(kernel, 1, padding, self.some(1, 2)),
                    lambda: layers.SeparableConv1D(units, kernel, 1, padding),
                    lambda: loop(units, return_sequences=bool(self.random.random() < 0.7)),
                    lambda: layers.Bidirectional(loop(units, return_sequences=True)),
                    lambda: layers.GRU(units, reset_after=False),
                    lambda: layers.TimeDistributed(layers.Dense(units, activation="relu")),
                    lambda: layers.EinsumDense("abc,cd->abd", output_shape=(None, units),
                                               bias_axes="d"),
                    layers.GlobalAveragePooling1D, layers.GlobalMaxPooling1D, layers.Flatten,
                    lambda: layers.PReLU(shared_axes=[1])]
        if rank == 4:
            filters = self.some(2, 4)
            return [lambda: layers.Conv2D(filters, kernel, stride, padding, **self.options()),
                    lambda: layers.Conv2DTranspose(filters, kernel, stride, padding),
                    lambda: layers.DepthwiseConv2D(kernel, 1, padding, self.some(1, 2)),
                    lambda: layers.SeparableConv2D(filters, kernel, 1, padding),
                    lambda: layers.MaxPooling2D(2, padding="same"),
                    lambda: layers.AveragePooling2D(2, padding="same"),
                    lambda: layers.UpSampling2D(2), lambda: layers.ZeroPadding2D(1),
                    lambda: layers.Resizing(self.some(2, 6), self.some(2, 6),
                                            self.pick("nearest", "bilinear", "lanczos3"),
                                            antialias=self.pick(False, True)),
                    lambda: layers.CenterCrop(self.some(2, 6), self.some(2, 6)),
                    layers.GlobalAveragePooling2D, layers.Flatten,
                    lambda: layers.PReLU(shared_axes=[1, 2])]
        return [lambda: layers.Conv3D(2, 2, padding="same"),
                lambda: layers.Conv3DTranspose(2, kernel, stride, padding),
                lambda: layers.MaxPooling3D(2, padding="same"),
                lambda: layers.AveragePooling3D(2, padding="same"),
                lambda: layers.UpSampling3D((1, 2, 1)), lambda: layers.ZeroPadding3D((1, 0, 1)),
                layers.GlobalAveragePooling3D, layers.GlobalMaxPooling3D, layers.Flatten]

    def grow(self):
        x = self.tensors[self.random.integers(len(self.tensors))]
        merged = [t for t in self.tensors if t.shape == x.shape and t is not x]
        chance = self.random.random()
        if merged and chance < 0.4:
            other = merged[self.random.integers(len(merged))]
            y = self.pick(lambda: layers.Add()([x, other]), lambda: layers.Multiply()([x, other]),
                          lambda: layers.Concatenate()([x, other]), lambda: x + other,
                          lambda: x - other * 0.5)()
        elif len(x.shape) == 3 and chance < 0.25:
            y = self.pick(
                # With a dropout, Keras too gives zeros for steps that may attend to nothing.
                lambda: layers.MultiHeadAttention(self.some(1, 2), self.some(2, 3),
                                                  dropout=0.1)(x, x),
                lambda: layers.Attention(use_scale=True)([x, x]),
                lambda: layers.AdditiveAttention()([x, x]))()
        elif chance < 0.5:
            choices = self.any_rank(x)
            y = choices[self.random.integers(len(choices))]()(x)
        else:
            choices = self.of_rank(x)
            layer = choices[self.random.integers(len(choices))]()
            y = layer(x)
            if self.random.random() < 0.15 and y.shape == x.shape:
                y = layer(y)  # shared
        self.tensors.append(y)

    def model(self):
        for _ in range(self.pick(1, 1, 1, 2)):
            self.begin()
        for _ in range(self.some(3, 8)):
            try:
                self.grow()
            except ValueError:
                pass  # Keras refuses it, e.g. a kernel larger than its input.
        outputs = self.tensors[-self.pick(1, 1, 2):]
        return keras.Model(self.inputs, outputs)

    def fill(self, model):
        for weight in model.weights:
            value = self.random.standard_normal(weight.shape) * 0.4
            if "variance" in weight.path:
                value = np.abs(value) + 0.5
            weight.assign(value)
        for layer in model._flatten_layers():
            if isinstance(layer, layers.Normalization):
                layer.finalize_state()

    def arrays(self, model):
        for x in model.inputs:
            shape = (3, *x.shape[1:])
            if x.dtype == "int32":
                yield self.random.integers(0, 9, shape).astype("int32")
            else:
                # Values are not large relative to their differences: Keras' LayerNormalization
                # computes the variance as a difference of squares in float32, which would exceed
                # the tolerance.
                yield (self.random.standard_normal(shape) * 0.5).astype("float32")


def changing_images(random):
    """Returns image augmentation layers (active in training, except AutoContrast) and images.

    Keras finds a cycle in a graph with Equalization, and writes empty groups for the layers inside
    AugMix, RandAugment and RandomColorJitter. ContrastLimitedAdaptiveHistogramEqualization has steps,
    to whose other side a value may round.
    """
    x = keras.Input((6, 5, 3))
    y = layers.Pipeline([layers.RandomFlip("horizontal"), layers.BatchNormalization(),
                         layers.RandomContrast((0.1, 0.3))])(x)
    # Keras cannot read the factor that it writes for a RandomShear with one number.
    for layer in (layers.RandomRotation(0.2), layers.RandomZoom(0.3, (0.1, 0.2)),
                  layers.RandomCrop(6, 5), layers.RandomTranslation(0.1, (0.2, 0.3)),
                  layers.RandomBrightness(0.2), layers.RandomErasing(fill_value=0.5),
                  layers.RandomErasing(0.5, scale=(0.1, 0.2)), layers.MixUp(), layers.CutMix(),
                  layers.RandomHue(0.2), layers.RandomSaturation(0.4),
                  layers.RandomGrayscale(0.3), layers.RandomShear((0.1, 0.2), (0.0, 0.1)),
                  layers.RandomPerspective(0.4, 0.5), layers.RandomColorDegeneration(0.3),
                  layers.RandomSharpness(0.3), layers.RandomPosterization((2, 5)),
                  layers.Solarization(0.2, (0.1, 0.4)), layers.RandomInvert(0.3),
                  layers.RandomGaussianBlur(0.4, (3, 5), (0.2, 0.8)),
                  layers.RandomElasticTransform(0.4, (0.1, 0.6)), layers.MaxNumBoundingBoxes(5),
                  layers.AutoContrast((-4, 4))):
        y = layer(y)
    model = keras.Model(x, layers.Dense(2)(y))
    for weight in model.trainable_weights:
        weight.assign(random.standard_normal(weight.shape))
    return model, [random.standard_normal((3, 6, 5, 3)).astype("float32")]


def own_layers(random):
    """Returns a graph with a layer class of one's own, twice, and rows."""
    x = keras.Input((4,))
    y = Scale(-0.5, name="last")(layers.Dense(3)(Scale(1.5)(x)))
    model = keras.Model(x, y)
    for weight in model.weights:
        weight.assign(random.standard_normal(weight.shape))
    return model, [random.standard_normal((3, 4)).astype("float32")]


def in_bfloat16(random):
    """Returns a model of bfloat16 weights, and rows; integers make its outputs exact."""
    x = keras.Input((3,))
    y = layers.Dense(2, dtype="bfloat16")(layers.Dense(4, dtype="bfloat16")(x))
    model = keras.Model(x, y)
    for weight in model.weights:
        weight.assign(random.integers(-2, 3, weight.shape))
    return model, [random.integers(-2, 3, (3, 3)).astype("float32")]


def quantized(random):
    """Returns a model whose kernels are int8, also in layers inside others, and rows."""
    ids = keras.Input((5,), dtype="int32")
    y = layers.Embedding(9, 6)(ids)
    y = layers.EinsumDense("abc,cde->abde", (None, 2, 4), bias_axes="de", activation="relu")(y)
    y = layers.EinsumDense("abde,def->abf", (None, 6), bias_axes="f")(y)
    y = layers.GRU(3)(y)
    y = keras.Sequential([layers.Dense(4, activation="relu"), layers.Dense(2, use_bias=False)])(y)
    model = keras.Model(ids, y)
    for weight in model.weights:
        if "seed" not in weight.name:
            weight.assign(random.standard_normal(weight.shape))
    model.quantize("int8")
    return model, [random.integers(0, 9, (3, 5)).astype("int32")]


def tied_head(random):
    """Returns a model whose embedding is also its head, with and without weights of its own, and ids."""
    ids = keras.Input((5,), dtype="int32")
    words = layers.ReversibleEmbedding(9, 4, name="words")
    others = layers.ReversibleEmbedding(9, 4, tie_weights=False, logit_soft_cap=2.0, name="others")
    y = layers.Dense(4)(words(ids)) + others(ids)
    model = keras.Model(ids, [words(y, reverse=True), others(y, reverse=True)])
    for weight in model.weights:
        weight.assign(random.standard_normal(weight.shape) * 0.5)
    return model, [random.integers(0, 9, (3, 5)).astype("int32")]


def write(folder, name, model, arrays):
    outputs = keras.tree.flatten(model(arrays if len(arrays) > 1 else arrays[0], training=False))
    for left in folder.glob(f"{name}.*"):
        # Left over from an earlier model of this name with more outputs.
        left.unlink()
    model.save(folder / f"{name}.keras")
    for i, array in enumerate(arrays):
        np.save(folder / f"{name}.x{i}.npy", array)
    for i, array in enumerate(outputs):
        array = np.asarray(array)
        if array.dtype.name == "bfloat16":
            array = array.astype("float32")
        np.save(folder / f"{name}.y{i}.npy", array)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--graphs", type=int, default=300)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for seed in range(arguments.graphs):
        keras.backend.clear_session()
        graph = Graph(seed)
        model = graph.model()
        graph.fill(model)
        write(arguments.folder, f"graph_{seed:03}", model, list(graph.arrays(model)))
    for make in (changing_images, own_layers, in_bfloat16, quantized, tied_head):
        keras.backend.clear_session()
        write(arguments.folder, make.__name__, *make(np.random.default_rng(0)))


if __name__ == "__main__":
    main()
