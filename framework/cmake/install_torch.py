"""Installs a torch of the given version, and NVIDIA's libraries of the version that it asks for, with pip.

Arguments: version (2.15 or 2.15.0), folder, and 1 if all libraries for GPUs are wanted, else 0. For versions whose
hashes framework/cmake has no list of; pip's own checks are the only ones.
"""
import pathlib
import re
import subprocess
import sys


def install(folder, names, *options):
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-compile",
                    "--disable-pip-version-check", "--root-user-action=ignore", "--target",
                    str(folder), *options, *names], check=True)


def companions(metadata, gpus):
    """Returns the requirements that torch's METADATA has for NVIDIA's packages, as pip takes them."""
    found = []
    for line in re.findall(r"^Requires-Dist: ([^;\n]+)", metadata, re.MULTILINE):
        line = line.strip()
        toolkit = re.fullmatch(r"cuda-toolkit(\[.*\])(==\S+)", line)
        runtime = re.match(r"nvidia-cuda-(runtime|cupti)\b", line)
        if toolkit:
            found.append(f"cuda-toolkit{toolkit[1] if gpus else '[cudart,cupti]'}{toolkit[2]}")
        elif runtime or (gpus and line.startswith("nvidia-")):
            found.append(line)
    return found


def main():
    version, folder, gpus = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3] == "1"
    exact = version if version.count(".") == 2 else version + ".*"
    install(folder, [f"torch=={exact}"], "--no-deps")
    [metadata] = folder.glob("torch-*.dist-info/METADATA")
    # Their packages share no folder with torch's, which pip would leave out the second time.
    install(folder, companions(metadata.read_text(encoding="utf-8"), gpus))


if __name__ == "__main__":
    main()
