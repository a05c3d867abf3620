"""What Tessera raises. Every text is one line: `[where] rule. Received: value. To fix: action.`"""


class Error(Exception):
    """The base class of Tessera's errors."""


class ShapeError(Error, ValueError):
    """A global shape, rank or extent does not fit."""


class LayoutError(Error, ValueError):
    """A layout or layout rule does not fit its tensor or mesh."""


class MeshError(Error, ValueError):
    """A mesh does not fit its devices."""


class ConfigError(Error, ValueError):
    """An argument, configuration file or dtype is wrong."""


class StateError(Error, RuntimeError):
    """The call is invalid in the present state of the object, such as `fit` before `compile`."""


class CommError(Error, RuntimeError):
    """A collective failed or was aborted."""


class FileError(Error, OSError):
    """A file is missing, unreadable, corrupt or not writable."""


class Interrupted(Error, RuntimeError):
    """A signal, whose handler raised nothing, ended the work after the callbacks saved it."""


# Their full names are those that users import.
for _error in (Error, ShapeError, LayoutError, MeshError, ConfigError, StateError, CommError,
               FileError, Interrupted):
    _error.__module__ = "tessera"
