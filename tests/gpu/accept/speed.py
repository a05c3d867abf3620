"""Part speed: `bench compare --device` for each of its workloads, against PyTorch and JAX."""
import json
import os
import re
import shlex
import sys

from machine import TREE
from report import FAIL, NOT_MEASURED, OK

# Short workloads come first.
WORKS = ("dropout", "mlp", "cnn", "lstm", "upload", "encoder", "decoder")
# Workloads without a PyTorch or JAX counterpart.
ALONE = ("dropout",)


def python(machine):
    """Writes a wrapper of this Python with its own libraries, not those of Tessera's programs."""
    program = machine.scratch / "python"
    libraries = shlex.quote(os.environ.get("LD_LIBRARY_PATH", ""))
    program.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH={libraries} '
                       f'exec {shlex.quote(sys.executable)} "$@"\n')
    program.chmod(0o700)
    return program


def work(machine, report, name):
    """Returns Tessera's result; those of the peers become rows of their own."""
    others, absent = [], []

    def body(seconds):
        file = machine.scratch / f"{name}.json"
        # A rehearsal leaves out the peers, which take minutes to compile.
        how = (["--rounds", 1, "--steps", 2] if machine.rehearsal else
               ["--rounds", 3, "--peers", TREE / "apps/bench/peers", "--python", python(machine)])
        program = machine.run(f"bench_{name}", [
            "bench", "compare", "--device", machine.device, "--work", name, *how, "--json", file],
                              seconds)
        rows = json.loads(file.read_text())["compare"]
        others.extend(rows[1:])
        absent.extend(re.findall(r"left out: (.*?): (.*)", program.err))
        if name not in ALONE:
            absent.extend(re.findall(r"^(PyTorch|JAX): (not found)", program.out, re.MULTILINE))
        return f"{rows[0]['work']}: {rows[0]['least']:.3f} {rows[0]['unit']}"

    report.check(f"bench {name}", 150, body)
    for row in others:
        bar = f", may be {row['at_most']:.2f}" if "at_most" in row else ""
        report.add(f"bench {name}: {row['who']}", OK if row.get("met", True) else FAIL,
                   f"{row['least']:.3f} {row['unit']}, ours to it {row['ours_to_it']:.3f}{bar}")
    for who, why in absent:
        report.add(f"bench {name}: {who}", NOT_MEASURED, why)


def checks(machine, report):
    for name in WORKS:
        work(machine, report, name)
