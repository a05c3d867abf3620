"""Adds a layer, an operation or a metric to a tree from its template, in the files that
CONTRIBUTING.md numbers, and prints their paths:

    python3 tests/templates/add.py . layer core/scaled_identity
    python3 tests/templates/add.py . operation scaled_square
    python3 tests/templates/add.py . metric scaled_error
"""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
# The heading in CONTRIBUTING.md, and the names of the template.
KINDS = {
    "layer": ("## A layer", "new_layer", "NewLayer"),
    "operation": ("## An operation", "new_op", "NewOp"),
    "metric": ("## A metric", "new_metric", "NewMetric"),
}


def numbered_paths(tree, kind, name):
    """Returns the paths of CONTRIBUTING.md's list for this name: KIND/x becomes core/my_layer."""
    text = (tree / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split(KINDS[kind][0] + "\n")[1].split("\n## ")[0]
    folder, _, base = name.rpartition("/")
    return [path.replace("KIND", folder).replace("/x", "/" + base)
            for path in re.findall(r"^\d+\. `([^`]+)`", section, re.MULTILINE)]


def filled(kind, suffix, name):
    """Returns the template that ends in `suffix`, with its name replaced."""
    _, old, old_class = KINDS[kind]
    folder, _, base = name.rpartition("/")
    text = (HERE / kind / (old + suffix)).read_text(encoding="utf-8")
    new_class = "".join(word.capitalize() for word in base.split("_"))
    text = text.replace("layers/kind/", f"layers/{folder}/").replace(old, base)
    return text.replace(old_class, new_class)


def with_include(text, line):
    """Returns an umbrella header with one more #include line in sorted order."""
    lines = text.splitlines()
    at = next((i for i, each in enumerate(lines) if each.startswith("#include") and each > line),
              len(lines))
    return "\n".join(lines[:at] + [line] + lines[at:]) + "\n"


def add(tree, kind, name):
    """Writes the files and returns their paths."""
    base = name.rpartition("/")[2]
    paths = numbered_paths(tree, kind, name)
    header = next(path for path in paths if path.endswith(f"/{base}.hpp"))
    for path in paths:
        target = tree / path
        stem, suffix = re.match(rf"(.*/{base})?(.*)", path).groups()
        if stem:
            if target.exists():
                sys.exit(f"{path} exists")
            target.parent.mkdir(parents=True, exist_ok=True)
            text = filled(kind, suffix, name)
        else:
            text = with_include(target.read_text(encoding="utf-8"), f"#include <tessera/{header}>")
        target.write_text(text, encoding="utf-8")
    return paths


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[2] not in KINDS:
        sys.exit(__doc__)
    print("\n".join(add(pathlib.Path(sys.argv[1]).resolve(), *sys.argv[2:])))
