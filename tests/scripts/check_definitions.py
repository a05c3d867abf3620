"""Checks that members and functions are defined in the folder that declares them: the linker would
accept any."""
import collections
import re

from check_include_order import folder_of
from sources import LIBRARY, finish, sources

CLASS = re.compile(r"^\s*(?:class|struct)\s+(?:alignas\(\S+\)\s+)?(\w+)(?:\s+final)?\s*(?::[^:].*)?\{")
MEMBER = re.compile(r"^(?:[A-Za-z_][\w:<>,&*\s\[\]]*?[\s&*])?"
                    r"(?:detail::)?(\w+)::(?:\w+::)*(?:~?\w+|operator\S+)\(")
FUNCTION = re.compile(r"^(?!return|else|using|case|template|namespace|class|struct|static_assert)"
                      r"[A-Za-z_][\w:<>,&*\s]*[\s&*](\w+)\(")


def statements(lines):
    """Yields (number, text) of lines that begin in the first column, outside anonymous
    namespaces."""
    anonymous = False
    for number, line in enumerate(lines, 1):
        if line.startswith("namespace {"):
            anonymous = True
        elif line.startswith("}  // namespace") and line.strip() == "}  // namespace":
            anonymous = False
        elif not anonymous and line[:1].isalpha():
            yield number, line


def is_definition(lines, number):
    """Returns whether a statement has a body, rather than ending with a semicolon."""
    for line in lines[number - 1:number + 12]:
        text = line.split("//")[0].rstrip()
        if text.endswith("{") or text.endswith("}"):
            return True
        if text.endswith(";"):
            return False
    return False


# Classes whose members a folder declares but leaves to a folder above it to define.
LEFT_TO = {("Model", "framework/io"),  # how models are written to files
           ("SymbolicTensor", "framework/graph"),  # its slices are operations of a graph
           ("DTensor", "framework/ops"),  # its slices are operations
           ("GradientTape", "framework/nn")}  # gradients of Variables

# Not declared: templates find them by argument-dependent lookup.
BY_ARGUMENT = {"fields"}


def main():
    classes = collections.defaultdict(set)
    functions = collections.defaultdict(set)
    for path, lines in sources(LIBRARY, (".hpp",)):
        room = folder_of(path.parts)
        for line in lines:
            found = CLASS.match(line)
            if found:
                classes[found.group(1)].add(room)
        for _, line in statements(lines):
            found = FUNCTION.match(line)
            if found:
                functions[found.group(1)].add(room)
    offenders = []
    seen = 0
    for path, lines in sources(LIBRARY, (".cpp",)):
        room = folder_of(path.parts)
        own = {found.group(1) for found in map(CLASS.match, lines) if found}
        for number, line in statements(lines):
            member = MEMBER.match(line)
            if member:
                name, rooms = member.group(1), classes.get(member.group(1), set())
                if name in own:
                    continue
            else:
                function = FUNCTION.match(line)
                if not function or not is_definition(lines, number):
                    continue
                name, rooms = function.group(1), functions.get(function.group(1), set())
            seen += 1
            if name in BY_ARGUMENT:
                continue
            if rooms and room not in rooms and (name, room) not in LEFT_TO:
                offenders.append(f"{path}:{number}: {name} is declared in {', '.join(sorted(rooms))}")
    finish(offenders, "a room defines what it declares", seen)


if __name__ == "__main__":
    main()
