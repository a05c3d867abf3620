"""The border: users' headers declare the names of docs/public_names.txt, all else is in detail.

`--write` brings the list up to date. Beside Keras' names, options with their enumerations,
operations, and readers of data there are at most 200.
"""
import collections
import json
import re
import sys

from check_keras_table import OTHER_NAMES
from public_headers import declarations, headers, included_from, is_internal
from sources import finish, root

MOST_OWN_NAMES = 200
# Functions on a public type that are found by their argument, and so are where it is.
BY_ARGUMENT = {"json_get", "option_json", "read_option", "names_of", "fields", "to_string"}
LIST = "docs/public_names.txt"
HEAD = """\
# Every name that a program finds in the namespaces tessera and tessera::strategy, by kind.
# tests/scripts/check_public_names.py compares it with the headers, and writes it with --write.
"""


def keras_names():
    golden = json.loads((root() / "tests/golden/keras_names.json").read_text(encoding="utf-8"))
    return {name for names in golden.values() for name in names} | set(OTHER_NAMES)


def option_values():
    """Enumerations that are members of options: what an option may be."""
    enums, members = set(), set()
    for header in filter(lambda name: not is_internal(name), headers()):
        text = (root() / header).read_text(encoding="utf-8")
        enums.update(re.findall(r"^enum class (\w+)", text, re.MULTILINE))
        for body in re.findall(r"^struct \w+Options \{(.*?)^\};", text, re.MULTILINE | re.DOTALL):
            members.update(re.findall(r"^  (?:std::optional<)?(\w+)", body, re.MULTILINE))
    return enums & members


def main():
    keras = keras_names()
    values = option_values()
    offenders = []
    found = collections.defaultdict(set)
    seen = 0
    for header in headers():
        for number, space, name, _ in declarations(header):
            seen += 1
            inside = "detail" in space.split("::")
            if is_internal(header) and not inside and name not in BY_ARGUMENT:
                offenders.append(f"{header}:{number}: {name} is internal: it belongs to "
                                 "tessera::detail")
            if is_internal(header) or inside or space.endswith("::ops"):
                continue
            kind = ("data sets" if space.endswith("::datasets") else
                    "Keras" if name in keras or space.endswith(("activations", "metrics")) else
                    "options" if name.endswith("Options") or name in values else "own")
            found[kind].add(name)
    for header in included_from("tessera.hpp"):
        path = root() / header
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if not is_internal(header) and re.match(r"using namespace", line):
                offenders.append(f"{header}:{number}: a header for users opens no namespace")
    if len(found["own"]) > MOST_OWN_NAMES:
        offenders.append(f"{len(found['own'])} names of our own, {MOST_OWN_NAMES} at most: move "
                         "what users do not write to tessera::detail")
    text = HEAD
    for kind in ("own", "Keras", "options", "data sets"):
        text += f"\n[{kind}: {len(found[kind])}]\n" + "".join(n + "\n" for n in sorted(found[kind]))
    path = root() / LIST
    kept = path.read_text(encoding="utf-8") if path.is_file() else ""
    if "--write" in sys.argv:
        path.write_text(text, encoding="utf-8")
    elif kept != text:
        before, after = set(kept.splitlines()), set(text.splitlines())
        for name in sorted(after - before):
            offenders.append(f"{LIST}: {name} is missing; if it is for users run this with --write")
        for name in sorted(before - after):
            offenders.append(f"{LIST}: {name} is not in the headers; run this with --write")
    finish(offenders, "what users do not write is in tessera::detail", seen)


if __name__ == "__main__":
    main()
