"""Makes the wheel of the Python package from a build: make_wheel.py BUILD OUTPUT.

The wheel has the compiled module, the library, its headers and CMake files, and the programs that the
library starts. torch is not in it: it is that of PyPI, of the minor version that the build used. Equal
builds of a commit make equal wheels.
"""
import base64
import hashlib
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ROOT / "build/deps/python_tools"
# What the package torch brings along.
OF_TORCH = ("libtorch_cpu.so", "libc10.so", "libc10_cuda.so", "libgomp.so.1", "libcudart.so.*",
            "libcupti.so.*")
PROGRAMS = ("tessera-hdf5", "tessera-launch", "tessera-check-export")
MAX_BYTES = 15e6


def build_facts(build):
    """Returns the module _build.py of a build."""
    spec = importlib.util.spec_from_file_location("_build", build / "python/tessera/_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(*command, **options):
    environment = {**os.environ, "PYTHONPATH": str(TOOLS),
                   "PATH": f"{TOOLS / 'bin'}:{os.environ['PATH']}"}
    return subprocess.run([str(word) for word in command], check=True, text=True, env=environment,
                          **options)


def set_library_folders(file, folders):
    run("patchelf", "--set-rpath", folders, file)


def installed(build, folder):
    """Installs the build into a folder; returns the folder of its libraries."""
    run("cmake", "--install", build, "--prefix", folder, "--strip", stdout=subprocess.DEVNULL)
    return next(folder.rglob("libtessera.so")).parent


def relocate_cmake(folder, library, gloo, torch_folder):
    """Makes the CMake files look for torch and Gloo beside themselves."""
    config = folder / "tesseraConfig.cmake"
    text = config.read_text(encoding="utf-8")
    text = re.sub(r'set\(tessera_gloo_library ".*"\)',
                  f'set(tessera_gloo_library "${{PACKAGE_PREFIX_DIR}}/lib/{gloo.name}")'
                  if gloo else 'set(tessera_gloo_library "")', text)
    text = text.replace(f'"{torch_folder}"', '"${PACKAGE_PREFIX_DIR}/../torch"')
    config.write_text(text, encoding="utf-8")
    # The libraries for parameter servers and Parquet files are not in the wheel.
    for targets in folder.glob("tessera*Targets*.cmake"):
        if not targets.name.startswith("tesseraTargets"):
            targets.unlink()
    for targets in folder.glob("tesseraTargets*.cmake"):
        # The wheel has no links: the library is under the name that programs load.
        text = re.sub(r"libtessera\.so[.0-9]*", library.name, targets.read_text(encoding="utf-8"))
        if gloo:
            text = re.sub(r"[^,;\"]*/libgloo\.so[.0-9]*", f"${{_IMPORT_PREFIX}}/lib/{gloo.name}", text)
        targets.write_text(text, encoding="utf-8")


def name_to_load(library):
    """Returns the name under which programs that are linked with the library load it."""
    dynamic = run("readelf", "-d", library, stdout=subprocess.PIPE).stdout
    return re.search(r"\(SONAME\)[^\[]*\[(.+)\]", dynamic)[1]


def linked_gloo(library):
    """Returns the Gloo that the library is linked with; None if it is not."""
    listing = run("ldd", library, stdout=subprocess.PIPE).stdout
    found = re.search(r"libgloo\.so\S* => (\S+)", listing)
    return pathlib.Path(found[1]).resolve() if found else None


def stage(build, facts, package):
    """Fills the folder of the package."""
    package.mkdir(parents=True)
    for file in (build / "python/tessera").iterdir():
        if file.suffix in (".py", ".pyi", ".so", ".typed"):
            shutil.copyfile(file, package / file.name)
    (package / "_build.py").write_text(
        f'"""What the compiled module was built with."""\nversion = "{facts.version}"\n'
        f'torch_version = "{facts.torch_version}"\ngpus = {facts.gpus}\ntorch_folder = None\n',
        encoding="utf-8")
    with tempfile.TemporaryDirectory() as scratch:
        prefix = pathlib.Path(scratch)
        libraries = installed(build, prefix)
        (package / "lib/cmake").mkdir(parents=True)
        (package / "bin").mkdir()
        library = package / "lib" / name_to_load(libraries / "libtessera.so")
        gloo = linked_gloo(libraries / "libtessera.so")
        shutil.copyfile(libraries / "libtessera.so", library)
        if gloo:
            # Under its own name, for programs that link it before libtorch_cpu.
            gloo_name = "libgloo.so.0"
            shutil.copyfile(gloo, package / "lib" / gloo_name)
            gloo = package / "lib" / gloo_name
        shutil.copytree(libraries / "cmake/tessera", package / "lib/cmake/tessera")
        shutil.copytree(prefix / "include", package / "include")
        for name in PROGRAMS:
            if (prefix / "bin" / name).exists():
                shutil.copy(prefix / "bin" / name, package / "bin" / name)
    relocate_cmake(package / "lib/cmake/tessera", library, gloo, facts.torch_folder)
    module = next(package.glob("_tessera.*.so"))
    set_library_folders(module, "$ORIGIN/lib:$ORIGIN/../torch/lib")
    for file in (package / "lib").glob("*.so*"):
        set_library_folders(file, "$ORIGIN:$ORIGIN/../../torch/lib")
    for name in ("tessera-check-export",):
        if (package / "bin" / name).exists():
            set_library_folders(package / "bin" / name, "$ORIGIN/../lib:$ORIGIN/../../torch/lib")


def metadata(facts):
    return (f"Metadata-Version: 2.1\nName: tessera\nVersion: {version(facts)}\n"
            f"Summary: Trains models of Keras over meshes of devices\n"
            f"Requires-Python: =={sys.version_info[0]}.{sys.version_info[1]}.*\n"
            f"Requires-Dist: torch=={facts.torch_version}.*\nRequires-Dist: numpy>=1.24\n"
            f"Description-Content-Type: text/markdown\n\n"
            + (ROOT / "apps/python/README.md").read_text(encoding="utf-8"))


def version(facts):
    # A wheel is for one minor version of torch, as torch's own wheels are for one of CUDA.
    return f"{facts.version}+torch{facts.torch_version}"


def write_wheel(folder, facts, output):
    """Writes the files below a folder as a wheel; returns its path."""
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    tag = f"{python}-{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    info = folder / f"tessera-{version(facts)}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(metadata(facts), encoding="utf-8")
    (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: tessera\n"
                                f"Root-Is-Purelib: false\nTag: {tag}\n", encoding="utf-8")
    records = []
    path = output / f"tessera-{version(facts)}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            if not file.is_file():
                continue
            name, content = file.relative_to(folder).as_posix(), file.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            records.append(f"{name},sha256={digest},{len(content)}")
            add(archive, name, content, executable=os.access(file, os.X_OK))
        record = f"{info.name}/RECORD"
        add(archive, record, "\n".join([*records, f"{record},,", ""]).encode())
    return path


def add(archive, name, content, executable=False):
    # Without the times of files, so that equal builds make equal wheels.
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.external_attr = (0o100755 if executable else 0o100644) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)


