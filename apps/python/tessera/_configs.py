"""Arguments of Keras as JSON, for the compiled module."""
import json
import sys


def _serialized(value):
    """Returns an object of Keras, or a number of NumPy, as json.dumps() takes it."""
    if hasattr(value, "tolist"):
        return value.tolist()
    keras = sys.modules.get("keras")
    if keras and (hasattr(value, "get_config") or
                  getattr(value, "__module__", "").partition(".")[0] == "keras"):
        return keras.saving.serialize_keras_object(value)
    raise TypeError(f"[compile] an optimizer, loss or metric is one of Keras', its name or its "
                    f"configuration. Received: {type(value).__name__}. To fix: write it in C++, or "
                    f"pass one of these.")


def to_json(value):
    """Returns a value as JSON; objects of Keras by their configurations."""
    return json.dumps(value, default=_serialized)


def to_value(text):
    """Returns the value of JSON."""
    return json.loads(text)
