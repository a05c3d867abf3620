"""What docs/Doxyfile and docs/doxygen_filter.py name is there, and every page of docs/ is an input."""
import re

from sources import finish, root

INPUT = re.compile(r"^INPUT\s*=((?:.*\\\n)*.*)$", re.MULTILINE)
GROUP = re.compile(r'^    "([\w/]+)": "(\w+)",$', re.MULTILINE)


def read(path):
    file = root() / path
    return file.read_text(encoding="utf-8") if file.is_file() else ""


match = INPUT.search(read("docs/Doxyfile"))
inputs = match[1].replace("\\\n", " ").split() if match else []
offenders = [f"docs/Doxyfile: INPUT {path} does not exist"
             for path in inputs if not (root() / path).exists()]
offenders += [f"docs/Doxyfile: {page.relative_to(root())} is not in INPUT"
              for page in sorted((root() / "docs").glob("*.md"))
              if page.relative_to(root()).as_posix() not in inputs]
defined = set(re.findall(r"@defgroup (\w+)", read("docs/groups.dox")))
groups = GROUP.findall(read("docs/doxygen_filter.py"))
for begin, group in groups:
    if not any(root().glob(f"{begin}*")):
        offenders.append(f"docs/doxygen_filter.py: no path begins with {begin}")
    if group not in defined:
        offenders.append(f"docs/doxygen_filter.py: docs/groups.dox does not define {group}")
finish(offenders, "the pages' inputs exist, and their groups", len(inputs) + len(groups))
