"""Writes keras_augmentation.json: image augmentation layers, with the random draws of each case.

Made with keras 3.15.1, tensorflow-cpu 2.21.0 (imported alone), numpy 2.4.6 and scipy 1.17.1 from
PyPI. Run it in this folder: python3 make_keras_augmentation.py
"""

import os

os.environ["KERAS_BACKEND"] = "numpy"

import keras
import numpy as np
# Keras imports it on first use, which draws random numbers.
import scipy.signal
from keras.src.layers.preprocessing.image_preprocessing import aug_mix as aug_mix_module

from keras_golden import compact, serialized, tensor, write

L = keras.layers
rng = np.random.default_rng(22)
ROWS = 3
TRIES = 8
# AugMix' choice and the draws of RandomShear, which has the most.
DRAWS_OF_STEP = 4


class Draws:
    """Replaces keras.random: records draws as columns of one table, in the order of the calls.

    With `again`, the columns of another instance, it replays those.
    """

    def __init__(self, rows=ROWS, again=()):
        self.rows, self.columns, self.again = rows, [], list(again)
        self.end_of_step = 0

    def take(self, count):
        made = self.again.pop(0) if self.again else rng.random((self.rows, count), np.float32)
        self.columns.append(made)
        return made

    def shared(self, count):
        return self.take(count)[0]

    def uniform(self, shape=(), minval=0.0, maxval=1.0, dtype=None, seed=None):
        shape = tuple(shape)
        if shape and shape[0] == self.rows:
            numbers = self.take(int(np.prod(shape[1:]))).reshape(shape)
        else:
            numbers = self.shared(int(np.prod(shape))).reshape(shape)
        return np.asarray(minval + (maxval - minval) * numbers, np.float32)

    def randint(self, shape, minval, maxval, dtype="int32", seed=None):
        # One draw per image, or RandAugment's, which are the same for all images.
        count = shape[0]
        numbers = self.take(1)[:, 0] if count == self.rows else self.shared(count)
        return np.floor(minval + (maxval - minval) * numbers).astype(dtype)

    def normal(self, shape, dtype=None, seed=None):
        cells = int(np.prod(shape[1:]))
        first, second = self.take(cells), self.take(cells)
        normal = np.sqrt(-2 * np.log(1 - first)) * np.cos(2 * np.pi * second)
        return normal.reshape(shape).astype(np.float32)

    def log_gamma(self, alpha):
        """Returns logarithms of gamma samples by Marsaglia and Tsang's method, from the first
        accepted try."""
        log = lambda u: np.log(np.maximum(u, 2.0**-24))
        tries, last = self.take(3 * TRIES).astype(np.float64), self.take(1)[:, 0]
        d = alpha + 2 / 3
        z = np.sqrt(-2 * log(tries[:, :TRIES])) * np.cos(2 * np.pi * tries[:, TRIES:2 * TRIES])
        v = (1 + z / np.sqrt(9 * d)) ** 3
        log_v = np.log(np.maximum(v, 1e-90))
        succeeds = (v > 0) & (log(tries[:, 2 * TRIES:]) < z * z / 2 + d * (1 - v + log_v))
        first = np.argmax(succeeds, axis=1)
        return np.log(d) + log_v[np.arange(self.rows), first] + log(last) / alpha

    def beta(self, shape, alpha, beta, dtype=None, seed=None):
        difference = self.log_gamma(float(alpha)) - self.log_gamma(float(beta))
        made = (1 / (1 + np.exp(-difference))).astype(np.float32)
        return made if tuple(shape) else made[0]

    def gamma(self, shape, alpha, dtype=None, seed=None):
        # AugMix' weights of chains, which are the same for all images.
        made = [self.log_gamma(float(alpha))[0] for _ in range(shape[0])]
        return np.exp(made).astype(np.float32)

    def shuffle(self, x, axis=0, seed=None):
        return x[np.argsort(np.argsort(self.take(1)[:, 0]))]

    def choice(self, layers):
        """Returns AugMix' next layer. Each step has DRAWS_OF_STEP columns."""
        self.end_step()
        self.end_of_step = self.width() + DRAWS_OF_STEP
        return layers[int(self.shared(1)[0] * len(layers))]

    def end_step(self):
        missing = self.end_of_step - self.width()
        if missing > 0:
            self.take(missing)

    def width(self):
        return sum(column.shape[1] for column in self.columns)

    def default_rng(self, seed=None):
        """Returns this as the generator of keras.ops.image.elastic_transform."""
        return _Normal(self)


class _Normal:
    def __init__(self, draws):
        self.draws = draws

    def normal(self, loc=0.0, scale=1.0, size=()):
        return loc + scale * self.draws.normal(size)


def with_columns(layer, call, again=()):
    """Returns the call's result while `layer` draws from a table, and the table's columns."""
    draws, random = Draws(again=again), layer.backend.random
    replaced = [(random, name, getattr(draws, name))
                for name in ("uniform", "randint", "normal", "beta", "gamma", "shuffle")]
    replaced += [(np.random, "default_rng", draws.default_rng),
                 (aug_mix_module, "py_random", draws)]
    kept = [(owner, name, getattr(owner, name)) for owner, name, _ in replaced]
    try:
        for owner, name, value in replaced:
            setattr(owner, name, value)
        outputs = call()
    finally:
        for owner, name, value in kept:
            setattr(owner, name, value)
    draws.end_step()
    return outputs, draws.columns


