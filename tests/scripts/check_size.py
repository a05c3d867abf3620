"""Files stay within 400 lines and lines within 100 columns; a file past 300 is worth a question."""
from sources import finish, sources

offenders = []
seen = 0
for path, lines in sources():
    seen += 1
    if len(lines) > 400:
        offenders.append(f"{path}: {len(lines)} lines")
    elif len(lines) > 300:
        print(f"warning: {path}: {len(lines)} lines; is it one concept?")
    for number, line in enumerate(lines, 1):
        if len(line) > 100:
            offenders.append(f"{path}:{number}: {len(line)} columns")
finish(offenders, "at most 400 lines a file, 100 columns a line", seen)
