"""Trains and serves for long: memory, descriptors and threads stay as they are."""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import time

import programs
from step import Step, register
from works import predict, served_port

SAMPLE_SECONDS = 5
# Growth from the second third of the time to the last that is no leak: allocators keep pages.
SPARE_KILOBYTES = 1024
MAX_KILOBYTES_PER_HOUR = 10
# A training keeps the loss of each step for its history, copies these for a checkpoint, and vectors
# double: 16 to 32 bytes a step.
BYTES_PER_STEP = 32


def processes_below(pid):
    """Returns the processes that a process started, and theirs."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        if parent == pid:
            child = int(folder.name)
            found += [child, *processes_below(child)]
    return found


def sample(pid):
    """Returns (kilobytes, descriptors, threads) of a process."""
    folder = pathlib.Path("/proc") / str(pid)
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    return (int(status["VmRSS"].split()[0]), len(os.listdir(folder / "fd")),
            int(status["Threads"]))


def steps_of(checkpoints):
    """Returns the number of steps that a training has made, by its newest checkpoint."""
    return max((int(folder.name.removeprefix("step-")) for folder in checkpoints.glob("step-*")
                if folder.name.removeprefix("step-").isdigit()), default=0)


def judge(name, samples, seconds):
    """Returns what grew over the last two thirds of the samples: (kilobytes, descriptors, threads,
    steps so far)."""
    third = len(samples) // 3
    if third < 3:
        return []
    middle, last = samples[third:2 * third], samples[2 * third:]

    def growth_of(at):
        return statistics.median(s[at] for s in last) - statistics.median(s[at] for s in middle)

    growth = growth_of(0) - growth_of(3) * BYTES_PER_STEP / 1024
    per_hour = growth / (seconds / 3) * 3600
    wrong = []
    if growth > SPARE_KILOBYTES and per_hour > MAX_KILOBYTES_PER_HOUR:
        wrong.append(f"{name}: memory grows by {growth:.0f} KB, {per_hour:.0f} KB an hour, beside "
                     f"{BYTES_PER_STEP} bytes for each of {growth_of(3):.0f} steps")
    for what, at in (("descriptors", 1), ("threads", 2)):
        if min(s[at] for s in last) > max(s[at] for s in middle):
            wrong.append(f"{name}: {what} grow from {middle[0][at]} to {last[-1][at]}")
    return wrong


@register
class SoakStep(Step):
    name = "soak"
    summary = "two ranks train and a server answers for long: memory stays as it is"
    share = 4
    trials = 1
    parallel = False

    def trial(self, number, worker):
        self.export = self.folder / "export"
        reader = self.night.reader()
        reader.write("export", self.export, 1)
        out = self.folder / "out"
        with out.open("w") as standard:
            server = programs.start([self.night.bin / "imdb", "serve", self.export, "--port",
                                     "0"], env=self.night.environment, stdout=standard)
        training = programs.start(
            [self.night.bin / "launch", "-n", "2", "--", self.night.bin / "mnist", "--epochs",
             "1000000", "--train-size", "5000", "--test-size", "64", "--batch-size", "8",
             "--hidden", "32", "--mesh", "batch=2", "--seed", str(number % 1000), "--verbose",
             "0", "--checkpoint-dir", self.folder / "checkpoints"],
            env=self.night.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return self.watch(server, served_port(server, out), training)
        finally:
            programs.end(training)
            programs.end(server)
            shutil.rmtree(self.folder, ignore_errors=True)

    def watch(self, server, port, training):
        begin = time.monotonic()
        seconds = self.seconds_left()
        samples, done = {}, 0
        while self.seconds_left() > 0 and not self.night.stopped:
            end = time.monotonic() + min(SAMPLE_SECONDS, seconds / 12)
            while time.monotonic() < end:
                predict(port, json.dumps({"instances": [[1, 2, 3]]}))
                self.note("answers")
                time.sleep(0.02)
            done = steps_of(self.folder / "checkpoints")
            for process, name, steps in ((server, "server", 0), (training, "launch", done)):
                if process.poll() is not None:
                    return [f"{name} ended with {process.returncode}"]
                for pid in [process.pid, *processes_below(process.pid)]:
                    try:
                        samples.setdefault(f"{name} {pid}", []).append((*sample(pid), steps))
                    except OSError:
                        pass  # it ended
        took = time.monotonic() - begin
        self.tried = f"{len(samples)} processes for {took:.0f} s, {done} steps"
        return [line for name, rows in samples.items() for line in judge(name, rows, took)]
