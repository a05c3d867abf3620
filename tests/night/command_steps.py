"""Steps that are commands of ./run: the nightly test cases, the fuzz targets, another compiler and the newest
torch."""
import os
import re
import shutil
import subprocess
import sys

import programs
from step import Skip, Step, register

# A command that takes longer hangs: builds and nightly test cases take hours.
LIMIT_SECONDS = 8 * 3600


class CommandStep(Step):
    """Runs one command of ./run, whose exit code says whether all is well."""

    trials = 1
    parallel = False
    tools = ()
    variables = {}  # of the command's environment, beside those of the night

    def prepare(self):
        for tool in self.tools:
            if not shutil.which(tool):
                raise Skip(f"{tool} is not installed")

    def words(self):
        raise NotImplementedError

    def trial(self, number, worker):
        settings = [f"{name}={value}" for name, value in self.variables.items()]
        self.tried = " ".join([*settings, "./run", *self.words()])
        log = self.night.out / f"{self.name}.log"
        # Not the environment of the other steps: these commands find the data sets themselves.
        with log.open("w") as file:
            process = programs.start([self.night.tree / "run", *self.words()], stdout=file,
                                     stderr=subprocess.STDOUT, cwd=self.night.tree,
                                     env={**os.environ, **self.variables})
            try:
                process.wait(timeout=LIMIT_SECONDS)
            except subprocess.TimeoutExpired:
                return [f"it does not end in {LIMIT_SECONDS} s; see {log}"]
            finally:
                programs.end(process)
        return [] if process.returncode == 0 else [self.reason(log, process.returncode)]

    def reason(self, log, code):
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        failed = [line.strip() for line in lines if re.search(r"\(Failed\)|\(Timeout\)|FINDING",
                                                              line)]
        return f"exit code {code}: {'; '.join(failed[:8]) or lines[-1] if lines else ''}; see {log}"


@register
class NightlyStep(CommandStep):
    name = "nightly"
    summary = "all test cases, those of the night too: ./run test --nightly"
    share = 8

    def words(self):
        return ["test", "--nightly"]


@register
class FuzzStep(CommandStep):
    name = "fuzz"
    summary = "the parsers of untrusted bytes under libFuzzer: ./run fuzz"
    share = 6
    tools = ("clang++-14",)

    def words(self):
        targets = len(list((self.night.tree / "tests/fuzz").glob("*_fuzz.cpp")))
        return ["fuzz", "--seconds", str(max(1, int(self.seconds_left() / targets)))]


class UnitTestsStep(CommandStep):
    """The unit tests of the preset that the step is named after."""

    share = 8

    def words(self):
        return ["test", "--preset", self.name, "-L", "unit"]


@register
class AsanStep(UnitTestsStep):
    name = "asan"
    summary = "the unit tests with the address and undefined behaviour sanitizers"


@register
class ClangStep(UnitTestsStep):
    name = "clang"
    summary = "the unit tests, compiled by clang 15 in build/clang"


@register
class TorchStep(UnitTestsStep):
    name = "torch"
    summary = "the unit tests with the newest torch of PyPI, in build/torch"

    def prepare(self):
        super().prepare()
        said = programs.run([sys.executable, "-m", "pip", "index", "versions", "torch"], timeout=120)
        newest = re.match(r"torch \(([\d.]+)\)", said.out)
        if not newest:
            raise Skip(f"pip does not say which torch is the newest: {said.describe()}")
        self.variables = {"TESSERA_TORCH": newest[1]}
