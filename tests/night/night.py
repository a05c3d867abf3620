"""Tries for hours what a test run has no time for: `./run night`. See --help."""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import programs
from step import FULL_NIGHT_HOURS, STEPS, Runner

# These modules register their steps, which run in this order.
import image_step  # noqa: F401
import command_steps  # noqa: F401
import malloc_step  # noqa: F401
import io_step  # noqa: F401
import mutate_step  # noqa: F401
import crash_step  # noqa: F401
import serve_step  # noqa: F401
import pipeline_step  # noqa: F401
import soak_step  # noqa: F401
import sanitizer_steps  # noqa: F401

TREE = pathlib.Path(__file__).resolve().parents[2]
QUICK_SECONDS = 150
PROGRESS_SECONDS = 30
# Time that a step may take before its first trial.
START_SECONDS = 60
EPILOG = """
Steps share the time; without STEP all of them run. A failure is a line that ends with the command
that runs the same trial again, as the first one. At the end comes a table, which is also written to
build/night/report.json; files that showed a failure are kept in build/night/findings. The exit code
is 1 if a step failed or tried less than it must in such a time. A step whose tools are missing is
skipped, and the table says why. The steps nightly, fuzz, asan, clang and torch also build, however
long that takes; their output is in build/night/STEP.log.

Steps:
"""


class Night:
    """What all steps of a night share."""

    def __init__(self, options):
        self.tree = TREE
        self.build = (options.build or TREE / "build/release").resolve()
        self.bin = self.build / "bin"
        self.reader_program = options.reader or self.bin / "night_reader"
        self.out = (options.out or TREE / "build/night").resolve()
        self.quick = options.quick
        self.jobs = options.jobs
        self.stopped = False
        self.deadline = 0.0
        self.out.mkdir(parents=True, exist_ok=True)
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="tessera_night_"))
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive",
                            "TESSERA_OFFLINE": "1", "TESSERA_REPORT_DIR": str(self.scratch)}
        # Small synthetic data sets: the same on every machine.
        self.environment["TESSERA_DATA"] = ""
        self.libraries = {}
        self.lock = threading.Lock()

    def failing_library(self, name):
        """Compiles failing_NAME.c into a library for LD_PRELOAD."""
        with self.lock:
            if name not in self.libraries:
                library = self.scratch / f"failing_{name}.so"
                source = pathlib.Path(__file__).with_name(f"failing_{name}.c")
                subprocess.run(["cc", "-std=gnu11", "-D_GNU_SOURCE", "-U_FORTIFY_SOURCE", "-O1",
                                "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-o", library,
                                source], check=True)
                self.libraries[name] = library
            return self.libraries[name]

    def reader(self, preload=""):
        return programs.Reader(self.reader_program, self.environment, preload)

    def stop(self, *_):
        """Ends the night; what was tried until then is reported."""
        self.stopped = True
        programs.stop_all()


def parse(words):
    names = "\n".join(f"  {name:<9} {kind.summary}" for name, kind in STEPS.items())
    parser = argparse.ArgumentParser(
        prog="./run night", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Tries for hours what a test run has no time for.", epilog=EPILOG + names)
    parser.add_argument("steps", nargs="*", metavar="STEP", help="steps to run (default: all)")
    parser.add_argument("--hours", type=float, default=FULL_NIGHT_HOURS, metavar="N",
                        help="time for all steps together (default: %(default)s)")
    parser.add_argument("--seed", type=int, metavar="S",
                        help="number of the first trial (default: one that no night had; with "
                             "--quick always the same)")
    parser.add_argument("--trials", type=int, metavar="N", help="trials of each step at most")
    parser.add_argument("--quick", action="store_true",
                        help="malloc, io and mutate only, in less than three minutes")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N",
                        help="trials at the same time (default: one for each core)")
    parser.add_argument("--build", type=pathlib.Path, metavar="FOLDER",
                        help="build to try (default: build/release)")
    parser.add_argument("--reader", type=pathlib.Path, metavar="FILE",
                        help="another night_reader than that of the build")
    parser.add_argument("--out", type=pathlib.Path, metavar="FOLDER",
                        help="folder of the report (default: build/night)")
    options = parser.parse_args(words)
    for name in options.steps:
        if name not in STEPS:
            parser.error(f"unknown step \"{name}\". Steps: {', '.join(STEPS)}")
    if options.hours <= 0 or options.jobs < 1 or (options.trials or 1) < 1:
        parser.error("--hours, --jobs and --trials must be positive")
    if options.seed is not None and options.seed < 0:
        parser.error("--seed must not be negative")
    return options


