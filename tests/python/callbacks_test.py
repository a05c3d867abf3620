"""Callbacks written in Python, signals and threads."""
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
import unittest
import weakref

from package import classes, compiled, need

numpy = need("numpy", "python_callbacks")
import tessera


class Recorder(tessera.Callback):
    """Records the names of the hooks that are called."""

    def __init__(self):
        super().__init__()
        self.calls = []


def _recording(hook):
    def call(self, *arguments):
        self.calls.append(hook)

    return call


for _hook in ("train_begin", "train_end", "epoch_begin", "epoch_end", "train_batch_begin",
              "train_batch_end", "test_begin", "test_end", "test_batch_begin", "test_batch_end",
              "predict_begin", "predict_end", "predict_batch_begin", "predict_batch_end"):
    setattr(Recorder, "on_" + _hook, _recording(_hook))


class CallbacksTest(unittest.TestCase):
    def setUp(self):
        self.x, self.y = classes()
        self.model = compiled(tessera)

    def fit(self, *callbacks, **options):
        return self.model.fit(self.x, self.y, verbose=0, callbacks=list(callbacks), **options)

    def test_hooks_are_called_in_the_order_of_keras(self):
        recorder = Recorder()
        self.fit(recorder, batch_size=96, validation_data=(self.x, self.y))
        batch = ["train_batch_begin", "train_batch_end"]
        test = ["test_begin", "test_batch_begin", "test_batch_end", "test_end"]
        self.assertEqual(recorder.calls,
                         ["train_begin", "epoch_begin", *batch, *test, "epoch_end", "train_end"])
        self.assertIs(recorder.model, self.model)
        self.assertEqual(recorder.params, {"epochs": 1, "steps": 1, "verbose": 0})
        recorder.calls.clear()
        self.model.evaluate(self.x, self.y, batch_size=96, verbose=0, callbacks=[recorder])
        self.assertEqual(recorder.calls, test)
        recorder.calls.clear()
        self.model.predict(self.x, batch_size=96, verbose=0, callbacks=recorder)
        self.assertEqual(recorder.calls, ["predict_begin", "predict_batch_begin",
                                          "predict_batch_end", "predict_end"])

    def test_logs_are_dicts_and_reach_the_history(self):
        class Adds(tessera.Callback):
            def on_epoch_end(self, epoch, logs=None):
                logs["twice"] = 2 * logs["loss"]

        history = self.fit(Adds(), epochs=2).history
        self.assertEqual(sorted(history), ["accuracy", "loss", "twice"])
        self.assertEqual(history["twice"], [2 * loss for loss in history["loss"]])

    def test_the_older_names_of_hooks_are_called(self):
        class Older(tessera.Callback):
            batches = 0

            def on_batch_end(self, batch, logs=None):
                self.batches += 1
                assert set(logs) == {"accuracy", "loss"}

        older = Older()
        self.fit(older)
        self.assertEqual(older.batches, 3)

    def test_a_callback_stops_training(self):
        class Stops(tessera.Callback):
            def on_train_batch_end(self, batch, logs=None):
                if batch == 1:
                    self.model.stop_training = True

        history = self.fit(Stops(), epochs=5)
        self.assertEqual(history.epoch, [0])
        self.assertEqual(len(history.steps), 2)

    def test_an_error_arrives_with_its_class_and_place(self):
        class Fails(tessera.Callback):
            def on_epoch_begin(self, epoch, logs=None):
                raise ZeroDivisionError("in a callback")

        frames = []
        try:
            self.fit(Fails())
        except ZeroDivisionError as error:
            frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
        self.assertEqual(frames[-1:], ["on_epoch_begin"])
        # The model still trains.
        self.assertEqual(len(self.fit().epoch), 1)

    def test_methods_of_the_model_in_a_callback(self):
        values = []

        class Asks(tessera.Callback):
            def on_epoch_end(this, epoch, logs=None):
                values.append(self.model.evaluate(self.x, self.y, verbose=0)[0])
                values.append(this.model.get_weight("logits/bias").sum())
                this.model.optimizer.learning_rate = 0.0

        self.fit(Asks(), epochs=3)
        # From the second epoch on, the rate is 0.
        self.assertEqual(values[:2], values[2:4])
        self.assertEqual(values[:2], values[4:])

    def test_what_is_no_callback_is_a_type_error(self):
        with self.assertRaisesRegex(TypeError, "such as on_epoch_end"):
            self.fit(object())

    def test_a_callback_and_its_model_are_freed(self):
        class Holds(tessera.Callback):
            pass

        callback = Holds()
        self.fit(callback)
        there = weakref.ref(callback)
        model = weakref.ref(self.model)
        del callback, self.model
        gc.collect()
        self.assertIsNone(there())
        self.assertIsNone(model())

    def test_other_threads_run_during_fit(self):
        ticks = []
        ended = threading.Event()

        def tick():
            while not ended.is_set():
                ticks.append(time.monotonic())
                time.sleep(0.001)

        thread = threading.Thread(target=tick)
        thread.start()
        x, y = classes(rows=4096)
        begin = time.monotonic()
        self.model.fit(x, y, epochs=5, batch_size=64, verbose=0)
        end = time.monotonic()
        ended.set()
        thread.join()
        self.assertGreater(sum(begin < at < end for at in ticks), 3)

    def test_fit_runs_on_another_thread(self):
        result = []
        thread = threading.Thread(target=lambda: result.append(self.fit().epoch))
        thread.start()
        thread.join()
        self.assertEqual(result, [[0]])


