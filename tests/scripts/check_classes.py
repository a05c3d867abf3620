"""Checks that classes with more than 30 public functions, as many protected ones or two sources are in
large_classes.txt, which only shrinks. `--write` removes classes that have become small."""
import collections
import re
import sys

from check_definitions import MEMBER, statements
from sources import LIBRARY, finish, root, sources

MAX_FUNCTIONS = 30
MAX_SOURCES = 2
BEGIN = re.compile(r"^(\s*)(class|struct)\s+(\w+)(?:\s+final)?\s*(?::[^:].*)?\{")
ACCESS = re.compile(r"^\s*(public|protected|private):")


def functions_of(lines):
    """Yields (class, {access: names of its functions}) for the classes of a header."""
    at = 0
    while at < len(lines):
        begin = BEGIN.match(lines[at])
        if not begin or lines[at].rstrip().endswith("};"):
            at += 1
            continue
        indent, kind, name = begin.groups()
        access, depth = "public" if kind == "struct" else "private", 0
        functions = {"public": set(), "protected": set(), "private": set()}
        at += 1
        while at < len(lines) and not lines[at].startswith(indent + "}"):
            line = lines[at].split("//")[0]
            label = ACCESS.match(line)
            if label:
                access = label.group(1)
            elif depth == 0 and re.match(rf"^{indent}  \S", line):
                found = re.search(r"(~?\w+|operator\s*\S+?)\(", line)
                if found and not line.strip().startswith(("using", "friend", "return")):
                    functions[access].add(found.group(1))
            depth += line.count("{") - line.count("}")
            at += 1
        yield name, functions


def large_classes():
    functions, found_in = {}, collections.defaultdict(set)
    for _, lines in sources(LIBRARY, (".hpp",)):
        for name, names in functions_of(lines):
            counts = (len(names["public"]), len(names["protected"]))
            functions[name] = max(counts, functions.get(name, (0, 0)))
    for path, lines in sources(LIBRARY, (".cpp",)):
        for _, line in statements(lines):
            member = MEMBER.match(line)
            if member and member.group(1) in functions:
                found_in[member.group(1)].add(path)
    large = {}
    for name, (public, protected) in functions.items():
        if max(public, protected) > MAX_FUNCTIONS or len(found_in[name]) > MAX_SOURCES:
            large[name] = (f"{public} public functions, {protected} protected ones, "
                           f"{len(found_in[name])} sources")
    return large, len(functions)


def main():
    large, seen = large_classes()
    path = root() / "tests/scripts/large_classes.txt"
    listed = path.read_text(encoding="utf-8").split() if path.is_file() else []
    if "--write" in sys.argv:
        path.write_text("".join(f"{name}\n" for name in sorted(large)), encoding="utf-8")
    offenders = [f"{name}: {how}" for name, how in sorted(large.items()) if name not in listed]
    offenders += [f"{name} is large no more; to fix: take it out of {path.name}"
                  for name in listed if name not in large]
    finish(offenders, f"at most {MAX_FUNCTIONS} public functions, {MAX_FUNCTIONS} protected ones and {MAX_SOURCES} "
           "sources a class",
           seen)


if __name__ == "__main__":
    main()
