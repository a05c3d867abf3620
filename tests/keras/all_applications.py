"""Tests every model of keras.applications, one at a time because they are large: Keras writes it,
Tessera reads, runs and writes it, and Keras reads that.

Usage: all_applications.py KERAS_TEST FOLDER
"""
import os
import pathlib
import shutil
import subprocess
import sys

import write_applications

# The models that are trained on spatially sharded images, too (spatial_training_test.cpp).
SPATIAL = {"MobileNetV2", "ResNet50"}


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    here = pathlib.Path(__file__).parent
    wrong = []
    for name in write_applications.all_names():
        shutil.rmtree(folder, ignore_errors=True)
        steps = [[sys.executable, "-B", here / "write_applications.py", folder, "--only", name],
                 [program] if name in SPATIAL else [program, "~[spatial]"],
                 [sys.executable, "-B", here / "check_cases.py", folder]]
        environment = {**os.environ, "TESSERA_KERAS_CASES": str(folder)}
        done = all(subprocess.run(step, env=environment, check=False).returncode == 0
                   for step in steps)
        print(f"{name}: {'as in Keras' if done else 'NOT as in Keras'}", flush=True)
        wrong += [] if done else [name]
    shutil.rmtree(folder, ignore_errors=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
