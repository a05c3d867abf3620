"""Checks that the table in docs/keras.md says which of Keras' names exist here. `--write` updates
it."""
import collections
import json
import re
import sys

from public_headers import declarations, headers, is_internal
from sources import finish, root

BEGIN = "<!-- names of Keras: kept by tests/scripts/check_keras_table.py -->"
END = "<!-- end of names -->"
# Where the classes of a Keras module are declared.
HEADERS = {
    "layers": ["layers/*/*.hpp", "framework/graph/input.hpp"],
    "losses": ["framework/nn/losses/*.hpp"],
    "metrics": ["metrics/*.hpp"],
    "optimizers": ["optimizers/*.hpp"],
    "optimizers.schedules": ["optimizers/*.hpp", "optimizers/schedules/*.hpp"],
    "callbacks": ["framework/training/callbacks/*.hpp", "framework/training/history.hpp",
                  "framework/io/*.hpp"],
    "initializers": ["framework/nn/initializers/initializers.hpp"],
    "regularizers": ["framework/nn/initializers/regularizers.hpp"],
    "constraints": ["framework/nn/initializers/constraints.hpp"],
    "activations": ["framework/nn/activations/activation_functions.hpp"],
}
DECLARATION = re.compile(r"^\s*(?:class|struct) (\w+)(?: final)?\b", re.MULTILINE)
ACTIVATION = re.compile(r"^(?:using ops::|DTensor )(\w+)", re.MULTILINE)
USING = re.compile(r"^using (?:ops|tessera)::(\w+);", re.MULTILINE)
# Headers of functions that are declared in a namespace above, by module.
USING_HEADERS = {"ops": "framework/ops/constants.hpp", "ops.image": "framework/ops/image.hpp"}
OTHER_NAMES = {"IdentityInitializer": "Identity", "ProgressBar": "ProgbarLogger"}


def public_names():
    """Returns the names that public headers declare, by namespace."""
    found = collections.defaultdict(set)
    for header in filter(lambda name: not is_internal(name), headers()):
        for _, space, name, _ in declarations(header):
            found[space].add(name)
    return found


def functions_here(module, public):
    """Returns the names here of a module of functions."""
    ops = public["tessera::ops"]
    if module in USING_HEADERS:
        text = (root() / USING_HEADERS[module]).read_text(encoding="utf-8")
        return public["tessera::" + module.replace(".", "::")] | set(USING.findall(text))
    if module == "random":
        return ops | {name.removeprefix("random_") for name in ops}
    return public["tessera"] | public["tessera::datasets"]


def names_here(module, public):
    if module not in HEADERS:
        return functions_here(module, public)
    text = ""
    for pattern in HEADERS[module]:
        for path in sorted(root().glob(pattern)):
            text += path.read_text(encoding="utf-8")
    expression = ACTIVATION if module == "activations" else DECLARATION
    found = {OTHER_NAMES.get(name, name) for name in expression.findall(text)}
    return found


def table(keras):
    lines = ["| Keras' module | of its names here | |", "|---|---|---|"]
    public = public_names()
    for module, names in keras.items():
        if module == "all":
            continue
        found = names_here(module, public)
        here = [name for name in names if name in found]
        listed = " ".join(f"`{name}`" for name in here)
        lines.append(f"| `{module}` | {len(here)} of {len(names)} | {listed} |")
    return "\n".join(lines)


def main():
    golden = root() / "tests/golden/keras_names.json"
    keras = json.loads(golden.read_text(encoding="utf-8"))
    page = root() / "docs/keras.md"
    text = page.read_text(encoding="utf-8")
    wanted = f"{BEGIN}\n\n{table(keras)}\n\n{END}"
    begin, end = text.find(BEGIN), text.find(END)
    offenders = []
    if begin < 0 or end < 0:
        offenders.append("docs/keras.md: the table of Keras' names is missing")
    elif text[begin:end + len(END)] != wanted:
        if "--write" in sys.argv:
            page.write_text(text[:begin] + wanted + text[end + len(END):], encoding="utf-8")
        else:
            offenders.append("docs/keras.md: the table of Keras' names is out of date; to fix: "
                             "python3 tests/scripts/check_keras_table.py . --write")
    finish(offenders, "docs/keras.md says which names of Keras exist", len(keras))


if __name__ == "__main__":
    main()
