"""Installs the packages of `./run package` in a bare Debian and tries them there.

Arguments: build folder of preset release, folder to keep Debian's packages in. Debian comes from mmdebstrap, without
a compiler; apt sees one local folder of packages and no network. Exits with 77 where this machine cannot make such
a folder. `--packages FOLDER` takes packages that are already made, and does not compare two makings.
"""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parent.parent
SUITE = "bookworm"
MAX_SECONDS, MAX_CONSUMER_SECONDS = 20, 20
MAX_DOWNLOAD, MAX_DISK = 95e6, 400e6
MAX_LIBRARIES = 12
# Part of the C and C++ run-time libraries, which every program has.
RUNTIME = ("ld-linux", "linux-vdso", "libc.so", "libm.so", "libgcc_s", "libstdc++", "libdl.so",
           "libpthread", "librt.so", "libutil.so")
COMPILER = ["cmake", "g++", "ninja-build"]
# Runs a command in the folder with /proc and /dev.
ENTER = """root=$1; shift
mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" || exit 97
exec chroot "$@"
"""
ATTEMPTS = 3


def skip(why):
    print(f'skipped: "chroot": {why}')
    sys.exit(77)


def check(condition, text):
    print(text, flush=True)
    if not condition:
        sys.exit("FAILED: " + text)


class Debian:
    """A bare Debian in a folder, with a local folder of packages."""

    def __init__(self, root):
        self.root = root
        self.repository = root / "repository"

    def run(self, *words, network=False, user=False, fails=False, **variables):
        """Runs a command in it that must succeed, and returns its output and seconds."""
        who = ["--userspec=1000:1000"] if user else []
        own_network = [] if network else ["--net"]
        started = time.monotonic()
        done = subprocess.run(
            ["unshare", "--mount", *own_network, "sh", "-c",
             ("" if network else "ip link set lo up 2>/dev/null; ") + ENTER, "sh", str(self.root), *who,
             str(self.root), "/usr/bin/env", "-i", "PATH=/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/tmp",
             "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8",
             *[f"{name}={value}" for name, value in variables.items()], *map(str, words)],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode == 97:
            skip(f"folders cannot be mounted here: {done.stdout}")
        if (done.returncode != 0) != fails:
            sys.exit(f"{' '.join(map(str, words))}\nended with {done.returncode}:\n{done.stdout}")
        return done.stdout, time.monotonic() - started

    def make(self, archive):
        """Unpacks a bare Debian, which mmdebstrap makes the first time."""
        if not archive.exists():
            partial = archive.with_name("partial.tar")
            done = subprocess.run(["mmdebstrap", "--variant=minbase", "--include=iproute2", SUITE,
                                   str(partial)], text=True, capture_output=True, check=False)
            if done.returncode != 0:
                skip(f"mmdebstrap: {done.stderr.strip().splitlines()[-1:]}")
            partial.rename(archive)
        self.root.mkdir()
        subprocess.run(["tar", "-xf", str(archive), "-C", str(self.root)], check=True)
        self.repository.mkdir()

    def fetch(self, names, folder):
        """Fetches packages of Debian, and all that they depend on, into a folder; once."""
        wanted = "\n".join(sorted(names))
        said = folder / "names.txt"
        if not said.exists() or said.read_text(encoding="utf-8") != wanted:
            shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")
            self.run("apt-get", "update", "-qq", network=True)
            self.run("apt-get", "install", "--download-only", "-y", "-qq", "--no-install-recommends",
                     *names, network=True)
            for old in folder.glob("*.deb"):
                old.unlink()
            for file in (self.root / "var/cache/apt/archives").glob("*.deb"):
                shutil.move(file, folder / file.name)
            said.write_text(wanted, encoding="utf-8")
        for file in folder.glob("*.deb"):
            shutil.copy(file, self.repository)

    def use_repository(self):
        """Makes the local folder apt's only source."""
        entries = []
        for file in sorted(self.repository.glob("*.deb")):
            text = subprocess.run(["dpkg-deb", "--field", str(file)], text=True, check=True,
                                  capture_output=True).stdout
            sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
            entries.append(f"{text}Filename: ./{file.name}\nSize: {file.stat().st_size}\n"
                           f"SHA256: {sha256}\n")
        (self.repository / "Packages").write_text("\n".join(entries), encoding="utf-8")
        for old in [self.root / "etc/apt/sources.list",
                    *(self.root / "etc/apt/sources.list.d").glob("*")]:
            old.unlink(missing_ok=True)
        (self.root / "etc/apt/sources.list").write_text("deb [trusted=yes] file:/repository ./\n")
        self.run("apt-get", "update", "-qq", "-o", "APT::Sandbox::User=root")

    def install(self, *names):
        return self.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", "-o",
                        "APT::Sandbox::User=root", *names)[1]


