"""Keras' TextVectorization on TensorFlow: learns a vocabulary of 1200 words from a file of texts,
each followed by a zero byte, and computes their rows of tf-idf."""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"

import numpy as np

from lines import answer_steps, quiet

with quiet():
    import tensorflow as tf

with open(sys.argv[1], "rb") as file:
    texts = file.read().split(b"\0")[:-1]
batches = tf.data.Dataset.from_tensor_slices(texts).batch(256)


def vectorize(_):
    layer = tf.keras.layers.TextVectorization(output_mode="tf_idf", max_tokens=1200)
    layer.adapt(batches)
    return np.concatenate([layer(batch).numpy() for batch in batches])


answer_steps(vectorize)
