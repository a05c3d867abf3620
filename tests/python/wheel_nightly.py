"""Installs the wheel in a new environment and uses it beside torch, its Gloo, JAX and Keras:
wheel_nightly.py BUILD. Skipped without a network."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Both versions of Gloo reduce in one process, whichever is imported first.
BESIDE_TORCH = """
import os, sys
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[2])
def reduced_by_torch():
    import torch, torch.distributed as distributed
    # At another port than Tessera's processes, which read MASTER_PORT, too.
    distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{int(sys.argv[2]) + 10}",
                                   rank=int(os.environ["RANK"]), world_size=2)
    value = torch.ones(1000) * (1 + distributed.get_rank())
    distributed.all_reduce(value)
    assert value.sum() == 3000, value
def trained():
    import numpy, tessera
    from package import classes, dense_json, loss_json
    mesh = tessera.create_distributed_mesh({"batch": 2}, device_type="cpu")
    model = tessera.model_from_json(dense_json())
    model.compile("adam", loss_json(), mesh=mesh)
    losses = model.fit(*classes(), epochs=3, verbose=0, shuffle=False).history["loss"]
    if tessera.is_first_process(mesh):
        print(losses)
for step in (trained, reduced_by_torch) if sys.argv[1] == "tessera" else (reduced_by_torch, trained):
    step()
import jax.numpy as jnp
assert float(jnp.ones((3, 3)).sum()) == 9
"""

CONSUMER = """
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(tessera CONFIG REQUIRED)
add_executable(consumer consumer.cpp)
target_link_libraries(consumer PRIVATE tessera::tessera)
"""


def run(*command, **options):
    run = subprocess.run([str(word) for word in command], text=True, check=False,
                         capture_output=True, **options)
    if run.returncode:
        sys.exit(f"{command}: exit code {run.returncode}\n{run.stdout[-3000:]}\n{run.stderr[-3000:]}")
    return run.stdout


def two_ranks(python, first, port):
    """Returns what two processes print that import tessera or torch first."""
    ranks = [subprocess.Popen([python, "-c", BESIDE_TORCH, first, str(port)], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              cwd=ROOT / "tests/python",
                              env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2",
                                   "LOCAL_RANK": str(rank), "OMP_NUM_THREADS": "1"})
             for rank in range(2)]
    outputs = [rank.communicate(timeout=600) for rank in ranks]
    if any(rank.returncode for rank in ranks):
        sys.exit(f"{first} first: {outputs}")
    return outputs[0][0]


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        made = [run(sys.executable, "-B", ROOT / "apps/python/make_wheel.py", build, folder / name)
                for name in ("a", "b")]
        wheels = [next((folder / name).glob("*.whl")) for name in ("a", "b")]
        print(made[0].strip())
        if wheels[0].read_bytes() != wheels[1].read_bytes():
            sys.exit("two wheels of one build differ")
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv/bin/python"
        keras = [line.split()[0] for line in (ROOT / "tests/keras/wheels.txt").read_text().splitlines()
                 if "==" in line]
        installed = subprocess.run([python, "-m", "pip", "install", "--quiet", wheels[0], *keras],
                                   check=False, capture_output=True, text=True)
        if installed.returncode:
            if re.search(r"resolution|connect|Network", installed.stderr):
                print('skipped: "python_wheel_nightly": no network to install torch from')
                sys.exit(77)
            sys.exit(installed.stderr)
        begin = time.monotonic()
        run(python, "-c", "import tessera")
        print(f"import tessera: {time.monotonic() - begin:.1f} s")
        for name in ("api", "callbacks", "data", "keras"):
            run(python, "-B", ROOT / f"tests/python/{name}_test.py")
        losses = {first: two_ranks(python, first, port)
                  for first, port in (("tessera", 29611), ("torch", 29612))}
        if losses["tessera"] != losses["torch"] or "[" not in losses["torch"]:
            sys.exit(f"the losses depend on the order of imports: {losses}")
        consumer = folder / "consumer"
        consumer.mkdir()
        (consumer / "CMakeLists.txt").write_text(CONSUMER, encoding="utf-8")
        (consumer / "consumer.cpp").write_bytes((ROOT / "tests/package/consumer.cpp").read_bytes())
        cmake_folder = run(python, "-m", "tessera", "--cmake-dir").strip()
        run("cmake", "-S", consumer, "-B", consumer / "build", f"-Dtessera_DIR={cmake_folder}")
        run("cmake", "--build", consumer / "build")
        run(consumer / "build/consumer", env={**os.environ, "TESSERA_OFFLINE": "1"})
    print("the wheel works")


if __name__ == "__main__":
    main()
