"""Makes the pages in build/docs/html by Doxygen, without a network; `./run docs` calls it.

Fails on a warning that docs/known_warnings.txt does not list: FILE: TEXT, as printed here.
"""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LINE = re.compile(r"^(.*?):\d+: (warning: .*)$")


def warnings(text):
    """Each once, by file and without line, which moves."""
    found = set()
    for line in text.replace(f"{ROOT}/", "").splitlines():
        match = LINE.match(line)
        found.add(f"{match[1]}: {match[2]}" if match else line)
    return found


def main():
    output = ROOT / "build/docs"
    output.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(output / "html", ignore_errors=True)
    if subprocess.run(["doxygen", "docs/Doxyfile"], cwd=ROOT).returncode != 0:
        sys.exit("docs: doxygen failed")
    known = (ROOT / "docs/known_warnings.txt").read_text(encoding="utf-8").splitlines()
    known = {line for line in known if line and not line.startswith("#")}
    found = warnings((output / "warnings.txt").read_text(encoding="utf-8"))
    for line in sorted(known - found):
        print(f"docs: no more in need of docs/known_warnings.txt: {line}")
    if found - known:
        sys.exit("\n".join(sorted(found - known))
                 + "\ndocs: new warnings. To fix: mend the comments, or list what has to stay in"
                   " docs/known_warnings.txt")
    print(f"docs: {output / 'html/index.html'}")


main()
