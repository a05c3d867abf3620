"""Checks that every #include obeys the order of folders, and that of libtorch only ATen is used: no
module, optimizer, data loader, autograd or process group."""
import re

from sources import INCLUDE, LIBRARY, finish, sources

# Each folder may include itself, the folders listed here and whatever those may include.
ALLOWED = {
    "framework/base": [],
    "framework/drawing": ["framework/base"],
    "framework/mesh": ["framework/base"],
    "framework/pipeline": ["framework/mesh", "framework/drawing"],
    "framework/cluster": ["framework/base"],
    "framework/cluster/coordination": ["framework/cluster"],
    "framework/cluster/membership": ["framework/cluster/coordination"],
    "framework/cluster/launcher": ["framework/cluster/membership"],
    "framework/io/format": ["framework/cluster"],
    "framework/io/hdf5": [],
    "framework/serving/http": ["framework/base"],
    "framework/text": ["framework/base"],
    "framework/comm": ["framework/mesh", "framework/cluster/membership"],
    "framework/tensor": ["framework/comm", "framework/drawing"],
    "framework/ops": ["framework/tensor"],
    "framework/autodiff": ["framework/ops"],
    "framework/nn": ["framework/autodiff", "framework/io/format"],
    "framework/data": ["framework/nn"],
    "framework/optimizer": ["framework/nn"],
    "framework/graph": ["framework/nn"],
    "framework/training": ["framework/data", "framework/optimizer", "framework/pipeline"],
    "framework/model": ["framework/training", "framework/graph"],
    "framework/io": ["framework/model", "framework/io/format"],
    "framework/generation": ["framework/model", "framework/text"],
    "framework/serving": ["framework/io", "framework/serving/http", "datasets/files"],
    "framework/strategy": ["framework/io"],
    "framework/parameter_server": ["framework/strategy"],
    "layers": ["framework/data", "framework/text"],
    "optimizers": ["framework/optimizer"],
    "metrics": ["framework/nn"],
    "datasets/files": ["framework/cluster", "framework/text"],
    "datasets": ["framework/data", "datasets/files"],
    "datasets/arrow": ["datasets"],
    "layers/pretrained": ["framework/io", "layers"],
}
TORCH_FREE = ["framework/base", "framework/drawing", "framework/mesh", "framework/pipeline",
              "framework/cluster",
              "framework/cluster/coordination", "framework/cluster/membership",
              "framework/cluster/launcher",
              "framework/io/format", "framework/io/hdf5", "framework/serving/http", "framework/text",
              "datasets/files"]
TORCH_HEADERS = ("ATen/", "c10/", "torch/")
FORBIDDEN = re.compile(
    r"torch::(nn|optim|data|autograd|jit)\b|\bc10d\b|requires_grad|#\s*include\s*<torch/")
# Exception: registers the kernels of an imitated device.
EXEMPT = {"tests/support/fake_gpu": "#include <torch/library.h>"}


def reachable(folder):
    found, waiting = set(), [folder]
    while waiting:
        current = waiting.pop()
        if current not in found:
            found.add(current)
            waiting += ALLOWED[current]
    return found


def folder_of(parts):
    """Returns the longest folder above a file that is in the table."""
    for length in range(len(parts) - 1, 0, -1):
        if "/".join(parts[:length]) in ALLOWED:
            return "/".join(parts[:length])
    return "/".join(parts[:2]) if parts[0] == "framework" else parts[0]


def main():
    offenders = []
    seen = 0
    for path, lines in sources(LIBRARY):
        folder = folder_of(path.parts)
        if folder not in ALLOWED:
            offenders.append(f"{path}: folder {folder} is not in the table")
            continue
        allowed = reachable(folder)
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            seen += 1
            header = match.group(1)
            target = folder_of(header.split("/")[1:]) if header.startswith("tessera/") else None
            if target and target not in allowed:
                offenders.append(f"{path}:{number}: {folder} may not include {target}")
            if header.startswith(TORCH_HEADERS) and folder in TORCH_FREE:
                offenders.append(f"{path}:{number}: {folder} may not include libtorch")
            if header.startswith(("apps/", "tests/", "../")):
                offenders.append(f"{path}:{number}: write <tessera/...>, not {header}")
    for path, lines in sources():
        for number, line in enumerate(lines, 1):
            if FORBIDDEN.search(line) and EXEMPT.get(str(path.parent)) != line:
                offenders.append(f"{path}:{number}: not of ATen: {line.strip()}")
    finish(offenders, "a folder includes itself and the folders below it; of libtorch only at:: and "
           "c10::", seen)


if __name__ == "__main__":
    main()