def repaired(wheel, torch_folder, output):
    """Returns the wheel with the system's libraries that it needs, under the tag of their C library."""
    exclude = [word for name in OF_TORCH for word in ("--exclude", name)]
    os.environ["LD_LIBRARY_PATH"] = f"{torch_folder}/lib"
    os.environ["SOURCE_DATE_EPOCH"] = "315532800"
    try:
        shown = run(sys.executable, "-m", "auditwheel", "repair", *exclude,
                    "-w", output, wheel, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    except subprocess.CalledProcessError as failure:
        sys.exit(f"{failure.stdout}\n[wheel] auditwheel accepts the wheel. Received: exit code "
                 f"{failure.returncode}. To fix: see what it says above.")
    found = re.findall(r"Fixed-up wheel written to (\S+)", shown)
    return pathlib.Path(found[-1]) if found else next(output.glob("*manylinux*.whl"))


def main():
    build, output = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    if not (build / "python/tessera/_build.py").exists():
        sys.exit(f"[wheel] the Python module is built. Received: {build} without it. To fix: see "
                 f"\"Built without the Python module\" in what ./run build prints.")
    facts = build_facts(build)
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "wheel"
        stage(build, facts, folder / "tessera")
        wheel = repaired(write_wheel(folder, facts, pathlib.Path(scratch)), facts.torch_folder, output)
    size = wheel.stat().st_size
    print(f"{wheel} ({size / 1e6:.1f} MB)")
    if size > MAX_BYTES:
        sys.exit(f"[wheel] it has at most {MAX_BYTES / 1e6:.0f} MB. Received: {size / 1e6:.1f} MB.")


if __name__ == "__main__":
    main()
