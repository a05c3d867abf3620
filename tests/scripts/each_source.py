"""Compiles sources individually (-fsyntax-only, preset dev or --build): in a unity build a source may use what
another one of its group includes.

each_source.py ROOT [--all] [--since COMMIT] [--tidy] [--build FOLDER]: compiles sources that differ
from the commit in .ci/green or from COMMIT, or all; --tidy runs clang-tidy on them too. --build takes
flags and precompiled headers from a whole unity build, which saves minutes; there, what
<tessera/tessera.hpp> declares need not be included by programs and tests. Exit code 1 if one fails.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

FOLDERS = ("framework/", "layers/", "optimizers/", "metrics/", "datasets/", "apps/", "tests/")


def parse():
    parser = argparse.ArgumentParser(prog="each_source.py")
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("--all", action="store_true", help="every source")
    parser.add_argument("--since", metavar="COMMIT", help="[default: the commit in .ci/green]")
    parser.add_argument("--build", type=pathlib.Path, metavar="FOLDER",
                        help="a whole unity build [default: build/dev]")
    parser.add_argument("--tidy", action="store_true", help="read them with clang-tidy, too")
    return parser.parse_args()


def git(root, *words):
    run = subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"each_source: git {' '.join(words)}: {run.stderr.strip()}. To fix: fetch the whole "
                 "history, or use --all")
    return run.stdout.split()


def changed(root, since):
    """Returns sources that differ from a commit, and the sources of headers that do."""
    since = since or (root / ".ci/green").read_text(encoding="utf-8").split()[0]
    files = git(root, "diff", "--name-only", since, "--", *FOLDERS)
    files += git(root, "ls-files", "--others", "--exclude-standard", "--", *FOLDERS)
    return {re.sub(r"\.hpp$", ".cpp", name) for name in files}


def sources_of(path):
    """Returns the sources that a file of a unity build includes, or the file."""
    if "Unity" not in path.parts:
        return [path]
    text = path.read_text(encoding="utf-8")
    return [pathlib.Path(name) for name in re.findall(r'^#include "(.*)"', text, re.MULTILINE)]


def compile_commands(root, folder):
    """Returns the compile command of each source, without its output; sources are relative to the
    root."""
    commands = {}
    for entry in json.loads((folder / "compile_commands.json").read_text(encoding="utf-8")):
        for path in sources_of(pathlib.Path(entry["file"])):
            if root not in path.parents or folder in path.parents:
                continue
            words = shlex.split(entry["command"])
            words[words.index(entry["file"])] = str(path)
            # A compiler launcher would only look for an output.
            del words[:next(i for i, word in enumerate(words) if word.endswith("++"))]
            at = words.index("-o")
            del words[at:at + 2]
            words[words.index("-c")] = "-fsyntax-only"
            commands[path.relative_to(root).as_posix()] = words
    return commands


def prepare(folder, commands):
    """Builds the precompiled headers and generated files that the commands read."""
    needed = {words[i + 1] for words in commands for i, word in enumerate(words)
              if word == "-include" and "cmake_pch" in words[i + 1]}
    targets = [f"{pathlib.Path(path).relative_to(folder)}.gch" for path in sorted(needed)]
    known = subprocess.run(["ninja", "-C", folder, "-t", "targets", "all"], capture_output=True,
                           text=True, check=True).stdout
    targets += re.findall(r"^(generated/\S+\.(?:h|hpp)): CUSTOM_COMMAND", known, re.MULTILINE)
    subprocess.run(["ninja", "-C", folder, "--quiet", *targets], check=True)


def tidy(root, names):
    """Returns whether clang-tidy finds nothing. It parses headers itself, without precompiled
    ones."""
    run = subprocess.run(["run-clang-tidy-14", "-quiet", "-p", root / "build/tidy",
                          "-extra-arg=-fno-openmp", "-extra-arg=-Wno-unknown-warning-option",
                          *(f"^{re.escape(str(root / name))}$" for name in names)], check=False)
    return run.returncode == 0


def main():
    options = parse()
    root = options.root.resolve()
    folder = (options.build or root / "build/dev").resolve()
    selected = None if options.all else changed(root, options.since)
    if not options.all and not selected:
        print("no source has changed")
        return
    for preset in [*([] if options.build else ["dev"]), *(["tidy"] if options.tidy else [])]:
        subprocess.run([root / "run", "setup", "--preset", preset], check=True)
    commands = compile_commands(root, folder)
    names = [name for name in sorted(commands) if options.all or name in selected]
    if not options.build:
        prepare(folder, [commands[name] for name in names])
    failed = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = pool.map(lambda name: subprocess.run(commands[name], cwd=folder, capture_output=True,
                                                    text=True, check=False), names)
        for number, (name, run) in enumerate(zip(names, runs), 1):
            if run.returncode != 0:
                failed.append(name)
                print(run.stderr, flush=True)
            if number % 50 == 0:
                print(f"{number} of {len(names)} sources", flush=True)
    for name in failed:
        print(f"{name} does not compile individually")
    print(f"{len(names)} sources compiled individually, {len(failed)} failed")
    good = [name for name in names if name not in failed]
    tidied = not (options.tidy and good) or tidy(root, good)
    sys.exit(1 if failed or not tidied else 0)


if __name__ == "__main__":
    main()
