"""Tessera for Python: models that Keras saved, trained and evaluated over meshes of devices.

    model = tessera.load_model("model.keras", layouts={
        "mesh": {"batch": 4, "model": 2},
        "layouts": [{"match": "hidden/kernel", "layout": [None, "model"]}]})
    model.fit(x, y, batch_size=64, epochs=3)
    model.save("further.keras")  # Keras goes on from here

Names and defaults are Keras'. Layers are written in C++.
"""
from ._libraries import load_torch as _load_torch

_load_torch()

from . import callbacks
from ._build import version as __version__
from ._tessera import (GeneratedTokens, History, LayoutMap, Mesh, Model, Optimizer, StepPlan,
                       Variable, barrier, create_distributed_mesh, create_mesh, is_first_process,
                       load_model, model_from_json, process_count, set_random_seed)
from .errors import (CommError, ConfigError, Error, FileError, Interrupted, LayoutError, MeshError,
                     ShapeError, StateError)

__all__ = [
    "Callback", "CommError", "ConfigError", "Error", "FileError", "GeneratedTokens", "History",
    "Interrupted", "LayoutError", "LayoutMap", "Mesh", "MeshError", "Model", "Optimizer",
    "ShapeError", "StateError", "StepPlan", "Variable", "barrier", "callbacks", "create_distributed_mesh",
    "create_mesh", "is_first_process", "load_model", "model_from_json", "process_count",
    "set_random_seed",
]

Callback = callbacks.Callback
