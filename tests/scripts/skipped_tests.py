"""Lists the tests that a run of ctest skipped: skipped_tests.py LOG KNOWN, with the run's log and
the list of tests that may be skipped. If CI is set, it fails (1) if the list lacks one."""
import os
import pathlib
import re
import sys


def skipped(log):
    """Returns the reasons by test, from lines `skipped: "NAME": REASON`."""
    return dict(re.findall(r'^skipped: "(.*?)": (.*)$', log, re.MULTILINE))


def known(text):
    """Returns the names in lines `WHY NAME`; # begins a comment."""
    lines = [line.split(maxsplit=1) for line in text.splitlines()
             if line.strip() and not line.startswith("#")]
    return {name.strip() for _, name in lines}


def say(line):
    print(f"run: {line}", file=sys.stderr)


log = pathlib.Path(sys.argv[1])
tests = skipped(log.read_text(errors="replace")) if log.exists() else {}
if tests:
    say("1 test was skipped:" if len(tests) == 1 else f"{len(tests)} tests were skipped:")
for name, reason in sorted(tests.items()):
    say(f"  {name}: {reason}")
unknown = sorted(tests.keys() - known(pathlib.Path(sys.argv[2]).read_text()))
for name in unknown:
    say(f'[{sys.argv[2]}] tests that CI may skip are listed. Received: "{name}". To fix: install what '
        "it needs, or add it.")
sys.exit(1 if unknown and os.environ.get("CI") else 0)