def listed(name):
    """Returns the packages of a list in deploy/docker."""
    lines = (TREE / "deploy/docker" / name).read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def make_packages(build, out):
    subprocess.run([sys.executable, "-B", str(TREE / "deploy/packages/make_packages.py"), str(build),
                    str(out)], check=True)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(out.iterdir()) if path.is_file()}


def depends(packages):
    """Returns the packages of Debian that ours depend on or recommend."""
    found = set()
    for file in packages.glob("*.deb"):
        text = subprocess.run(["dpkg-deb", "--field", str(file), "Depends", "Recommends"], text=True,
                              check=True, capture_output=True).stdout
        for field in re.findall(r"^\w+: (.*)$", text, re.MULTILINE):
            found |= {re.split(r"[ |(]", entry.strip())[0] for entry in field.split(",")}
    ours = {file.name.split("_")[0] for file in packages.glob("*.deb")}
    return sorted(found - ours)


def count_libraries(debian):
    """Returns the libraries that mnist loads at its start beyond libtorch's and the run-time's."""
    said, _ = debian.run("ldd", "/usr/bin/tessera-mnist")
    names = []
    for line in said.splitlines():
        name, _, path = line.strip().partition(" => ")
        beyond = not os.path.basename(name.split()[0]).startswith(RUNTIME)
        if beyond and "/tessera/" not in path and not name.startswith("libtessera"):
            names.append(name.split()[0])
    return names


def first_epoch(debian, packages):
    installed = debian.install("tessera")
    said, trained = debian.run("tessera-mnist", "--epochs", "1", "--verbose", "2", user=True)
    check("procedural train images" in said and "test accuracy" in said, "mnist says what it trains on")
    check(installed + trained <= MAX_SECONDS, f"installed in {installed:.1f} s, first epoch after "
          f"another {trained:.1f} s, of at most {MAX_SECONDS}")
    size = sum(file.stat().st_size for name in ("libtessera0", "tessera")
               for file in packages.glob(f"{name}_*.deb"))
    check(size <= MAX_DOWNLOAD, f"{size / 1e6:.1f} MB of packages, of at most {MAX_DOWNLOAD / 1e6}")
    text, _ = debian.run("dpkg-query", "-W", "-f", "${Installed-Size}\n", "libtessera0", "tessera")
    disk = sum(map(int, text.split())) * 1024
    check(disk <= MAX_DISK, f"{disk / 1e6:.0f} MB on disk, of at most {MAX_DISK / 1e6}")
    names = count_libraries(debian)
    check(len(names) <= MAX_LIBRARIES, f"{len(names)} libraries beyond torch: {' '.join(names)}")


