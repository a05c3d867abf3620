"""Checks that adding a layer, an operation and a metric changes only the files that CONTRIBUTING.md
numbers: adds one of each to a copy of the tree from its template, runs the source checks there,
builds the additions against the existing library, and runs their tests.

Arguments: cmake, build folder, root of the tree, folder of the copy.
"""
import filecmp
import os
import pathlib
import shutil
import subprocess
import sys

import add

CMAKE, BUILD, ROOT, COPY = sys.argv[1:5]
ROOT, COPY = pathlib.Path(ROOT), pathlib.Path(COPY)
PARTS = ["framework", "layers", "optimizers", "metrics", "datasets", "apps", "deploy", "docs",
         "tests", "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "tessera.hpp"]
# Names as in CMakeLists.txt.
ADDED = {"layer": "core/scaled_identity", "operation": "scaled_square", "metric": "scaled_error"}
MAX_FILES = {"layer": 5, "operation": 3, "metric": 4}
# Files that `check_border.py --write` writes.
NAMES = {"docs/public_names.txt"}
# Files that TESSERA_UPDATE_GOLDEN=1 writes for a new operation.
TABLES = {"tests/golden/plan_table.txt", "tests/golden/oracle_bytes.txt"}


def copy_tree():
    shutil.rmtree(COPY, ignore_errors=True)
    for part in PARTS:
        source, target = ROOT / part, COPY / part
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, target)


def changed_files():
    """Returns the paths of the copy that differ from the tree or are missing there."""
    paths = {str(path.relative_to(COPY)) for path in COPY.rglob("*") if path.is_file()}
    return {path for path in paths if not (ROOT / path).is_file()
            or not filecmp.cmp(ROOT / path, COPY / path, shallow=False)}


def run(*words, **variables):
    done = subprocess.run([str(word) for word in words], env={**os.environ, **variables},
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\nended with {done.returncode}:\n{done.stdout}")


def check_changes(expected, after):
    found = changed_files()
    if found != expected:
        sys.exit(f"{after}, these files differ: {sorted(found)}; expected: {sorted(expected)}")


copy_tree()
expected = set()
for kind, name in ADDED.items():
    paths = add.add(COPY, kind, name)
    print(f"{kind}: {len(paths)} files: {' '.join(paths)}")
    if len(paths) > MAX_FILES[kind]:
        sys.exit(f"a new {kind} takes at most {MAX_FILES[kind]} files")
    expected |= set(paths)
check_changes(expected, "after adding")
run(sys.executable, "-B", ROOT / "tests/scripts/check_border.py", COPY, "--write")
expected |= NAMES
for check in sorted((ROOT / "tests/scripts").glob("check_*.py")):
    if check.stem != "check_checks":
        run(sys.executable, "-B", check, COPY)
run(CMAKE, "--build", BUILD, "--target", "templates_test")
tests = pathlib.Path(BUILD, "bin", "templates_test")
there = {"TESSERA_TEST_DIR": str(COPY / "tests")}
run(tests, '~"*registered operation gives*" ~"*table*"', **there)
run(tests, "*registered operation gives*", TESSERA_ORACLE_OP=ADDED["operation"], **there)
run(tests, "*committed table", TESSERA_UPDATE_GOLDEN="1", **there)
check_changes(expected | TABLES, "after the tables were written")
run(tests, "*committed table", **there)
print("all tests of the additions pass")
