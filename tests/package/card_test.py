"""Builds preset card, without any optional library, and trains a model with it.

Arguments: cmake, source folder, libtorch's folder, C++ compiler. The build lies in build/card.
"""
import os
import re
import subprocess
import sys
import tempfile

CMAKE, SOURCE, TORCH, COMPILER = sys.argv[1:5]
# Of libraries that only optional parts use; none of them may be linked.
OPTIONAL = ("archive", "boost", "curl", "gloo", "grpc", "hdf5", "jpeg", "onig", "png", "protobuf",
            "utf8proc", "webp", "c10_cuda")


def run(*words, **options):
    done = subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\nended with {done.returncode}:\n{done.stdout}")
    return done.stdout


build = os.path.join(SOURCE, "build", "card")
run(CMAKE, "--preset", "card", f"-DTESSERA_TORCH_DIR:PATH={TORCH}",
    f"-DCMAKE_CXX_COMPILER={COMPILER}", cwd=SOURCE)
run(CMAKE, "--build", build, "--target", "mnist", "info")
linked = run("ldd", f"{build}/lib/libtessera.so")
found = [line for line in linked.splitlines()
         if any(f"lib{name}" in line.split()[0] for name in OPTIONAL)]
if found:
    sys.exit("linked with optional libraries:\n" + "\n".join(found))
options = run(f"{build}/bin/info")
if not re.search(r"^built with +none$", options, re.MULTILINE):
    sys.exit(f"an option is on:\n{options}")
with tempfile.TemporaryDirectory(prefix="tessera_card_") as home:
    environment = {**os.environ, "TESSERA_OFFLINE": "1", "TESSERA_DATA": "", "HOME": home,
                   "XDG_CACHE_HOME": home}
    said = run(f"{build}/bin/mnist", "--epochs", "1", "--verbose", "2", env=environment)
    if "test accuracy" not in said:
        sys.exit(f"mnist does not train:\n{said}")
    print(said.strip().splitlines()[-1])
