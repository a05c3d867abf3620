"""The rows of a part: kept in a file as each check ends, and shown as a table."""
import json
import time

OK, FAIL, SKIP, NOT_MEASURED = "ok", "fail", "skip", "not measured"
COLUMNS = ("part", "check", "result", "seconds", "figure")
LONGEST = 300


class Outcome(Exception):
    """How a check ends that has no figure; the text says why."""


class Failure(Outcome):
    """Something is wrong."""

    result = FAIL


class Skip(Outcome):
    """There is nothing to try here."""

    result = SKIP


def table(rows):
    """The rows in Markdown, and how many there are of each result."""
    lines = [COLUMNS, ("---",) * len(COLUMNS)] + [[str(row[name]).replace("|", "\\|")
                                                   for name in COLUMNS] for row in rows]
    results = [row["result"] for row in rows]
    counts = ", ".join(f"{results.count(result)} {result}" for result in dict.fromkeys(results))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + f"\n\n{counts or 'no check'}"


def failed(rows):
    return any(row["result"] == FAIL for row in rows)


class Report:
    """Runs checks until the time is up. What a check raises is its row, never the end."""

    def __init__(self, part, path, seconds, only=""):
        self.part, self.path, self.only = part, path, only
        self.rows = []
        self.deadline = time.monotonic() + seconds

    def check(self, name, limit, body, needed=False):
        """`body(seconds)` returns the figure; it ends its programs within these seconds. Others are
        `needed` by those that were asked for."""
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
        except Exception as error:  # of whatever kind: the next check has its turn
            result, figure = FAIL, f"{type(error).__name__}: {error}"
        self.add(name, result, figure, time.monotonic() - start)

    def add(self, name, result, figure, seconds=0.0):
        row = {"part": self.part, "check": name, "result": result, "seconds": round(seconds, 1),
               "figure": " ".join(str(figure).split())[:LONGEST]}
        self.rows.append(row)
        print(f"{result:<4}  {seconds:6.1f} s  {name}: {row['figure']}", flush=True)
        self.path.write_text(json.dumps(self.rows, indent=1), encoding="utf-8")
