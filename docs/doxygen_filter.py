"""Prints a header for Doxygen: what it declares stands in the group that its folder names.

Argument: the header's path. `layers/KIND` are groups inside that of the layers. In a comment a line
that begins with "Shape:", "Weights:" or the like begins a paragraph with that title.
"""
import pathlib
import re
import sys

# The longest of these that a header's path begins with names its group, which groups.dox describes.
GROUPS = {
    "datasets": "datasets",
    "framework/autodiff": "tensors",
    "framework/base": "support",
    "framework/cluster": "distribution",
    "framework/comm": "distribution",
    "framework/data": "datasets",
    "framework/graph": "models",
    "framework/io": "checkpoints",
    "framework/io/backup_and_restore": "callbacks",
    "framework/io/model_checkpoint": "callbacks",
    "framework/io/save_freq": "callbacks",
    "framework/io/tensor_board": "callbacks",
    "framework/mesh": "meshes",
    "framework/model": "models",
    "framework/nn": "layers",
    "framework/nn/activations": "activations",
    "framework/nn/initializers": "initializers",
    "framework/nn/initializers/constraint": "constraints",
    "framework/nn/initializers/regularizer": "regularizers",
    "framework/nn/losses": "losses",
    "framework/nn/metric": "metrics",
    "framework/nn/variable": "tensors",
    "framework/ops": "tensors",
    "framework/optimizer": "optimizers",
    "framework/parameter_server": "distribution",
    "framework/serving": "checkpoints",
    "framework/strategy": "distribution",
    "framework/tensor": "tensors",
    "framework/training": "models",
    "framework/training/callbacks": "callbacks",
    "layers": "layers",
    "metrics": "metrics",
    "optimizers": "optimizers",
    "optimizers/schedules": "schedules",
}
OPENING = re.compile(r"^namespace tessera\b.*\{$", re.MULTILINE)
CLOSING = re.compile(r"^\}  // namespace tessera", re.MULTILINE)
TITLED = re.compile(r"^( *///) (Shape|Weights|Communication|Keras name): ", re.MULTILINE)


def group_of(path):
    """The group of a header, or None."""
    fitting = [begin for begin in GROUPS if path.startswith(begin)]
    return GROUPS[max(fitting, key=len)] if fitting else None


def beginning(path):
    kind = path.parts[1] if path.parts[0] == "layers" and len(path.parts) > 2 else None
    if kind:
        title = kind.replace("_", " ").capitalize()
        return f"/** @addtogroup layers_{kind} {title}\n@ingroup layers\n@{{ */"
    return f"/** @addtogroup {group_of(path.as_posix())}\n@{{ */"


def main():
    root = pathlib.Path(__file__).resolve().parents[1]
    path = pathlib.Path(sys.argv[1]).resolve()
    text = TITLED.sub(r"\1 @par \2\n\1 ", path.read_text(encoding="utf-8"))
    opening, closing = OPENING.search(text), list(CLOSING.finditer(text))
    if opening and closing:
        text = (text[:opening.end()] + "\n" + beginning(path.relative_to(root))
                + text[opening.end():closing[-1].start()] + "/** @} */\n"
                + text[closing[-1].start():])
    print(text, end="")


if __name__ == "__main__":
    main()
