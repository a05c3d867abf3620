"""Starts mnist as two processes by real launchers, Open MPI's mpirun and Slurm, and compares the loss with
that of one process: try_launchers.py MNIST SBATCH, with the program and deploy/slurm/train.sbatch.

Skipped (77) if a launcher is not installed. Two hosts are two network namespaces with host names of their
own; where they cannot be made (not root), everything runs on this host.
"""
import contextlib
import ctypes
import getpass
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

NAME = "launchers_nightly"
# The program, and the Debian package that has it.
NEEDED = {"mpirun": "openmpi-bin", "slurmctld": "slurmctld", "slurmd": "slurmd",
          "srun": "slurm-client"}
FLAGS = ["--mesh", "batch=2", "--device", "cpu", "--epochs", "1", "--train-size", "2000",
         "--test-size", "500"]
SECONDS = 180
# The losses differ by the rounding of sums at most.
TOLERANCE = 2e-3

SLURM_CONF = """
ClusterName=tessera
SlurmctldHost={first}({address})
AuthType=auth/none
CredType=cred/none
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmctldPort=16817
SlurmdPort=16818
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
MpiDefault=none
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def missing_packages():
    missing = [package for program, package in NEEDED.items() if not shutil.which(program)]
    try:
        # The name by which Slurm's plug-in loads it.
        ctypes.CDLL("libpmix.so")
    except OSError:
        missing.append("libpmix-dev")
    return missing


def clean_environment(folder):
    """The environment of each step: no variables of another run, no threads that spin."""
    kept = {name: text for name, text in os.environ.items()
            if not re.match(r"(OMPI|PMIX|PMI|SLURM|PET|TESSERA)_|(RANK|WORLD_SIZE|TF_CONFIG)$", name)}
    return {**kept, "TESSERA_OFFLINE": "1", "TESSERA_REPORT_DIR": str(folder),
            "TESSERA_DATA": os.environ.get("TESSERA_DATA", ""), "OMP_NUM_THREADS": "1",
            "OMP_WAIT_POLICY": "passive", "SLURM_CONF": str(folder / "slurm.conf"),
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1"}


class Host:
    """Where commands run: here, or in namespaces that live as long as one process."""

    def __init__(self, name, address, process=None):
        self.name, self.address, self.process = name, address, process
        self.enter = [] if process is None else [
            "nsenter", "-t", str(process.pid), "--net", "--uts", "--mount", "--"]


def new_hosts(folder, stack):
    """Returns two hosts joined by a virtual cable; this host alone if there can be none."""
    hosts_file, own_files = folder / "hosts", folder / "pmix"
    own_files.mkdir()
    hosts_file.write_text("127.0.0.1 localhost\n10.77.0.1 host1\n10.77.0.2 host2\n")
    here = [Host(os.uname().nodename, "127.0.0.1")]
    if not shutil.which("ip") or not shutil.which("unshare"):
        return here
    hosts = []
    for number in (1, 2):
        # Slurm's PMIx takes files of the same name on each host for leftovers.
        script = (f"mount --bind {hosts_file} /etc/hosts && mount -t tmpfs none {own_files} && "
                  f"hostname host{number} && ip link set lo up && echo ready && "
                  "exec sleep infinity")
        process = subprocess.Popen(["unshare", "--net", "--uts", "--mount", "sh", "-c", script],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        stack.callback(process.wait)
        stack.callback(process.kill)
        if process.stdout.readline() != "ready\n":
            return here
        hosts.append(Host(f"host{number}", f"10.77.0.{number}", process))
    cable = ["ip", "link", "add", "cable", "netns", str(hosts[0].process.pid), "type", "veth",
             "peer", "name", "cable", "netns", str(hosts[1].process.pid)]
    if subprocess.run(cable, check=False).returncode != 0:
        return here
    for host in hosts:
        subprocess.run(host.enter + ["ip", "address", "add", host.address + "/24", "dev", "cable"],
                       check=True)
        subprocess.run(host.enter + ["ip", "link", "set", "cable", "up"], check=True)
    return hosts


def loss_in(text):
    match = re.search(r"test accuracy [\d.]+, loss ([\d.]+) on 500 images", text)
    return float(match.group(1)) if match else None


class Trial:
    """Runs commands and compares the losses that they print with that of one process."""

    def __init__(self, folder):
        self.folder, self.environment = folder, clean_environment(folder)
        self.expected, self.wrong = None, []

    def run(self, what, command, loss=None, **variables):
        """`loss`: reads the loss from the output (default: mnist's line, which must be there once)."""
        begin = time.monotonic()
        process = subprocess.Popen([str(word) for word in command], cwd=self.folder, text=True,
                                   env={**self.environment, **variables}, start_new_session=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            output = process.communicate(timeout=SECONDS)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output = process.communicate()[0] + f"\nkilled after {SECONDS} s"
        received = (loss or loss_in)(output)
        one_run = loss is not None or output.count("test accuracy") == 1
        near = received is not None and (
            self.expected is None or abs(received - self.expected) <= TOLERANCE)
        good = process.returncode == 0 and one_run and near
        print(f"{what}: loss {received}, {time.monotonic() - begin:.1f} s"
              + ("" if good else f", FAILED ({process.returncode}):\n{output}"), flush=True)
        self.wrong += [] if good else [what]
        return received


def try_mpirun(trial, hosts, mnist):
    agent = trial.folder / "agent"
    # mpirun starts its daemon on another host by `agent HOST COMMAND...`, as it would by ssh.
    lines = [f'{host.name}) exec {" ".join(host.enter)} sh -c "$*" ;;' for host in hosts]
    agent.write_text('#!/bin/sh\nhost=$1; shift\ncase $host in\n' + "\n".join(lines) + "\nesac\n")
    agent.chmod(0o755)
    trial.run("mpirun, one host", ["mpirun", "-n", "2", mnist, *FLAGS])
    trial.run("mpirun, MASTER_ADDR, without PMIx",
              ["mpirun", "-n", "2", "-x", "MASTER_ADDR=localhost", "-x", "MASTER_PORT=17311",
               mnist, *FLAGS], TESSERA_PMIX_LIBRARY="/none")
    if len(hosts) < 2:
        return
    across = hosts[0].enter + ["mpirun", "--mca", "plm_rsh_agent", str(agent), "--host",
                               "host1,host2", "-n", "2", "--map-by", "node"]
    trial.run("mpirun, two hosts, rank 0's secret", [*across, mnist, *FLAGS])
    secret = "0123456789abcdef" * 4
    trial.run("mpirun, two hosts, encrypted",
              [*across, "-x", "TESSERA_SECRET", "-x", "TESSERA_ENCRYPT", mnist, *FLAGS],
              TESSERA_SECRET=secret, TESSERA_ENCRYPT="1")


def wait_for(seconds, condition):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.5)


def words_of(trial, hosts, *command):
    """Returns the output of a command of Slurm."""
    return subprocess.run(hosts[0].enter + list(command), env=trial.environment, text=True,
                          capture_output=True, check=False).stdout.split()


@contextlib.contextmanager
def slurm(trial, hosts):
    """Slurm's daemons, one slurmd on each host."""
    nodes = "\n".join(f"NodeName={host.name} NodeAddr={host.address} CPUs=4 State=UNKNOWN"
                      for host in hosts)
    (trial.folder / "state").mkdir()
    (trial.folder / "slurm.conf").write_text(SLURM_CONF.format(
        first=hosts[0].name, address=hosts[0].address, folder=trial.folder, nodes=nodes,
        user=getpass.getuser()))
    (trial.folder / "mpi.conf").write_text(f"PMIxCliTmpDirBase={trial.folder}/pmix\n")
    daemons = [subprocess.Popen(hosts[0].enter + ["slurmctld", "-D"], env=trial.environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)]
    daemons += [subprocess.Popen(host.enter + ["slurmd", "-D", "-N", host.name],
                                 env=trial.environment, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL) for host in hosts]
    try:
        wait_for(60, lambda: words_of(trial, hosts, "sinfo", "--noheader", "--format", "%D %t") ==
                 [str(len(hosts)), "idle"])
        yield
    finally:
        # What hangs would outlive its daemon.
        subprocess.run(hosts[0].enter + ["scancel", "--user", getpass.getuser()],
                       env=trial.environment, check=False, timeout=60)
        wait_for(60, lambda: not words_of(trial, hosts, "squeue", "--noheader"))
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            try:
                daemon.wait(30)
            except subprocess.TimeoutExpired:
                daemon.kill()


def try_slurm(trial, hosts, mnist, sbatch):
    nodes = str(len(hosts))
    srun = hosts[0].enter + ["srun", "--ntasks", "2", "--nodes"]
    # What fails leaves its output here.
    output = trial.folder / "job.txt"

    def batch_loss(_):
        return loss_in(output.read_text() if output.exists() else "")

    with slurm(trial, hosts):
        trial.run(f"srun, {nodes} hosts, a secret in the environment", [*srun, nodes, mnist, *FLAGS],
                  TESSERA_SECRET="0123456789abcdef" * 4)
        trial.run(f"srun --mpi=pmix, {nodes} hosts, rank 0's secret",
                  [*srun, nodes, "--mpi=pmix", mnist, *FLAGS])
        trial.run("srun --mpi=pmix, one host", [*srun, "1", "--mpi=pmix", mnist, *FLAGS])
        trial.run(f"sbatch train.sbatch, {nodes} hosts",
                  hosts[0].enter + ["sbatch", "--wait", "--output", output, "--nodes", nodes,
                                    "--ntasks-per-node", str(2 // len(hosts)), sbatch, mnist,
                                    *FLAGS], batch_loss)
        if any(what.startswith("s") for what in trial.wrong):
            for log in sorted(trial.folder.glob("*.log")) + [output]:
                print(f"--- {log.name}\n" + (log.read_text()[-3000:] if log.exists() else ""))


def main():
    mnist, sbatch = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    missing = missing_packages()
    if missing:
        print(f'skipped: "{NAME}": apt-get install {" ".join(missing)}')
        return 77
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="launchers-")))
        hosts = new_hosts(folder, stack)
        print(f"hosts: {', '.join(host.name for host in hosts)}", flush=True)
        trial = Trial(folder)
        trial.expected = trial.run("one process", [mnist, *FLAGS])
        try_mpirun(trial, hosts, mnist)
        try_slurm(trial, hosts, mnist, sbatch)
    return 1 if trial.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
