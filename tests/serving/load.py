"""Puts load on a model server for some time and reports requests per second and latencies.

    imdb serve DIR --port 8501 &
    python3 tests/serving/load.py --port 8501 --seconds 30

Good requests must be answered with 200, bad ones with 4xx and a JSON error; otherwise the exit code
is 1.
"""
import argparse
import http.client
import json
import random
import sys
import threading
import time

WORDS = ("a the film movie plot good great bad awful fun dull wonderful boring best worst "
         "actor scene love hate story music end").split()
BAD = ["", "{", "[]", "{}", '{"instances": []}', '{"instances": [1, "a"]}', '{"instances": null}',
       '{"instance": ["a"]}', '{"instances": [[1], [1, 2]]}', '{"inputs": {"texts": ["a"]}}']


class Client(threading.Thread):
    """Sends requests over one connection in a loop."""

    def __init__(self, options, seed, end):
        super().__init__()
        self.options, self.random, self.end = options, random.Random(seed), end
        self.good, self.bad, self.errors = [], [], []
        self.connection = None

    def ask(self, body):
        path = f"/v1/models/{self.options.name}:predict"
        self.connection.request("POST", path, body, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())

    def step(self):
        bad = self.random.random() < self.options.bad
        text = " ".join(self.random.choices(WORDS, k=self.options.words))
        body = self.random.choice(BAD) if bad else json.dumps({"instances": [text]})
        begin = time.perf_counter()
        status, reply = self.ask(body)
        (self.bad if bad else self.good).append(time.perf_counter() - begin)
        fits = 400 <= status < 500 and "error" in reply if bad else \
            status == 200 and len(reply["predictions"]) == 1
        if not fits:
            self.errors.append(f"{status} for {body[:100]}: {reply}")

    def run(self):
        self.connection = http.client.HTTPConnection("127.0.0.1", self.options.port, timeout=30)
        while time.perf_counter() < self.end:
            try:
                self.step()
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.errors.append(repr(error))
                self.connection.close()


def quantile(values, fraction):
    return sorted(values)[min(len(values) - 1, int(len(values) * fraction))] * 1e3 if values else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--name", default="imdb")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--bad", type=float, default=0.1, help="fraction of bad requests")
    parser.add_argument("--words", type=int, default=200, help="words per text")
    options = parser.parse_args()
    begin = time.perf_counter()
    clients = [Client(options, seed, begin + options.seconds)
               for seed in range(options.connections)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    seconds = time.perf_counter() - begin
    good = [value for client in clients for value in client.good]
    bad = [value for client in clients for value in client.bad]
    errors = [error for client in clients for error in client.errors]
    print(f"{(len(good) + len(bad)) / seconds:.0f} requests/s for {seconds:.1f} s on "
          f"{options.connections} connections: {len(good)} good, {len(bad)} bad, "
          f"{len(errors)} wrong answers")
    for name, values in (("good", good), ("bad", bad)):
        print(f"{name}: p50 {quantile(values, 0.5):.2f} ms, p99 {quantile(values, 0.99):.2f} ms, "
              f"longest {quantile(values, 1):.2f} ms")
    for error in errors[:10]:
        print(error, file=sys.stderr)
    return 1 if errors or not good else 0


if __name__ == "__main__":
    sys.exit(main())
