"""The commands run, rehearse and table of accept.sh."""
import argparse
import json
import os
import pathlib
import shutil
import signal
import sys
import tarfile
import tempfile

import correctness
import nccl
import speed
from machine import TREE, Machine
from programs import kill_all
from report import FAIL, Failure, Report, failed, table

PARTS = {"correctness": correctness, "nccl": nccl, "speed": speed}
# Limit for each log, so that all of them fit into one file of a few MiB.
MAX_LOG_BYTES = 1 << 20


def parse():
    parser = argparse.ArgumentParser(prog="accept.sh")
    commands = parser.add_subparsers(dest="command", required=True)
    out = pathlib.Path(os.environ.get("OUT") or TREE / "build/gpu_report")
    run = commands.add_parser("run", help="one part: a line for each check as it ends, then a "
                              "table. Writes PART.json and PART_logs.tar.gz.")
    run.add_argument("part", metavar="PART", choices=PARTS, help=", ".join(PARTS))
    rehearse = commands.add_parser("rehearse", help="all parts, in small, on a CPU")
    for command in (run, rehearse):
        command.add_argument("--build", type=lambda path: pathlib.Path(path).resolve(),
                             metavar="FOLDER", help="a build of this machine in place of the "
                             "payload, such as build/release")
        command.add_argument("--out", type=pathlib.Path, metavar="FOLDER", default=out,
                             help="for the results [default: $OUT, or build/gpu_report]")
        command.add_argument("--seconds", type=int, default=560, metavar="N",
                             help="for a part [default: 560]")
        command.add_argument("--only", default="", metavar="TEXT",
                             help="the checks whose names contain it")
    joined = commands.add_parser("table", help="the table of what parts wrote")
    joined.add_argument("files", nargs="*", metavar="FILE.json", type=pathlib.Path,
                        default=[out / f"{part}.json" for part in PARTS],
                        help="[default: of all parts, in $OUT or build/gpu_report]")
    return parser.parse_args()


def pack_logs(folder, path):
    """Packs the ends of all logs into one archive."""
    with tarfile.open(path, "w:gz") as archive:
        for log in sorted(path for path in folder.rglob("*") if path.is_file()):
            log.write_bytes(log.read_bytes()[-MAX_LOG_BYTES:])
            archive.add(log, log.relative_to(folder))


def run_part(part, options):
    """Runs a part and returns its rows, however it ends."""
    rehearsal = options.command == "rehearse"
    report = Report(part, options.out / f"{part}.json", options.seconds, options.only)
    with tempfile.TemporaryDirectory(prefix="tessera_accept_", ignore_cleanup_errors=True) as name:
        scratch = pathlib.Path(name)
        logs = scratch / "logs"
        logs.mkdir()
        try:
            machine = Machine(options.build, rehearsal, scratch, logs)
            machine.look(report)
            if not failed(report.rows):
                PARTS[part].checks(machine, report)
        except (Failure, KeyboardInterrupt) as end:
            report.add(part, FAIL, f"{end or 'ended by a signal'}")
        finally:
            kill_all()
            pack_logs(logs, options.out / f"{part}_logs.tar.gz")
    return report.rows


def stop(number, frame):
    """Ends the part; results until then are kept."""
    raise KeyboardInterrupt(f"ended by {signal.Signals(number).name}")


def read(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        print(f"accept: {path}: {error}. To fix: name what `accept.sh run` wrote", file=sys.stderr)
        sys.exit(2)


def main():
    options = parse()
    if options.command == "table":
        rows = [row for path in options.files for row in read(path)]
    else:
        signal.signal(signal.SIGTERM, stop)
        options.out.mkdir(parents=True, exist_ok=True)
        parts = PARTS if options.command == "rehearse" else [options.part]
        rows = [row for part in parts for row in run_part(part, options)]
        print()
    print(table(rows))
    return 1 if failed(rows) else 0


sys.exit(main())
