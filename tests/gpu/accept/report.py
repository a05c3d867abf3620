"""The rows of a part: saved to a file after each check, and shown as a table."""
import json
import time

OK, FAIL, SKIP, NOT_MEASURED = "ok", "fail", "skip", "not measured"
COLUMNS = ("part", "check", "result", "seconds", "figure")
LONGEST = 300


class Outcome(Exception):
    """A check's outcome without a result; the text says why."""


class Failure(Outcome):
    """The check found an error."""

    result = FAIL


class Skip(Outcome):
    """The check does not apply to this machine."""

    result = SKIP


def table(rows):
    """Returns the rows in Markdown, and the number of rows by result."""
    lines = [COLUMNS, ("---",) * len(COLUMNS)] + [[str(row[name]).replace("|", "\\|")
                                                   for name in COLUMNS] for row in rows]
    results = [row["result"] for row in rows]
    counts = ", ".join(f"{results.count(result)} {result}" for result in dict.fromkeys(results))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + f"\n\n{counts or 'no check'}"


def failed(rows):
    return any(row["result"] == FAIL for row in rows)


class Report:
    """Runs checks until the time is up. An exception of a check becomes its row and does not end
    the part."""

    def __init__(self, part, path, seconds, only=""):
        self.part, self.path, self.only = part, path, only
        self.rows = []
        self.deadline = time.monotonic() + seconds

    def check(self, name, limit, body, needed=False):
        """Runs a check: `body(seconds)` returns its result and must end its programs within this
        time. Checks that are `needed` by requested ones run too."""
        if not needed and self.only not in name:
            return
        start = time.monotonic()
        left = min(limit, self.deadline - start)
        try:
            if left < 3:
                raise Skip("no time was left")
            result, figure = OK, body(left)
        except Outcome as outcome:
            result, figure = outcome.result, outcome
        except Exception as error:  # of any kind: the next check still runs
            result, figure = FAIL, f"{type(error).__name__}: {error}"
        self.add(name, result, figure, time.monotonic() - start)

    def add(self, name, result, figure, seconds=0.0):
        row = {"part": self.part, "check": name, "result": result, "seconds": round(seconds, 1),
               "figure": " ".join(str(figure).split())[:LONGEST]}
        self.rows.append(row)
        print(f"{result:<4}  {seconds:6.1f} s  {name}: {row['figure']}", flush=True)
        self.path.write_text(json.dumps(self.rows, indent=1), encoding="utf-8")
