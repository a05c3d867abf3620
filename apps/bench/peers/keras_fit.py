"""Epochs of fit of Flatten-128-10 on digits in Keras on JAX: shuffled batches of 128, Adam,
accuracy, progress bar. Answers with milliseconds a step."""
import os
import sys
import time

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_PLATFORMS"] = "cpu"

import keras
from keras import layers

from lines import answer, read

x, y = read(sys.argv[1], 28, 28)
model = keras.Sequential([layers.Input((28, 28)), layers.Flatten(),
                          layers.Dense(128, activation="relu"), layers.Dense(10)])
model.compile(optimizer=keras.optimizers.Adam(1e-3),
              loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
              metrics=["accuracy"])


def run(epochs):
    start = time.perf_counter()
    model.fit(x, y, batch_size=128, epochs=epochs, verbose=1)
    return [1e3 * (time.perf_counter() - start) / epochs / -(-len(x) // 128)]


answer(run)