def table_of(columns):
    return np.concatenate(columns, 1) if columns else None


def with_draws(layer, call):
    outputs, columns = with_columns(layer, call)
    return outputs, table_of(columns)


def rand_augment(**options):
    """Returns a RandAugment that does not modify images in place by a brightness that was not
    selected."""
    layer = L.RandAugment(**options)
    changed = layer.random_brightness.transform_images
    layer.random_brightness.transform_images = lambda x, change: changed(x.copy(), change)
    return layer


def case(layer, x, labels=None):
    data = x.copy() if labels is None else {"images": x.copy(), "labels": labels}
    data, draws = with_draws(layer, lambda: layer(data, training=True))
    outputs = [data] if labels is None else [data["images"], data["labels"]]
    golden = {"layer": serialized(layer), "inputs": [tensor(x)],
              "draws": None if draws is None else tensor(draws),
              "outputs": [compact(np.asarray(y, np.float32)) for y in outputs]}
    if labels is not None:
        golden["inputs"].append(tensor(labels))
    return golden


def image(height=5, width=4, channels=3, most=255):
    return (rng.random((ROWS, height, width, channels)) * most).astype(np.float32)


def moving():
    modes = ("reflect", "constant", "nearest", "wrap")
    return [case(L.RandomFlip(mode, seed=1), image())
            for mode in ("horizontal", "vertical", "horizontal_and_vertical")] + [
        case(L.RandomRotation(0.3, fill_mode=mode, fill_value=7.0), image()) for mode in modes] + [
        case(L.RandomRotation((-0.1, 0.5), interpolation="nearest"), image(4, 5, 2)),
        case(L.RandomZoom(0.5), image()),
        case(L.RandomZoom((0.2, 0.7), (-0.6, 0.1), fill_mode="constant"), image()),
        case(L.RandomZoom(0.9, -0.3, fill_mode="wrap", interpolation="nearest"), image(4, 6, 1)),
        case(L.RandomTranslation(0.4, 0.7), image()),
        case(L.RandomTranslation((-0.3, 0.1), (0.2, 0.9), fill_mode="constant", fill_value=3.5),
             image()),
        case(L.RandomTranslation(1.0, 0.0, fill_mode="wrap"), image()),
        case(L.RandomShear(0.5, 0.3), image()),
        case(L.RandomShear((0.2, 0.6), fill_mode="nearest", interpolation="nearest"), image()),
        case(L.RandomPerspective(), image()),
        case(L.RandomPerspective(0.8, scale=0.3, fill_value=9.0), image(6, 3)),
        case(L.RandomPerspective((0.9, 1.0), 0.7, interpolation="nearest"), image()),
        case(L.RandomCrop(3, 2, seed=4), image()),
        case(L.RandomCrop(4, 3, seed=4), image(6, 9, 1))]


def colors():
    return [
        case(L.RandomContrast(0.7), image()),
        case(L.RandomContrast((0.5, 0.9), value_range=(0.0, 1.0)), image(most=1)),
        case(L.RandomBrightness(0.4), image()),
        case(L.RandomBrightness((-0.1, 0.6), value_range=(-1.0, 1.0)), image(most=1)),
        case(L.RandomHue(0.8), image()),
        case(L.RandomHue((0.3, 0.5), value_range=(0.0, 1.0)), image(most=1)),
        case(L.RandomSaturation(0.6, value_range=(0.0, 1.0)), image(most=1)),
        case(L.RandomSaturation((0.2, 0.8)), image()),
        case(L.RandomGrayscale(0.5), image()),
        case(L.RandomGrayscale(1.0), image(channels=1)),
        case(L.RandomColorDegeneration(0.7), image()),
        case(L.RandomSharpness((0.1, 0.9)), image()),
        case(L.RandomPosterization((2, 7)), image()),
        case(L.RandomPosterization((3, 3), value_range=(0.0, 1.0)), image(most=1)),
        case(L.Solarization(0.3, 0.8), image()),
        case(L.Solarization((0.1, 0.4), (0.2, 0.3), value_range=(0.0, 1.0)), image(most=1)),
        case(L.AutoContrast(), image(most=100)),
        case(L.AutoContrast(value_range=(0.0, 1.0)), np.concatenate(
            [image(channels=1, most=0.5), np.full((ROWS, 5, 4, 1), 0.25, np.float32)], -1)),
        case(L.Equalization(), image(most=120)),
        case(L.Equalization(value_range=(0.0, 1.0), bins=16), image(most=1)),
        case(L.RandomColorJitter(brightness_factor=0.2, contrast_factor=(0.1, 0.4),
                                 saturation_factor=(0.3, 0.6), hue_factor=0.2,
                                 value_range=(0.0, 1.0)), image(most=1)),
        case(L.RandomColorJitter(contrast_factor=0.3, seed=2), image())]


