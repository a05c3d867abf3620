"""The thread sanitizer over rooms with libtorch: their sources and tests are compiled with it into
programs in front of the library, which is not."""
import concurrent.futures
import json
import pathlib
import re
import shlex

import programs
from step import Skip, Step, register

# Folders of sources, and of the tests of a target that are run.
ROOMS = {
    "comm": (("framework/comm",), "tests/comm", "comm_test"),
    "serving": (("framework/serving",), "tests/serving", "serving_test"),
    # With the threads that both pipelines and batch loaders have.
    "pipeline": (("datasets/pipeline", "framework/data"), "tests/datasets/pipeline",
                 "datasets_test"),
}
FLAGS = ["-fsanitize=thread", "-O1", "-g1", "-Wno-error", "-w"]
INCLUDE = re.compile(r'^#include "(.+)"$', re.MULTILINE)
REPORT = re.compile(r"^WARNING: ThreadSanitizer: (.*?)(?: \(pid=\d+\))?$", re.MULTILINE)
SUMMARY = re.compile(r"^SUMMARY: ThreadSanitizer: (.*)$", re.MULTILINE)
COMPILE_SECONDS, RUN_SECONDS = 1200, 1800


def compile_command(entries, text):
    """Returns the command of the first source that contains a text, not of a precompiled header;
    None if there is none."""
    return next((entry["command"] for entry in entries
                 if text in entry["command"] and "c++-header" not in entry["command"]), None)


def template(command, source, output):
    """Returns a compile command for another source and output, with the sanitizer."""
    words = shlex.split(command)
    words[words.index("-o") + 1] = str(output)
    words[words.index("-c") + 1] = str(source)
    kept = [word for word in words if word not in ("-Winvalid-pch", "-Werror")]
    return [*kept, *FLAGS]


def link_command(command, objects, output):
    """Returns a link command with other objects and another output, with the sanitizer."""
    words = [word for word in shlex.split(command) if word not in (":", "&&")]
    words[words.index("-o") + 1] = str(output)
    rest = [word for word in words[1:] if not word.endswith(".o")]
    # The library's sources also need what only the library is linked with: CUDA's part of ATen.
    return [words[0], "-fsanitize=thread", "-Wl,--copy-dt-needed-entries", *map(str, objects),
            *rest]


@register
class TsanStep(Step):
    name = "tsan"
    summary = "the thread sanitizer over comm, serving and the pipeline"
    share = 3
    trials = len(ROOMS)
    least = len(ROOMS)
    parallel = False

    def prepare(self):
        commands = self.night.build / "compile_commands.json"
        if not commands.exists():
            raise Skip(f"there is no {commands}")
        self.commands = json.loads(commands.read_text(encoding="utf-8"))
        self.tried = ", ".join(ROOMS)

    def command_with(self, text):
        found = compile_command(self.commands, text)
        if not found:
            raise Skip(f"no source of {text} is compiled in {self.night.build}")
        return found

    def compiled(self):
        """Returns the sources that the build compiles, alone or in unity sources."""
        sources = set()
        for entry in self.commands:
            path = pathlib.Path(entry["file"])
            sources.add(str(path))
            if "/Unity/" in str(path) and path.exists():
                sources.update(INCLUDE.findall(path.read_text(encoding="utf-8")))
        return sources

    def trial(self, number, worker):
        name = list(ROOMS)[number % len(ROOMS)]
        folders, tests, target = ROOMS[name]
        compiled = self.compiled()
        library = self.command_with("-o CMakeFiles/tessera.dir/")
        test = self.command_with(f"-o tests/CMakeFiles/{target}.dir/")
        jobs = [(library, source) for folder in folders
                for source in sorted((self.night.tree / folder).rglob("*.cpp"))]
        jobs += [(test, source)
                 for source in sorted((self.night.tree / tests).rglob("*_test.cpp"))]
        jobs = [(command, source) for command, source in jobs if str(source) in compiled]
        # Compiled without the precompiled header of the tests.
        jobs.append((self.command_with(f"{target}.dir/support/seeded_cases.cpp.o"),
                     self.night.tree / "tests/support/seeded_cases.cpp"))
        folder = self.folder / name
        folder.mkdir(parents=True)
        objects, failures = self.compile(jobs, folder)
        return failures or self.link_and_run(name, target, objects, folder)

    def compile(self, jobs, folder):
        def one(number, command, source):
            output = folder / f"{number}_{source.name}.o"
            ended = programs.run(template(command, source, output), cwd=self.night.build,
                                 timeout=COMPILE_SECONDS)
            wrong = "" if ended.code == 0 else f"{source} is not compiled: {ended.describe()}"
            return output, wrong

        with concurrent.futures.ThreadPoolExecutor(self.night.jobs) as pool:
            done = [pool.submit(one, i, *job) for i, job in enumerate(jobs)]
            results = [job.result() for job in done]
        self.note("sources", len(results))
        return [output for output, _ in results], [wrong for _, wrong in results if wrong]

    def link_and_run(self, name, target, objects, folder):
        listed = programs.run(["ninja", "-t", "commands", target], cwd=self.night.build)
        program = folder / f"{target}_tsan"
        ended = programs.run(link_command(listed.out.splitlines()[-1], objects, program),
                             cwd=self.night.build, timeout=COMPILE_SECONDS)
        if ended.code != 0:
            return [f"{name} is not linked: {ended.describe()}"]
        ended = programs.run([program, "~[nightly]~[.]"], timeout=RUN_SECONDS, cwd=folder,
                             env={**self.night.environment, "TSAN_OPTIONS": "exitcode=0"})
        log = self.night.out / f"tsan_{name}.log"
        log.write_text(ended.out + ended.err, encoding="utf-8")
        text = ended.out + ended.err
        if ended.hang or ended.code < 0:
            return [f"{name}: {ended.describe()}"]
        # Under the sanitizer, tests with limits on time may fail.
        self.note(f"{name}: {'all tests pass' if ended.code == 0 else 'some tests fail'}")
        reports = SUMMARY.findall(text) or REPORT.findall(text)
        return [f"{name}: {line}; see {log}" for line in sorted(set(reports))]
