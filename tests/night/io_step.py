"""Lets one call that reads, writes or names files fail while files of every format are read and
written."""
import errno
import shutil

import samples
from step import Step, register

# Negative values are no errno: half of a transfer, and the end of the process.
FAULTS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EINTR": errno.EINTR, "short": -1, "exit": -2}
EXIT = "exit 99"
HELPER, HELPER_CALLS = "tessera-hdf5", 40
WRITTEN = ("checkpoint", "backup", "keras", "weights_h5", "safetensors", "export", "cache", "gpt",
           "npz", "json")


def names(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


class Case:
    """A read or a write of a format, and the calls it makes."""

    def __init__(self, name, writes, program, calls):
        self.name, self.writes, self.program, self.calls = name, writes, program, calls

    def describe(self, nth, fault):
        who = f" of {self.program}" if self.program else ""
        return f"{'write' if self.writes else 'read'} {self.name}, call {nth}{who} {fault}"


class Files:
    def __init__(self, step, number):
        self.folder = step.folder / f"worker_{number}"
        self.folder.mkdir()
        self.failing = step.night.reader(step.night.failing_library("calls"))
        self.reader = step.night.reader()


@register
class IoStep(Step):
    name = "io"
    summary = "a call fails, ends early or kills: files have their old or their new content"
    share = 2
    quick_share = 1
    least = 5000

    def prepare(self):
        reader = self.night.reader()
        failing = self.night.reader(self.night.failing_library("calls"))
        self.made = samples.make(self.night.tree, reader, self.folder / "old")
        # A cache is written where there is none.
        shutil.rmtree(self.made["cache"].parent)
        self.made["cache"].parent.mkdir()
        self.contents, self.names, self.cases = {}, {}, []
        for name in WRITTEN:
            self.measure(name, reader, failing)
        self.tries = [(case, nth, fault) for case in self.cases
                      for nth in range(1, case.calls + 1) for fault in FAULTS]
        self.trials = len(self.tries)
        self.tried = f"{self.trials} calls of {len(self.cases)} reads and writes"

    def measure(self, name, reader, failing):
        """Counts the calls of replacing and of reading a file, and notes both contents."""
        copy = self.copy(name, self.folder / "new")
        old = reader.read(name, copy) if copy.exists() else None
        before = names(copy.parent)
        written = failing.write(name, copy, 2, 0, 0)
        if written["outcome"] != "ok":
            raise RuntimeError(f"{name} cannot be written: {written}")
        new = reader.read(name, copy)
        self.contents[name] = (old["hash"] if old else None, new["hash"])
        self.names[name] = before | names(copy.parent)
        helpers = (None, HELPER) if name in samples.HELPED else (None,)
        for program in helpers:
            calls = HELPER_CALLS if program else written["calls"]
            self.cases.append(Case(name, True, program, calls))
            calls = HELPER_CALLS if program else failing.read(name, copy, 0, 0)["calls"]
            self.cases.append(Case(name, False, program, calls))

    def copy(self, name, folder):
        """Copies the old file or folder. Returns the path of the copy."""
        path = folder / name / self.made[name].name
        shutil.rmtree(path.parent, ignore_errors=True)
        shutil.copytree(self.made[name].parent, path.parent)
        return path

    def worker(self, number):
        return Files(self, number)

    def trial(self, number, worker):
        case, nth, fault = self.tries[self.spread(number, self.trials)]
        path = self.copy(case.name, worker.folder)
        if not case.writes and case.name == "cache":
            shutil.copytree(self.folder / "new" / case.name, path.parent, dirs_exist_ok=True)
        failing = [nth, FAULTS[fault], *([case.program] if case.program else [])]
        if case.writes:
            answer = worker.failing.write(case.name, path, 2, *failing)
            wrong = self.judge_write(case, path, answer, fault, worker.reader)
        else:
            answer = worker.failing.read(case.name, path, *failing)
            wrong = self.judge_read(case, answer, fault)
        self.note(f"{'write' if case.writes else 'read'} {case.name}: {answer['outcome']}")
        if not wrong:
            return []
        kept = self.keep(number, path.parent)
        return [f"{case.describe(nth, fault)}: {wrong} ({kept})"]

    def judge_read(self, case, answer, fault):
        outcome = answer["outcome"]
        if outcome == "ok":
            if case.name in samples.FALLS_BACK or answer["hash"] in self.contents[case.name]:
                return self.judge_descriptors(answer)
            return "other content is read"
        if outcome == "refused":
            return self.judge_descriptors(answer)
        return "" if fault == "exit" and outcome == EXIT else f"{outcome}: {answer['text'][:300]}"

    def judge_write(self, case, path, answer, fault, reader):
        outcome = answer["outcome"]
        ended = fault == "exit" and outcome == EXIT
        if not ended and outcome not in ("ok", "refused"):
            return f"{outcome}: {answer['text'][:300]}"
        left = names(path.parent) - self.names[case.name]
        # After a success, the call that failed is one that removes files.
        if left and outcome == "refused":
            return f"left behind after \"{answer['text'][:200]}\": {', '.join(sorted(left)[:3])}"
        content = None
        if path.exists():
            found = reader.read(case.name, path)
            if found["outcome"] != "ok":
                return f"the file is not read afterwards: {found['text'][:300]}"
            content = found["hash"]
        old, new = self.contents[case.name]
        if case.name in samples.FALLS_BACK and outcome == "ok":
            return self.judge_descriptors(answer)
        if content != new and (outcome == "ok" or content != old):
            return "neither the old nor the new content is there" if outcome != "ok" else \
                "it succeeds, but the new content is not there"
        return "" if ended else self.judge_descriptors(answer)

    def judge_descriptors(self, answer):
        leaked = answer["leaked"]
        return f"{leaked} descriptors stay open" if leaked > 0 else ""
