"""Tests that the other checks, and skipped_tests.py, catch planted offenders and accept a clean
tree."""
import os
import pathlib
import subprocess
import sys
import tempfile

import check_border
import check_keras_differences

HERE = pathlib.Path(__file__).parent
CLEAN = {
    "framework/base/a.hpp": "#include <vector>\n",
    "framework/base/README.md": "| file | owns |\n|---|---|\n| `a` | vectors |\n",
    "framework/ops/a.cpp": "#include <tessera/framework/tensor/a.hpp>\n#include <ATen/ATen.h>\n",
    "framework/nn/layer.hpp":
        "namespace tessera {\n\n/// A layer.\nclass Layer {\n public:\n  int size();\n};\n"
        "/// How many there are.\nint layer_count();\n\n}  // namespace tessera\n",
    "framework/nn/README.md": "| file | owns |\n|---|---|\n| `layer` | layers |\n",
    "framework/nn/layer.cpp":
        "namespace tessera {\nint Layer::size() {\n  return 0;\n}\n}\n",
    "layers/a.hpp": "#include <tessera/framework/nn/layer.hpp>\n",
    "layers/layers.hpp": "#include <tessera/layers/a.hpp>\n",
    "apps/a/main.cpp": "int main() {}\n",
    "docs/Doxyfile": "INPUT = README.md \\\n        layers docs/keras.md\n",
    "docs/keras.md": check_keras_differences.BEGIN + "\n\n| what | why |\n|---|---|\n| a | b |\n\n"
        + check_keras_differences.END + "\n",
    "docs/public_names.txt":
        check_border.HEAD + "\n[own: 1]\nlayer_count\n\n[Keras: 1]\nLayer\n\n[options: 0]\n\n"
        "[data sets: 0]\n",
    "tests/golden/other_than_keras.json": '{"a": {}}',
    "tests/golden/keras_names.json": '{"all": ["Layer"]}',
    "tests/known_skips.txt": "# Why and name.\nGPU  a: b\nGPU  gpu\n",
    "framework/ops/read.cpp": "x.item<float>();\n",
    "tests/scripts/device_reads.txt": "# Where and why.\nframework/ops/read.cpp  1  a reason\n",
    "tests/a_test.cpp": "TEST_CASE(\"a: b\", \"[a]\") {\n}\n",
    "tests/CMakeLists.txt": "add_test_folder(gpu gpu 900)\n",
    "README.md": "<!-- file: apps/a/main.cpp -->\n```cpp\nint main() {}\n```\n",
}
PLANTED = [
    ("check_include_order", "layers/b.cpp", "torch::nn::Linear a;\n", "torch::nn"),
    ("check_include_order", "layers/b.cpp", "#include <torch/types.h>\n", "types.h"),
    ("check_include_order", "apps/a/b.cpp", "a.set_requires_grad(true);\n", "a.set_"),
    ("check_include_order", "framework/base/b.cpp",
     "#include <tessera/framework/ops/a.hpp>\n", "may not include framework/ops"),
    ("check_include_order", "framework/mesh/b.cpp", "#include <ATen/ATen.h>\n", "libtorch"),
    ("check_include_order", "framework/training/b.cpp",
     "#include <tessera/framework/model/a.hpp>\n", "may not include framework/model"),
    ("check_include_order", "layers/b.cpp",
     "#include <tessera/framework/model/a.hpp>\n", "may not include framework/model"),
    ("check_include_order", "framework/other/b.cpp", "\n", "not in the table"),
    ("check_definitions", "framework/ops/b.cpp",
     "namespace tessera {\nint Layer::size() {\n  return 1;\n}\n}\n", "declared in framework/nn"),
    ("check_definitions", "layers/b.cpp",
     "namespace tessera {\nint layer_count() {\n  return 1;\n}\n}\n", "declared in framework/nn"),
    ("check_classes", "layers/b.hpp",
     "struct B {\n" + "".join(f"  int f{i}();\n" for i in range(31)) + "};\n", "B: 31 public"),
    ("check_device_reads", "layers/b.cpp", "f(x.cpu());\n", "layers/b.cpp:1: f(x.cpu());"),
    ("check_device_reads", "framework/ops/read.cpp", "x.item<int>();\ny.data_ptr<int>();\n",
     "2 of these, device_reads.txt has 1"),
    ("check_device_reads", "framework/ops/read.cpp", "// x.cpu()\n", "read.cpp has none"),
    ("check_texts", "docs/Doxyfile", "INPUT = docs/none.md\n", "none.md does not exist"),
    ("check_texts", "docs/b.md", "A page.\n", "docs/b.md is not in INPUT"),
    ("check_texts", "docs/doxygen_filter.py", '    "layers/none": "layers",\n',
     "no path begins with layers/none"),
    ("check_texts", "apps/a/main.cpp", "int main() { run(); }\n", "not apps/a/main.cpp"),
    ("check_texts", "docs/a.md", "<!-- file: apps/a/main.cpp -->\n", "without a block"),
    ("check_texts", "framework/base/internal/b.hpp", "\n", "does not name framework/base"),
    ("check_texts", "framework/base/README.md", "| `a`, `b` | both |\n", "no file b"),
    ("check_texts", "tests/known_skips.txt", "GPU  b\n", "no test b"),
    ("check_border", "layers/b.hpp", "\n", "tessera/layers/b.hpp"),
    ("check_border", "layers/b.hpp", "namespace tessera {\nint extra();\n}\n", "extra is missing"),
    ("check_border", "docs/a.md", "A count: `size()`, `layer_count()`, `Layer().x`, `none(3)`.\n",
     "docs/a.md:1: no public header declares none()"),
    ("check_border", "layers/internal/b.hpp", "namespace tessera {\nint extra();\n}\n",
     "belongs to tessera::detail"),
    ("check_border", "framework/nn/layer.hpp", "namespace tessera {\nclass Layer {};\n}\n",
     "layer_count is not in the headers"),
    ("check_border", "layers/b.hpp", "namespace tessera {\nint extra();\n}\n",
     "extra has no comment"),
    ("check_border", "layers/b.hpp",
     "namespace tessera {\n/// The options of B.\nstruct BOptions {\n  int size = 1;\n};\n}\n",
     "option size has no comment"),
    ("check_texts", "CHANGELOG.md", "See [two\nlines](a.md).\n", "over two lines"),
    ("check_border", "layers/b.hpp", "namespace tessera {\n/// B.\nint extra(detail::B b);\n}\n",
     "names detail::B"),
    ("check_keras_differences", "tests/golden/other_than_keras.json", "{}", 'the row "a"'),
    ("check_keras_differences", "tests/golden/other_than_keras.json", '{"a": {}, "b": {}}',
     'no row "b"'),
    ("check_keras_differences", "tests/golden/other_than_keras.json",
     '{"a": {"keras_names.json": {"all": [0]}}}', "no test asks"),
    ("check_keras_differences", "tests/golden/other_than_keras.json",
     '{"a": {"keras_names.json": {"all": [3]}}}', "has no row 3 in all"),
    ("check_words", "layers/b.cpp", "/// Of a layer.\n", "opening"),
    ("check_words", "layers/b.cpp", "int a;  ///< of a layer\n", "trailing"),
    ("check_words", "layers/b.cpp", "// Whole numbers.\n", "word: Whole numbers"),
    ("check_words", "layers/b.cpp", "fail(\"the addends differ\");\n", "word: addends"),
    ("check_words", "layers/b.cpp", "int most_rows = 1;\n", "name: most_rows"),
]
# Cases of skipped_tests.py: value of CI, log of the run, exit code and part of the output.
SKIPS = [
    ("true", 'x\nskipped: "a: b": no GPU\n', 0, "run: 1 test was skipped:\nrun:   a: b: no GPU\n"),
    ("true", 'skipped: "a: b": no GPU\nskipped: "c": no data\n', 1, 'Received: "c".'),
    ("", 'skipped: "c": no data\nskipped: "c": no data\n', 0, "run: 1 test was skipped:\n"),
    ("true", "3 tests ran\n", 0, ""),
    ("true", None, 0, ""),
]


