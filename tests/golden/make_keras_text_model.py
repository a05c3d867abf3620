"""Writes keras_text_model.keras: a Keras model on texts with two lookup layers, one of them in a
nested model. Made with keras 3.15.1 on tensorflow 2.21.0 from PyPI. Run it in this folder: python3
make_keras_text_model.py
"""
import json
import os
import zipfile

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
from keras import layers

FIXED = (1980, 1, 1, 0, 0, 0)
METADATA = {"keras_version": keras.__version__, "date_saved": "1980-01-01@00:00:00"}


def main():
    words = layers.TextVectorization(max_tokens=8, output_sequence_length=4, name="words")
    words.adapt(["a fine film", "a dull film", "fine acting, fine story"])
    kinds = layers.StringLookup(output_mode="one_hot", name="kinds")
    kinds.adapt(["drama", "comedy", "drama"])
    label = keras.Input((1,), dtype="string")
    inner = keras.Model(label, kinds(label), name="inner")
    text, kind = keras.Input((1,), dtype="string"), keras.Input((1,), dtype="string")
    x = layers.Flatten()(layers.Embedding(8, 2)(words(text)))
    y = layers.Dense(1)(layers.Concatenate()([x, inner(kind)]))
    model = keras.Model([text, kind], y)
    for weight in model.trainable_weights:
        weight.assign(np.arange(np.prod(weight.shape)).reshape(weight.shape) % 7 - 3)
    model.save("scratch.keras")
    with zipfile.ZipFile("scratch.keras") as saved, \
            zipfile.ZipFile("keras_text_model.keras", "w") as out:
        for name in sorted(saved.namelist()):
            data = json.dumps(METADATA) if name == "metadata.json" else saved.read(name)
            out.writestr(zipfile.ZipInfo(name, FIXED), data)
            print(name)
    os.remove("scratch.keras")
    print(words(["fine words, a film"]).numpy(), words.get_vocabulary(), kinds.get_vocabulary())


if __name__ == "__main__":
    main()
