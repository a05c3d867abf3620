"""Checks that texts name existing things: READMEs of folders their files, README.md and docs/ the
files they show, docs/Doxyfile its inputs, tests/known_skips.txt tests."""
import re

from sources import INCLUDE, LIBRARY, finish, root, sources

# A new operation needs no entry in its folder's README: this header lists the operations.
LIST_OF_OPERATIONS = "framework/ops/ops.hpp"
QUOTED = re.compile(r"`([^`\n]+)`")
SHOWN = re.compile(r"^<!-- file: (\S+) -->\n+```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MARK = "<!-- file: "
INPUT = re.compile(r"^INPUT\s*=((?:.*\\\n)*.*)$", re.MULTILINE)
GROUP = re.compile(r'^    "([\w/]+)": "(\w+)",$', re.MULTILINE)
LINK = re.compile(r"\[[^\]\[`]*\n[^\]\[]*\]\([^)\s]+\)")
TEST_CASE = re.compile(r'^TEST_CASE\("(.*?)"[,)]', re.MULTILINE)
TEST_ENTRY = re.compile(r"(?:add_test_folder\(|add_test\(NAME )(\w+)")


def text_of(path):
    file = root() / path
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def names_in_tables(text):
    """Yields (line number, name) of the names in the first columns of a README's tables."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("| "):
            for name in QUOTED.findall(line.split("|")[1]):
                yield number, name


def exists(room, name):
    return (room / name).exists() or any(room.rglob(f"{name}.?pp"))


def readme_files():
    """Yields headers that their folder's README does not name, and files in its tables that do not
    exist."""
    listed = {match.group(1)
              for match in map(INCLUDE.match, text_of(LIST_OF_OPERATIONS).splitlines()) if match}
    for path, _ in sources(["framework"], [".hpp"]):
        if f"tessera/{path.as_posix()}" in listed:
            continue
        readme = f"{path.parts[0]}/{path.parts[1]}/README.md"
        named = {name.rpartition("/")[2] for name in QUOTED.findall(text_of(readme))}
        yield None if path.stem in named else f"{readme} does not name {path}"
    readmes = [*(root() / "framework").glob("*/README.md"),
               *(root() / folder / "README.md" for folder in LIBRARY[1:])]
    for path in sorted(readmes):
        for number, name in names_in_tables(text_of(path)):
            yield None if exists(path.parent, name) else (
                f"{path.relative_to(root())}:{number}: there is no file {name}")


def shown_files():
    """Yields blocks below a line <!-- file: PATH --> that differ from that file."""
    for path in [root() / "README.md", *sorted((root() / "docs").glob("*.md"))]:
        text, name = text_of(path), path.relative_to(root())
        blocks = SHOWN.findall(text)
        if len(blocks) != text.count(MARK):
            yield f"{name}: a line {MARK}... without a block below it"
        for shown, code in blocks:
            yield None if text_of(shown) == code else (
                f"{name}: its block is not {shown}; to fix: copy the file into it")


def doxygen_inputs():
    """Yields inputs of Doxygen that do not exist, pages that are no input, and undefined groups."""
    match = INPUT.search(text_of("docs/Doxyfile"))
    inputs = match[1].replace("\\\n", " ").split() if match else []
    for path in inputs:
        yield None if (root() / path).exists() else f"docs/Doxyfile: INPUT {path} does not exist"
    for page in sorted((root() / "docs").glob("*.md")):
        path = page.relative_to(root()).as_posix()
        yield None if path in inputs else f"docs/Doxyfile: {path} is not in INPUT"
    defined = set(re.findall(r"@defgroup (\w+)", text_of("docs/groups.dox")))
    for begin, group in GROUP.findall(text_of("docs/doxygen_filter.py")):
        if not any(root().glob(f"{begin}*")):
            yield f"docs/doxygen_filter.py: no path begins with {begin}"
        yield None if group in defined else (
            f"docs/doxygen_filter.py: docs/groups.dox does not define {group}")


def links():
    """Yields links whose text continues on the next line: Doxygen would not format the rest of the
    page."""
    for path in [root() / "README.md", *sorted((root() / "docs").glob("*.md")),
                 *(root() / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "apps/README.md"))]:
        for found in LINK.findall(text_of(path)):
            yield f"{path.relative_to(root())}: a link over two lines: {' '.join(found.split())}"


def known_skips():
    """Yields tests in tests/known_skips.txt that are neither test cases of Catch2 nor entries of
    ctest."""
    names = set(TEST_ENTRY.findall(text_of("tests/CMakeLists.txt")))
    for file in (root() / "tests").rglob("*_test.cpp"):
        names |= set(TEST_CASE.findall(text_of(file)))
    for line in text_of("tests/known_skips.txt").splitlines():
        if line and not line.startswith("#"):
            name = line.split(maxsplit=1)[1]
            yield None if name in names else f"tests/known_skips.txt: there is no test {name}"


def main():
    found = [offender for check in (readme_files, shown_files, doxygen_inputs, links,
                                           known_skips)
             for offender in check()]
    finish([offender for offender in found if offender], "a text names what is there", len(found))


if __name__ == "__main__":
    main()