PROGRAM = """
import os, signal, sys, threading, time
import tessera
from package import classes, compiled
x, y = classes()
model = compiled(tessera)
class Waits(tessera.Callback):
    steps = 0
    def on_train_batch_end(self, batch, logs=None):
        self.steps += 1
        if self.steps == 5:
            os.kill(os.getpid(), getattr(signal, sys.argv[1]))
    def on_interrupt(self):
        print("saved after", self.steps, flush=True)
waits = Waits()
"""


class SignalTest(unittest.TestCase):
    def run_program(self, signal_name, end):
        return subprocess.run([sys.executable, "-c", PROGRAM + textwrap.dedent(end), signal_name],
                              cwd=os.path.dirname(os.path.abspath(__file__)), capture_output=True,
                              text=True, timeout=120, check=False)

    def test_ctrl_c_ends_fit_after_the_step(self):
        run = self.run_program("SIGINT", """
            try:
                model.fit(x, y, epochs=1000, verbose=0, callbacks=[waits])
            except KeyboardInterrupt:
                print("interrupted", waits.steps)
            # The model goes on, and so does Python's own handling of signals.
            print(len(model.fit(x, y, verbose=0).steps))
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(10)
            except KeyboardInterrupt:
                print("again")
        """)
        self.assertEqual(run.stdout.split("\n"),
                         ["saved after 5", "interrupted 5", "3", "again", ""], run.stderr)

    def test_ctrl_c_inside_a_nested_pass(self):
        run = self.run_program("SIGINT", """
            class Evaluates(tessera.Callback):
                def on_epoch_end(self, epoch, logs=None):
                    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
                    while True:
                        model.evaluate(x, y, verbose=0)
                def on_interrupt(self):
                    print("saved")
            try:
                model.fit(x, y, epochs=1000, verbose=0, callbacks=[Evaluates()])
            except KeyboardInterrupt:
                print("interrupted")
        """)
        self.assertEqual(run.stdout.split(), ["saved", "interrupted"], run.stderr)

    def test_a_handler_of_ones_own_is_called(self):
        run = self.run_program("SIGINT", """
            signal.signal(signal.SIGINT, lambda number, frame: print("handled", number))
            try:
                model.fit(x, y, epochs=1000, verbose=0, callbacks=[waits])
            except tessera.Interrupted as error:
                print("SIGINT" in str(error), isinstance(error, RuntimeError))
        """)
        self.assertEqual(run.stdout.split("\n"),
                         ["saved after 5", "handled 2", "True True", ""], run.stderr)

    def test_sigterm_saves_and_ends_the_process(self):
        run = self.run_program("SIGTERM", """
            model.fit(x, y, epochs=1000, verbose=0, callbacks=[waits])
            print("not reached")
        """)
        self.assertEqual(run.stdout, "saved after 5\n", run.stderr)
        self.assertEqual(run.returncode, -signal.SIGTERM)


if __name__ == "__main__":
    unittest.main()
