"""Checks that programs and libraries are built with protections against buffer overflows.

hardening.py LIBRARY BUILD_TYPE PROGRAM...: each is position-independent, with read-only
relocations, a non-executable stack and stack protectors; the library calls fortified functions, and
with build type Dev checks bounds of containers. No file in their folders loads libraries from the
current folder or from one that is relative to it.
"""
import pathlib
import re
import subprocess
import sys

library, build_type, *programs = sys.argv[1:]


def readelf(file, flag):
    return subprocess.run(["readelf", "-W", flag, file], capture_output=True, text=True,
                          check=True).stdout


def segment(text, name):
    return next((line for line in text.splitlines() if line.split()[:1] == [name]), "")


def offences(file):
    headers, dynamic, symbols = (readelf(file, flag) for flag in ("-l", "-d", "--dyn-syms"))
    kind = next(line for line in readelf(file, "-h").splitlines() if "Type:" in line)
    stack = segment(headers, "GNU_STACK")
    checks = {
        "is loaded at a fixed address (-fPIC, -pie)": "DYN" in kind,
        "has no read-only tables (-z relro)": segment(headers, "GNU_RELRO"),
        "looks functions up while it runs (-z now)": "BIND_NOW" in dynamic or " NOW" in dynamic,
        "has a stack that is executed": stack and "E" not in stack.split()[-2],
        "does not see that its stack was written over (-fstack-protector-strong)":
            "__stack_chk_fail" in symbols,
    }
    if file == library:
        checks["calls no checked copies (-D_FORTIFY_SOURCE)"] = any(
            name in symbols for name in ("__memcpy_chk", "__snprintf_chk", "__read_chk"))
        checks["checks bounds of containers, or does not, other than its build type wants"] = (
            ("__glibcxx_assert_fail" in symbols) == (build_type == "Dev"))
    return [f"{pathlib.Path(file).name} {text}" for text, good in checks.items() if not good]


def binaries():
    for folder in sorted({pathlib.Path(file).parent for file in (library, *programs)}):
        for path in sorted(folder.iterdir()):
            if path.is_file() and path.open("rb").read(4) == b"\x7fELF":
                yield path


def relative_folders(path):
    """Returns the folders of RPATH and RUNPATH that depend on the current folder; "" is it."""
    lists = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", readelf(path, "-d"))
    return [folder for text in lists for folder in text.split(":")
            if not folder.startswith(("/", "$ORIGIN", "${ORIGIN}"))]


found = [line for file in (library, *programs) for line in offences(file)]
found += [f"{path.name} loads libraries from the folder \"{folder}\" (RUNPATH)"
          for path in binaries() for folder in relative_folders(path)]
print("\n".join(found) or f"{1 + len(programs)} files are hardened")
sys.exit(1 if found else 0)