def run_check(name, files):
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            file = pathlib.Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return subprocess.run([sys.executable, "-B", HERE / f"{name}.py", folder],
                              capture_output=True, text=True)


def run_skipped_tests(ci, log):
    with tempfile.TemporaryDirectory() as folder:
        files = pathlib.Path(folder, "log"), pathlib.Path(folder, "known")
        if log is not None:
            files[0].write_text(log)
        files[1].write_text("# Why and name.\nGPU  a: b\n")
        return subprocess.run([sys.executable, "-B", HERE / "skipped_tests.py", *files],
                              capture_output=True, text=True, env={**os.environ, "CI": ci})


failures = []
for name in sorted({case[0] for case in PLANTED}):
    done = run_check(name, CLEAN)
    if done.returncode != 0:
        failures.append(f"{name} rejects a clean tree: {done.stdout}{done.stderr}")
for name, path, text, expected in PLANTED:
    done = run_check(name, {**CLEAN, path: text})
    if done.returncode != 1 or expected not in done.stdout:
        failures.append(f"{name} misses {path} ({expected}): {done.stdout}{done.stderr}")
for ci, log, status, expected in SKIPS:
    done = run_skipped_tests(ci, log)
    if done.returncode != status or expected not in done.stderr or bool(expected) != bool(done.stderr):
        failures.append(f"skipped_tests on {log!r} ends with {done.returncode}: {done.stderr}")
print("\n".join(failures) or f"{len(PLANTED)} planted offenders caught")
sys.exit(1 if failures else 0)
