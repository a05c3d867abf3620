"""Kills training at random moments and resumes it, until it ends as if it had never been killed."""
import hashlib
import shutil
import signal
import os
import subprocess
import time

import programs
from step import Step, random_of, register

MAX_KILLS = 12
RUN_SECONDS = 300


class Training:
    """A run of mnist that depends on a seed alone: its mesh, model, checkpoints and processes."""

    def __init__(self, night, random):
        self.night = night
        size, batch = random.choice((640, 1280, 1920)), random.choice((16, 32))
        self.words = ["--train-size", size, "--test-size", "64", "--batch-size", batch,
                      "--epochs", random.choice((1, 2, 3)), "--hidden",
                      random.choice(("16", "32,16")), "--style",
                      random.choice(("sequential", "functional", "subclass")), "--seed",
                      random.randrange(1000), "--save-every", random.choice((1, 2, 3, 5, 7)),
                      "--mesh", f"batch={random.choice((2, 4))}", "--verbose", "0"]
        self.ranks = random.choice((1, 1, 2))

    def command(self, checkpoints, save):
        launch = [self.night.bin / "launch", "-n", self.ranks, "--"] if self.ranks > 1 else []
        return [*launch, self.night.bin / "mnist", *self.words, "--resume", "--checkpoint-dir",
                checkpoints, "--save", save]

    def describe(self):
        return " ".join([f"{self.ranks} ranks, mnist", *map(str, self.words)])


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None


@register
class CrashStep(Step):
    name = "crash"
    summary = "training is killed at random and resumed: its weights are those without kills"
    share = 6
    least = 100  # runs, with about ten kills each

    def prepare(self):
        self.tried = "runs of mnist"

    def trial(self, number, worker):
        random = random_of(number)
        training = Training(self.night, random)
        folder = self.folder / str(number)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            wrong = self.compare(training, random, folder)
            if wrong:
                kept = self.keep(number, folder)
                return [f"{training.describe()}: {wrong} ({kept})"]
            return []
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def compare(self, training, random, folder):
        begin = time.monotonic()
        ended = programs.run(training.command(folder / "whole", folder / "whole.safetensors"),
                             timeout=RUN_SECONDS, env=self.night.environment)
        whole = time.monotonic() - begin
        expected = digest(folder / "whole.safetensors")
        if ended.code != 0 or not expected:
            return f"undisturbed: {ended.describe()}"
        command = training.command(folder / "killed", folder / "killed.safetensors")
        for kills in range(MAX_KILLS + 1):
            wait = random.uniform(0.2, 0.8 * whole) if kills < MAX_KILLS else RUN_SECONDS
            ended = self.run_and_kill(command, wait)
            if ended is None:
                self.note("kills")
                continue
            if ended.code != 0:
                return f"after {kills} kills: {ended.describe()}"
            if ended.lines():
                self.note("runs with warnings")
            same = digest(folder / "killed.safetensors") == expected
            return "" if same else f"after {kills} kills: the weights are others"
        return f"it does not end in {RUN_SECONDS} s"

    def run_and_kill(self, command, seconds):
        """Runs a program. Returns how it ended; None if it was killed after so many seconds."""
        process = programs.start(command, env=self.night.environment, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, err = process.communicate(timeout=seconds)
            return programs.Ended(process.returncode, out, err)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None
        finally:
            programs.end(process)
