"""Shared by the source checks: the tree's files and the report."""
import pathlib
import re
import sys

LIBRARY = ["framework", "layers", "optimizers", "metrics", "datasets"]
FOLDERS = [*LIBRARY, "apps", "tests"]
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def root():
    return pathlib.Path(sys.argv[1]).resolve()


def sources(folders=FOLDERS, suffixes=(".hpp", ".cpp")):
    """Yields (path relative to the root, lines) of every source, in order."""
    found = [path for path in root().glob("*.hpp") if folders is FOLDERS]
    for folder in folders:
        found += [p for p in (root() / folder).rglob("*") if p.suffix in suffixes and p.is_file()]
    for path in sorted(found):
        yield path.relative_to(root()), path.read_text(encoding="utf-8").splitlines()


def finish(offenders, rule, seen):
    """Prints the offenders and exits; a check that found nothing to check also fails."""
    for offender in offenders:
        print(offender)
    print(f"{len(offenders)} offenders in {seen} checked. Rule: {rule}")
    sys.exit(1 if offenders or not seen else 0)
