"""A room's README names every header of the room, and its tables name files that exist."""
import re

from sources import INCLUDE, LIBRARY, finish, root, sources

# A new operation needs no word in its room's README, for this header lists them.
LIST_OF_OPERATIONS = "framework/ops/ops.hpp"
QUOTED = re.compile(r"`([^`\n]+)`")


def text_of(path):
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def names_in_tables(text):
    """(line number, name) of what the first columns of a README's tables name."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("| "):
            for name in QUOTED.findall(line.split("|")[1]):
                yield number, name


def exists(room, name):
    return (room / name).exists() or any(room.rglob(f"{name}.?pp"))


offenders = []
seen = 0
lines = text_of(root() / LIST_OF_OPERATIONS).splitlines()
listed = {match.group(1) for match in map(INCLUDE.match, lines) if match}
for path, _ in sources(["framework"], [".hpp"]):
    if f"tessera/{path.as_posix()}" in listed:
        continue
    seen += 1
    readme = root() / path.parts[0] / path.parts[1] / "README.md"
    if path.stem not in {name.rpartition("/")[2] for name in QUOTED.findall(text_of(readme))}:
        offenders.append(f"{readme.relative_to(root())} does not name {path}")
readmes = [*(root() / "framework").glob("*/README.md"),
           *(root() / folder / "README.md" for folder in LIBRARY[1:])]
for path in sorted(readmes):
    for number, name in names_in_tables(text_of(path)):
        seen += 1
        if not exists(path.parent, name):
            offenders.append(f"{path.relative_to(root())}:{number}: there is no file {name}")
finish(offenders, "a room's README names its headers, and files that exist", seen)
