"""Lets one allocation fail in programs, and while files of every format are read or written."""
import shutil

import samples
from programs import LIBRARY_ENDS
from step import Step, random_of, register
from works import WORKS

# Every so many trials a program runs, which takes as long as dozens of files.
PROGRAM_EVERY = 40
ENOMEM = 12


def judge_file(answer):
    """Returns what is wrong with how a file was read or written without memory."""
    outcome, lines = answer["outcome"], answer["text"].strip().splitlines()
    if outcome == "signal 6" and answer["text"].startswith(LIBRARY_ENDS):
        return ""
    if outcome in ("ok", "refused", "memory") or (outcome == "exit 1" and len(lines) == 1):
        return ""
    return f"{outcome}: {' | '.join(lines)[:300]}"


class Files:
    """A thread's own copies, a reader whose allocations fail, and one that shows the contents."""

    def __init__(self, step, number):
        self.folder = step.folder / f"worker_{number}"
        self.folder.mkdir()
        self.failing = step.night.reader(step.night.failing_library("malloc"))
        self.reader = step.night.reader()


@register
class MallocStep(Step):
    name = "malloc"
    summary = "an allocation fails: programs end with one line or go on, old files stay"
    share = 4
    quick_share = 1
    least = 10000

    def prepare(self):
        reader = self.night.reader()
        failing = self.night.reader(self.night.failing_library("malloc"))
        self.made = samples.make(self.night.tree, reader, self.folder / "files")
        self.cases = []
        for form in reader.formats():
            self.count_files(form, reader, failing)
        self.works = []
        for kind in WORKS:
            work = kind(self.night, reader, self.folder)
            self.works.append((work, work.count(self.folder / "count")))
            if self.night.stopped or self.seconds_left() < 0:
                break
        self.tried = f"{len(self.works)} programs, {len(self.cases)} files"

    def count_files(self, form, reader, failing):
        """Counts the allocations of reading and, if it is written, replacing a file."""
        name, path = form["name"], self.made[form["name"]]
        calls = failing.read(name, path, 0, 0)["calls"]
        self.cases.append((name, False, calls, {reader.read(name, path)["hash"]}))
        if not form["writes"] or name in samples.NOT_WRITTEN:
            return
        copy = self.folder / "replaced" / path.name
        shutil.copytree(path.parent, copy.parent)
        old = reader.read(name, copy)["hash"]
        calls = failing.write(name, copy, 2, 0, 0)["calls"]
        self.cases.append((name, True, calls, {old, reader.read(name, copy)["hash"]}))
        shutil.rmtree(copy.parent)

    def worker(self, number):
        return Files(self, number)

    def trial(self, number, worker):
        random = random_of(number)
        if number % PROGRAM_EVERY == 0 and self.works:
            return self.run_program(number, random, worker)
        return self.try_file(number, random, worker)

    def run_program(self, number, random, worker):
        work, count = random.choice(self.works)
        nth = random.randint(1, count)
        folder = worker.folder / "files"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(work.base, folder)
        ended = work.run(folder, work.environment(nth))
        wrong = work.check(folder, ended)
        self.note(f"{work.name}: exit {ended.code}")
        return [f"{work.name}, allocation {nth} of {count}: {wrong}"] if wrong else []

    def try_file(self, number, random, worker):
        name, writes, count, contents = random.choice(self.cases)
        nth = random.randint(1, max(1, count))
        source = self.made[name]
        # A written file must not be read by the trials after it.
        path = worker.folder / ("written" if writes else "read") / name / source.name
        if writes or not path.exists():
            shutil.rmtree(path.parent, ignore_errors=True)
            shutil.copytree(source.parent, path.parent)
        verb = "write" if writes else "read"
        words = [name, path, 2] if writes else [name, path]
        answer = getattr(worker.failing, verb)(*words, nth, ENOMEM)
        wrong = judge_file(answer)
        if not wrong and writes:
            content = worker.reader.read(name, path)
            if content["outcome"] != "ok" or content["hash"] not in contents:
                wrong = f"neither the old nor the new content is there ({content['text'][:200]})"
        elif not wrong and answer["outcome"] == "ok" and answer["hash"] not in contents and \
                name not in samples.FALLS_BACK:
            wrong = "other content is read"
        self.note(f"{verb} {name}: {answer['outcome']}")
        return [f"{verb} {name}, allocation {nth} of {count}: {wrong}"] if wrong else []
