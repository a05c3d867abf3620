"""Tests night.py with steps that fail as planned, and the parts of steps that need no build."""
import contextlib
import http.server
import io
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading

import image_step
import io_step
import malloc_step
import mutate_step
import mutator
import night
import pipeline_step
import programs
import samples
import sanitizer_steps
import soak_step
from step import STEPS, Skip, Step

HERE = pathlib.Path(__file__).resolve().parent


def check(condition, text):
    print(text)
    if not condition:
        sys.exit("FAILED: " + text)


class Planted(Step):
    """Trial 7 fails."""
    name, summary, least = "planted", "a planted failure", 1

    def prepare(self):
        self.tried = "numbers"

    def trial(self, number, worker):
        self.note("even" if number % 2 == 0 else "odd")
        return ["the seventh"] if number == 7 else []


class Whole(Planted):
    name, trials = "whole", 5

    def trial(self, number, worker):
        return None


class Slow(Whole):
    name, trials, least = "slow", None, 10 ** 9


class Missing(Whole):
    name = "missing"

    def prepare(self):
        raise Skip("no such tool")


class Broken(Whole):
    name = "broken"

    def trial(self, number, worker):
        raise KeyError("a fault of the step")


def run(folder, *words):
    """Runs a night. Returns (exit code, standard output, standard error, report)."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = night.main([*words, "--out", str(folder)])
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return code, out.getvalue(), err.getvalue(), report


def test_night(folder):
    for kind in (Planted, Whole, Slow, Missing, Broken):
        STEPS[kind.name] = kind
    code, out, err, report = run(folder, "planted", "--seed", "5", "--trials", "4", "--jobs", "2")
    line = "planted: the seventh. To run it again: ./run night planted --seed 7"
    check(code == 1 and f"night: {line}\n" in err, f"a failure names its seed: {line}")
    row = report[0]
    check((row["count"], row["failures"], row["lines"], row["notes"], row["seed"]) ==
          (4, 1, [line], {"odd": 2, "even": 2}, 5), f"the report has it: {row}")
    lines = out.splitlines()
    check(lines[0].split() == ["step", "tried", "count", "failures", "time"] and
          lines[1].split()[:4] == ["planted", "numbers", "4", "1"] and
          lines[1].endswith("FAILED"), f"the table has it: {lines}")
    code, _, err, report = run(folder, "planted", "--seed", "7", "--trials", "1")
    check(code == 1 and line in err and report[0]["count"] == 1, "its seed fails at once")
    check(run(folder, "planted", "--seed", "8", "--trials", "9")[0] == 0, "other seeds do not fail")
    code, out, _, report = run(folder, "whole", "missing", "--hours", "0.01")
    check(code == 0 and [row["result"] for row in report] == ["ok", "skipped"] and
          report[0]["count"] == 5 and "skipped: no such tool" in out,
          f"steps end with their cases, and are skipped without their tools: {out}")
    night.START_SECONDS = 0
    code, _, err, report = run(folder, "slow", "--hours", "0.0001")
    check(code == 1 and "must reach" in err and report[0]["count"] > 0,
          "a step that tries too little is a failure")
    code, _, err, _ = run(folder, "broken", "--seed", "3", "--trials", "1")
    check(code == 1 and "KeyError: 'a fault of the step'" in err and "broken --seed 3" in err,
          "a fault of a step is a failure of that step alone")
    for kind in (Planted, Whole, Slow, Missing, Broken):
        del STEPS[kind.name]


def test_options():
    options = night.parse(["--quick"])
    check({kind.name for kind in night.chosen(options)} == {"malloc", "io", "mutate"},
          "--quick runs malloc, io and mutate")
    check(set(night.chosen(night.parse([]))) == set(STEPS.values()), "all steps run by default")
    for words in (["nothing"], ["--hours", "0"], ["--seed", "-1"], ["--jobs", "0"]):
        with contextlib.redirect_stderr(io.StringIO()) as err:
            try:
                night.parse(words)
            except SystemExit as end:
                check(end.code == 2, f"{words} are refused: {err.getvalue().splitlines()[-1]}")
            else:
                check(False, f"{words} are refused")


def test_spread(folder):
    class Spread:
        pass
    for count in (1, 2, 9, 1000, 1024):
        seen = {Step.spread(Spread(), number, count) for number in range(77, 77 + count)}
        check(seen == set(range(count)), f"{count} following seeds try all of {count} cases")


def test_mutator():
    data = json.dumps({"rows": list(range(40)), "name": "night"}).encode()
    kinds = set()
    for number in range(500):
        kind, changed = mutator.mutate(random.Random(number), data)
        again = mutator.mutate(random.Random(number), data)
        if changed == data or again != (kind, changed):
            check(False, f"seed {number} changes the bytes, and always equally")
        kinds.add(kind)
    check(kinds == set(mutator.KINDS), f"all kinds of changes are drawn: {sorted(kinds)}")
    for _ in range(200):
        mutator.mutate(random.Random(_), b"x")
    check(len(samples.bmp()) == 54 + 24 * 9 and samples.gif().endswith(b";"), "small pictures")


def answer(outcome, text="", content=1, **more):
    return {"outcome": outcome, "text": text, "hash": content, "megabytes": 90, "seconds": 0.1,
            "leaked": 0, **more}


def test_judges(folder):
    judge = mutate_step.judge
    check(judge(answer("ok"), 1, True) == "" and judge(answer("refused"), 1, True) == "",
          "equal content and errors are right")
    check(judge(answer("ok"), 2, True) and judge(answer("ok"), 2, False) == "",
          "other content is wrong in formats with checksums")
    for outcome in ("signal 11", "hang", "foreign", "memory", "exit 1"):
        check(judge(answer(outcome), 1, False), f"{outcome} is wrong for a changed file")
    check(judge(answer("ok", megabytes=5000), 1, True), "gigabytes are wrong")
    check(malloc_step.judge_file(answer("exit 1", "night_reader: out of memory\n")) == "" and
          malloc_step.judge_file(answer("memory")) == "", "without memory one line is right")
    for wrong in (answer("exit 1"), answer("signal 6", "terminate called"), answer("hang"),
                  answer("exit 1", "two\nlines"), answer("foreign", "x")):
        check(malloc_step.judge_file(wrong), f"{wrong['outcome']} is wrong without memory")
    case = io_step.Case("checkpoint", False, None, 9)
    step = type("Step", (), {"contents": {"checkpoint": (1, 2)},
                             "judge_descriptors": io_step.IoStep.judge_descriptors})()
    reads = io_step.IoStep.judge_read
    check(reads(step, case, answer("ok", content=2), "EIO") == "" and
          reads(step, case, answer("exit 99"), "exit") == "", "old or new content is right")
    check(reads(step, case, answer("ok", content=3), "EIO") and
          reads(step, case, answer("exit 99"), "EIO") and
          reads(step, case, answer("refused", leaked=1), "EIO"),
          "other content, another end and open descriptors are wrong")
    told = programs.Ended(1, "", "mnist: error: no space\n")
    check(programs.is_told(told) and programs.is_told(programs.Ended(0, "", "a\nb\n")),
          "one line says why a program ends")
    for wrong in (programs.Ended(-6, "", "x\n"), programs.Ended(1, "", ""),
                  programs.Ended(1, "", "a\nb\n"), programs.Ended(0, "", "", hang=True),
                  programs.Ended(1, "", "terminate called after throwing\n")):
        check(not programs.is_told(wrong), f"not told: {wrong.describe()}")
    steady = [(1000, 9, 3, 0)] * 30
    check(soak_step.judge("server", steady, 3600) == [], "steady memory is right")
    grown = [(1000 + 200 * i, 9 + i // 10, 3, 0) for i in range(30)]
    check(len(soak_step.judge("server", grown, 3600)) == 2, "growing ones are not")
    trained = [(1000 + 200 * i, 9, 3, 10000 * i) for i in range(30)]
    check(soak_step.judge("launch", trained, 3600) == [], "a training keeps 32 bytes a step")
    trained = [(1000 + 600 * i, 9, 3, 10000 * i) for i in range(30)]
    check(len(soak_step.judge("launch", trained, 3600)) == 1, "but no more")
    for name in ("step-000120", "step-1000", "step-x", "other"):
        (folder / "checkpoints" / name).mkdir(parents=True)
    check(soak_step.steps_of(folder / "checkpoints") == 1000,
          "the newest checkpoint says the number of steps")


def test_pipeline():
    drawn = {pipeline_step.draw(random.Random(number)) for number in range(300)}
    check({one.split(":")[1] for one in drawn} ==
          {"gpipe", "1f1b", "interleaved", "zb_h1", "zb_v"} and
          {one.split(":")[3] for one in drawn} == {"stage=4", "stage=2,batch=2"},
          f"{len(drawn)} pipelines of all schedules are drawn")
    training = "mlp:1f1b:4:stage=2,batch=2"
    right = programs.Ended(0, f"{training} equal\n" * pipeline_step.TRAININGS, "")
    check(pipeline_step.judge([right] * 4, training) == [], "equal trainings are right")
    for wrong in (programs.Ended(0, right.out, "", hang=True), programs.Ended(3, right.out, "x"),
                  programs.Ended(0, f"{training} loss of step 3: 1, not 2\n", "")):
        check(len(pipeline_step.judge([right, wrong], training)) == 1, f"not {wrong.describe()}")
    killed = programs.Ended(-9, "", "")
    named = programs.Ended(3, "", "error: rank 1 (pid 77 on vm) was lost in step 4\n")
    judge = pipeline_step.judge_killed
    check(judge([named, killed, named, named], 1, 77, 2) == [] and
          judge([right, killed, right, right], 1, 77, 2) == [], "a killed rank is named")
    check(len(judge([named, killed, named, named], 1, 77, 6)) == 1, "but no later than in 5 s")
    for wrong in (programs.Ended(3, "", "error: rank 2 (pid 78) was lost\n"),
                  programs.Ended(3, "", ""), programs.Ended(-9, "", "", hang=True),
                  programs.Ended(3, "", named.err * 2)):
        check(len(judge([wrong, killed, named, named], 1, 77, 2)) == 1,
              f"not named: {wrong.describe()}")


def test_commands():
    header = {"command": "c++ -x c++-header -o CMakeFiles/t.dir/pch.gch -c pch.cxx"}
    source = {"command": "c++ -o CMakeFiles/t.dir/a.o -c a.cpp"}
    found = sanitizer_steps.compile_command([header, source], "-o CMakeFiles/t.dir/")
    check(found == source["command"], f"a precompiled header is not a source: {found}")
    command = "/usr/bin/c++ -O2 -Winvalid-pch -Werror -o a.o -c /x/unity_0.cxx"
    words = sanitizer_steps.template(command, "/y/queue.cpp", "q.o")
    check(words[:6] == ["/usr/bin/c++", "-O2", "-o", "q.o", "-c", "/y/queue.cpp"] and
          "-fsanitize=thread" in words, f"a source is compiled with the sanitizer: {words}")
    words = sanitizer_steps.link_command(": && c++ -O2 a.o b.o -o bin/t lib/libx.so && :", ["q.o"],
                                         "t")
    check(words == ["c++", "-fsanitize=thread", "-Wl,--copy-dt-needed-entries", "q.o", "-O2",
                    "-o", "t", "lib/libx.so"],
          f"objects come before the library: {words}")


class Answers(http.server.BaseHTTPRequestHandler):
    status = 200

    def do_GET(self):
        self.send_response(self.status if self.path == "/healthz" else 404)
        self.end_headers()

    def log_message(self, *words):
        pass


def test_image(folder):
    dockerfile = (night.TREE / "deploy/docker/cpu.Dockerfile").read_text(encoding="utf-8")
    names = image_step.listed_packages(night.TREE)
    check({"libseccomp2", "libsentencepiece0", "tessera"} <= set(names) and
          not any("#" in name or " " in name for name in names), f"packages of the image: {names}")
    health = image_step.health_check(dockerfile)
    words = folder / "cmdline"

    def healthy(*command):
        words.write_bytes(b"\0".join(word.encode() for word in command) + b"\0")
        check_words = [word.replace("/proc/1/cmdline", str(words)) for word in health]
        return subprocess.run(check_words, capture_output=True).returncode == 0

    server = http.server.HTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = str(server.server_address[1])
    check(healthy("mnist") and healthy("imdb", "serve", "/x", "--port", port) and
          healthy("imdb", "serve", f"--port={port}"), "a server that answers is healthy")
    Answers.status = 503
    check(not healthy("imdb", "serve", "--port", port), "one that answers with 503 is not")
    server.shutdown()
    server.server_close()
    check(not healthy("imdb", "serve", "--port", port), "nor is one that does not answer")


PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <unistd.h>
int main(int count, char** words) {
  for (int i = 0; i < 10; ++i) {
    void* volatile memory = malloc(100);
    if (!memory) return 50 + i;
    free(memory);
  }
  const int file = open(words[1], O_RDONLY);
  if (file < 0) return 70;
  char bytes[8];
  const long size = read(file, bytes, 8);
  return size < 0 ? 71 : 80 + (int)size;
}
"""


