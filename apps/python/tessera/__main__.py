"""`python -m tessera`: where the package's files are."""
import argparse
import os

from . import _build


def main():
    parser = argparse.ArgumentParser(prog="python -m tessera", description=__doc__)
    parser.add_argument("--version", action="version", version=f"tessera {_build.version}")
    parser.add_argument("--cmake-dir", action="store_true",
                        help="print the folder for find_package(tessera), as -Dtessera_DIR takes it")
    arguments = parser.parse_args()
    if not arguments.cmake_dir:
        parser.print_help()
        return
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "cmake", "tessera")
    if not os.path.isdir(folder):
        parser.exit(1, f"[--cmake-dir] the package is installed from a wheel. Received: {folder}, which "
                       f"does not exist. To fix: install the wheel that ./run wheel makes.\n")
    print(folder)


if __name__ == "__main__":
    main()
