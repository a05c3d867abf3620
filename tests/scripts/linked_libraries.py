"""Checks that a library or program finds libtorch, and the libraries of its wheel, in libtorch's
folder.

It must list libgloo, if used, before libtorch_cpu, which contains another Gloo.
"""
import pathlib
import subprocess
import sys

library, torch_folder = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
WANTED = ("libtorch_cpu.so", "libc10.so")
BUNDLED = ("libcudart.so", "libcupti.so")

resolved = {}
for line in subprocess.run(["ldd", library], capture_output=True, text=True,
                           check=True).stdout.splitlines():
    name, arrow, rest = line.strip().partition(" => ")
    if arrow:
        resolved[name] = rest.split(" (")[0]

needed = [line.split("[")[1].rstrip("]")
          for line in subprocess.run(["readelf", "-d", library], capture_output=True, text=True,
                                     check=True).stdout.splitlines() if "(NEEDED)" in line]
gloo = [i for i, name in enumerate(needed) if name.startswith("libgloo.so")]
torch = [i for i, name in enumerate(needed) if name.startswith("libtorch_cpu.so")]

offenders = [f"{name} => not linked" for name in WANTED if name not in resolved]
for name, path in resolved.items():
    if path == "not found":
        offenders.append(f"{name} => not found")
    elif name.startswith(WANTED + BUNDLED):
        # The wheel's nvidia folder is next to its torch folder.
        if torch_folder.parent not in pathlib.Path(path).resolve().parents:
            offenders.append(f"{name} => {path}, not from {torch_folder.parent}")
    elif name.startswith(("libtorch", "libcuda", "libnccl")):
        offenders.append(f"{name} => {path}, but only libtorch_cpu and libc10 may be linked")
if any(name.startswith("libgloo.so") for name in resolved) and (
        not gloo or (torch and gloo[0] > torch[0])):
    offenders.append(f"libgloo.so is not before libtorch_cpu.so in {needed}")
print("\n".join(offenders) or f"{len(resolved)} libraries resolved correctly")
sys.exit(1 if offenders else 0)
