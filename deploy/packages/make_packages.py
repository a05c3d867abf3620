"""Makes Debian packages and a tarball of a build: `./run package`.

The packages are described in packages.json: for each, the components of framework/cmake/Install.cmake
that are installed into it, and what it depends on beside the libraries that its files are linked with,
which dpkg-shlibdeps finds. libtorch's libraries that ours need lie in /usr/lib/tessera, in the folders of
the wheel, so that their own search paths are right; symbols that nothing links are stripped. Nothing names
the build's folder. The same files make the same bits: times are those of SOURCE_DATE_EPOCH or else of the
commit.
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parent.parent
# Where ours look for libraries, relative to their own folder.
FOLDERS = {"lib": "$ORIGIN:$ORIGIN/tessera/torch/lib",
           "bin": "$ORIGIN/../lib:$ORIGIN/../lib/tessera/torch/lib"}
# Packages take minutes to compress, and are a tenth smaller than at level 9.
PACKAGE_LEVEL, TARBALL_LEVEL = 19, 9
LICENSES = re.compile(r"(LICENSE|NOTICE|License|COPYING)[^/]*$")


def run(*words, **options):
    """Runs a command, which must succeed, and returns its output."""
    done = subprocess.run([str(word) for word in words], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\nended with {done.returncode}:\n{done.stdout}"
                 f"{done.stderr}")
    return done.stdout


def is_elf(path):
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def needed(path):
    """Returns the names of the libraries that a file is linked with."""
    return re.findall(r"NEEDED +(\S+)", run("objdump", "-p", path))


class Build:
    """A build folder: its CMake cache and the libtorch that it was built with."""

    def __init__(self, folder):
        self.folder = folder.resolve()
        cache = (folder / "CMakeCache.txt").read_text(encoding="utf-8")
        self.cache = dict(re.findall(r"^(\w+):\w+=(.*)$", cache, re.MULTILINE))
        self.version = self.cache["CMAKE_PROJECT_VERSION"]
        self.torch = pathlib.Path(self.cache["TESSERA_TORCH_DIR"]).resolve()
        if self.cache.get("CMAKE_BUILD_TYPE") != "Release":
            sys.exit("packages are made of preset release")

    def install(self, component, prefix):
        run("cmake", "--install", self.folder, "--prefix", prefix, "--component", component)


class Stage:
    """The files of a package, in a folder that stands for /."""

    def __init__(self, folder, build):
        self.folder, self.build = folder, build
        self.usr = folder / "usr"
        self.usr.mkdir(parents=True)

    def files(self):
        return sorted(path for path in self.folder.rglob("*")
                      if path.is_symlink() or not path.is_dir())

    def own_programs(self):
        """Returns our own libraries and programs, not libtorch's."""
        return [path for path in self.files() if is_elf(path)
                and path.relative_to(self.usr).parts[:2] != ("lib", "tessera")]

    def copy_torch_libraries(self):
        """Copies the libraries of libtorch's wheel that ours are linked with, and theirs."""
        root = self.build.torch.parent
        beside = {path.name: path for folder in (self.build.torch / "lib", *root.glob("nvidia/*/lib"))
                  for path in sorted(folder.glob("*.so*"))}
        open_names = [name for path in self.own_programs() for name in needed(path)]
        copied = set()
        while open_names:
            name = open_names.pop()
            if name in copied or name not in beside:
                continue
            copied.add(name)
            target = self.usr / "lib/tessera" / beside[name].relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(beside[name], target)
            open_names += needed(beside[name])
        if "libtorch_cpu.so" not in copied:
            sys.exit(f"{self.build.torch}/lib has no libtorch_cpu.so that the library is linked with")

    def copy_torch_licenses(self, documents):
        for path in sorted(self.build.torch.parent.glob("*.dist-info/**/*")):
            if path.is_file() and LICENSES.search(path.name):
                name = path.relative_to(self.build.torch.parent).parts[0].split("-")[0]
                target = documents / f"{name}_{path.name}"
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)

    def copy_torch_headers(self):
        shutil.copytree(self.build.torch / "include", self.usr / "lib/tessera/torch/include",
                        ignore=lambda _, names: [name for name in names if name == "__pycache__"])

    def finish(self):
        """Strips and relocates the binaries; checks that nothing names the build's folders."""
        for path in self.files():
            if is_elf(path):
                path.chmod(0o755)
                run("strip", "--strip-unneeded", path)
        for path in self.own_programs():
            if any(name.startswith(("libtessera", "libtorch")) for name in needed(path)):
                folder = path.relative_to(self.usr).parts[0]
                run("patchelf", "--set-rpath", FOLDERS[folder], path)
            elif "PATH" in run("objdump", "-p", path):
                run("patchelf", "--remove-rpath", path)
        self.refuse_paths()

    def refuse_paths(self):
        names = {str(TREE), str(self.build.folder), str(self.build.torch.parent)}
        found = [f"{path.relative_to(self.folder)}: {name}" for path in self.files()
                 if not path.is_symlink() for name in sorted(names)
                 if name.encode() in path.read_bytes()]
        if found:
            sys.exit("files name folders of the build:\n" + "\n".join(found))

    def settle(self, epoch):
        """Gives all files the same times and permissions on every machine."""
        for path in [self.folder, *self.folder.rglob("*")]:
            if not path.is_symlink():
                executable = path.is_dir() or is_elf(path)
                path.chmod(0o755 if executable else 0o644)
            os.utime(path, (epoch, epoch), follow_symlinks=False)


