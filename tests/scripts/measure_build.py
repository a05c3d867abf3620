"""Prints a table of how long a fresh clone takes to build, and how long a rebuild takes after a
change.

    python3 tests/scripts/measure_build.py [--jobs fresh,test,touch] [--folder FOLDER]

fresh: from a clone with an empty compiler cache to mnist's first training step, and the cost of
compiling. test: from there until all tests have run. touch: rebuilds after a change, with the
presets `dev` and `release`. Missing packages are installed and counted as setup.
"""
import argparse
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
ONE_STEP = ["mnist", "--train-size", "128", "--test-size", "128", "--epochs", "1"]
rows = []


def run(name, command, clone, bar=""):
    """Times a command with its child processes, and adds a row for it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    log = clone / "measure.log"
    with open(log, "w", encoding="utf-8") as out:
        code = subprocess.run(command, cwd=clone, stdout=out, stderr=subprocess.STDOUT,
                              env=environment(clone), check=False).returncode
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    rows.append((name, wall, cpu, bar))
    print(f"{name}: {wall:.0f} s, {cpu:.0f} CPU-seconds", flush=True)
    if code != 0:
        print("\n".join(log.read_text(encoding="utf-8").splitlines()[-30:]))
        sys.exit(f"{' '.join(command)} ended with {code}")


def environment(clone):
    values = dict(os.environ, CCACHE_DIR=str(clone / "build/ccache"))
    data = ROOT.parent / "shared/data"
    if "TESSERA_DATA" not in values and data.is_dir():
        values["TESSERA_DATA"] = str(data)
    return values


def touch(clone, path):
    os.utime(clone / path)
    # Appends code: the compiler cache would find what differs only in comments.
    with open(clone / path, "a", encoding="utf-8") as file:
        file.write(f"static_assert({time.monotonic_ns()} > 0);\n")


def measure(jobs, clone):
    if "fresh" in jobs:
        run("set-up", ["./run", "setup"], clone)
        run("mnist: building, and one epoch of one step", ["./run", *ONE_STEP], clone,
            "with set-up 420 s, 700 CPU-s")
    if "test" in jobs:
        run("the rest, and all tests", ["./run", "test"], clone, "with the above 1800 s")
    if "touch" in jobs:
        run("release: mnist, up to date", ["./run", "build", "mnist"], clone)
        touch(clone, "framework/tensor/dtensor.hpp")
        run("release: mnist after dtensor.hpp", ["./run", "build", "mnist"], clone, "300 s")
        run("dev: mnist and one test, fresh",
            ["./run", "build", "--preset", "dev", "mnist", "mesh_test", "layers_test"], clone)
        touch(clone, "layers/core/dense.cpp")
        run("dev: mnist after one layer", ["./run", "build", "--preset", "dev", "mnist"], clone,
            "20 s")
        touch(clone, "tests/mesh/layout_test.cpp")
        run("dev: one test after its source",
            ["./run", "build", "--preset", "dev", "mesh_test"], clone, "20 s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", default="fresh,test,touch")
    parser.add_argument("--folder", help="where the clone goes; a temporary folder if absent")
    options = parser.parse_args()
    folder = pathlib.Path(options.folder or tempfile.mkdtemp(prefix="tessera-build-"))
    clone = folder / "clone"
    if not clone.exists():
        subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
    try:
        measure(options.jobs.split(","), clone)
    finally:
        width = max((len(row[0]) for row in rows), default=0)
        print(f"\n{'':{width}}   wall s   CPU s   bar")
        for name, wall, cpu, bar in rows:
            print(f"{name:{width}} {wall:8.0f} {cpu:7.0f}   {bar}")
        if not options.folder:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
