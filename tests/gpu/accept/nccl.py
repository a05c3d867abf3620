"""Part nccl: two ranks on one GPU, a rank that is killed, and what a step costs in CUDA calls."""
import json
import os
import signal
import socket
import time

from machine import layout_file
from programs import compare, must_succeed, wait_all
from report import Failure

# Three steps of MNIST.
MNIST = ["mnist", "--train-size", 384, "--test-size", 128, "--epochs", 1]
# Largest allowed differences of losses and of accuracies, by dtype.
TOLERANCES = {"float64": (1e-9, 0.0), "float32": (1e-5, 0.02)}
# Exit code of ranks that have lost another rank (docs/processes.md).
LOST = 3
# Programs with a batch of at least 64 whose calls per step are counted.
COUNTED = {"mlp": ["mnist", "--model", "core-api"], "cnn": ["mnist", "--model", "cnn"],
           "imdb": ["imdb", "train"]}
WAITS = ("cudaStreamSynchronize", "cudaEventSynchronize", "cudaDeviceSynchronize", "cudaMemcpy")
LAUNCHES = ("cudaLaunchKernel", "__cudaLaunchKernel", "cudaLaunchKernelExC")
UPLOADS, DOWNLOADS = (tuple(f"{way}_{memory}" for memory in ("pinned", "pageable"))
                      for way in ("to_device", "to_host"))
MAX_WAITS = 2


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start_ranks(machine, name, words, mesh):
    """Starts two processes on one GPU; NCCL must take them for two hosts, or it would refuse
    them."""
    port = str(free_port())
    return [machine.start(f"{name}_rank{rank}",
                          [*words, "--device", machine.device, "--mesh", mesh],
                          RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK="0",
                          MASTER_ADDR="127.0.0.1", MASTER_PORT=port, NCCL_HOSTID=f"host{rank}",
                          NCCL_SOCKET_IFNAME="lo", NCCL_DEBUG="WARN") for rank in range(2)]


def ranks(machine, mesh, layouts, dtype):
    """Compares losses of two ranks with those of one process. Each step's losses are sums over both
    ranks and depend on both ranks' weights, so a wrong rank shows in the next step."""
    def body(seconds):
        name = f"ranks_{layouts}_{dtype}"
        words = [*MNIST, "--dtype", dtype, "--verbose", 0]
        run, alone = (machine.logs / f"{name}_{who}.json" for who in ("run", "alone"))
        machine.run(alone.stem, [*words, *machine.placed("batch=1"), "--history", alone], seconds)
        must_succeed(start_ranks(machine, name, [*words, "--layouts", layout_file(layouts),
                                                 "--history", run], mesh), seconds)
        return compare(run, alone, *TOLERANCES[dtype])
    return body


def killed(machine, victim):
    """Kills one rank with `kill -9` in the middle of training."""
    def body(seconds):
        deadline = time.monotonic() + seconds
        programs = start_ranks(machine, f"killed_{victim}",
                               [*MNIST, "--epochs", 100000, "--verbose", 2], "batch=2")
        try:
            while "Epoch 3/" not in programs[0].out:
                if time.monotonic() > deadline - 15:
                    raise Failure("two epochs were not done in time")
                for program in programs:
                    if program.process.poll() is not None:
                        raise Failure(f"{program.name} ended early: {program.last_line()}")
                time.sleep(0.05)
            os.kill(programs[victim].process.pid, signal.SIGKILL)
            start = time.monotonic()
            survivor = programs[1 - victim]
            code = wait_all([survivor], 10)[0]
            taken = time.monotonic() - start
        finally:
            for program in programs:
                program.kill()
        line = survivor.last_line()
        if code != LOST or f"rank {victim}" not in line:
            raise Failure(f"exit code {code}, not {LOST}, or rank {victim} is not named: {line}")
        return f"exit code {code} after {taken:.1f} s, naming rank {victim}"
    return body


def steps_of(name, machine):
    """Returns the arguments of a run with the counted number of steps, and of one with twice as
    many."""
    steps = 2 if machine.rehearsal else 100
    words = [*COUNTED[name], *machine.placed("batch=1"), "--epochs", 1, "--batch-size", 64,
             "--train-size", 2 * steps * 64, "--test-size", 64]
    return steps, words


def counts(machine, name):
    """Returns the CUDA calls per step: the difference between runs of 2n and of n steps, divided by
    n."""
    def body(seconds):
        steps, words = steps_of(name, machine)
        found = []
        for times in (1, 2):
            file = machine.logs / f"counts_{name}_{times}.json"
            machine.run(file.stem, [*words, "--verbose", 0, "--steps-per-epoch", times * steps],
                        seconds, LD_PRELOAD=str(machine.counter()), COUNT_CUDA_OUT=str(file))
            found.append(json.loads(file.read_text()))
        step = {key: (found[1][key] - found[0][key]) / steps for key in found[0]}
        return describe_step(step, machine.rehearsal)
    return body


def describe_step(step, rehearsal):
    """Returns the text of a step's calls; raises Failure if there are too many waits."""
    def total(keys):
        return sum(step[key] for key in keys)

    waits = total(WAITS)
    text = (f"a step: {waits:.2f} waits (may be {MAX_WAITS}), {total(LAUNCHES):.1f} launches, "
            f"{step['cudaGraphLaunch']:.2f} graphs, {total(UPLOADS):.1f} uploads "
            f"({step['to_device_pageable']:.1f} pageable), {total(DOWNLOADS):.1f} downloads, "
            f"{step['within_device']:.1f} copies inside, {step['cudaMalloc']:.2f} allocations")
    if waits > MAX_WAITS:
        raise Failure(text)
    if not rehearsal and total(LAUNCHES) + step["cudaGraphLaunch"] == 0:
        raise Failure(f"nothing was launched: {text}")
    return text


def profile(machine, name):
    """Profiles a run; the table that --profile prints is in the logs."""
    def body(seconds):
        steps, words = steps_of(name, machine)
        trace = machine.scratch / f"profile_{name}.json"
        program = machine.run(f"profile_{name}", [*words, "--verbose", 2, "--steps-per-epoch",
                                                  2 * steps, "--profile", trace], seconds)
        events = json.loads(trace.read_text())
        if not events:
            raise Failure("the trace is empty")
        return f"{len(events)} events; the table is in the logs: {program.out_path.name}"
    return body


def checks(machine, report):
    for dtype in TOLERANCES:
        for mesh, layouts in (("batch=2", "data"), ("model=2", "model"), ("batch=2", "fsdp")):
            report.check(f"two ranks on one GPU, {layouts}, {dtype}", 60,
                         ranks(machine, mesh, layouts, dtype))
    for victim in (1, 0):
        report.check(f"rank {victim} is killed", 60, killed(machine, victim))
    for name in COUNTED:
        report.check(f"CUDA calls of {name}", 60, counts(machine, name))
    for name in COUNTED:
        report.check(f"profile of {name}", 60, profile(machine, name))
