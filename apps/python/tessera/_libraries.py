"""Loads libtorch for the compiled module, without the time that `import torch` takes."""
import ctypes
import importlib.metadata
import importlib.util
import os
import sys

from . import _build


def _installed_torch():
    """Returns (folder, version) of the package torch; (None, None) if there is none."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return None, None
    if "torch" in sys.modules:
        version = str(sys.modules["torch"].__version__)
    else:
        try:
            version = importlib.metadata.version("torch")
        except importlib.metadata.PackageNotFoundError:
            version = "unknown"
    return list(spec.submodule_search_locations)[0], version


def _fail(received):
    # A minor version of torch has its own binary interface.
    raise ImportError(f"[import tessera] it was built for torch {_build.torch_version}. Received: "
                      f"{received}. To fix: pip install 'torch=={_build.torch_version}.*'.")


def load_torch():
    """Loads libtorch_cpu before the compiled module does.

    libtorch_cpu has a Gloo of its own, and libtessera another one under the same names. The linker
    binds each to its own only if libtorch_cpu is loaded by itself, before libtessera.
    """
    folder, version = _installed_torch()
    fits = version is not None and version.split(".")[:2] == _build.torch_version.split(".")
    if "torch" in sys.modules:
        if not fits:
            _fail(f"torch {version}, which is imported already")
        return
    if not fits:
        # A build tree has a libtorch that is no package; a wheel has none.
        if _build.torch_folder is None:
            _fail(f"torch {version}" if version else "no torch")
        folder = _build.torch_folder
    libraries = os.path.join(folder, "lib")
    if _build.gpus and not os.path.exists(os.path.join(libraries, "libc10_cuda.so")):
        raise ImportError(f"[import tessera] it was built for a torch with CUDA, which also runs without "
                          f"a GPU. Received: torch {version} for CPUs. To fix: pip install "
                          f"'torch=={_build.torch_version}.*' from PyPI.")
    ctypes.CDLL(os.path.join(libraries, "libtorch_cpu.so"))
