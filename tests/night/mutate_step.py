"""Reads changed files of every format: mutate draws the changes, bits tries every single bit."""
import shutil

import mutator
import samples
from step import Step, random_of, register

# Limits of what is read here, and of what tessera-hdf5 reads: its sandbox allows 4 GiB and ten
# seconds of CPU time, which take longer on a busy machine.
LIMITS, HELPER_LIMITS = (2048, 10), (4400, 60)


def judge(answer, expected, has_checksum, limits=LIMITS):
    """Returns what is wrong with how a changed file was read; "" if nothing."""
    outcome = answer["outcome"]
    if outcome == "ok":
        if has_checksum and answer["hash"] != expected:
            return "other content is accepted"
    elif outcome != "refused":
        return f"{outcome}: {answer['text'][:200]}"
    max_megabytes, max_seconds = limits
    if answer["megabytes"] > max_megabytes:
        return f"{answer['megabytes']} MB are used"
    if answer["seconds"] > max_seconds:
        return f"it takes {answer['seconds']:.1f} s"
    return ""


class Copies:
    """A thread's own copies of all files, and its reader."""

    def __init__(self, step, number):
        self.folder = step.folder / f"worker_{number}"
        shutil.copytree(step.folder / "files", self.folder)
        self.reader = step.night.reader()


@register
class MutateStep(Step):
    name = "mutate"
    summary = "files of all formats are changed: each is read with the same content, or refused"
    share = 6
    quick_share = 1
    least = 50000

    def prepare(self):
        reader = self.night.reader()
        self.made = samples.make(self.night.tree, reader, self.folder / "files")
        self.expected = {}
        for name, path in self.made.items():
            answer = reader.read(name, path)
            if answer["outcome"] != "ok":
                raise RuntimeError(f"the unchanged file of {name} is not read: {answer}")
            self.expected[name] = answer["hash"]
        self.tried = f"{len(self.made)} formats"

    def worker(self, number):
        return Copies(self, number)

    def trial(self, number, worker):
        random = random_of(number)
        name = random.choice(sorted(self.made))
        source = random.choice(samples.files_of(self.made[name]))
        kind, changed = mutator.mutate(random, source.read_bytes())
        return self.read_changed(number, worker, name, source, changed, kind)

    def read_changed(self, number, worker, name, source, changed, kind):
        """Reads the format's file with the changed bytes in place of one of its files."""
        target = worker.folder / source.relative_to(self.folder / "files")
        target.write_bytes(changed)
        path = worker.folder / self.made[name].relative_to(self.folder / "files")
        answer = worker.reader.read(name, path)
        limits = HELPER_LIMITS if name in samples.HELPED else LIMITS
        wrong = judge(answer, self.expected[name], name not in samples.WITHOUT_CHECKSUM, limits)
        same = answer["hash"] == self.expected[name]
        told = answer["outcome"] if answer["outcome"] != "ok" else ("same" if same else "other")
        self.note(f"{name}: {told}")
        kept = self.keep(number, path) if wrong else None
        shutil.copyfile(source, target)
        return [f"{name}, {source.name}, {kind}: {wrong} ({kept})"] if wrong else []


@register
class BitsStep(MutateStep):
    name = "bits"
    summary = "every bit of small files that Tessera wrote is changed: none has other content"
    share = 8
    quick_share = 0
    least = 50000

    def prepare(self):
        super().prepare()
        self.made = {name: self.made[name] for name in samples.EVERY_BIT}
        self.files = [(name, file) for name, path in self.made.items()
                      for file in samples.files_of(path)]
        self.ends, total = [], 0
        for _, file in self.files:
            total += 8 * file.stat().st_size
            self.ends.append(total)
        self.trials = total
        self.tried = f"{total} bits of {len(self.files)} files"

    def trial(self, number, worker):
        case = self.spread(number, self.trials)
        at = next(i for i, end in enumerate(self.ends) if case < end)
        name, source = self.files[at]
        bit = case - (self.ends[at - 1] if at else 0)
        changed = bytearray(source.read_bytes())
        changed[bit // 8] ^= 1 << bit % 8
        return self.read_changed(number, worker, name, source, changed, f"bit {bit}")
