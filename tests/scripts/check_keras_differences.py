"""Checks that docs/keras.md and tests/golden/other_than_keras.json have the same differences from
Keras, and that the golden rows that they name exist. The tests of those golden files check that
the named rows differ, and that all others do not."""
import json
import re

from sources import finish, root

BEGIN = "<!-- rows: kept with tests/golden/other_than_keras.json -->"
END = "<!-- end of rows -->"
CALL = re.compile(r'other_than_keras\("([^"]+)", "([^"]+)"')


def rows_of_page():
    """Returns the first cells of the table, without its head."""
    text = (root() / "docs/keras.md").read_text(encoding="utf-8")
    begin, end = text.find(BEGIN), text.find(END)
    lines = text[begin:end].splitlines() if 0 <= begin < end else []
    table = [line for line in lines if line.startswith("|")][2:]
    return [line.split("|")[1].strip() for line in table]


def tested_sections():
    """Returns the (file, section) pairs whose rows a test compares unless they are listed."""
    sources = (root() / "tests").rglob("*_test.cpp")
    return {pair for path in sources for pair in CALL.findall(path.read_text(encoding="utf-8"))}


def wrong_rows(name, files, tested):
    """Yields what is wrong with the golden rows that a difference names."""
    for file, sections in files.items():
        golden = root() / "tests/golden" / file
        if not golden.is_file():
            yield f"{name}: there is no {file}"
            continue
        data = json.loads(golden.read_text(encoding="utf-8"))
        for section, rows in sections.items():
            if (file, section) not in tested:
                yield f"{name}: no test asks other_than_keras() for {section} of {file}"
            count = len(data.get(section, []))
            if not rows or len(set(rows)) < len(rows):
                yield f"{name}: {section} of {file} names no row, or one twice"
            yield from (f"{name}: {file} has no row {row} in {section}"
                        for row in rows if not 0 <= row < count)


def main():
    listed = json.loads((root() / "tests/golden/other_than_keras.json").read_text(encoding="utf-8"))
    page, tested = rows_of_page(), tested_sections()
    offenders = [f"docs/keras.md has the row \"{name}\" twice" for name in set(page)
                 if page.count(name) > 1]
    offenders += [f"other_than_keras.json does not have the row \"{name}\" of docs/keras.md"
                  for name in page if name not in listed]
    offenders += [f"docs/keras.md has no row \"{name}\", which other_than_keras.json names"
                  for name in listed if name not in page]
    for name, files in listed.items():
        offenders += wrong_rows(name, files, tested)
    seen = [(file, section, row) for files in listed.values() for file, sections in files.items()
            for section, rows in sections.items() for row in rows]
    offenders += [f"{row} is in two differences" for row in set(seen) if seen.count(row) > 1]
    finish(offenders, "golden rows that changed are the rows of docs/keras.md", len(page))


if __name__ == "__main__":
    main()
