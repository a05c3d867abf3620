"""Clients ask a server while others hang up and new versions appear."""
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

import programs
from step import Step, random_of, register
from works import predict, served_port

CLIENTS = 8
ROUND_SECONDS = 20
# Answers of one version are this factor times the sum of a row, see the export in formats.cpp.
MAX_FACTOR = 1000


def descriptors(process):
    return len(os.listdir(f"/proc/{process.pid}/fd"))


class Clients:
    """Clients of one round, and what they saw."""

    def __init__(self, port, seed, end):
        self.port, self.end = port, end
        self.failures, self.answers, self.times = [], 0, []
        self.lock = threading.Lock()
        kinds = [self.ask] * (CLIENTS - 2) + [self.hang_up] * 2
        self.threads = [threading.Thread(target=kind, args=(random_of(seed + i),))
                        for i, kind in enumerate(kinds)]
        for thread in self.threads:
            thread.start()

    def join(self):
        for thread in self.threads:
            thread.join()

    def fail(self, text):
        with self.lock:
            if len(self.failures) < 5:
                self.failures.append(text)

    def ask(self, random):
        while time.monotonic() < self.end:
            rows = [[random.randint(1, 9) for _ in range(3)] for _ in range(random.randint(1, 16))]
            begin = time.monotonic()
            try:
                status, text = predict(self.port, json.dumps({"instances": rows}))
            except (OSError, ValueError) as error:
                self.fail(f"a request is not answered: {error}")
                continue
            self.judge(rows, status, text)
            with self.lock:
                self.answers += 1
                self.times.append(time.monotonic() - begin)

    def judge(self, rows, status, text):
        if status != 200:
            return self.fail(f"status {status}: {text[:200]}")
        values = [prediction[0] for prediction in json.loads(text)["predictions"]]
        factors = {round(value / sum(row), 3) for value, row in zip(values, rows)}
        if len(values) != len(rows) or len(factors) != 1 or not 1 <= min(factors) <= MAX_FACTOR:
            self.fail(f"the answer mixes versions, or is none: {sorted(factors)[:4]}")

    def hang_up(self, random):
        """Sends requests, or parts of them, and closes the connection."""
        while time.monotonic() < self.end:
            body = json.dumps({"instances": [[1, 2, 3]] * random.randint(1, 200)})
            text = (f"POST /v1/models/imdb:predict HTTP/1.1\r\nHost: night\r\n"
                    f"Content-Length: {len(body)}\r\n\r\n{body}").encode()
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
                    connection.sendall(text[:random.choice((len(text), len(text) // 2, 20))])
                    time.sleep(random.choice((0, 0.001, 0.05)))
            except OSError as error:
                self.fail(f"a connection is refused: {error}")


@register
class ServeStep(Step):
    name = "serve"
    summary = "clients ask, hang up and new versions appear: no answer fails or is mixed"
    share = 2
    least = 20
    parallel = False

    def prepare(self):
        self.reader = self.night.reader()
        self.tried = f"rounds of {ROUND_SECONDS} s, {CLIENTS} clients"

    def export(self, folder, factor):
        answer = self.reader.write("export", folder, factor)
        if answer["outcome"] != "ok":
            raise RuntimeError(f"an export cannot be written: {answer}")

    def trial(self, number, worker):
        folder = self.folder / str(number)
        folder.mkdir()
        self.export(folder / "export", 1)
        out = folder / "out"
        with out.open("w") as standard, (folder / "err").open("w") as error:
            server = programs.start([self.night.bin / "imdb", "serve", folder / "export",
                                     "--port", "0"], env=self.night.environment, stdout=standard,
                                    stderr=error)
        try:
            port = served_port(server, out)
            if not port:
                return [f"the server does not start: {(folder / 'err').read_text()[:300]}"]
            return self.round(number, folder, server, port)
        finally:
            programs.end(server)
            shutil.rmtree(folder, ignore_errors=True)

    def round(self, number, folder, server, port):
        predict(port, json.dumps({"instances": [[1, 2, 3]]}))
        before = descriptors(server)
        seconds = max(3, min(ROUND_SECONDS, self.seconds_left()))
        clients = Clients(port, number * CLIENTS, time.monotonic() + seconds)
        random = random_of(number)
        factor = 1
        while time.monotonic() < clients.end - 1:
            factor += 1
            self.export(folder / "export", factor)
            time.sleep(random.uniform(0.05, 0.5))
        clients.join()
        self.note("answers", clients.answers)
        self.note("versions", factor)
        failures = list(clients.failures)
        if server.poll() is not None:
            failures.append(f"the server ended with {server.returncode}")
        else:
            failures += self.end_state(server, before)
        return failures

    def end_state(self, server, before):
        """Checks that nothing of the clients is left, and that the server ends when asked to."""
        end = time.monotonic() + 15
        while descriptors(server) > before + 2 and time.monotonic() < end:
            time.sleep(0.2)
        left = descriptors(server) - before
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            return ["the server does not end at SIGTERM"]
        return [f"{left} descriptors stay open"] if left > 2 else []
