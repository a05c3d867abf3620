"""Shows that what the image for CPUs installs is enough: makes the last stage of its Dockerfile without
Docker, as a folder of Debian 12 with our packages and those of Debian that it names, and runs programs
there. tests/package/chroot_test.py installs the same packages by apt, without a network."""
import json
import os
import pathlib
import re
import shutil
import socket
import sys

import programs
from step import Skip, Step, register
from works import predict, served_port

SUITE = "bookworm"
# What debian:12-slim has, as far as programs here use it; only for folders made from packages.
BASE = ["base-files", "base-passwd", "bash", "coreutils", "dash", "grep", "libc-bin", "mawk", "sed",
        "tar", "util-linux"]
# Mounts what the programs need into the folder, in a namespace that ends with them.
ENTER = """root=$1; shift
for folder in /proc /dev; do
  mkdir -p "$root$folder" && mount --rbind "$folder" "$root$folder" || exit 97
done
exec chroot "$@"
"""
PATH = "/usr/bin:/bin"
CANNOT_ENTER = 97


def last_stage(dockerfile):
    """Returns the instructions of the last stage, each in one line."""
    text = "\n".join(line for line in dockerfile.splitlines() if not line.startswith("#"))
    lines = text.replace("\\\n", " ").splitlines()
    first = max(i for i, line in enumerate(lines) if line.startswith("FROM "))
    return [line.strip() for line in lines[first:] if line.strip()]


def listed_packages(tree):
    """Returns the packages that the image installs."""
    lines = (tree / "deploy/docker/cpu_packages.txt").read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def dependencies(file):
    """Returns the packages that a package file depends on."""
    fields = programs.run(["dpkg-deb", "--field", file, "Depends"]).out
    return [re.split(r"[ |(]", entry.strip())[0] for entry in fields.split(",") if entry.strip()]


def health_check(dockerfile):
    """Returns the words of the command that says whether a container is healthy."""
    for line in last_stage(dockerfile):
        match = re.match(r"HEALTHCHECK .*?CMD (\[.*\])$", line)
        if match:
            return json.loads(match[1])
    return None


class Maker:
    """Makes a folder of Debian 12 with packages, by what this machine has."""

    def __init__(self, folder, names, log):
        self.folder, self.names, self.log = folder, names, log

    def make(self):
        include = f"--include={','.join(self.names)}"
        if shutil.which("mmdebstrap"):
            self.run(["mmdebstrap", "--variant=minbase", include, SUITE, self.folder])
            return "mmdebstrap"
        if shutil.which("debootstrap") and os.geteuid() == 0:
            self.run(["debootstrap", "--variant=minbase", include, SUITE, self.folder])
            return "debootstrap"
        if shutil.which("docker") and programs.run(["docker", "info"]).code == 0:
            self.by_docker()
            return "docker"
        if shutil.which("apt-get") and "VERSION_ID=\"12\"" in self.release():
            self.by_packages()
            return "packages of apt-get"
        raise Skip("mmdebstrap, debootstrap, Docker or Debian 12's apt-get is needed")

    def release(self):
        file = pathlib.Path("/etc/os-release")
        return file.read_text(encoding="utf-8") if file.exists() else ""

    def run(self, words, **options):
        ended = programs.run(words, timeout=1800, **options)
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"{words}\n{ended.out}{ended.err}\n")
        text = ended.out + ended.err
        missing = re.findall(r"Unable to locate package (\S+)|Couldn't find these debs: (.*)", text)
        if missing:
            raise RuntimeError(f"the image installs packages that do not exist: {missing}")
        if ended.code != 0:
            raise Skip(f"{words[0]}: {ended.describe()}")
        return ended.out

    def by_docker(self):
        text = (f"FROM debian:12-slim\nRUN apt-get update && apt-get install -y "
                f"--no-install-recommends {' '.join(self.names)}\n")
        context = self.folder.parent / "context"
        context.mkdir()
        (context / "Dockerfile").write_text(text, encoding="utf-8")
        self.run(["docker", "build", "-t", "tessera-night", context])
        container = self.run(["docker", "create", "tessera-night"]).strip()
        archive = self.folder.parent / "image.tar"
        try:
            self.run(["docker", "export", "-o", archive, container])
        finally:
            self.run(["docker", "rm", container])
        self.folder.mkdir()
        self.run(["tar", "-xf", archive, "-C", self.folder])

    def by_packages(self):
        """Unpacks the packages and all that they depend on, as if none were installed."""
        state = self.folder.parent / "apt"
        (state / "archives/partial").mkdir(parents=True)
        (state / "status").touch()
        if os.geteuid() == 0:
            self.run(["apt-get", "update", "-qq"])
        self.run(["apt-get", "-o", f"Dir::State::status={state}/status", "-o",
                  f"Dir::Cache::archives={state}/archives/", "-o", "Debug::NoLocking=1",
                  "-o", "APT::Sandbox::User=root", "--no-install-recommends", "--download-only",
                  "-y", "-qq", "install", *BASE, *self.names])
        for name in ("bin", "sbin", "lib", "lib64"):
            (self.folder / "usr" / name).mkdir(parents=True)
            (self.folder / name).symlink_to(f"usr/{name}")
        for file in sorted((state / "archives").glob("*.deb")):
            self.run(["sh", "-c", "dpkg-deb --fsys-tarfile \"$1\" | "
                      "tar -x --keep-directory-symlink -C \"$2\"", "sh", file, self.folder])
        for name in ("passwd", "group"):
            shutil.copy(self.folder / f"usr/share/base-passwd/{name}.master",
                        self.folder / f"etc/{name}")
        if not (self.folder / "bin/sh").exists():
            (self.folder / "bin/sh").symlink_to("dash")


