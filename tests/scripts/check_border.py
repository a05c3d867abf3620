"""Checks the library's public interface: what users may include, write and read.

Names in public headers are in docs/public_names.txt (`--write` updates the list) and have a
comment, as has every option; public signatures use types of tessera::detail by pointer only;
umbrella headers include every header of their folder; functions that README.md and docs/ name in
backticks, such as `load_model()`, are public.
"""
import collections
import json
import re
import sys

from check_keras_table import OTHER_NAMES
from public_headers import NAMESPACE, declarations, headers, included_from, is_internal
from sources import INCLUDE, LIBRARY, finish, root

# Functions on a public type that are found by argument-dependent lookup and therefore declared with
# it.
BY_ARGUMENT = {"json_get", "option_json", "read_option", "names_of", "fields", "to_string"}
LIST = "docs/public_names.txt"
HEAD = """\
# Every name that a program finds in the namespaces tessera and tessera::strategy, by kind.
# tests/scripts/check_border.py compares it with the headers, and writes it with --write.
"""
OPTIONS = re.compile(r"^struct \w+Options \{")
MEMBER = re.compile(r"^  [A-Za-z_][\w:<>,\s*&()]*\s(\w+)( = .*)?;")
# Types in declarations of public classes that only the runtime calls.
RUNTIME = {
    "Blocks": "constructor and accessors of DTensor",
    "ShardingPtr": "the same; it is a pointer",
    "GradientReducer": "accessor of Optimizer for training steps",
    "SavedOps": "within the function that remat() returns",
    "RematRegionScope": "the same",
    "ScalarOnDevices": "called by the optimizer that wraps another",
    "ServerJob": "accessor of ParameterServerStrategy for its room",
    "LabelledTexts": "constructor of ImdbReviews, for imdb()",
    "HoldsLayer": "concept that tells activations from layers",
    "JsonPath": "the alias's own declaration",
}
# Folders whose headers no umbrella header includes: separate libraries, and what stands on more than
# its neighbors.
APART = ("files/", "arrow/", "pretrained/")
# Code spans of the documentation, and the function that one of them calls.
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"`([^`]+)`")
CALLED = re.compile(r"(?:\w+(?:::|->|\.))*(\w+)\(")
MEMBER_FUNCTION = re.compile(r"^  +(?!(?:return|if|for|while|throw|else)\b)[^/\n]*?\b(\w+)\(",
                             re.MULTILINE)
# Variables that the documentation calls.
VARIABLES = {"a", "f", "layer"}
# The second group is a type that a signature names; a smart pointer or "*" makes it valid.
DETAIL = re.compile(r"(std::(?:shared|unique|weak)_ptr<(?:const )?)?\bdetail::(\w+)(\s*\*)?")


def text_of(header):
    return (root() / header).read_text(encoding="utf-8")


def keras_names():
    golden = json.loads((root() / "tests/golden/keras_names.json").read_text(encoding="utf-8"))
    return {name for names in golden.values() for name in names} | set(OTHER_NAMES)


def option_values():
    """Yields enumerations that are values of options."""
    enums, members = set(), set()
    for header in filter(lambda name: not is_internal(name), headers()):
        enums.update(re.findall(r"^enum class (\w+)", text_of(header), re.MULTILINE))
        for body in re.findall(r"^struct \w+Options \{(.*?)^\};", text_of(header),
                               re.MULTILINE | re.DOTALL):
            members.update(re.findall(r"^  (?:std::optional<)?(\w+)", body, re.MULTILINE))
    return enums & members


def names():
    """Yields public names that are not in the list or lack a comment, and internal names outside
    detail."""
    keras, values = keras_names(), option_values()
    found = collections.defaultdict(set)
    for header in headers():
        for number, space, name, commented in declarations(header):
            inside = "detail" in space.split("::")
            if is_internal(header) and not inside and name not in BY_ARGUMENT:
                yield f"{header}:{number}: {name} is internal: it belongs to tessera::detail"
            if is_internal(header) or inside:
                continue
            yield None if commented else f"{header}:{number}: {name} has no comment"
            if "ops" in space.split("::"):
                continue
            kind = ("data sets" if space.endswith("::datasets") else
                    "Keras" if name in keras or space.endswith(("activations", "metrics")) else
                    "options" if name.endswith("Options") or name in values else "own")
            found[kind].add(name)
    text = HEAD
    for kind in ("own", "Keras", "options", "data sets"):
        text += f"\n[{kind}: {len(found[kind])}]\n" + "".join(n + "\n" for n in sorted(found[kind]))
    path = root() / LIST
    listed = path.read_text(encoding="utf-8") if path.is_file() else ""
    if "--write" in sys.argv:
        path.write_text(text, encoding="utf-8")
    elif listed != text:
        before, after = set(listed.splitlines()), set(text.splitlines())
        for name in sorted(after - before):
            yield f"{LIST}: {name} is missing; if it is for users run this with --write"
        for name in sorted(before - after):
            yield f"{LIST}: {name} is not in the headers; run this with --write"