def chosen(options):
    """Returns the steps of a night with their shares."""
    kinds = {name: STEPS[name] for name in (options.steps or STEPS)}
    if options.quick:
        kinds = {name: kind for name, kind in kinds.items() if kind.quick_share}
        return {kind: kind.quick_share for kind in kinds.values()}
    return {kind: kind.share for kind in kinds.values()}


def say(line):
    print(f"night: {line}", file=sys.stderr, flush=True)


def watch(runner, ended):
    """Says now and then how far a step is."""
    while not ended.wait(PROGRESS_SECONDS):
        result = runner.result
        say(f"{result.name}: {result.count} trials, {result.failure_count} failures, "
            f"{max(0, runner.step.seconds_left()):.0f} s left")


def run_step(kind, night, seconds, options):
    share_of_night = kind.share / sum(other.share for other in STEPS.values())
    full = FULL_NIGHT_HOURS * 3600 * share_of_night
    least = max(1, int(kind.least * min(1, (seconds - START_SECONDS) / full)))
    if options.trials or night.quick:
        least = 1
    night.deadline = time.monotonic() + seconds
    seed = options.seed
    if seed is None:
        # With --quick, which tests a change, a failure must be of that change.
        seed = 0 if night.quick else int(time.time()) * 1000
    runner = Runner(kind(night), seed, options.trials, least, say)
    say(f"{kind.name}: {kind.summary}, {seconds:.0f} s from seed {seed} on")
    ended = threading.Event()
    watcher = threading.Thread(target=watch, args=(runner, ended), daemon=True)
    watcher.start()
    try:
        return runner.run()
    finally:
        ended.set()
        programs.stop_all()


def table(results):
    rows = [("step", "tried", "count", "failures", "time", "")]
    for result in results:
        told = f"skipped: {result.skipped}" if result.skipped else result.verdict()
        rows.append((result.name, result.tried, str(result.count), str(result.failure_count),
                     f"{result.seconds:.0f} s", told))
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    lines = []
    for row in rows:
        cells = [row[i].rjust(widths[i]) if 2 <= i <= 4 else row[i].ljust(widths[i])
                 for i in range(5)]
        lines.append("  ".join([*cells, row[5]]).rstrip())
    return "\n".join(lines)


def report(results, path):
    rows = [{"step": r.name, "seed": r.seed, "tried": r.tried, "count": r.count,
             "least": r.least, "failures": r.failure_count, "lines": r.failures,
             "seconds": round(r.seconds, 1), "skipped": r.skipped, "result": r.verdict(),
             "notes": r.notes} for r in results]
    path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def main(words):
    options = parse(words)
    night = Night(options)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, night.stop)
    kinds = chosen(options)
    whole = QUICK_SECONDS if night.quick else options.hours * 3600
    results = []
    try:
        for kind, share in kinds.items():
            if not night.stopped:
                seconds = whole * share / sum(kinds.values())
                results.append(run_step(kind, night, seconds, options))
    finally:
        shutil.rmtree(night.scratch, ignore_errors=True)
    report(results, night.out / "report.json")
    print(table(results), flush=True)
    return 1 if night.stopped or any(r.failure_count for r in results) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