@register
class ImageStep(Step):
    name = "image"
    summary = "the packages of the image for CPUs are enough for its programs"
    share = 1
    trials = 1
    parallel = False

    def prepare(self):
        for tool in ("unshare", "chroot", "cmake", "dpkg-shlibdeps", "patchelf", "zstd"):
            if not shutil.which(tool):
                raise Skip(f"{tool} is not installed")
        self.dockerfile = (self.night.tree / "deploy/docker/cpu.Dockerfile").read_text(
            encoding="utf-8")
        self.root = self.folder / "root"
        self.log = self.night.out / "image.log"
        self.log.unlink(missing_ok=True)
        names = listed_packages(self.night.tree)
        files = [file for file in self.make_packages() if file.name.split("_")[0] in names]
        ours = [file.name.split("_")[0] for file in files]
        others = sorted({*names, *[name for file in files for name in dependencies(file)]} - {*ours})
        how = Maker(self.root, others, self.log).make()
        self.tried = f"{len(ours)} packages of ours and {len(others)} of Debian, by {how}"
        (self.root / "tmp").mkdir(exist_ok=True)
        (self.root / "tmp").chmod(0o1777)
        self.install(files)

    def make_packages(self):
        """Makes our packages of the build, as the first stage does."""
        out = self.folder / "packages"
        script = self.night.tree / "deploy/packages/make_packages.py"
        ended = programs.run([sys.executable, "-B", script, self.night.build, out], timeout=1800)
        if ended.code != 0:
            raise RuntimeError(f"no packages are made: {ended.describe()}")
        return sorted(out.glob("*.deb"))

    def install(self, files):
        for file in files:
            ended = programs.run(["dpkg-deb", "--extract", file, self.root], timeout=600)
            if ended.code != 0:
                raise RuntimeError(f"{file.name} is not unpacked: {ended.describe()}")
        ended = programs.run(self.words(["ldconfig"]), timeout=120)
        if ended.code == CANNOT_ENTER or "Operation not permitted" in ended.err:
            raise Skip(f"folders cannot be mounted here: {ended.describe()}")

    def words(self, command):
        """Returns the words that run a command in the folder, as a user if this one is root."""
        root = os.geteuid() == 0
        as_root = command[0] in ("ldconfig", "ldd")
        user = ["--userspec=1000:1000"] if root and not as_root else []
        path = PATH + (":/usr/sbin:/sbin" if as_root else "")
        return ["unshare", "--mount", *([] if root else ["--map-root-user"]), "sh", "-c", ENTER,
                "sh", self.root, *user, self.root, "/usr/bin/env", "-i",
                f"PATH={path}", "HOME=/tmp", "TESSERA_OFFLINE=1", "OMP_NUM_THREADS=1", *command]

    def trial(self, number, worker):
        return self.unresolved() or self.run_programs()

    def unresolved(self):
        """Returns the libraries that programs and libraries need but do not find."""
        files = [*self.root.glob("usr/bin/tessera-*"), *self.root.glob("usr/lib/libtessera*.so.*"),
                 *self.root.glob("usr/lib/libmnist_*.so")]
        failures = []
        for path in sorted(files):
            self.note("files")
            ended = programs.run(self.words(["ldd", "/" + str(path.relative_to(self.root))]))
            failures += [f"{path.name}: {line.strip()}" for line in ended.out.splitlines()
                         if "not found" in line]
        return failures

    def run_programs(self):
        small = ["--train-size", "640", "--test-size", "64", "--epochs", "1"]
        runs = [["tessera-mnist", *small, "--save", "/tmp/model.keras"],
                ["tessera-convert", "/tmp/model.keras", "/tmp/model.weights.h5"],
                ["tessera-convert", "/tmp/model.weights.h5", "/tmp/model.safetensors", "--model",
                 "/tmp/model.keras"],
                ["tessera-convert", "/tmp/model.keras", "/tmp/export"]]
        for command in runs:
            self.note("programs")
            ended = programs.run(self.words(command), timeout=300)
            if ended.code != 0:
                return [f"{' '.join(command)}: {ended.describe()}"]
        return self.serve()

    def serve(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        out = self.folder / "out"
        with out.open("w") as standard:
            server = programs.start(self.words(["tessera-imdb", "serve", "/tmp/export", "--port",
                                                str(port)]), stdout=standard)
        try:
            if not served_port(server, out):
                return ["tessera-imdb serve does not start"]
            status, text = predict(port, json.dumps({"instances": [[0.5] * 784]}))
            failures = [] if status == 200 else [f"tessera-imdb serve answers {status}: {text[:200]}"]
            return failures + self.health(server)
        finally:
            programs.end(server)

    def health(self, server):
        """Asks as the image does whether the server is healthy, before and after its end."""
        check = health_check(self.dockerfile)
        if check is None:
            return ["the image has no HEALTHCHECK"]
        # The server is not the first process here, and its words are gone when it has ended.
        words = self.folder / "root/tmp/cmdline"
        words.write_bytes(pathlib.Path(f"/proc/{server.pid}/cmdline").read_bytes())
        check = [word.replace("/proc/1/cmdline", "/tmp/cmdline") for word in check]
        codes = [programs.run(self.words(check)).code]
        programs.end(server)
        codes.append(programs.run(self.words(check)).code)
        wrong = codes[0] != 0 or codes[1] == 0
        return [f"HEALTHCHECK ends with {codes}, with and without a server"] if wrong else []
