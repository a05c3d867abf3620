"""Callbacks, as in keras.callbacks."""

_HOOKS = ("on_train_begin", "on_train_end", "on_epoch_begin", "on_epoch_end",
          "on_train_batch_begin", "on_train_batch_end", "on_test_begin", "on_test_end",
          "on_test_batch_begin", "on_test_batch_end", "on_predict_begin", "on_predict_end",
          "on_predict_batch_begin", "on_predict_batch_end", "on_interrupt")
_OLDER_NAMES = {"on_train_batch_begin": "on_batch_begin", "on_train_batch_end": "on_batch_end"}


class Callback:
    """Hooks that fit, evaluate and predict call (keras.callbacks.Callback).

    Epochs and batches count from 0. `logs` is a dict; values that on_epoch_end adds to it reach
    later callbacks, the history and the progress bar. A callback that defines on_train_batch_end
    has the metrics read after every batch, which takes a reduction over the mesh.
    """

    def __init__(self):
        self.params = None
        self.model = None

    def set_params(self, params):
        """Takes the dict of "epochs", "steps" and "verbose" of the run."""
        self.params = params

    def set_model(self, model):
        """Takes the model of the run."""
        self.model = model

    def on_batch_begin(self, batch, logs=None):
        """The older name of on_train_batch_begin."""

    def on_batch_end(self, batch, logs=None):
        """The older name of on_train_batch_end."""

    def on_train_begin(self, logs=None):
        """Called before the first epoch of fit."""

    def on_train_end(self, logs=None):
        """Called after fit, with the values of the last epoch."""

    def on_epoch_begin(self, epoch, logs=None):
        """Called before an epoch."""

    def on_epoch_end(self, epoch, logs=None):
        """Called after an epoch and its validation."""

    def on_train_batch_begin(self, batch, logs=None):
        """Called before a batch of fit."""
        self.on_batch_begin(batch, logs)

    def on_train_batch_end(self, batch, logs=None):
        """Called after a batch of fit, with the values of the epoch so far."""
        self.on_batch_end(batch, logs)

    def on_test_begin(self, logs=None):
        """Called before evaluate or a validation."""

    def on_test_end(self, logs=None):
        """Called after evaluate or a validation, with its values."""

    def on_test_batch_begin(self, batch, logs=None):
        """Called before a batch of evaluate or a validation."""

    def on_test_batch_end(self, batch, logs=None):
        """Called after a batch of evaluate or a validation, with its values so far."""

    def on_predict_begin(self, logs=None):
        """Called before predict."""

    def on_predict_end(self, logs=None):
        """Called after predict."""

    def on_predict_batch_begin(self, batch, logs=None):
        """Called before a batch of predict."""

    def on_predict_batch_end(self, batch, logs=None):
        """Called after a batch of predict."""

    def on_interrupt(self):
        """Called when a signal asks fit to end within seconds: save what a resumed run needs."""


def _is_empty_base(kind):
    """Returns whether a class is the base of callbacks, whose hooks do nothing: ours or Keras'."""
    return kind is Callback or (kind.__name__ == "Callback" and
                                kind.__module__.partition(".")[0] == "keras")


def _defines(callback, hook):
    if hook in getattr(callback, "__dict__", {}):
        return True
    for kind in type(callback).__mro__:
        if hook in vars(kind):
            return not _is_empty_base(kind)
    return False


def defined_hooks(callback):
    """Returns the names of the hooks that a callback defines itself. The others are not called."""
    hooks = [hook for hook in _HOOKS
             if _defines(callback, hook) or _defines(callback, _OLDER_NAMES.get(hook, hook))]
    if not hooks and not any(map(_is_empty_base, type(callback).__mro__)):
        raise TypeError(f"[callbacks] a callback has methods such as on_epoch_end. Received: "
                        f"{type(callback).__name__}. To fix: derive it from "
                        f"tessera.callbacks.Callback.")
    return hooks


__all__ = ["Callback"]
