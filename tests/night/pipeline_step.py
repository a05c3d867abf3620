"""Starts training in stages on four processes again and again, and kills one of them at random."""
import os
import re
import shutil
import signal
import socket
import time

import programs
from step import Step, random_of, register

RANKS = 4
RUN_SECONDS = 600
# After which the others have named a process that was killed.
NAMING_SECONDS = 5
TRAININGS = 2  # of one start


def draw(random):
    """Returns a training as pipeline_program takes it: NETWORK:SCHEDULE:MICROBATCHES:MESH."""
    schedule = random.choice(("gpipe", "1f1b", "interleaved", "zb_h1", "zb_v"))
    network, mesh = "masked", "stage=2,batch=2"
    if schedule not in ("interleaved", "zb_v"):
        network, mesh = random.choice((("mlp", mesh), ("masked", mesh), ("masked", "stage=4")))
    return f"{network}:{schedule}:{random.choice((1, 2, 3, 4, 8))}:{mesh}"


def judge(ended, training):
    """Returns what is wrong with ranks that were left alone."""
    expected = [f"{training} equal"] * TRAININGS
    return [f"rank {rank}: {end.describe()}, {end.out.splitlines()[-1:]}"
            for rank, end in enumerate(ended)
            if end.hang or end.code != 0 or end.out.splitlines() != expected]


def judge_killed(ended, killed, pid, seconds):
    """Returns what is wrong with the ranks beside one that was killed; all had named it after
    `seconds`."""
    if all(end.code == 0 for rank, end in enumerate(ended) if rank != killed):
        return []  # it was killed at its end
    wrong = []
    for rank, end in enumerate(ended):
        named = re.search(rf"rank {killed} \(pid {pid}\b[^)]*\) was lost", end.err)
        if rank != killed and (end.hang or end.code != 3 or len(end.lines()) != 1 or not named):
            wrong.append(f"rank {rank} does not name killed rank {killed}: {end.describe()}")
    if seconds > NAMING_SECONDS:
        wrong.append(f"rank {killed} was killed, and is named {seconds:.1f} s later")
    return wrong


class Ranks:
    """Processes that train in stages; their output is in files."""

    def __init__(self, night, folder, training, shared_memory):
        self.folder, self.processes = folder, []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        for rank in range(RANKS):
            environment = {**night.environment, "RANK": str(rank), "LOCAL_RANK": str(rank),
                           "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1",
                           "MASTER_PORT": str(port)}
            with self.file(rank, "out").open("w") as out, self.file(rank, "err").open("w") as err:
                self.processes.append(programs.start(
                    [night.bin / "pipeline_program",
                     "trainings=" + " ".join([training] * TRAININGS),
                     f"shared_memory={int(shared_memory)}"],
                    env=environment, stdout=out, stderr=err))

    def file(self, rank, name):
        return self.folder / f"{rank}.{name}"

    def trains(self):
        """Waits until the first training has ended; returns whether all ranks still run."""
        end = time.monotonic() + RUN_SECONDS
        while time.monotonic() < end:
            if any(process.poll() is not None for process in self.processes):
                return False
            if self.file(0, "out").read_text(errors="replace").count("\n") > 0:
                return True
            time.sleep(0.01)
        return False

    def wait_for_names(self, killed):
        """Waits until all ranks but the killed one have said something, or have ended."""
        end = time.monotonic() + RUN_SECONDS
        others = [rank for rank in range(RANKS) if rank != killed]
        while time.monotonic() < end and any(
                self.processes[rank].poll() is None and self.file(rank, "err").stat().st_size == 0
                for rank in others):
            time.sleep(0.01)

    def wait(self, seconds):
        """Waits for all, and kills those that take longer. Returns how they ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and any(p.poll() is None for p in self.processes):
            time.sleep(0.01)
        hangs = [process.poll() is None for process in self.processes]
        for process in self.processes:
            programs.end(process)
        return [programs.Ended(process.returncode,
                               self.file(rank, "out").read_text(errors="replace"),
                               self.file(rank, "err").read_text(errors="replace"), hangs[rank])
                for rank, process in enumerate(self.processes)]


@register
class PipelineStep(Step):
    name = "pipeline"
    summary = "four ranks train in stages, without a hang; one that is killed is named in time"
    share = 8
    least = 200  # starts, with shared memory and sockets in turn; half of them with a kill
    parallel = False

    def prepare(self):
        self.tried = "starts of 4 ranks"

    def trial(self, number, worker):
        random = random_of(number)
        training = draw(random)
        folder = self.folder / str(number)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        ranks = Ranks(self.night, folder, training, number % 2 == 0)
        try:
            kill = number // 2 % 2 == 1
            wrong = self.kill(ranks, random) if kill else judge(ranks.wait(RUN_SECONDS), training)
            if wrong:
                kept = self.keep(number, folder)
                return [f"{training}: {line} ({kept})" for line in wrong]
            return []
        finally:
            ranks.wait(0)
            shutil.rmtree(folder, ignore_errors=True)

    def kill(self, ranks, random):
        """Kills a rank at a random moment; returns what is wrong with the others."""
        killed = random.randrange(RANKS)
        if not ranks.trains():
            return [f"before the kill: {end.describe()}" for end in ranks.wait(0)]
        time.sleep(random.uniform(0, 2))
        process = ranks.processes[killed]
        begin = time.monotonic()
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            self.note("kills")
        ranks.wait_for_names(killed)
        seconds = time.monotonic() - begin
        return judge_killed(ranks.wait(RUN_SECONDS), killed, process.pid, seconds)
