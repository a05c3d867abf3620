"""Runs of whole programs in which an allocation fails: what they read and write, and what must be
true afterwards."""
import hashlib
import http.client
import json
import re
import shutil
import signal
import subprocess
import time

import programs

SMALL_MNIST = ["--train-size", "64", "--test-size", "32", "--batch-size", "32", "--epochs", "1",
               "--hidden", "8", "--mesh", "batch=2", "--verbose", "0"]
SERVED = re.compile(r"serving version \d+ .*:(\d+)/v1/")


def digests(folder):
    """Returns the hash of each file below a folder."""
    return {path.relative_to(folder): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file()}


class Work:
    """A program with its files. `old` are files that must stay as they are if it fails."""

    name = ""
    codes = (1,)  # with which it may end and say why

    def __init__(self, night, reader, folder):
        self.night, self.reader, self.base = night, reader, folder / self.name
        self.base.mkdir(parents=True)
        self.make()

    def make(self):
        """Writes into self.base what the program starts from."""

    def command(self, folder):
        raise NotImplementedError

    def run(self, folder, environment):
        """Runs the program in a copy of the base. Returns how it ended."""
        return programs.run(self.command(folder), env=environment, cwd=folder)

    def count(self, folder):
        """Returns the allocations of an undisturbed run."""
        shutil.copytree(self.base, folder)
        counts = folder.parent / "counts"
        ended = self.run(folder, self.environment(0, NIGHT_COUNT=str(counts)))
        if ended.code != 0 or not counts.exists():
            raise RuntimeError(f"{self.name} fails undisturbed: {ended.describe()}")
        most = max(int(line) for line in counts.read_text().split())
        counts.unlink()
        self.complete(folder)
        shutil.rmtree(folder)
        return most

    def complete(self, folder):
        """Remembers what an undisturbed run writes."""

    def environment(self, nth, **more):
        library = self.night.failing_library("malloc")
        return {**self.night.environment, "LD_PRELOAD": str(library), "NIGHT_NTH": str(nth),
                "NIGHT_ERROR": "12", "NIGHT_PROGRAM": self.program(), **more}

    def program(self):
        return self.name.split("-")[0]

    def check(self, folder, ended):
        """Returns what is wrong after a run; "" if nothing."""
        if not programs.is_told(ended, self.codes):
            return ended.describe()
        return self.check_files(folder, ended)

    def check_files(self, folder, ended):
        before, after = digests(self.base), digests(folder)
        changed = [str(path) for path in before
                   if not path.name.startswith(".") and after.get(path) != before[path]]
        return f"old files are changed: {', '.join(changed[:3])}" if changed else ""


class Training(Work):
    name = "mnist"

    def make(self):
        ended = programs.run(self.command(self.base), env=self.night.environment)
        if ended.code != 0:
            raise RuntimeError(f"mnist fails undisturbed: {ended.describe()}")

    def command(self, folder):
        return [self.night.bin / "mnist", *SMALL_MNIST, "--checkpoint-dir",
                folder / "checkpoints"]


class TwoRanks(Training):
    name = "mnist-ranks"
    # The launcher says more than one line, and its own code.
    codes = (1, 3)

    def command(self, folder):
        return [self.night.bin / "launch", "-n", "2", "--", *super().command(folder)]

    def check(self, folder, ended):
        if programs.LIBRARY_ENDS in ended.err:
            return self.check_files(folder, ended)
        if ended.hang or ended.code not in (0, *self.codes) or "terminate called" in ended.err \
                or re.search(r"killed by|signal \d|SIG(ABRT|SEGV|BUS)", ended.err):
            return ended.describe()
        if ended.code != 0 and not ended.lines():
            return "it says nothing"
        return self.check_files(folder, ended)


class Converting(Work):
    """Replaces an older file of the same model."""
    source, target = "model.keras", "out.safetensors"
    formats = {".keras": "keras", ".safetensors": "safetensors"}

    def format_of(self, file):
        return self.formats[file[file.rindex("."):]]

    def write(self, file, variant):
        path = self.base / file
        answer = self.reader.write(self.format_of(file), path, variant)
        if answer["outcome"] != "ok":
            raise RuntimeError(f"{path} cannot be written: {answer}")

    def make(self):
        self.write("model.keras", 1)
        self.write(self.source, 1)
        self.write(self.target, 2)
        self.old = self.content(self.base)

    def content(self, folder):
        answer = self.reader.read(self.format_of(self.target), folder / self.target)
        return answer["hash"] if answer["outcome"] == "ok" else answer["text"]

    def complete(self, folder):
        self.new = self.content(folder)

    def program(self):
        return "convert"

    def command(self, folder):
        model = [] if self.source == "model.keras" else ["--model", folder / "model.keras"]
        return [self.night.bin / "convert", folder / self.source, folder / self.target, *model]

    def check_files(self, folder, ended):
        content = self.content(folder)
        if content == self.new or (ended.code != 0 and content == self.old):
            return ""
        return f"the file that is replaced is neither old nor new: {content}"


class ConvertFromKeras(Converting):
    name = "convert-from-keras"


class ConvertToKeras(Converting):
    name = "convert-to-keras"
    source, target = "model.safetensors", "out.keras"


class Serving(Work):
    name = "imdb-serve"
    request = json.dumps({"instances": [[1, 2, 3], [4, 5, 6]]})

    def make(self):
        answer = self.reader.write("export", self.base / "export", 2)
        if answer["outcome"] != "ok":
            raise RuntimeError(f"an export cannot be written: {answer}")

    def command(self, folder):
        return [self.night.bin / "imdb", "serve", folder / "export", "--port", "0"]

    def run(self, folder, environment):
        out, err = folder.parent / "server_out", folder.parent / "server_err"
        with out.open("w") as out_file, err.open("w") as err_file:
            server = programs.start(self.command(folder), env=environment, stdout=out_file,
                                    stderr=err_file)
        port = served_port(server, out)
        if port:
            self.ask(port)
            server.send_signal(signal.SIGTERM)
        hang = False
        try:
            server.wait(timeout=60)
        except subprocess.TimeoutExpired:
            hang = True
        programs.end(server)
        code = 0 if server.returncode == 128 + signal.SIGTERM else server.returncode
        # The signal may come while the server ends by itself.
        code = 1 if code == -signal.SIGTERM else code
        return programs.Ended(code, out.read_text(errors="replace"),
                              err.read_text(errors="replace"), hang)

    def ask(self, port):
        """Sends a request; a server without memory may refuse it or close the connection."""
        try:
            predict(port, self.request)
        except (OSError, http.client.HTTPException):
            pass

    def check(self, folder, ended):
        # A running server says what goes wrong, and goes on.
        if ended.code == 0 and not ended.hang and "terminate called" not in ended.err:
            return self.check_files(folder, ended)
        return super().check(folder, ended)


def served_port(server, out, timeout=60):
    """Waits until a server listens. Returns its port; None if it ends or does not begin."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        found = SERVED.search(out.read_text(errors="replace"))
        if found:
            return int(found[1])
        if server.poll() is not None:
            return None
        time.sleep(0.02)
    return None


def predict(port, body, timeout=30):
    """Returns (status, answer) of a prediction."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("POST", "/v1/models/imdb:predict", body)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    finally:
        connection.close()


WORKS = (Training, ConvertFromKeras, ConvertToKeras, Serving, TwoRanks)
