"""Checks that every source is formatted as .clang-format says: format.py ROOT [--fix]."""
import shutil
import subprocess
import sys

from sources import root

tool = shutil.which("clang-format-14")
if not tool:
    print('skipped: "format": there is no clang-format-14, which ./run test installs')
    sys.exit(77)
names = subprocess.run(["git", "-C", root(), "ls-files", "*.hpp", "*.cpp"], capture_output=True,
                       text=True, check=True).stdout.split()
names = [name for name in names if (root() / name).is_file()]
wrong = []
for begin in range(0, len(names), 100):
    part = names[begin:begin + 100]
    how = ["-i"] if "--fix" in sys.argv else ["--dry-run", "-Werror"]
    run = subprocess.run([tool, *how, *part], cwd=root(), capture_output=True, text=True, check=False)
    wrong += sorted({line.split(":")[0] for line in run.stderr.splitlines() if ": error: " in line})
for name in wrong:
    print(f"{name} is not formatted")
print(f"{len(wrong)} of {len(names)} sources are not formatted. To fix: ./run check --fix"
      if wrong else f"{len(names)} sources are formatted")
sys.exit(1 if wrong or not names else 0)
