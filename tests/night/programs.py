"""Starts the programs of a trial, each in a process group of its own, and ends them in time."""
import dataclasses
import json
import os
import signal
import subprocess
import threading

RUNNING = set()
LOCK = threading.Lock()


def start(words, **options):
    """Starts a program; stop_all() ends it."""
    process = subprocess.Popen([str(word) for word in words], start_new_session=True, **options)
    with LOCK:
        RUNNING.add(process)
    return process


def end(process):
    """Kills a program and what it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    with LOCK:
        RUNNING.discard(process)


def stop_all():
    for process in list(RUNNING):
        end(process)


@dataclasses.dataclass
class Ended:
    """How a program ended."""
    code: int
    out: str
    err: str
    hang: bool = False

    def lines(self):
        return [line for line in self.err.splitlines() if line.strip()]

    def describe(self):
        how = "it hangs" if self.hang else f"exit code {self.code}"
        if not self.hang and self.code < 0:
            how = f"signal {signal.Signals(-self.code).name}"
        last = " | ".join(self.lines()[-3:])[:400]
        return f"{how}, {last or 'nothing on standard error'}"


def run(words, timeout=120, **options):
    """Runs a program to its end."""
    process = start(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                    errors="replace", **options)
    try:
        out, err = process.communicate(timeout=timeout)
        return Ended(process.returncode, out, err)
    except subprocess.TimeoutExpired:
        end(process)
        out, err = process.communicate()
        return Ended(process.returncode, out, err, hang=True)
    finally:
        end(process)


# What the C library writes when it ends a program by itself, which no program can prevent.
LIBRARY_ENDS = "Fatal glibc error: failed to register TLS destructor: out of memory"


def is_told(ended, codes=(1,)):
    """Returns whether a program succeeded, or ended with one of the codes and one line that says
    why."""
    if LIBRARY_ENDS in ended.err:
        return True
    if ended.hang or "terminate called" in ended.err:
        return False
    return ended.code == 0 or (ended.code in codes and len(ended.lines()) == 1)


class Reader:
    """night_reader, which reads and writes files of every format."""

    def __init__(self, program, environment, preload=""):
        self.program = program
        self.environment = {**environment, "NIGHT_START": "call"}
        if preload:
            self.environment["LD_PRELOAD"] = str(preload)
        self.process = None

    def ask(self, *words):
        """Sends a request; returns the answer."""
        if self.process is None:
            self.process = start([self.program], env=self.environment, text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL)
        self.process.stdin.write("\t".join(str(word) for word in words) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            end(self.process)
            self.process = None
            raise RuntimeError(f"night_reader ended at the request {words}")
        answer = json.loads(line)
        if isinstance(answer, dict) and answer["outcome"] == "usage":
            raise RuntimeError(f"night_reader refuses {words}: {answer['text']}")
        return answer

    def read(self, form, path, *failing):
        return self.ask("read", form, path, *failing)

    def write(self, form, path, variant, *failing):
        return self.ask("write", form, path, variant, *failing)

    def formats(self):
        return self.ask("formats")
