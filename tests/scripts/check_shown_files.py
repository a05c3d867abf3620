"""What README.md and docs/*.md show of the tree, below a line <!-- file: PATH -->, is that file."""
import re

from sources import finish, root

SHOWN = re.compile(r"^<!-- file: (\S+) -->\n+```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MARK = "<!-- file: "

offenders = []
seen = 0
for path in [root() / "README.md", *sorted((root() / "docs").glob("*.md"))]:
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    name = path.relative_to(root())
    blocks = SHOWN.findall(text)
    if len(blocks) != text.count(MARK):
        offenders.append(f"{name}: a line {MARK}... without a block below it")
    for shown, code in blocks:
        seen += 1
        file = root() / shown
        if not file.is_file() or file.read_text(encoding="utf-8") != code:
            offenders.append(f"{name}: its block is not {shown}; to fix: copy the file into it")
finish(offenders, "a text shows a file of the tree as it is", seen)
