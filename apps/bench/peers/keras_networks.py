"""Networks of images and of series of `bench compare` in Keras; apps/bench/networks.cpp and
step_works.cpp have the same."""
from keras import Input, Model, Sequential, layers


def normalized(x):
    return layers.BatchNormalization()(x)


def padded(x, window, stride):
    """Pads an image as PyTorch does where Keras' "same" does not."""
    if stride == 1 or window == 1:
        return x, "same"
    return layers.ZeroPadding2D(window // 2)(x), "valid"


def convolution(x, filters, window, stride=1):
    x, padding = padded(x, window, stride)
    return normalized(layers.Conv2D(filters, window, stride, padding, use_bias=False)(x))


def bottleneck(x, filters, stride, first):
    y = layers.ReLU()(convolution(x, filters, 1, stride))
    y = convolution(layers.ReLU()(convolution(y, filters, 3)), 4 * filters, 1)
    shortcut = convolution(x, 4 * filters, 1, stride) if first else x
    return layers.ReLU()(layers.Add()([shortcut, y]))


def inverted_residual(x, filters, factor, stride):
    inputs = x.shape[-1]
    y = layers.ReLU(6)(convolution(x, factor * inputs, 1)) if factor > 1 else x
    y, padding = padded(y, 3, stride)
    y = normalized(layers.DepthwiseConv2D(3, stride, padding, use_bias=False)(y))
    y = convolution(layers.ReLU(6)(y), filters, 1)
    return layers.Add()([x, y]) if stride == 1 and inputs == filters else y


def classifier(image, x):
    return Model(image, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def resnet50(row):
    image = Input(row)
    x = layers.ReLU()(convolution(image, 64, 7, 2))
    x = layers.MaxPooling2D(3, 2)(layers.ZeroPadding2D(1)(x))
    for filters, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(blocks):
            x = bottleneck(x, filters, stride if i == 0 else 1, i == 0)
    return classifier(image, x)


def mobilenet_v2(row):
    image = Input(row)
    x = layers.ReLU(6)(convolution(image, 32, 3, 2))
    for factor, filters, blocks, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2),
                                            (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                                            (6, 320, 1, 1)):
        for i in range(blocks):
            x = inverted_residual(x, filters, factor, stride if i == 0 else 1)
    return classifier(image, layers.ReLU(6)(convolution(x, 1280, 1)))


def make(work, sizes):
    """Returns the network of this name."""
    row = sizes["row"]
    if work in ("lstm", "gru"):
        layer = layers.LSTM if work == "lstm" else layers.GRU
        return Sequential([Input(row), layer(sizes["units"]), layers.Dense(10)])
    return resnet50(row) if work == "resnet50" else mobilenet_v2(row)
