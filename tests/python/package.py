"""Imports what the tests of the Python package need; without it, exits with ctest's status for skipped."""
import json
import os
import sys


def need(module, entry):
    """Returns a module; if it is not installed, exits with the status for skipped."""
    os.environ.setdefault("KERAS_BACKEND", "jax")
    try:
        return __import__(module)
    except ImportError:
        print(f'skipped: "{entry}": there is no {module} in build/deps/python')
        sys.exit(77)


def dense_json(units=(8, 2), inputs=4, names=("hidden", "logits")):
    """Returns the JSON of a Sequential model of Dense layers, as Keras writes it."""
    layers = [{"module": "keras.layers", "class_name": "InputLayer", "registered_name": None,
               "config": {"batch_shape": [None, inputs], "dtype": "float32", "name": "input"}}]
    layers += [{"module": "keras.layers", "class_name": "Dense", "registered_name": None,
                "config": {"name": name, "units": size,
                           "activation": "linear" if name == names[-1] else "relu"}}
               for name, size in zip(names, units)]
    return json.dumps({"module": "keras", "class_name": "Sequential", "registered_name": None,
                       "config": {"name": "model", "layers": layers}})


def language_json(vocabulary=11, width=8):
    """Returns the JSON of a small model that predicts the next token."""
    layer = {"module": "keras.layers", "registered_name": None}
    layers = [{**layer, "class_name": "InputLayer",
               "config": {"batch_shape": [None, None], "dtype": "int64", "name": "ids"}},
              {**layer, "class_name": "Embedding",
               "config": {"name": "tokens", "input_dim": vocabulary, "output_dim": width}},
              {**layer, "class_name": "TransformerBlock",
               "config": {"name": "block", "num_heads": 2, "hidden_dim": 16, "rotary": {},
                          "use_causal_mask": True}},
              {**layer, "class_name": "Dense", "config": {"name": "logits", "units": vocabulary}}]
    return json.dumps({"module": "keras", "class_name": "Sequential", "registered_name": None,
                       "config": {"name": "language", "layers": layers}})


def loss_json():
    """Returns Keras' configuration of the cross-entropy of class ids and logits."""
    return {"class_name": "SparseCategoricalCrossentropy", "module": "keras.losses",
            "config": {"from_logits": True}, "registered_name": None}


def classes(rows=96, inputs=4, seed=1):
    """Returns rows of two classes that a small model learns."""
    numpy = __import__("numpy")
    random = numpy.random.default_rng(seed)
    x = random.normal(size=(rows, inputs)).astype("float32")
    return x, (x[:, :2].sum(1) > 0).astype("int64")


def compiled(tessera, optimizer="adam", **options):
    """Returns a compiled model for classes(), with the same weights in each call."""
    tessera.set_random_seed(3)
    model = tessera.model_from_json(dense_json())
    model.compile(optimizer, loss_json(), metrics=["accuracy"], **options)
    return model
