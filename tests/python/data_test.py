"""Arrays, generators and iterables as data of fit, evaluate and predict."""
import gc
import itertools
import sys
import unittest

from package import classes, compiled, need

numpy = need("numpy", "python_data")
import tessera


def losses(data, **options):
    model = compiled(tessera)
    labels = () if not isinstance(data, tuple) else data[1:]
    data = data[0] if isinstance(data, tuple) else data
    return model.fit(data, *labels, verbose=0, shuffle=False, **options).history["loss"]


class DlpackOnly:
    """An array that only DLPack can read."""

    def __init__(self, array):
        self.array = array
        self.exports = 0

    def __dlpack__(self, **options):
        self.exports += 1
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class DataTest(unittest.TestCase):
    def setUp(self):
        self.x, self.y = classes()
        self.expected = losses((self.x, self.y), batch_size=32, epochs=2)

    def batches(self, size=32):
        return [(self.x[at:at + size], self.y[at:at + size]) for at in range(0, len(self.x), size)]

    def test_a_generator_trains_as_its_arrays(self):
        endless = itertools.chain.from_iterable(self.batches() for _ in itertools.count())
        self.assertEqual(losses(endless, epochs=2, steps_per_epoch=3), self.expected)

    def test_steps_of_an_epoch_skip_and_repeat_nothing(self):
        read = []

        def counted():
            for batch in self.batches(16) * 4:
                read.append(len(batch[0]))
                yield batch

        found = losses(counted(), epochs=4, steps_per_epoch=3)
        # As many as were used, and the one that was read ahead.
        self.assertEqual(len(found), 4)
        self.assertIn(len(read), (12, 13))
        expected = losses((numpy.concatenate([self.x] * 2), numpy.concatenate([self.y] * 2)),
                          batch_size=16, epochs=4, steps_per_epoch=3)
        self.assertEqual(found, expected)

    def test_a_generator_is_read_once(self):
        model = compiled(tessera)
        with self.assertRaisesRegex(ValueError, r"read once.*steps_per_epoch"):
            model.fit(iter(self.batches()), epochs=2, verbose=0)

    def test_an_iterable_begins_again_in_every_epoch(self):
        class Batches:
            ends = 0

            def __iter__(this):
                return iter(self.batches())

            def __len__(this):
                return 3

            def on_epoch_end(this):
                this.ends += 1

        data = Batches()
        self.assertEqual(losses(data, epochs=2), self.expected)
        self.assertEqual(data.ends, 2)

    def test_an_array_that_a_generator_fills_again_is_copied(self):
        def filled():
            x, y = numpy.empty((32, 4), "float32"), numpy.empty(32, "int64")
            for _ in range(2):
                for rows, labels in self.batches():
                    x[:], y[:] = rows, labels
                    yield x, y
                    x[:], y[:] = numpy.nan, 0

        self.assertEqual(losses(filled(), epochs=2, steps_per_epoch=3), self.expected)

    def test_an_error_in_a_generator_arrives(self):
        def failing():
            yield self.batches()[0]
            raise KeyError("the second batch")

        with self.assertRaisesRegex(KeyError, "the second batch"):
            compiled(tessera).fit(failing(), verbose=0)

    def test_evaluate_and_predict_take_iterables(self):
        model = compiled(tessera)
        expected = model.evaluate(self.x, self.y, verbose=0, return_dict=True)
        found = model.evaluate(iter(self.batches()), verbose=0, return_dict=True)
        self.assertEqual(found, expected)
        numpy.testing.assert_array_equal(model.predict((x for x, _ in self.batches()), verbose=0),
                                         model.predict(self.x, verbose=0))
        numpy.testing.assert_array_equal(model.predict(iter(self.batches()), verbose=0),
                                         model.predict(self.x, verbose=0))

    def test_validation_of_an_iterable(self):
        model = compiled(tessera)
        expected = compiled(tessera).fit(self.x, self.y, epochs=2, verbose=0, shuffle=False,
                                         validation_data=(self.x, self.y)).history
        found = model.fit(self.x, self.y, epochs=2, verbose=0, shuffle=False,
                          validation_data=[(self.x, self.y)][0]).history
        self.assertEqual(found, expected)
        weighted = model.fit(self.x, self.y, verbose=0, validation_freq=[2], epochs=2,
                             validation_data=(self.x, self.y, numpy.ones(96, "float32"))).history
        self.assertEqual(len(weighted["val_loss"]), 1)

    def test_arrays_of_dlpack_are_not_copied(self):
        x = DlpackOnly(self.x)
        before = sys.getrefcount(self.x)
        self.assertEqual(losses((x, self.y), batch_size=32, epochs=2), self.expected)
        self.assertEqual(x.exports, 1)
        # Nothing holds the array any more.
        gc.collect()
        self.assertEqual(sys.getrefcount(self.x), before)

    def test_any_strides_and_dtypes(self):
        for name, x in {"Fortran's order": numpy.asfortranarray(self.x),
                        "every second column": numpy.repeat(self.x, 2, axis=1)[:, ::2],
                        "reversed twice": numpy.ascontiguousarray(self.x[::-1])[::-1],
                        "big-endian": self.x.astype(">f4"),
                        "read-only": numpy.frombuffer(self.x.tobytes(), "float32").reshape(96, 4),
                        "float64": self.x.astype("float64")}.items():
            for dtype in ("int64", "int32", "uint8", "uint16", "int8"):
                with self.subTest(x=name, y=dtype):
                    found = losses((x, self.y.astype(dtype)), batch_size=32, epochs=2)
                    self.assertEqual(found, self.expected)

    def test_results_are_arrays_that_outlive_the_model(self):
        model = compiled(tessera)
        found = model.predict(self.x, verbose=0)
        copy = found.copy()
        kernel = model.weights[0]
        del model
        gc.collect()
        self.assertEqual(found.dtype, "float32")
        numpy.testing.assert_array_equal(found, copy)
        self.assertEqual(kernel.numpy().shape, (4, 8))

    def test_other_values_are_type_errors_of_one_line(self):
        model = compiled(tessera)
        for x in (3, "text", [[1.0, 2.0, 3.0, 4.0]], numpy.array(["a", "b"]),
                  numpy.array([object()])):
            with self.subTest(x=x), self.assertRaises(TypeError) as caught:
                model.predict(x, verbose=0)
            self.assertNotIn("\n", str(caught.exception))
            self.assertIn("Received", str(caught.exception))
        for call in (model.predict, model.fit):
            with self.assertRaisesRegex(ValueError, "at least one input x"):
                call(None, verbose=0)
        with self.assertRaisesRegex(ValueError, "a batch is x"):
            model.fit([(1, 2, 3, 4)].__iter__(), verbose=0)
        with self.assertRaisesRegex(ValueError, "yields its labels"):
            model.fit(iter(self.batches()), self.y, verbose=0)
        with self.assertRaisesRegex(ValueError, "at least one batch"):
            model.fit(iter([]), verbose=0)

    def test_weights_of_rows_and_classes(self):
        half = numpy.where(self.y == 1, 0.5, 1.0).astype("float32")
        by_row = losses((self.x, self.y), sample_weight=half, epochs=2)
        by_class = losses((self.x, self.y), class_weight={0: 1.0, 1: 0.5}, epochs=2)
        self.assertEqual(by_row, by_class)
        self.assertNotEqual(by_row, losses((self.x, self.y), epochs=2))


if __name__ == "__main__":
    unittest.main()
