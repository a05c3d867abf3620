"""A step of the night: what each kind of trial has to say, and how trials are run."""
import concurrent.futures
import dataclasses
import math
import random
import shutil
import threading
import time
import traceback

STEPS = {}
# A night of this many hours reaches the trials that a step names as its least.
FULL_NIGHT_HOURS = 6
MAX_REPORTED = 100


class Skip(Exception):
    """What a step needs is missing; the text says what."""


def register(kind):
    """Adds a class of steps under its name, in the order in which the steps run."""
    STEPS[kind.name] = kind
    return kind


class Step:
    """A step tries one trial after the other until its time is over. Trial number N depends on N
    alone, so that `./run night STEP --seed N` runs it again as the first."""

    name = ""
    summary = ""      # for --help
    share = 1         # of the night, relative to the other steps
    quick_share = 0   # the same with --quick; 0: not run
    least = 1         # trials of a full night; fewer are a failure
    trials = None     # trials that there are; None: without end
    parallel = True   # whether trials run on all cores at the same time

    def __init__(self, night):
        self.night = night
        self.folder = night.scratch / self.name
        self.notes = {}
        self.tried = ""  # for the table
        self.lock = threading.Lock()

    def prepare(self):
        """Makes what the trials need. Throws Skip where that is impossible."""

    def worker(self, number):
        """Returns what one of the threads that run trials has for itself."""
        return None

    def trial(self, number, worker):
        """Runs trial `number`. Returns its failures, as texts; none if all is well."""
        raise NotImplementedError

    def seconds_left(self):
        return self.night.deadline - time.monotonic()

    def note(self, key, count=1):
        """Counts something for the report."""
        with self.lock:
            self.notes[key] = self.notes.get(key, 0) + count

    def spread(self, number, count):
        """Returns a position in a list of `count` cases: following numbers are far apart, and
        `count` of them visit every case once."""
        stride = max(1, int(count * 0.6180339887))
        while math.gcd(stride, count) != 1:
            stride += 1
        return number * stride % count

    def keep(self, number, path):
        """Copies a file or folder that showed a failure. Returns where it is."""
        kept = self.night.out / "findings" / f"{self.name}-{number}" / path.name
        shutil.rmtree(kept.parent, ignore_errors=True)
        kept.parent.mkdir(parents=True)
        (shutil.copytree if path.is_dir() else shutil.copy)(path, kept)
        return kept


@dataclasses.dataclass
class Result:
    """How a step ended."""
    name: str
    seed: int
    tried: str = ""
    count: int = 0
    least: int = 0
    failures: list = dataclasses.field(default_factory=list)
    failure_count: int = 0
    seconds: float = 0
    skipped: str = ""
    notes: dict = dataclasses.field(default_factory=dict)

    def verdict(self):
        if self.skipped:
            return "skipped"
        return "FAILED" if self.failure_count else "ok"


class Runner:
    """Runs the trials of one step."""

    def __init__(self, step, seed, limit, least, say):
        self.step, self.limit, self.say = step, limit, say
        self.result = Result(step.name, seed, least=least)
        self.next = seed
        self.lock = threading.Lock()

    def run(self):
        start = time.monotonic()
        try:
            self.step.folder.mkdir(parents=True, exist_ok=True)
            self.step.prepare()
            self.run_trials()
        except Skip as reason:
            self.result.skipped = str(reason)
        except Exception:  # a fault of the step itself
            self.fail(self.result.seed, traceback.format_exc().strip())
        self.result.seconds = time.monotonic() - start
        self.result.tried, self.result.notes = self.step.tried, self.step.notes
        self.check_count()
        shutil.rmtree(self.step.folder, ignore_errors=True)
        return self.result

    def run_trials(self):
        jobs = self.step.night.jobs if self.step.parallel else 1
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for done in [pool.submit(self.work, number) for number in range(jobs)]:
                done.result()

    def work(self, number):
        worker = self.step.worker(number)
        while (trial := self.take()) is not None:
            try:
                failures = self.step.trial(trial, worker)
            except Skip:
                raise
            except Exception:
                failures = [traceback.format_exc().strip()]
            if self.step.night.stopped:
                return  # its programs were killed
            with self.lock:
                self.result.count += 1
            for text in failures or []:
                self.fail(trial, text)

    def take(self):
        """Returns the number of the next trial; None at the end. The first always runs."""
        with self.lock:
            done = self.next - self.result.seed
            ends = [end for end in (self.limit, self.step.trials) if end is not None]
            over = done > 0 and self.step.seconds_left() <= 0
            if over or self.step.night.stopped or (ends and done >= min(ends)):
                return None
            self.next += 1
            return self.next - 1

    def fail(self, trial, text):
        with self.lock:
            self.result.failure_count += 1
            if self.result.failure_count > MAX_REPORTED:
                return
            text = " | ".join(line.strip() for line in text.splitlines())
            line = (f"{self.step.name}: {text}. "
                    f"To run it again: ./run night {self.step.name} --seed {trial}")
            self.result.failures.append(line)
        self.say(line)

    def check_count(self):
        result = self.result
        whole = self.step.trials is not None and result.count >= self.step.trials
        if result.skipped or self.step.night.stopped or whole or result.count >= result.least:
            return
        self.fail(result.seed, f"{result.count} trials; a night as long as this one must reach "
                  f"{result.least}")


def random_of(number):
    """Returns the random numbers of a trial."""
    return random.Random(number)
