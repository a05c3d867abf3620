"""Part correctness: a GPU computes the same as a CPU."""
import os
import re
import shutil

from machine import layout_file
from programs import Program, TooLong, compare, must_succeed, wait_all
from report import Failure, Skip

# Two epochs of three steps, and an evaluation after each.
MNIST = ["--train-size", 384, "--test-size", 128, "--epochs", 2, "--verbose", 0]
# At the tutorial's learning rate losses jump, and a difference in the last bit grows to a tenth.
IMDB = ["train", *MNIST, "--validation", "--learning-rate", "1e-4"]
APPS = {name: ["mnist", "--model", name, *MNIST] for name in ("core-api", "keras", "cnn")}
APPS["imdb"] = ["imdb", *IMDB]
CORE_API = [*APPS["core-api"], "--dtype", "float64"]
# The largest allowed differences of losses and of accuracies.
TOLERANCES = {"float32": (1e-4, 0.02), "float64": (1e-9, 0.0)}
MESHES = (("batch=4", "data"), ("batch=4", "fsdp"), ("batch=2,model=2", "model"))
# The exit code of a skipped test, for ctest and gpu_test.
SKIPPED = 77
ORACLE = "every registered operation gives the result of one CPU on GPUs"


def said(program):
    """Returns Catch2's result: the number of assertions, or the first failure."""
    failure = re.search(r"FAILED:\n(.*?)(?:\n\n|\Z)", program.out, re.DOTALL)
    passed = re.search(r"All tests passed \((.*?)\)", program.out)
    found = failure or passed
    return found.group(1) if found else program.last_line()


def test_case(machine, number, name):
    """Runs a test case in its own process, so that a hang or crash does not affect the others."""
    def body(seconds):
        pattern = re.sub(r"([\\,\[*])", r"\\\1", name)
        program = machine.start(f"gpu_test_{number}", ["gpu_test", pattern])
        code = wait_all([program], seconds)[0]
        if code == SKIPPED:
            raise Skip(program.last_line())
        if code != 0 or "All tests passed" not in program.out:
            raise Failure(f"exit code {code}: {said(program)}")
        return said(program)
    return body


def beside_cpu(machine, name, words, where, tolerances):
    """Compares a run with the options `where` with a concurrent one on one CPU."""
    def body(seconds):
        stem = re.sub(r"\W+", "_", name)
        run, alone = (machine.logs / f"{stem}_{role}.json" for role in ("run", "cpu"))
        must_succeed([machine.start(run.stem, [*words, *where, "--history", run]),
                      machine.start(alone.stem, [*words, *machine.placed("batch=1", "cpu"),
                                                 "--history", alone])], seconds)
        return compare(run, alone, *tolerances)
    return body


def checkpoint(machine, first, second, stem):
    """Runs the first epoch on one device and the second on another."""
    def body(seconds):
        saved = ["--checkpoint-dir", machine.scratch / stem]
        whole, half = (machine.logs / f"{stem}_{name}.json" for name in ("whole", "second"))
        must_succeed([
            machine.start(whole.stem, [*CORE_API, *machine.placed("batch=1", "cpu"),
                                       "--history", whole]),
            machine.start(f"{stem}_first", [*CORE_API, *machine.placed("batch=1", first), *saved,
                                            "--epochs", 1])], seconds)
        machine.run(half.stem, [*CORE_API, *machine.placed("batch=1", second), *saved,
                                "--resume", "--history", half], seconds)
        return compare(half, whole, *TOLERANCES["float64"])
    return body


def planted(machine, name, words, expected):
    """Runs a program that must end with a one-line error."""
    def body(seconds):
        program = machine.start(name, [*words, *machine.placed("batch=1"), "--verbose", 0])
        code = wait_all([program], seconds)[0]
        lines = program.err.strip().splitlines()
        if code != 1 or len(lines) != 1 or expected not in lines[0]:
            raise Failure(f"exit code {code}, {len(lines)} lines: {program.last_line()}")
        return lines[0]
    return body


def memcheck(machine):
    def body(seconds):
        tool = shutil.which("compute-sanitizer",
                            path=f"{os.environ['PATH']}:/usr/local/cuda/bin")
        if machine.rehearsal or not tool:
            raise Skip("a rehearsal uses no GPU" if tool else "there is no compute-sanitizer")
        program = Program("memcheck", [
            tool, "--tool", "memcheck", "--error-exitcode", 99, machine.home / "bin/gpu_test",
            "a tensor may be changed*"], machine.environment, machine.logs)
        try:
            code = wait_all([program], seconds)[0]
        except TooLong as late:
            raise Skip(str(late)) from late
        errors = re.findall(r"ERROR SUMMARY: (.*)", program.out)
        if code != 0 or not errors:
            raise Failure(f"exit code {code}: {errors[-1] if errors else program.last_line()}")
        return errors[-1]
    return body


def gpu_tests(machine, report):
    """Runs the test cases of gpu_test by name."""
    names = []

    def list_names(seconds):
        program = machine.start("gpu_test_names", ["gpu_test", "--list-test-names-only"])
        # Catch2's exit code is the number of names.
        wait_all([program], seconds)
        names.extend(program.out.splitlines())
        if ORACLE not in names:
            raise Failure(f"gpu_test has no oracle: {program.last_line()}")
        return f"{len(names)} test cases"

    report.check("gpu_test", 60, list_names, needed=True)
    # Without a GPU all would be skipped.
    chosen = names[:1] if machine.rehearsal else names
    return {name: test_case(machine, number, name) for number, name in enumerate(chosen)}


def checks(machine, report):
    """Runs all checks; the cheap and most informative ones come first."""
    cases = gpu_tests(machine, report)
    oracle = cases.pop(ORACLE, None)
    for name, body in cases.items():
        report.check(f"gpu_test: {name}", 60, body)
    for dtype, tolerances in TOLERANCES.items():
        for name, words in APPS.items():
            title = f"{name} in {dtype}"
            report.check(title, 60, beside_cpu(machine, title, [*words, "--dtype", dtype],
                                               machine.placed("batch=1"), tolerances))
    report.check("checkpoint of a GPU read on a CPU", 60,
                 checkpoint(machine, machine.device, "cpu", "checkpoint_to_cpu"))
    report.check("checkpoint of a CPU read on a GPU", 60,
                 checkpoint(machine, "cpu", machine.device, "checkpoint_to_gpu"))
    for dims, layouts in MESHES:
        title = f"mesh {dims} on one GPU, layouts {layouts}"
        where = [*machine.placed(dims, share=4), "--layouts", layout_file(layouts)]
        report.check(title, 60, beside_cpu(machine, title, CORE_API, where, TOLERANCES["float64"]))
    report.check("planted: a loss that is not finite", 60, planted(
        machine, "not_finite", ["mnist", "--learning-rate", "1e30"], "the loss stays finite"))
    # The second layer's output takes 240 GB, more than a GPU has; its weights are small.
    report.check("planted: a batch too large for the memory", 60, planted(
        machine, "too_large", ["mnist", "--hidden", "8,1000000", "--batch-size", 60000,
                               "--train-size", "all"], "out of memory"))
    if oracle:
        report.check(f"gpu_test: {ORACLE}", 240, oracle)
    report.check("memcheck of gpu_test", 90, memcheck(machine))
