"""The machine under test: where its programs and libraries are, and how they are started."""
import glob
import importlib.util
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

from programs import Program, must_succeed
from report import Failure, Skip

TREE = pathlib.Path(__file__).resolve().parents[3]
PAYLOAD = TREE / "build/gpu_payload.tar.xz"


def find_torch(build):
    """Returns the folder of the libtorch that a build was made with; without a build that of this
    Python, or of the one that `./run` installed."""
    cache = build / "CMakeCache.txt" if build else None
    if cache and cache.is_file():
        named = re.search(r"^TESSERA_TORCH_DIR:\w+=(.+)$", cache.read_text(), re.MULTILINE)
        if named and pathlib.Path(named[1]).is_dir():
            return pathlib.Path(named[1]).resolve()
    found = importlib.util.find_spec("torch")
    if found and found.submodule_search_locations:
        return pathlib.Path(found.submodule_search_locations[0]).resolve()
    return next((path.resolve() for path in TREE.glob("build/deps/torch-*/torch")), None)


class Machine:
    """Unpacks the payload into `scratch`, or uses the folder of a build."""

    def __init__(self, build, rehearsal, scratch, logs):
        self.rehearsal = rehearsal
        self.device = "cpu" if rehearsal else "cuda"
        self.scratch, self.logs = scratch, logs
        self.home, self.origin, self.data = build, {}, os.environ.get("TESSERA_DATA", "")
        if not build:
            self.unpack()
        self.torch = find_torch(build)
        self.environment = self.own_environment()

    def unpack(self):
        if not PAYLOAD.exists():
            raise Failure(f"there is no {PAYLOAD}. To fix: bring what `accept.sh pack` wrote, or "
                          "name a build with --build")
        self.home = self.scratch / "payload"
        self.home.mkdir()
        subprocess.run(["tar", "-C", self.home, "-xJf", PAYLOAD], check=True)
        self.origin = dict(line.split(maxsplit=1)
                           for line in (self.home / "origin").read_text().splitlines())
        self.data = str(self.home / "data")

    def own_environment(self):
        """Returns the environment of Tessera's programs; other Python programs keep the
        caller's."""
        folders = [str(self.home / "lib")]
        if self.torch:
            folders += [str(self.torch / "lib"), *glob.glob(f"{self.torch.parent}/nvidia/*/lib")]
        # The driver's libraries may be reachable only by this.
        folders += filter(None, [os.environ.get("LD_LIBRARY_PATH")])
        environment = dict(os.environ)
        environment.update({
            "LD_LIBRARY_PATH": ":".join(folders), "TESSERA_DATA": self.data,
            "TESSERA_OFFLINE": "1", "XDG_CACHE_HOME": str(self.scratch / "cache"),
            "TESSERA_TEST_DIR": str(TREE / "tests"), "TESSERA_BIN_DIR": str(self.home / "bin"),
            "TESSERA_REPORT_DIR": str(self.logs), "TMPDIR": str(self.scratch)})
        environment.setdefault("OMP_WAIT_POLICY", "passive")
        for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "TF_CONFIG"):
            environment.pop(name, None)
        return environment

    def start(self, name, words, **variables):
        """Starts one of Tessera's programs, with these additional variables."""
        return Program(name, [self.home / "bin" / words[0], *words[1:]],
                       {**self.environment, **variables}, self.logs)

    def run(self, name, words, seconds, **variables):
        """Runs one of Tessera's programs to its end; raises Failure if it fails."""
        program = self.start(name, words, **variables)
        must_succeed([program], seconds)
        return program

    def placed(self, mesh, device=None, share=1):
        """Returns options for a mesh on the device, with `share` mesh devices on each GPU."""
        device = device or self.device
        words = ["--device", device, "--mesh", mesh]
        return words + (["--virtual-devices", share] if device == "cuda" and share > 1 else [])

    def counter(self):
        """Returns the library that counts CUDA calls, from the payload or built from its source."""
        built = self.home / "lib/count_cuda.so"
        if built.exists():
            return built
        made = self.scratch / "count_cuda.so"
        subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-shared", "-fPIC", "-O2", "-o",
                        made, TREE / "tests/gpu/count_cuda.c", "-ldl"], check=True)
        return made

    # Checks that each part runs first.

    def system(self, seconds):
        return (f"{' '.join(platform.libc_ver())}, Linux {platform.release()}, {os.cpu_count()} "
                f"CPUs, Python {platform.python_version()} in {sys.prefix}; "
                f"commit {self.origin.get('commit', 'of a build')}")

    def gpu(self, seconds):
        if self.rehearsal:
            raise Skip("a rehearsal uses no GPU")
        tool = shutil.which("nvidia-smi")
        if not tool:
            raise Failure("there is no nvidia-smi")
        run = subprocess.run([tool, "--query-gpu=name,memory.total,driver_version",
                              "--format=csv,noheader"], capture_output=True, text=True,
                             timeout=seconds, check=False)
        if run.returncode != 0 or not run.stdout.strip():
            raise Failure(run.stderr + run.stdout)
        return "; ".join(run.stdout.splitlines())

    def libtorch(self, seconds):
        if not self.torch:
            raise Failure("there is no libtorch. To fix: use the python3 that has torch, or ./run "
                          "setup")
        text = (self.torch / "version.py").read_text()
        version = re.search(r"__version__ = '(.*)'", text).group(1)
        wanted = self.origin.get("torch", version)
        if version.partition("+")[0] != wanted.partition("+")[0]:
            raise Failure(f"torch {version}; the programs were built with {wanted}")
        return f"torch {version} in {self.torch}"

    def libraries(self, seconds):
        run = subprocess.run(["ldd", *(self.home / "bin" / name for name in (
            "gpu_test", "mnist", "imdb", "bench"))], capture_output=True, text=True,
                             timeout=seconds, env=self.environment, check=False)
        (self.logs / "ldd.out").write_text(run.stdout + run.stderr)
        missing = sorted(set(re.findall(r"(\S+) => not found", run.stdout)))
        if run.returncode != 0 or missing:
            raise Failure(f"not found: {' '.join(missing)} {run.stderr}")
        found = set(re.findall(r"(\S+) => /", run.stdout))
        return f"{len(found)} are found"

    def look(self, report):
        for name in ("system", "gpu", "libtorch", "libraries"):
            report.check(name, 30, getattr(self, name), needed=True)


def layout_file(name):
    return TREE / f"apps/mnist/layouts/{name}.json"
