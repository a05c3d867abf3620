"""Of libtorch only ATen: no module, optimizer, data loader, autograd or process group."""
import re

from sources import finish, sources

FORBIDDEN = re.compile(
    r"torch::(nn|optim|data|autograd|jit)\b|\bc10d\b|requires_grad|#\s*include\s*<torch/")

# What registers the kernels of a kind of device.
ALLOWED = {"tests/support/fake_gpu": "#include <torch/library.h>"}

offenders = []
seen = 0
for path, lines in sources():
    seen += 1
    for number, line in enumerate(lines, 1):
        if FORBIDDEN.search(line) and ALLOWED.get(str(path.parent)) != line:
            offenders.append(f"{path}:{number}: {line.strip()}")
finish(offenders, "of libtorch only at:: and c10::", seen)