def linked_packages(stage, stages, work):
    """Returns the packages of the system with the libraries that a stage's files are linked with.

    tessera-hdf5 does not count: only HDF5 files need its libraries, 29 packages.
    """
    programs = [path for path in stage.own_programs() if path.name != "tessera-hdf5"]
    if not programs:
        return []
    debian = work / "debian"
    debian.mkdir(exist_ok=True)
    (debian / "control").write_text("Source: tessera\n\nPackage: tessera\nArchitecture: any\n")
    folders = {path.parent for each in stages for path in each.files() if ".so" in path.name}
    text = run("dpkg-shlibdeps", "-O", "--ignore-missing-info", "--warnings=0",
               *[f"-l{folder}" for folder in sorted(folders)],
               *[f"-e{path}" for path in programs], cwd=work)
    return re.sub(r"^shlibs:Depends=", "", text.strip()).split(", ")


def control(name, package, stage, build, depends):
    size = sum(path.lstat().st_size for path in stage.files()) // 1024
    fields = {"Package": name, "Version": build.version, "Section": package["section"],
              "Architecture": run("dpkg", "--print-architecture").strip(),
              "Maintainer": "Tessera <tessera@localhost>", "Installed-Size": str(size),
              "Depends": ", ".join(depends), "Recommends": ", ".join(package["recommends"]),
              "Description": package["description"]}
    return "".join(f"{key}: {value}\n" for key, value in fields.items() if value)


def write_package(name, package, stage, build, depends, out, epoch):
    folder = stage.folder / "DEBIAN"
    # The sums come first: DEBIAN itself is not installed.
    sums = "".join(f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(stage.folder)}\n"
                   for path in stage.files() if not path.is_symlink())
    text = control(name, package, stage, build, depends)
    folder.mkdir()
    (folder / "control").write_text(text, encoding="utf-8")
    (folder / "md5sums").write_text(sums, encoding="utf-8")
    if any(path.parent == stage.usr / "lib" and ".so" in path.name for path in stage.files()):
        (folder / "triggers").write_text("activate-noawait ldconfig\n")
    stage.settle(epoch)
    architecture = re.search(r"^Architecture: (\S+)", text, re.MULTILINE)[1]
    target = out / f"{name}_{build.version}_{architecture}.deb"
    run("dpkg-deb", "--root-owner-group", "-Zzstd", f"-z{PACKAGE_LEVEL}", "--threads-max=1", "--build",
        stage.folder, target)
    shutil.rmtree(folder)
    return target


def write_tarball(stages, build, out, work, epoch):
    """Packs the files of all packages into one folder, which may be unpacked anywhere."""
    name = f"tessera-{build.version}-{os.uname().machine}"
    merged = Stage(work / name, build)
    for stage in stages:
        shutil.copytree(stage.usr, merged.usr, symlinks=True, dirs_exist_ok=True)
    for path in sorted(merged.usr.iterdir()):
        path.rename(merged.folder / path.name)
    merged.usr.rmdir()
    merged.settle(epoch)
    target = out / f"{name}.tar.zst"
    run("tar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner",
        f"--mtime=@{epoch}", f"--use-compress-program=zstd -{TARBALL_LEVEL} -T1 -q", "-cf", target,
        "-C", work, name)
    return target


def make_stage(name, package, build, work):
    stage = Stage(work / name, build)
    for component in package["components"]:
        build.install(component, stage.usr)
    documents = stage.usr / "share/doc" / name
    if "library" in package["components"]:
        stage.copy_torch_libraries()
        stage.copy_torch_licenses(documents)
    if "development" in package["components"]:
        stage.copy_torch_headers()
    documents.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(TREE / "README.md", documents / "README.md")
    stage.finish()
    return stage


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("build", type=pathlib.Path, help="build folder of preset release")
    parser.add_argument("out", type=pathlib.Path, help="folder for the packages")
    arguments = parser.parse_args()
    # dpkg-shlibdeps runs in a folder of its own.
    out = arguments.out.resolve()
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or
                run("git", "-C", TREE, "log", "-1", "--format=%ct"))
    os.environ["SOURCE_DATE_EPOCH"] = str(epoch)
    os.umask(0o022)
    build = Build(arguments.build.resolve())
    packages = json.loads((HERE / "packages.json").read_text(encoding="utf-8"))
    if build.cache.get("TESSERA_GRPC") == "OFF":
        del packages["tessera-parameter-server"]
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tessera_packages_", dir=out) as folder:
        work = pathlib.Path(folder)
        stages = {name: make_stage(name, package, build, work)
                  for name, package in packages.items()}
        for name, package in packages.items():
            depends = package["depends"] + linked_packages(stages[name], stages.values(), work)
            depends = [text.replace("VERSION", build.version) for text in depends if text]
            print(write_package(name, package, stages[name], build, depends, out, epoch))
        print(write_tarball(stages.values(), build, out, work, epoch))


if __name__ == "__main__":
    main()