def mixing():
    shares = lambda: rng.random((ROWS, 4), np.float32)
    return [
        case(L.MixUp(), image()),
        case(L.MixUp(alpha=1.5, seed=3), image(), shares()),
        case(L.CutMix(), image()),
        case(L.CutMix((0.3, 0.9)), image(8, 7), shares()),
        case(L.RandomErasing(), image()),
        case(L.RandomErasing((0.5, 0.9), scale=(0.2, 0.9), fill_value=17.0), image(7, 8)),
        case(L.RandomErasing(1.0, 0.8, fill_value=(1.0, 2.0, 3.0), value_range=(0.0, 2.5)),
             image(7, 8)),
        case(rand_augment(), image()),
        case(rand_augment(factor=(0.2, 0.8), num_ops=4, value_range=(0.0, 1.0)), image(most=1)),
        case(rand_augment(num_ops=8), image())]


def unchanged():
    """Returns configurations of layers of which only the configuration is compared."""
    layers = [L.RandomFlip(data_format="channels_first", name="flip"),
              L.Pipeline([L.RandomFlip("horizontal"), L.RandomContrast(0.25),
                          L.Rescaling(0.5)], name="augment")]
    return [{"layer": serialized(layer)} for layer in layers]


def transforms():
    """Returns cases of keras.ops.image.affine_transform, with small and large shifts, in all
    modes."""
    cases = []
    for mode in ("constant", "nearest", "wrap", "mirror", "reflect"):
        for how in ("bilinear", "nearest"):
            x = rng.random((2, 4, 5, 2), np.float32)
            rows = np.concatenate([rng.normal(0, 1.5, (2, 6)), np.zeros((2, 2))], 1)
            rows = rows.astype(np.float32) * [1, 1, 4, 1, 1, 4, 0, 0]
            y = keras.ops.image.affine_transform(x, rows.astype(np.float32), how, mode, 0.75)
            cases.append({"mode": mode, "nearest": how == "nearest", "images": tensor(x),
                          "transforms": tensor(rows.astype(np.float32)), "output": compact(y)})
    return cases


def inverting():
    return [
        case(L.RandomInvert(), image()),
        case(L.RandomInvert((0.4, 0.8), value_range=(0.0, 1.0), seed=5), image(most=1)),
        # 1 - x, of which values from -1 to 0 leave the range.
        case(L.RandomInvert((0.9, 1.0), value_range=(-1.0, 1.0)), image(most=1) * 2 - 1)]


def smoothing():
    return [
        case(L.RandomGaussianBlur((0.5, 1.0)), image()),
        case(L.RandomGaussianBlur((0.9, 1.0), kernel_size=(3, 5), sigma=(0.5, 1.0), seed=6),
             image(7, 6)),
        case(L.RandomGaussianBlur(0.9, kernel_size=7, sigma=(0.8, 0.9), value_range=(0.1, 0.6)),
             image(6, 5, 2, most=1))]


def equalizing():
    clahe = L.ContrastLimitedAdaptiveHistogramEqualization
    return [
        case(clahe(tile_grid_size=(2, 3)), image(8, 9)),
        case(clahe(), image(11, 9, 2, most=120)),
        case(clahe((0.0, 1.0), clip_limit=40.0, tile_grid_size=(3, 2)), image(7, 9, 1, most=1)),
        case(clahe(clip_limit=0.0, tile_grid_size=(1, 4)), np.concatenate(
            [image(5, 6, 1), np.full((ROWS, 5, 6, 1), 0.5, np.float32)], -1))]


def chains():
    return [
        case(L.AugMix(), image()),
        case(L.AugMix((0.0, 1.0), num_chains=2, chain_depth=4, factor=(0.2, 0.7), alpha=0.5,
                      interpolation="nearest", seed=7), image(6, 5, most=1)),
        case(L.AugMix(num_chains=1, chain_depth=2, factor=0.6, all_ops=False), image(channels=2))]


def distorting():
    elastic = L.RandomElasticTransform
    return [
        case(elastic((0.9, 1.0), scale=(0.8, 1.0)), image(14, 12, 2)),
        case(elastic(0.9, scale=(0.9, 1.0), fill_mode="constant", fill_value=7.0), image(8, 9)),
        case(elastic((0.9, 1.0), 1.0, "nearest", "nearest", seed=8), image(7, 14, 1)),
        case(elastic((0.9, 1.0), (0.9, 1.0), fill_mode="wrap", value_range=(0.2, 0.7)),
             image(8, 8, 1, most=1)),
        case(elastic((0.9, 1.0), (0.9, 1.0), fill_mode="mirror"), image(6, 9, 1)),
        case(elastic(0.0), image())]


if __name__ == "__main__":
    # New parts are appended, as all cases draw from one generator.
    write("keras_augmentation.json", {
        "moving": moving(), "colors": colors(), "mixing": mixing(), "configs": unchanged(),
        "transforms": transforms(), "inverting": inverting(), "smoothing": smoothing(),
        "equalizing": equalizing(), "chains": chains(), "distorting": distorting()})
