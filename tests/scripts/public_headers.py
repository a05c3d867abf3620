"""Lists the headers that users may include, and the names declared there; internal names are in
tessera::detail."""
import re

from sources import INCLUDE, LIBRARY, root

# Folders without public headers, in addition to every folder named internal.
INTERNAL_ROOMS = ("framework/drawing/", "framework/pipeline/", "framework/cluster/coordination/",
                  "framework/cluster/launcher/", "framework/cluster/membership/",
                  "framework/comm/cpu/", "framework/comm/nccl/",
                  "framework/io/format/", "framework/io/hdf5/", "framework/io/keras/",
                  "framework/serving/http/", "framework/ops/engine/", "framework/training/capture/",
                  "framework/nn/config/", "framework/graph/operations/",
                  "framework/parameter_server/job/", "framework/parameter_server/store/",
                  "framework/parameter_server/worker/")

NAMESPACE = re.compile(r"^(?:inline )?namespace ?([\w:]*) ?\{(.*)$")
TYPE = re.compile(r"^(?:class|struct|enum class|enum)\s+(\w+)(?!\w*;)")
FORWARD = re.compile(r"^(?:class|struct|enum class)\s+\w+(?:\s*:\s*\w+)?;")
ALIAS = re.compile(r"^using (\w+) =")
FUNCTION = re.compile(r"^(?!using|namespace|static_assert|template|friend|return)"
                      r"(?:\[\[\w+\]\] )?[A-Za-z_][\w:<>,&*\s]*[\s&*](\w+)\(")
CONSTANT = re.compile(r"^(?:inline |constexpr |extern |const )+[\w:<>]+ (\w+)\s*(?:=|;|\{)")
FRAGMENT = ("///", "//", "#", " ", "}", "template", "requires")


# Public headers in such folders.
PUBLIC = ("framework/serving/http/http_server_options.hpp",)


def is_internal(header):
    return header not in PUBLIC and ("/internal/" in header or header.startswith(INTERNAL_ROOMS))


def headers():
    """Returns every header of the library, relative to the root."""
    for folder in LIBRARY:
        for path in sorted((root() / folder).rglob("*.hpp")):
            yield path.relative_to(root()).as_posix()


def included_from(start):
    """Returns the library's headers that a header includes, directly or indirectly, and itself."""
    found, waiting = set(), [start]
    while waiting:
        header = waiting.pop()
        path = root() / header
        if header in found or not path.is_file():
            continue
        found.add(header)
        for line in path.read_text(encoding="utf-8").splitlines():
            match = INCLUDE.match(line)
            if match and match.group(1).startswith("tessera/"):
                waiting.append(match.group(1).removeprefix("tessera/"))
    return found


def declarations(header):
    """Yields (line number, namespace, name, has a comment) of declarations in the first column."""
    spaces = []
    lines = (root() / header).read_text(encoding="utf-8").splitlines()
    commented = body = False
    for number, line in enumerate(lines, 1):
        opened = NAMESPACE.match(line)
        if opened:
            if not opened.group(2).rstrip().endswith("}"):
                spaces.append(opened.group(1))
            commented = False
            continue
        if line.startswith("}"):
            if not body:
                spaces.pop()
            body = False
            continue
        if line.startswith("///"):
            commented = True
            continue
        if not line.strip():
            commented = False
            continue
        body = body or not line.startswith(("//", "#")) and line.rstrip().endswith("{")
        if line.startswith(FRAGMENT) or FORWARD.match(line):
            continue
        text = line if "(" in line or number == len(lines) else line + " " + lines[number].strip()
        for pattern in (TYPE, ALIAS, FUNCTION, CONSTANT):
            match = pattern.match(line if pattern is not FUNCTION else text)
            if match:
                yield number, "::".join(filter(None, spaces)), match.group(1), commented
                break
