"""Every public name has a comment, and so has every member of its options.

A comment counts for the declarations that follow it without a blank line.
"""
import re

from public_headers import declarations, headers, is_internal
from sources import finish, root

OPTIONS = re.compile(r"^struct \w+Options \{")
MEMBER = re.compile(r"^  [A-Za-z_][\w:<>,\s*&()]*\s(\w+)( = .*)?;")


def option_members(lines):
    """(line number, name, has a comment) of the members of options."""
    inside = above = False
    for number, line in enumerate(lines, 1):
        if OPTIONS.match(line):
            inside, above = True, False
        elif line.startswith("};"):
            inside = False
        elif inside and line.strip().startswith("///"):
            above = True
        elif inside:
            member = MEMBER.match(line)
            if member:
                yield number, member.group(1), above or "///<" in line
            above = False


offenders = []
seen = 0
for header in headers():
    if is_internal(header):
        continue
    for number, space, name, commented in declarations(header):
        if "detail" in space.split("::"):
            continue
        seen += 1
        if not commented:
            offenders.append(f"{header}:{number}: {name} has no comment")
    text = (root() / header).read_text(encoding="utf-8")
    for number, name, commented in option_members(text.splitlines()):
        seen += 1
        if not commented:
            offenders.append(f"{header}:{number}: option {name} has no comment")
finish(offenders, "what users write has a comment that they see", seen)
