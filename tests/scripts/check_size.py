"""Files stay within 300 lines and lines within 100 columns."""
from sources import finish, sources

offenders = []
seen = 0
for path, lines in sources():
    seen += 1
    if len(lines) > 300:
        offenders.append(f"{path}: {len(lines)} lines")
    for number, line in enumerate(lines, 1):
        if len(line) > 100:
            offenders.append(f"{path}:{number}: {len(line)} columns")
finish(offenders, "at most 300 lines a file, 100 columns a line", seen)
