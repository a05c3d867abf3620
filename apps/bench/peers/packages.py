"""Prints the versions of this environment's frameworks as one line of JSON."""
import json
from importlib import metadata

found = {}
for name, packages in {"torch": ["torch"], "tensorflow": ["tensorflow", "tensorflow-cpu"],
                       "jax": ["jax"], "optax": ["optax"], "keras": ["keras"],
                       "pandas": ["pandas"], "transformers": ["transformers"], "pillow": ["pillow"],
                       "onnxruntime": ["onnxruntime"], "uvicorn": ["uvicorn"],
                       "starlette": ["starlette"], "uvloop": ["uvloop"],
                       "httptools": ["httptools"], "orjson": ["orjson"]}.items():
    for package in packages:
        try:
            found[name] = metadata.version(package)
        except metadata.PackageNotFoundError:
            pass
print(json.dumps(found))