def test_failing_calls(folder):
    source, program, counts = folder / "calls.c", folder / "calls", folder / "counts"
    source.write_text(PROGRAM, encoding="utf-8")
    subprocess.run(["cc", "-O0", source, "-o", program], check=True)
    options = type("Options", (), {"build": None, "reader": None, "out": folder, "quick": False,
                                   "jobs": 1})
    libraries = night.Night(options)

    def run(library, **variables):
        environment = {**os.environ, "LD_PRELOAD": str(libraries.failing_library(library)),
                       **variables}
        return subprocess.run([program, source], env=environment).returncode

    check(run("malloc", NIGHT_COUNT=str(counts)) == 88 and counts.read_text() == "10\n",
          "allocations are counted")
    check(run("malloc", NIGHT_NTH="4") == 53, "the fourth allocation fails")
    check(run("malloc", NIGHT_NTH="4", NIGHT_PROGRAM="other") == 88 and
          run("malloc", NIGHT_NTH="4", NIGHT_ONLY="RANK=1", RANK="0") == 88 and
          run("malloc", NIGHT_NTH="4", NIGHT_ONLY="RANK=1", RANK="1") == 53,
          "only in the program that is meant")
    check([run("calls", NIGHT_NTH=nth, NIGHT_ERROR=error) for nth, error in
           (("1", "5"), ("2", "5"), ("2", "short"), ("2", "exit"), ("3", "5"))] ==
          [70, 71, 84, 99, 88], "calls fail, are short and end the process")
    night.shutil.rmtree(libraries.scratch)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        test_night(folder / "night")
        test_options()
        test_spread(folder)
        test_mutator()
        test_judges(folder)
        test_pipeline()
        test_commands()
        test_image(folder)
        test_failing_calls(folder)
    check((HERE / "read_file.cpp").exists(), "all tests of the night pass")


main()
