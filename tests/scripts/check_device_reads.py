"""Checks that reads between GPUs and the host are in device_reads.txt, with reasons: a step that
reads on the host waits for all work before. No file may have more than listed."""
import collections
import re

from sources import finish, root, sources

READ = re.compile(r"\.item<|\.cpu\(\)|\bat::tensor\(|data_ptr\b")
FOLDERS = ["framework", "layers", "optimizers", "metrics"]

# Lines "path  count  reason"; for a folder "path/  reason".
listed = {}
for line in (root() / "tests/scripts/device_reads.txt").read_text(encoding="utf-8").splitlines():
    if line and not line.startswith("#"):
        path, rest = line.split(maxsplit=1)
        listed[path] = None if path.endswith("/") else int(rest.split(maxsplit=1)[0])

found = collections.defaultdict(list)
seen = 0
for path, lines in sources(FOLDERS):
    seen += 1
    for number, line in enumerate(lines, 1):
        if READ.search(line.split("//")[0]):
            folder = next((name for name in listed if name.endswith("/")
                           and str(path).startswith(name)), str(path))
            found[folder].append(f"{path}:{number}: {line.strip()}")

offenders = []
for path, reads in found.items():
    if path not in listed:
        offenders += reads
    elif listed[path] is not None and len(reads) > listed[path]:
        offenders += [*reads, f"{path}: {len(reads)} of these, device_reads.txt has {listed[path]}"]
offenders += [f"tests/scripts/device_reads.txt: {path} has none" for path in listed
              if path not in found]
finish(offenders, "GPUs and the host read each other's memory only where device_reads.txt says why",
       seen)
