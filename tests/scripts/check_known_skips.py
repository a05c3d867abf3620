"""Tests that tests/known_skips.txt names are there: cases of Catch2 or entries of ctest."""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
TESTS = ROOT / "tests"
names = {name for file in TESTS.rglob("*_test.cpp")
         for name in re.findall(r'^TEST_CASE\("(.*?)"[,)]', file.read_text(), re.MULTILINE)}
names |= set(re.findall(r"(?:add_test_folder\(|add_test\(NAME )(\w+)",
                        (TESTS / "CMakeLists.txt").read_text()))
missing = [line.split(maxsplit=1)[1] for line in (TESTS / "known_skips.txt").read_text().splitlines()
           if line and not line.startswith("#") and line.split(maxsplit=1)[1] not in names]
for name in missing:
    print(f"tests/known_skips.txt: there is no test {name}")
sys.exit(1 if missing else 0)
