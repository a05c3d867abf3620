"""Runs programs under a time limit with output to files, and compares their histories."""
import contextlib
import json
import math
import os
import signal
import subprocess
import time

from report import Failure

started = []


class TooLong(Failure):
    """A program that did not end in time."""


class Program:
    """A running program, with a process group of its own and the files NAME.out and NAME.err."""

    def __init__(self, name, words, environment, folder):
        self.name = name
        self.out_path, self.err_path = folder / f"{name}.out", folder / f"{name}.err"
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            try:
                self.process = subprocess.Popen(
                    list(map(str, words)), env=environment, stdin=subprocess.DEVNULL, stdout=out,
                    stderr=err, start_new_session=True)
            except OSError as error:
                raise Failure(f"{words[0]} does not start: {error.strerror}") from error
        started.append(self)

    def kill(self):
        """Kills the program and the processes that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)

    @property
    def out(self):
        return self.out_path.read_text(errors="replace")

    @property
    def err(self):
        return self.err_path.read_text(errors="replace")

    def last_line(self):
        """Returns the last line of its error output or, if that is empty, of its output."""
        lines = (self.err.strip() or self.out.strip()).splitlines()
        return lines[-1] if lines else "it said nothing"


def kill_all():
    for program in started:
        program.kill()
    started.clear()


def wait_all(programs, seconds):
    """Returns exit codes, or minus the signals that ended programs. On a timeout kills all and
    raises TooLong."""
    deadline = time.monotonic() + seconds
    try:
        return [program.process.wait(max(0.1, deadline - time.monotonic()))
                for program in programs]
    except subprocess.TimeoutExpired:
        late = next(p.name for p in programs if p.process.poll() is None)
        raise TooLong(f"{late} did not end in {seconds:.0f} s") from None
    finally:
        for program in programs:
            program.kill()


def must_succeed(programs, seconds):
    """Waits for all programs; raises Failure for the first that fails."""
    for program, code in zip(programs, wait_all(programs, seconds)):
        if code != 0:
            raise Failure(f"{program.name}: exit code {code}: {program.last_line()}")


def largest_difference(values, expected):
    """Returns the relative difference; raises Failure for a number that is not finite."""
    if not all(map(math.isfinite, [*values, *expected])):
        raise Failure("a loss is not finite")
    return max((abs(a - b) / max(abs(a), abs(b)) for a, b in zip(values, expected, strict=True)
                if a != b), default=0.0)


def compare(run_path, expected_path, tolerance, accuracy_tolerance=0.0):
    """Compares the histories in two files: losses of every step and epoch may differ by `tolerance`
    relatively, accuracies by `accuracy_tolerance`. Returns the largest difference as text."""
    run, expected = (json.loads(path.read_text()) for path in (run_path, expected_path))
    if run["history"].keys() != expected["history"].keys():
        raise Failure(f"histories of {sorted(run['history'])}, not {sorted(expected['history'])}")
    losses = [(run["steps"], expected["steps"])]
    for name, values in expected["history"].items():
        pair = (run["history"][name], values)
        if "accuracy" not in name:
            losses.append(pair)
            continue
        away = max(abs(a - b) for a, b in zip(*pair, strict=True))
        if not away <= max(tolerance, accuracy_tolerance):
            raise Failure(f"{name} is {away:.2g} away")
    worst = max(largest_difference(*pair) for pair in losses)
    count = sum(len(values) for _, values in losses)
    text = f"{worst:.1e} at most between {count} losses, may be {tolerance:.0e}"
    if not worst <= tolerance:
        raise Failure(text)
    return text
