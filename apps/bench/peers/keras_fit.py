"""Epochs of fit on digits in Keras on a backend: Flatten-128-10, or two convolutions; shuffled
batches of 128, Adam, accuracy, progress bar. Answers with milliseconds per step."""
import os
import sys
import time

os.environ["KERAS_BACKEND"] = sys.argv[2]
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

from lines import answer, quiet, read

with quiet():
    import keras
    from keras import layers

dense = [layers.Flatten(), layers.Dense(128, activation="relu"), layers.Dense(10)]
cnn = [layers.Reshape((28, 28, 1)), layers.Conv2D(32, 3, activation="relu"),
       layers.MaxPooling2D(2), layers.Conv2D(64, 3, activation="relu"), layers.MaxPooling2D(2),
       layers.Flatten(), layers.Dropout(0.5), layers.Dense(10)]
x, y = read(sys.argv[1], 28, 28)
model = keras.Sequential([layers.Input((28, 28)), *(cnn if sys.argv[3] == "cnn" else dense)])
model.compile(optimizer=keras.optimizers.Adam(1e-3),
              loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
              metrics=["accuracy"])


def run(epochs):
    start = time.perf_counter()
    model.fit(x, y, batch_size=128, epochs=epochs, verbose=1)
    return [1e3 * (time.perf_counter() - start) / epochs / -(-len(x) // 128)]


answer(run)
