"""Weights, layouts, meshes, plans, files and errors of the Python package."""
import contextlib
import io
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest

from package import classes, compiled, dense_json, language_json, loss_json, need

numpy = need("numpy", "python_api")
import tessera

LAYOUTS = {"mesh": {"batch": 2, "model": 2},
           "layouts": [{"match": "hidden/kernel", "layout": [None, "model"]}]}


class ApiTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.x, self.y = classes()

    def test_weights_by_path(self):
        model = compiled(tessera, layouts=LAYOUTS)
        self.assertEqual([weight.path for weight in model.weights],
                         ["hidden/kernel", "hidden/bias", "logits/kernel", "logits/bias"])
        kernel = model.weights[0]
        self.assertEqual((kernel.shape, kernel.dtype, kernel.layout, kernel.trainable),
                         ((4, 8), "float32", "(unsharded, model)", True))
        value = numpy.arange(32, dtype="float32").reshape(4, 8)
        model.set_weight("hidden/kernel", value)
        numpy.testing.assert_array_equal(model.get_weight("hidden/kernel"), value)
        numpy.testing.assert_array_equal(kernel.numpy(), value)
        kernel.assign(value.T.copy().T + 1)
        numpy.testing.assert_array_equal(model.get_weights()[0], value + 1)
        model.set_weights([0 * weight for weight in model.get_weights()])
        self.assertFalse(any(weight.any() for weight in model.get_weights()))
        self.assertEqual(model.count_params(), 4 * 8 + 8 + 8 * 2 + 2)
        with self.assertRaisesRegex(ValueError, "hidden/kernel"):
            model.get_weight("hiden/kernel")
        with self.assertRaisesRegex(tessera.ShapeError, r"\[hidden/kernel\].*\(4, 8\)"):
            model.set_weight("hidden/kernel", value.T)

    def test_a_copy_of_a_weight_is_ones_own(self):
        model = compiled(tessera)
        bias = model.get_weight("hidden/bias")
        bias += 1
        self.assertFalse(model.get_weight("hidden/bias").any())

    def test_layouts_as_dict_file_map_and_mesh(self):
        file = self.folder / "layouts.json"
        file.write_text(json.dumps(LAYOUTS), encoding="utf-8")
        mesh = tessera.create_mesh({"batch": 2, "model": 2})
        layouts = tessera.LayoutMap(mesh)
        layouts["hidden/kernel"] = [None, "model"]
        path = self.folder / "model.keras"
        compiled(tessera).save(path)
        for given in (LAYOUTS, str(file), file, layouts):
            model = tessera.load_model(path, layouts=given)
            self.assertEqual(model.weights[0].layout, "(unsharded, model)")
        without = {"layouts": LAYOUTS["layouts"]}
        model = tessera.load_model(path, layouts=without, mesh=mesh)
        self.assertEqual(model.weights[0].layout, "(unsharded, model)")
        with self.assertRaisesRegex(tessera.ConfigError, "mesh"):
            tessera.load_model(path, layouts=without)
        with self.assertRaises(TypeError):
            tessera.load_model(path, layouts=3)
        with self.assertRaisesRegex(tessera.LayoutError, "hiden"):
            tessera.load_model(path, layouts={**LAYOUTS, "layouts": [
                {"match": "hiden/kernel", "layout": [None, "model"]}]})

    def language_model(self):
        tessera.set_random_seed(5)
        model = tessera.model_from_json(language_json())
        # Logits that are far apart.
        model.set_weights([weight if weight.ndim == 1 else 4 * weight
                           for weight in model.get_weights()])
        return model

    def test_generate_continues_token_ids(self):
        model = self.language_model()
        prompts, expected = [[5, 8, 7], [2]], []
        for prompt in prompts:
            tokens = list(prompt)
            for _ in range(6):
                logits = model.predict(numpy.array([tokens]), verbose=0)
                tokens.append(int(logits[0, -1].argmax()))
            expected.append(tokens[len(prompt):])
        seen = []
        texts = model.generate(prompts, 6, on_token=lambda text, token: seen.append((text, token)))
        self.assertEqual([text.tokens for text in texts], expected)
        self.assertEqual([[token for text, token in seen if text == number]
                          for number in range(2)], expected)
        self.assertEqual([len(text.log_probabilities) for text in texts], [6, 6])
        self.assertAlmostEqual(texts[0].score, sum(texts[0].log_probabilities))
        self.assertFalse(texts[0].stopped)
        stopped = model.generate(prompts, 6, stop_tokens=[expected[0][0]])[0]
        self.assertEqual((stopped.tokens, stopped.stopped), (expected[0][:1], True))
        stopped = model.generate(prompts, 6, stop=lambda added: len(added) == 2)
        self.assertEqual([text.tokens for text in stopped], [tokens[:2] for tokens in expected])
        arrays = model.generate(numpy.array([prompts[0]], dtype="int32"), max_new_tokens=6)
        self.assertEqual(arrays[0].tokens, expected[0])
        model.compile(layouts={"mesh": {"batch": 2}})
        texts = model.generate([numpy.array(prompt) for prompt in prompts], 6)
        self.assertEqual([text.tokens for text in texts], expected)

    def test_generate_draws_and_searches(self):
        model = self.language_model()

        def drawn(**options):
            return [text.tokens for text in model.generate([[5], [5]], 12, **options)]

        first = drawn(temperature=3.0, top_k=9, top_p=0.9, seed=4)
        self.assertNotEqual(first[0], first[1])
        self.assertEqual(drawn(temperature=3.0, top_k=9, top_p=0.9, seed=4), first)
        self.assertNotEqual(drawn(temperature=3.0, top_k=9, top_p=0.9, seed=5), first)
        self.assertEqual(drawn(top_k=1), drawn())
        beams = model.generate([[5]], 6, num_beams=3, length_penalty=0.0)[0]
        self.assertAlmostEqual(beams.score, sum(beams.log_probabilities))
        self.assertTrue(all(token < 4 for token in model.generate([[5]], 6, vocabulary_size=4)[0]
                            .tokens))

    def test_generate_refuses_what_is_no_text(self):
        model = self.language_model()
        for tokens in ("abc", [5, 8], [["a"]], numpy.ones((1, 2)), numpy.ones(3, "int64"), 7):
            with self.assertRaisesRegex(TypeError, r"\[generate\] tokens are lists"):
                model.generate(tokens)
        with self.assertRaisesRegex(tessera.ConfigError, "temperature is positive"):
            model.generate([[5]], temperature=0.0)
        with self.assertRaisesRegex(tessera.ConfigError, "none in prompt 1"):
            model.generate([[5], []])

        def fail(added):
            raise KeyError(len(added))

        with self.assertRaises(KeyError):
            model.generate([[5]], stop=fail)

    def test_compile_keeps_the_layouts(self):
        model = compiled(tessera, layouts=LAYOUTS)
        model.compile("sgd", loss_json())
        self.assertEqual(model.weights[0].layout, "(unsharded, model)")
        model.compile("sgd", loss_json(), layouts={"mesh": {"batch": 2}})
        self.assertEqual(model.weights[0].layout, "(unsharded, unsharded)")

    def test_meshes(self):
        mesh = tessera.create_mesh({"batch": 4, "model": 2})
        self.assertEqual((mesh.dims, mesh.size), ({"batch": 4, "model": 2}, 8))
        self.assertEqual(mesh.local_devices[:2], ["cpu:0", "cpu:1"])
        self.assertEqual(mesh, tessera.create_mesh([("batch", 4), ("model", 2)]))
        self.assertEqual(mesh, tessera.create_mesh("batch=4,model=2"))
        self.assertNotEqual(mesh, tessera.create_mesh({"batch": 8}))
        distributed = tessera.create_distributed_mesh({"batch": 2}, device_type="cpu")
        self.assertEqual(distributed.size, 2)
        self.assertTrue(tessera.is_first_process(distributed))
        self.assertEqual(tessera.process_count(), 1)
        tessera.barrier(distributed)
        with self.assertRaises(tessera.MeshError):
            tessera.create_mesh({"batch": 2}, devices=["cpu:0"])
        with self.assertRaises(TypeError):
            tessera.create_mesh({"batch": "two"})

    def test_results_do_not_depend_on_the_mesh(self):
        values = [compiled(tessera, layouts=layouts)
                  .fit(self.x, self.y, epochs=3, verbose=0).history["loss"]
                  for layouts in (None, LAYOUTS, {"mesh": {"batch": 8}})]
        numpy.testing.assert_allclose(values[1:], [values[0]] * 2, rtol=0, atol=1e-6)

    def test_a_plan_of_a_step(self):
        model = compiled(tessera, layouts=LAYOUTS)
        plan = model.plan(self.x, self.y, batch_size=32)
        self.assertEqual(len(plan.peak_bytes), 4)
        self.assertGreater(plan.flops, 32 * 2 * 4 * 8)
        self.assertIn("hidden", str(plan))
        self.assertEqual(plan.to_dict()["mesh"], "batch=2,model=2")
        with self.assertRaisesRegex(tessera.Error, "fits in"):
            model.fit(self.x, self.y, memory_limit=10, verbose=0)

    def test_summary_is_printed_by_python(self):
        model = compiled(tessera, layouts=LAYOUTS)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            model.summary(show_layout=True)
        self.assertIn("hidden", out.getvalue())
        lines = []
        model.summary(print_fn=lines.append)
        self.assertEqual(len(lines), 1)
        self.assertIn("58", lines[0])

    def test_values_of_evaluate_and_steps(self):
        model = compiled(tessera)
        by_name = model.evaluate(self.x, self.y, verbose=0, return_dict=True)
        self.assertEqual(sorted(by_name), ["accuracy", "loss"])
        self.assertEqual(model.evaluate(self.x, self.y, verbose=0),
                         [by_name["loss"], by_name["accuracy"]])
        first = model.train_on_batch(self.x, self.y)
        second = model.train_on_batch(self.x, self.y, return_dict=True)
        self.assertLess(second["loss"], first[0])
        self.assertLess(model.test_on_batch(self.x, self.y)[0], second["loss"])
        self.assertEqual(model.optimizer.iterations, 2)
        numpy.testing.assert_allclose(model.predict_on_batch(self.x),
                                      model.predict(self.x, verbose=0), rtol=0, atol=1e-6)
        model.compile("sgd", loss_json())
        self.assertIsInstance(model.evaluate(self.x, self.y, verbose=0), float)

    def test_files_of_weights(self):
        model = compiled(tessera)
        for name in ("w.weights.h5", "w.safetensors"):
            model.save_weights(self.folder / name)
            other = tessera.model_from_json(model.to_json())
            other.load_weights(self.folder / name)
            for expected, found in zip(model.get_weights(), other.get_weights(), strict=True):
                numpy.testing.assert_array_equal(found, expected)
        with self.assertRaises(tessera.Error):
            model.save_weights(self.folder / "w.safetensors", overwrite=False)

    def test_training_goes_on_after_a_file(self):
        model = compiled(tessera)
        model.fit(self.x, self.y, verbose=0, shuffle=False)
        model.save(self.folder / "m.keras")
        again = tessera.load_model(self.folder / "m.keras")
        self.assertEqual(again.fit(self.x, self.y, verbose=0, shuffle=False).history,
                         model.fit(self.x, self.y, verbose=0, shuffle=False).history)
        uncompiled = tessera.load_model(self.folder / "m.keras", compile=False)
        self.assertIsNone(uncompiled.optimizer)
        with self.assertRaises(tessera.StateError):
            uncompiled.fit(self.x, self.y, verbose=0)

    def test_errors_are_of_pythons_classes_and_one_line(self):
        model = compiled(tessera)
        cases = [(OSError, tessera.FileError, lambda: tessera.load_model("/no/such.keras")),
                 (ValueError, tessera.ShapeError, lambda: model.predict(self.x[:, :3], verbose=0)),
                 (ValueError, tessera.ConfigError, lambda: model.compile("adamm", "mse")),
                 (ValueError, tessera.ConfigError,
                  lambda: model.fit(self.x, self.y, batch_size=0, verbose=0)),
                 (ValueError, tessera.ConfigError, lambda: tessera.model_from_json("{")),
                 (RuntimeError, tessera.StateError,
                  lambda: tessera.model_from_json(dense_json()).fit(self.x, self.y))]
        for base, kind, call in cases:
            with self.subTest(kind=kind), self.assertRaises(base) as caught:
                call()
            self.assertIs(type(caught.exception), kind)
            self.assertIsInstance(caught.exception, tessera.Error)
            self.assertNotIn("\n", str(caught.exception))
            self.assertRegex(str(caught.exception), r"^\[.*\] .*Received: ")
        error = pickle.loads(pickle.dumps(tessera.ShapeError("[a] b.")))
        self.assertEqual(str(error), "[a] b.")
        with self.assertRaises(TypeError):
            model.fit(self.x, self.y, epochs="three")
        with self.assertRaises(TypeError):
            model.compile(optimizer=object())

    def test_a_bar_of_a_fit_and_prints_keep_their_order(self):
        program = ("import tessera\nfrom package import classes, compiled\n"
                   "print('before')\ncompiled(tessera).fit(*classes(), verbose=2)\nprint('after')")
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                             cwd=os.path.dirname(os.path.abspath(__file__)), timeout=120, check=True)
        self.assertRegex(run.stdout, r"(?s)^before\n.*loss.*\nafter\n$")

    def test_types_are_described(self):
        stub = pathlib.Path(tessera.__file__).parent / "_tessera.pyi"
        if not stub.exists():
            self.skipTest("there is no stub beside the module")
        text = stub.read_text(encoding="utf-8")
        for name in ("class Model", "def fit(", "def load_model(", "def create_distributed_mesh("):
            self.assertIn(name, text)
        for name in tessera.__all__:
            self.assertTrue(getattr(tessera, name).__doc__, name)

    def test_the_module_as_a_program(self):
        run = subprocess.run([sys.executable, "-m", "tessera", "--version"], capture_output=True,
                             text=True, check=True)
        self.assertEqual(run.stdout, f"tessera {tessera.__version__}\n")
        run = subprocess.run([sys.executable, "-m", "tessera", "--cmake-dir"], capture_output=True,
                             text=True, check=False)
        folder = pathlib.Path(tessera.__file__).parent / "lib" / "cmake" / "tessera"
        self.assertEqual(run.stdout, f"{folder}\n" if folder.exists() else "")
        self.assertEqual(run.returncode, 0 if folder.exists() else 1)


if __name__ == "__main__":
    unittest.main()
