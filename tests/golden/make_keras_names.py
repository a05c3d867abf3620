"""Writes keras_names.json: the public names of Keras 3 by module, and "all" of them. Run with Keras
from PyPI:

    python make_keras_names.py keras_names.json
"""
import inspect
import json
import sys

import keras

MODULES = ["layers", "losses", "metrics", "optimizers", "optimizers.schedules", "callbacks",
           "initializers", "regularizers", "constraints"]
BASES = {"Layer", "Loss", "Metric", "Optimizer", "LearningRateSchedule", "Callback", "CallbackList",
         "Initializer", "Regularizer", "Constraint", "Wrapper", "InputSpec", "TFSMLayer",
         "JaxLayer", "FlaxLayer", "TorchModuleWrapper", "RemoteMonitor", "InputLayer"}


def classes_of(module):
    """Returns the names of a module's classes; if a class has several, its own name."""
    holder = keras
    for part in module.split("."):
        holder = getattr(holder, part)
    classes = {}
    for name, value in vars(holder).items():
        if not inspect.isclass(value) or not name[0].isupper() or name in BASES:
            continue
        if value not in classes or name == value.__name__:
            classes[value] = name
    return set(classes.values())


def functions_of(module):
    """Returns the names of a module's functions."""
    return sorted(name for name, value in vars(module).items()
                  if callable(value) and not inspect.isclass(value) and not name.startswith("_"))


def utilities():
    """Returns the names of functions and classes of keras.utils, without its modules."""
    return sorted(name for name, value in vars(keras.utils).items()
                  if callable(value) and not name.startswith("_"))


def all_names(module, found, known):
    """Adds the public names of a module and of the modules in it, without operations."""
    known.add(module)
    for name, value in vars(module).items():
        if name.startswith("_") or value is keras.ops or value is keras.src:
            continue
        if inspect.ismodule(value):
            if value not in known and value.__name__.startswith("keras."):
                all_names(value, found, known)
        else:
            found.add(name)
    return found


def main():
    found = {module: sorted(classes_of(module)) for module in MODULES}
    found["layers"] = sorted(found["layers"] + ["Input"])
    functions = {name for name, value in vars(keras.activations).items()
                 if inspect.isfunction(value)}
    found["activations"] = sorted(functions - {"deserialize", "get", "serialize"})
    found["ops"] = functions_of(keras.ops)
    found["ops.image"] = functions_of(keras.ops.image)
    found["random"] = functions_of(keras.random)
    found["utils"] = utilities()
    found["all"] = sorted(all_names(keras, set(), set()))
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump(found, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    main()