def options():
    """Yields members of options without a comment; a comment covers the lines down to the next
    blank one."""
    for header in filter(lambda name: not is_internal(name), headers()):
        inside = above = False
        for number, line in enumerate(text_of(header).splitlines(), 1):
            if OPTIONS.match(line):
                inside, above = True, False
            elif line.startswith("};"):
                inside = False
            elif inside and line.strip().startswith("///"):
                above = True
            elif inside:
                member = MEMBER.match(line)
                if member:
                    yield None if above or "///<" in line else (
                        f"{header}:{number}: option {member.group(1)} has no comment")
                above = False


def signatures():
    """Yields types of tessera::detail in public declarations, and headers that open a namespace."""
    for header in filter(lambda name: not is_internal(name), headers()):
        spaces, private = [], False
        for number, line in enumerate(text_of(header).splitlines(), 1):
            opened = NAMESPACE.match(line)
            if opened and not opened.group(2).rstrip().endswith("}"):
                spaces.append(opened.group(1))
            elif line.startswith("}  // namespace"):
                spaces.pop()
            elif re.match(r"^(?:class|struct)\b.*\{$", line) or re.match(r"^ +(?:public|protected):", line):
                private = False
            elif re.match(r"^ +private:", line):
                private = True
            if re.match(r"using namespace", line):
                yield f"{header}:{number}: a header for users opens no namespace"
            if private or "detail" in "::".join(spaces).split("::"):
                continue
            code = re.sub(r": private detail::\w+", "", line.split("//")[0])
            for pointer, name, star in DETAIL.findall(code):
                if name[0].isupper():
                    yield None if pointer or star or name in RUNTIME else (
                        f"{header}:{number}: a public signature names detail::{name}")


def functions_named(text):
    """Yields (line number, name) of the functions called at the begin of code spans of Markdown."""
    text = FENCED.sub(lambda match: "\n" * match.group().count("\n"), text)
    for span in SPAN.finditer(text):
        called = CALLED.match(span.group(1))
        if called:
            yield text.count("\n", 0, span.start()) + 1, called.group(1)


def documentation():
    """Yields functions in the documentation that a program cannot find: no public header declares
    them, as functions, types or members."""
    public = set(VARIABLES)
    for header in filter(lambda name: not is_internal(name), headers()):
        public |= {name for _, space, name, _ in declarations(header)
                   if "detail" not in space.split("::")}
        public |= set(MEMBER_FUNCTION.findall(text_of(header)))
    for path in [root() / "README.md", *sorted((root() / "docs").glob("*.md"))]:
        file = path.relative_to(root()).as_posix()
        for number, name in functions_named(path.read_text(encoding="utf-8") if path.is_file()
                                            else ""):
            yield None if name in public else (
                f"{file}:{number}: no public header declares {name}()")


def umbrellas():
    """Yields headers that umbrella headers such as layers/layers.hpp lack, except internal ones."""
    for folder in LIBRARY[1:]:
        found = {path.relative_to(root() / folder).as_posix()
                 for path in (root() / folder).rglob("*.hpp")} - {f"{folder}.hpp"}
        umbrella = root() / folder / f"{folder}.hpp"
        lines = umbrella.read_text(encoding="utf-8").splitlines() if umbrella.is_file() else []
        included = {match.group(1) for match in map(INCLUDE.match, lines) if match}
        for name in sorted(found):
            if is_internal(f"{folder}/{name}") or name.startswith(APART):
                continue
            yield None if f"tessera/{folder}/{name}" in included else (
                f"{folder}/{folder}.hpp: #include <tessera/{folder}/{name}> is missing")


def main():
    found = [offender for check in (names, options, signatures, documentation, umbrellas) for offender in check()]
    finish([offender for offender in found if offender],
           "what users write is public and has a comment; what they do not is in detail", len(found))


if __name__ == "__main__":
    main()
