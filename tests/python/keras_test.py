"""A model of Keras trains over a mesh with Keras' losses, and goes back to Keras bit for bit."""
import os
import tempfile
import unittest

from package import need

numpy = need("numpy", "python_keras")
keras = need("keras", "python_keras")
import tessera

LAYOUTS = {"mesh": {"batch": 4, "model": 2},
           "layouts": [{"match": "hidden/kernel", "layout": [None, "model"]},
                       {"match": "logits/kernel", "layout": ["model", None]}]}


def rows():
    random = numpy.random.default_rng(1)
    x = random.normal(size=(2048, 20)).astype("float32")
    return x, (x[:, :3].sum(1) > 0).astype("int64")


def keras_model():
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((20,)),
                              keras.layers.Dense(64, activation="relu", name="hidden"),
                              keras.layers.Dense(2, name="logits")])
    # Keras raises both to the step's power in float32, in which 1 - 0.999 is wrong by 5e-5; these are
    # exact.
    model.compile(keras.optimizers.Adam(1e-3, beta_1=0.875, beta_2=0.9921875),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["accuracy"])
    return model


class KerasTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def trained(self, layouts):
        """Returns Keras' model, ours on a mesh, and their histories of three epochs."""
        x, y = rows()
        theirs = keras_model()
        theirs.save(self.path("a.keras"))
        ours = tessera.load_model(self.path("a.keras"), layouts=layouts)
        options = {"batch_size": 64, "epochs": 3, "shuffle": False, "verbose": 0,
                   "validation_split": 0.25}
        return theirs, ours, theirs.fit(x, y, **options).history, ours.fit(x, y, **options).history

    def check_losses(self, layouts):
        theirs, ours, expected, found = self.trained(layouts)
        self.assertEqual(set(expected), set(found))
        for name, values in expected.items():
            numpy.testing.assert_allclose(found[name], values, rtol=0, atol=1e-6, err_msg=name)
        return theirs, ours

    def test_losses_on_a_mesh_are_those_of_keras(self):
        _, ours = self.check_losses(LAYOUTS)
        self.assertEqual([weight.layout for weight in ours.weights],
                         ["(unsharded, model)", "(model)", "(model, unsharded)", "(unsharded)"])

    def test_losses_on_one_device_are_those_of_keras(self):
        self.check_losses(None)

    def test_losses_of_data_parallelism_are_those_of_keras(self):
        self.check_losses({"mesh": {"batch": 8}})

    def test_keras_reads_what_was_trained_bit_for_bit(self):
        _, ours, _, _ = self.trained(LAYOUTS)
        ours.save(self.path("b.keras"))
        back = keras.saving.load_model(self.path("b.keras"))
        for expected, found in zip(ours.get_weights(), back.get_weights(), strict=True):
            self.assertEqual(expected.tobytes(), found.tobytes())
        self.assertEqual(int(back.optimizer.iterations.value), 3 * 24)
        x, y = rows()
        self.assertAlmostEqual(back.evaluate(x, y, verbose=0)[0],
                               ours.evaluate(x, y, verbose=0)[0], delta=1e-6)
        # What Keras read, it writes again for us with the same bits.
        back.save(self.path("c.keras"))
        again = tessera.load_model(self.path("c.keras"), layouts=LAYOUTS)
        for expected, found in zip(ours.get_weights(), again.get_weights(), strict=True):
            self.assertEqual(expected.tobytes(), found.tobytes())
        self.assertEqual(again.optimizer.iterations, 3 * 24)

    def test_compile_takes_objects_of_keras(self):
        x, y = rows()
        losses = []
        for optimizer in ("adam", keras.optimizers.Adam(), keras.optimizers.Adam(0.001).get_config()):
            keras.utils.set_random_seed(3)
            model = tessera.model_from_json(keras_model().to_json())
            model.set_weights(keras_model().get_weights())
            if isinstance(optimizer, dict):
                optimizer = {"class_name": "Adam", "config": optimizer}
            model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                          metrics=[keras.metrics.SparseCategoricalAccuracy(), "accuracy"],
                          mesh=tessera.create_mesh({"batch": 2}))
            history = model.fit(x, y, batch_size=512, shuffle=False, verbose=0).history
            self.assertEqual(sorted(history), ["accuracy", "loss", "sparse_categorical_accuracy"])
            losses.append(history["loss"])
        self.assertEqual(losses[0], losses[1])
        self.assertEqual(losses[0], losses[2])

    def test_a_schedule_of_keras_lowers_the_rate(self):
        x, y = rows()
        model = tessera.model_from_json(keras_model().to_json())
        model.compile(keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.5, 1, 0.5)),
                      keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        model.fit(x, y, batch_size=1024, verbose=0)
        self.assertEqual(model.optimizer.learning_rate, 0.125)
        with self.assertRaises(tessera.StateError):
            model.optimizer.learning_rate = 0.1

    def test_callbacks_of_keras_run(self):
        x, y = rows()
        model = tessera.model_from_json(keras_model().to_json())
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        seen = []
        stopping = keras.callbacks.EarlyStopping("loss", min_delta=10, patience=1,
                                                 restore_best_weights=True)
        history = model.fit(x, y, batch_size=512, epochs=9, verbose=0, callbacks=[
            keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(logs["loss"])),
            keras.callbacks.LearningRateScheduler(lambda epoch, rate: 0.25 / (1 + epoch)), stopping])
        self.assertEqual(len(history.epoch), 2)
        self.assertEqual(seen, history.history["loss"])
        self.assertEqual(model.optimizer.learning_rate, 0.125)

    def test_a_functional_model_takes_dicts(self):
        a, b = keras.Input((3,), name="a"), keras.Input((2,), name="b")
        joined = keras.layers.Concatenate()([a, b])
        outputs = {"p": keras.layers.Dense(1, name="p")(joined),
                   "q": keras.layers.Dense(2, name="q")(joined)}
        theirs = keras.Model([a, b], [outputs["p"], outputs["q"]])
        ours = tessera.model_from_json(theirs.to_json())
        ours.set_weights(theirs.get_weights())
        random = numpy.random.default_rng(2)
        data = {"a": random.normal(size=(32, 3)), "b": random.normal(size=(32, 2))}
        for expected, found in zip(theirs.predict(data, verbose=0), ours.predict(data, verbose=0),
                                   strict=True):
            numpy.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
        labels = {"q": random.normal(size=(32, 2)), "p": random.normal(size=(32, 1))}
        values = []
        for model in (theirs, ours):
            model.compile("sgd", {"p": "mse", "q": "mae"}, loss_weights={"p": 1.0, "q": 0.5})
            history = model.fit(data, labels, batch_size=8, epochs=2, shuffle=False, verbose=0)
            values.append(history.history["loss"])
        numpy.testing.assert_allclose(values[1], values[0], rtol=0, atol=1e-6)
        with self.assertRaisesRegex(ValueError, r'"aa".*"a"'):
            ours.predict({"aa": data["a"], "b": data["b"]}, verbose=0)


if __name__ == "__main__":
    unittest.main()
