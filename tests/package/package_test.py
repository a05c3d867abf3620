"""Builds a user's program against the installed package, by find_package and by pkg-config.

Arguments: cmake, build folder, C++ compiler, libtorch's folder. Prints the CPU time that compiling
the program takes, in that of a program which includes only <ATen/ATen.h>, and fails beyond the
limits.
"""
import os
import pathlib
import resource
import socket
import subprocess
import sys
import tempfile

CMAKE, BUILD, COMPILER, TORCH = sys.argv[1:5]
HERE = pathlib.Path(__file__).resolve().parent
MAX_PLAIN, MAX_PRECOMPILED = 2, 1.25
ENVIRONMENT = {**os.environ, "TESSERA_OFFLINE": "1", "TESSERA_DATA": ""}
ENVIRONMENT.pop("TESSERA_TORCH_DIR", None)


def run(*words, fails=False, **variables):
    """Runs a command that must succeed, or fail. Returns its output and CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run([str(word) for word in words], env={**ENVIRONMENT, **variables},
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if (done.returncode != 0) != fails:
        sys.exit(f"{' '.join(map(str, words))}\nended with {done.returncode}:\n{done.stdout}")
    return done.stdout, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def check(condition, text):
    print(text)
    if not condition:
        sys.exit("FAILED: " + text)


def check_time(kind, limit, output, *command):
    """Builds `output` in at most three attempts, because CPU time grows on a busy machine."""
    with tempfile.TemporaryDirectory(prefix="tessera_package_") as folder:
        aten = pathlib.Path(folder, "aten.cpp")
        aten.write_text("#include <ATen/ATen.h>\n")
        for _ in range(3):
            output.unlink(missing_ok=True)
            _, unit = run(COMPILER, "-std=c++20", "-O2", "-c", aten, "-o", aten.with_suffix(".o"),
                          "-isystem", pathlib.Path(TORCH, "include"))
            _, seconds = run(*command)
            if seconds <= limit * unit:
                break
    check(seconds <= limit * unit, f"{kind} precompiled header {seconds:.1f} s, "
          f"{seconds / unit:.2f} of at most {limit} times <ATen/ATen.h>")


def check_libraries(binary):
    run(sys.executable, "-B", HERE.parent / "scripts" / "linked_libraries.py", binary, TORCH)


def two_ranks(binary):
    """Checks that two processes of the program train together and print the same as one."""
    alone = run(binary)[0].strip()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = [subprocess.Popen([binary], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT,
                              env={**ENVIRONMENT, "RANK": str(rank), "WORLD_SIZE": "2",
                                   "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
             for rank in range(2)]
    for rank in ranks:
        said = rank.communicate(timeout=120)[0].strip()
        check(rank.returncode == 0 and said == alone, f"one of two processes: {said}")


def other_torch(folder):
    """Makes a folder that find_package takes for libtorch 2.99."""
    for name in ("include/ATen/ATen.h", "lib/libc10.so", "lib/libtorch_cpu.so"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    version = folder / "include/torch/version.h"
    version.parent.mkdir()
    version.write_text("#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR 99\n")
    return folder


def by_cmake(prefix, folder):
    configure = [CMAKE, "-S", HERE, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                 f"-DCMAKE_CXX_COMPILER={COMPILER}", f"-DCMAKE_PREFIX_PATH={prefix}"]
    said, _ = run(*configure, "-DTESSERA_TORCH_DIR=/nowhere", fails=True)
    check("Received: /nowhere" in said, "a missing TESSERA_TORCH_DIR is refused")
    run(CMAKE, "-E", "rm", "-rf", folder)
    other = other_torch(folder.parent / "torch")
    said, _ = run(*configure, f"-DTESSERA_TORCH_DIR={other}", fails=True)
    check("Received: libtorch 2.99" in " ".join(said.split()), "another libtorch is refused")
    run(CMAKE, "-E", "rm", "-rf", folder)
    run(*configure)
    objects = pathlib.Path("CMakeFiles", "consumer.dir")
    run(CMAKE, "--build", folder, "--target", objects / "cmake_pch.hxx.gch")
    check_time("with", MAX_PRECOMPILED, folder / objects / "consumer.cpp.o",
               CMAKE, "--build", folder)
    check_libraries(folder / "consumer")
    check(True, "find_package: " + run(folder / "consumer")[0].strip())
    two_ranks(folder / "consumer")
    said, _ = run(prefix / "bin" / "tessera-launch", "-n", "2", "--", folder / "consumer")
    check(said.count("loss") == 2, "tessera-launch: " + said.strip())
    run(CMAKE, "--build", folder, "--target", "second")
    headers = list(folder.rglob("*.gch"))
    check(len(headers) == 1, f"two targets share {len(headers)} precompiled header")
    if any(prefix.glob("lib*/**/libtessera_parameter_server.so")):
        run(CMAKE, "--build", folder, "--target", "task")
        check_libraries(folder / "task")
        said, _ = run(folder / "task")
        check("TF_CONFIG" in said, "a task without a cluster: " + said.strip())
    if any(prefix.glob("lib*/**/libtessera_arrow.so")):
        run(CMAKE, "--build", folder, "--target", "parquet")
        check_libraries(folder / "parquet")
        said, _ = run(folder / "parquet")
        check("a Parquet file" in said, "a text instead of a table: " + said.strip())


def by_pkg_config(prefix, folder):
    folder.mkdir()
    [pc] = prefix.glob("lib*/**/tessera.pc")
    said, _ = run("pkg-config", "--cflags", "--libs", "tessera", PKG_CONFIG_PATH=str(pc.parent))
    binary = folder / "consumer"
    check_time("without", MAX_PLAIN, binary,
               COMPILER, "-O2", HERE / "consumer.cpp", *said.split(), "-o", binary)
    check_libraries(binary)
    check(True, "pkg-config: " + run(binary)[0].strip())


def headers_alone(prefix):
    """Checks that include/ has only headers, and no file of the build."""
    others = [str(path) for path in (prefix / "include").rglob("*")
              if path.is_file() and path.suffix != ".hpp"]
    check(not others, f"include/ has only headers {others}")


with tempfile.TemporaryDirectory(prefix="tessera_package_") as name:
    installed, moved = pathlib.Path(name, "installed"), pathlib.Path(name, "moved")
    run(CMAKE, "--install", BUILD, "--prefix", installed, "--strip")
    installed.rename(moved)
    headers_alone(moved)
    [library] = moved.glob("lib*/**/libtessera.so")
    check_libraries(library)
    by_cmake(moved, pathlib.Path(name, "cmake"))
    by_pkg_config(moved, pathlib.Path(name, "pkg_config"))
    said, _ = run(moved / "bin" / "tessera-mnist", "--train-size", "128", "--test-size", "32", "--epochs",
                  "1")
    check("test accuracy" in said, "mnist runs from bin/")
    said, _ = run(moved / "bin" / "tessera-imdb", "--scheme", "model", "--train-size", "128", "--epochs",
                  "1")
    check("training accuracy" in said, "imdb runs from bin/")