def programs_run(debian):
    said, _ = debian.run("tessera-launch", "-n", "2", "--", "tessera-mnist", "--epochs", "1",
                         "--verbose", "2", "--mesh", "batch=2", "--train-size", "1280", user=True)
    check("test accuracy" in said and "[0] " in said, "two ranks train")
    said, _ = debian.run("tessera-mnist", "--train-size", "640", "--epochs", "1", "--mesh",
                         "batch=2,model=2", "--layouts",
                         "/usr/share/tessera/mnist/layouts/model.json", user=True)
    check("test accuracy" in said, "mnist reads a layout file of the package")
    said, _ = debian.run("tessera-info", user=True)
    check("/usr/lib/tessera/torch/lib/" in said, "tessera-info names libtorch's folder")


def consumer(debian):
    debian.install("libtessera-dev", *COMPILER)
    folder = debian.root / "tmp/consumer"
    folder.mkdir()
    for name in ("CMakeLists.txt", "consumer.cpp", "task.cpp", "parquet.cpp"):
        shutil.copy(HERE / name, folder)
    # For one source a precompiled header takes longer than it saves.
    command = ("cd /tmp/consumer && cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release "
               "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON && "
               "cmake --build build --target consumer && ./build/consumer")
    best = None
    for _ in range(ATTEMPTS):
        shutil.rmtree(folder / "build", ignore_errors=True)
        said, seconds = debian.run("sh", "-c", command, TESSERA_OFFLINE="1")
        check("loss" in said, "a program of one's own runs: " + said.strip().splitlines()[-1])
        best = min(best or seconds, seconds)
        if best <= MAX_CONSUMER_SECONDS:
            break
    check(best <= MAX_CONSUMER_SECONDS,
          f"it is configured, built and run in {best:.1f} s, of at most {MAX_CONSUMER_SECONDS}")
    said, _ = debian.run("sh", "-c", "cd /tmp/consumer && g++ -O1 consumer.cpp "
                         "$(pkg-config --cflags --libs tessera) -o by_pkg && ./by_pkg",
                         TESSERA_OFFLINE="1")
    check("loss" in said, "pkg-config: " + said.strip())


def unresolved(debian):
    """Checks that all our programs and libraries find what they are linked with."""
    text, _ = debian.run("sh", "-c", "for file in /usr/bin/tessera-* /usr/lib/libtessera*.so.* "
                         "/usr/lib/libmnist_*.so; do echo $file; ldd $file; done")
    count = text.count("\n/usr/") + 1
    missing = [line.strip() for line in text.splitlines() if "not found" in line]
    check(not missing, f"{count} programs and libraries find theirs {missing}")


def main():
    kept = "--packages" in sys.argv
    build, keep = map(pathlib.Path, sys.argv[1:3])
    for tool in ("unshare", "chroot", "mmdebstrap", "dpkg-deb", "dpkg-shlibdeps", "patchelf", "zstd"):
        if not shutil.which(tool):
            skip(f"{tool} is not installed")
    if os.geteuid() != 0:
        skip("only root can enter such a folder")
    (keep / "debs").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tessera_chroot_", dir=keep) as name:
        folder = pathlib.Path(name)
        packages = folder / "packages"
        if kept:
            packages = pathlib.Path(sys.argv[sys.argv.index("--packages") + 1])
        else:
            sums = make_packages(build, packages)
            check(sums == make_packages(build, folder / "again"),
                  f"{len(sums)} packages have the same bits when they are made again")
            shutil.rmtree(folder / "again")
        lists = [listed("cpu_packages.txt"), listed("gpu_packages.txt")]
        ours = {file.name.split("_")[0] for file in packages.glob("*.deb")}
        debian = Debian(folder / "root")
        debian.make(keep / f"{SUITE}.tar")
        debian.fetch(sorted({*depends(packages), *COMPILER, *sum(lists, [])} - ours), keep / "debs")
        for file in packages.glob("*.deb"):
            shutil.copy(file, debian.repository)
        debian.use_repository()
        first_epoch(debian, packages)
        programs_run(debian)
        for names in lists:
            debian.install(*names)
            unresolved(debian)
        consumer(debian)


if __name__ == "__main__":
    main()
