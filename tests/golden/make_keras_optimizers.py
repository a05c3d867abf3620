"""Writes keras_optimizers.json: optimizers and learning-rate schedules of Keras on TensorFlow.

ScheduleFreeAdamW's results are those of Keras on JAX: on TensorFlow its update reads the new
momentum in place of the old one.

Made with keras 3.15.1, tensorflow-cpu 2.21.0, jax 0.10.2 and numpy 2.4.6 from PyPI. Run it in this
folder: python3 make_keras_optimizers.py
"""

import contextlib
import json
import os
import subprocess
import sys

os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(23)
schedules = keras.optimizers.schedules

STEPS, MARKS = 10, (1, 6, 10)
SHAPES = {"kernel": (6, 4), "bias": (4,), "table": (8, 2), "filter": (2, 3, 4),
          "window": (3, 1, 2, 3)}


def numbers(array):
    """Returns the shortest decimals of an array, in row-major order."""
    return [float(str(x)) for x in np.asarray(array, np.float32).ravel()]


def normal(shape):
    return rng.normal(0, 1, shape).astype(np.float32)


FIRST = {name: normal(shape) for name, shape in SHAPES.items()}
# The last rows are small enough that epsilon matters.
ROWS = np.array([1, 1, 1e-1, 1e-2, 1e-4, 1e-6], np.float32).reshape(6, 1)
GRADIENTS = [
    {name: normal(shape) * (ROWS if name == "kernel" else np.float32(0.3))
     for name, shape in SHAPES.items()}
    for _ in range(STEPS)
]
# The loss does not depend on this weight in every step.
GRADIENTS[4]["table"] = None


def step_gradients(step, spoiled):
    """Returns a step's gradients; in a spoiled step the kernel's last element is not finite."""
    gradients = dict(GRADIENTS[step])
    if step in spoiled:
        gradients["kernel"] = gradients["kernel"].copy()
        gradients["kernel"][-1, -1] = spoiled[step]
    return [None if g is None else keras.ops.convert_to_tensor(g) for g in gradients.values()]


def optimizer_case(made, exclude=None, constrained=(), finalize=False, spoiled=None):
    """Runs ten steps; returns the values of all variables after the marked ones."""
    several = isinstance(made, keras.optimizers.MultiOptimizer)
    with keras.name_scope("dense") if several else contextlib.nullcontext():
        variables = [keras.Variable(value, name=key) for key, value in FIRST.items()]
    for variable in variables:
        if variable.name in constrained:
            variable.constraint = keras.constraints.NonNeg()
    if exclude:
        made.exclude_from_weight_decay(
            var_list=[v for v in variables if v.name in exclude.get("var_list", ())],
            var_names=exclude.get("var_names"))
    serialized = keras.optimizers.serialize(made)
    after, rates, scales = [], [], []
    for step in range(STEPS):
        if not several:
            rates.append(float(made.learning_rate))
        made.apply(step_gradients(step, spoiled or {}), variables)
        if spoiled:
            scales.append(float(made.dynamic_scale))
        if step + 1 in MARKS:
            after.append([numbers(v.numpy()) for v in variables])
    if finalize:
        made.finalize_variable_values(variables)
        after[-1] = [numbers(v.numpy()) for v in variables]
    case = {"serialized": serialized, "after": after, "iterations": int(made.iterations)}
    if rates:
        case["rates"] = rates
    if spoiled:
        case["spoiled"] = {step: str(value) for step, value in spoiled.items()}
        case["scales"] = scales
    if exclude:
        case["exclude"] = exclude
    if constrained:
        case["constrained"] = list(constrained)
    if finalize:
        case["finalize"] = True
    return case


def made_schedules():
    return [
        schedules.ExponentialDecay(0.1, 7, 0.5),
        schedules.ExponentialDecay(0.1, 7, 0.5, staircase=True),
        schedules.CosineDecay(0.1, 20),
        schedules.CosineDecay(0.1, 20, alpha=0.2),
        schedules.CosineDecay(0.01, 20, alpha=0.1, warmup_target=0.1, warmup_steps=8),
        schedules.CosineDecayRestarts(0.1, 5),
        schedules.CosineDecayRestarts(0.1, 5, t_mul=1.0, m_mul=0.8, alpha=0.1),
        schedules.CosineDecayRestarts(0.1, 4, t_mul=1.5, m_mul=0.5, name="warm"),
        schedules.PiecewiseConstantDecay([3, 8, 20], [0.1, 0.05, 0.02, 0.01]),
        schedules.PolynomialDecay(0.1, 12),
        schedules.PolynomialDecay(0.1, 12, end_learning_rate=0.01, power=2.0),
        schedules.PolynomialDecay(0.1, 12, end_learning_rate=0.01, power=0.5, cycle=True),
        schedules.InverseTimeDecay(0.1, 6, 0.5),
        schedules.InverseTimeDecay(0.1, 6, 0.5, staircase=True),
    ]


def schedule_case(made):
    steps = list(range(0, 46)) + [60, 75, 100, 155, 315, 1000, 1000000]
    values = [float(made(tf.constant(step, tf.int64))) for step in steps]
    return {"serialized": schedules.serialize(made), "steps": steps, "values": values}


EVERY = {"weight_decay": 0.1, "global_clipnorm": 2.0, "use_ema": True, "ema_momentum": 0.8,
         "ema_overwrite_frequency": 2, "loss_scale_factor": 4.0, "gradient_accumulation_steps": 3}


def optimizers():
    cases = []

    def add(name, options=None, **more):
        made = getattr(keras.optimizers, name)(**(options or {}))
        cases.append(optimizer_case(made, **more))

    own = [
        ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
        ("SGD", {"learning_rate": 0.1}),
        ("Adam", {"learning_rate": 0.01, "amsgrad": True, "beta_2": 0.6}),
        ("Adam", {"learning_rate": 0.01, "epsilon": 1e-3}),
        ("AdamW", {"learning_rate": 0.01}),
        ("RMSprop", {}), ("RMSprop", {"learning_rate": 0.01, "rho": 0.8, "momentum": 0.7}),
        ("RMSprop", {"learning_rate": 0.01, "centered": True}),
        ("RMSprop", {"learning_rate": 0.01, "momentum": 0.5, "epsilon": 1e-3, "centered": True}),
        ("Adagrad", {}),
        ("Adagrad", {"learning_rate": 0.1, "initial_accumulator_value": 0.0, "epsilon": 1e-4}),
        ("Adadelta", {"learning_rate": 1.0}),
        ("Adadelta", {"learning_rate": 0.5, "rho": 0.8, "epsilon": 1e-3}),
        ("Adamax", {}), ("Adamax", {"learning_rate": 0.01, "beta_1": 0.8, "beta_2": 0.9}),
        ("Nadam", {}), ("Nadam", {"learning_rate": 0.01, "beta_1": 0.8, "beta_2": 0.9}),
        ("Lion", {}), ("Lion", {"learning_rate": 0.01, "beta_1": 0.7, "beta_2": 0.8}),
        ("Lamb", {}), ("Lamb", {"learning_rate": 0.02, "beta_1": 0.8, "beta_2": 0.9,
                                "epsilon": 1e-3}),
        ("Adafactor", {}),
        ("Adafactor", {"learning_rate": 0.5, "beta_2_decay": -0.5, "epsilon_1": 1e-3,
                       "epsilon_2": 0.9, "clip_threshold": 0.6, "relative_step": False}),
        ("Ftrl", {}),
        ("Ftrl", {"learning_rate": 0.1, "learning_rate_power": -0.3,
                  "initial_accumulator_value": 0.0, "l1_regularization_strength": 0.2,
                  "l2_regularization_strength": 0.1,
                  "l2_shrinkage_regularization_strength": 0.05, "beta": 0.3}),
        ("Muon", {}),
        ("Muon", {"learning_rate": 0.02, "weight_decay": None, "exclude_layers": ["ab.e$"],
                  "muon_a": 3.0, "muon_b": -4.0, "muon_c": 1.8, "adam_lr_ratio": 0.3,
                  "momentum": 0.8, "ns_steps": 3, "nesterov": False, "rms_rate": None,
                  "adam_beta_1": 0.8, "adam_beta_2": 0.9, "adam_weight_decay": 0.2,
                  "epsilon": 1e-3}),
    ]
    for name, options in own:
        add(name, options)
    for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Nadam",
                 "Lion", "Lamb", "Adafactor", "Ftrl", "Muon"):
        # With a low rate Ftrl's first weights would be differences of much larger numbers.
        rate = 1.0 if name == "Ftrl" else 0.05
        add(name, {"learning_rate": rate, **EVERY}, exclude={"var_names": ["bias"]})
    for name, rate in (("SGD", 0.1), ("Adam", 0.01)):
        base = {"learning_rate": rate}
        add(name, {**base, "clipnorm": 1.0})
        add(name, {**base, "clipnorm": 1000.0})
        add(name, {**base, "clipvalue": 0.2})
        add(name, {**base, "global_clipnorm": 1.5})
        add(name, {**base, "global_clipnorm": 1000.0})
        add(name, {**base, "weight_decay": 0.1})
        add(name, {**base, "weight_decay": 0.1},
            exclude={"var_list": ["table"], "var_names": ["bi", "^fil.*r"]})
        add(name, {**base, "use_ema": True}, finalize=True)
        add(name, {**base, "use_ema": True, "ema_momentum": 0.7, "ema_overwrite_frequency": 3})
        add(name, {**base, "loss_scale_factor": 1024.0})
        add(name, {**base, "gradient_accumulation_steps": 3})
        add(name, {**base, "gradient_accumulation_steps": 2, "use_ema": True,
                   "ema_momentum": 0.6}, finalize=True)
        add(name, {**base, "clipnorm": 0.5, "gradient_accumulation_steps": 2})
        add(name, base, constrained=["kernel", "bias"])
        add(name, {**base, "use_ema": True, "ema_momentum": 0.5, "ema_overwrite_frequency": 2,
                   "gradient_accumulation_steps": 2}, constrained=["kernel"])
    for made in made_schedules():
        add("SGD", {"learning_rate": made})
    warm = schedules.CosineDecay(0.0, 6, warmup_target=0.05, warmup_steps=3)
    add("Adam", {"learning_rate": warm, "weight_decay": 0.2, "gradient_accumulation_steps": 2})
    falling = schedules.ExponentialDecay(0.05, 3, 0.5)
    for name in ("Lion", "Lamb", "Adafactor", "Ftrl", "Muon"):
        add(name, {"learning_rate": falling, "weight_decay": 0.1, "clipnorm": 1.5})
    on_jax = subprocess.run([sys.executable, __file__, "schedule_free"], check=True,
                            env={**os.environ, "KERAS_BACKEND": "jax"}, stdout=subprocess.PIPE)
    return cases + json.loads(on_jax.stdout) + wrappers()


def schedule_free():
    made = keras.optimizers.ScheduleFreeAdamW
    falling = schedules.ExponentialDecay(0.05, 3, 0.5)
    return [
        optimizer_case(made()),
        optimizer_case(made(0.02, beta_1=0.8, beta_2=0.9, epsilon=1e-3, warmup_steps=4)),
        optimizer_case(made(0.05, **EVERY), exclude={"var_names": ["bias"]}),
        optimizer_case(made(falling, weight_decay=0.1, clipnorm=1.5)),
    ]


def wrappers():
    made = keras.optimizers
    spoiled = {1: np.inf, 3: np.nan, 8: -np.inf}
    ema = {"use_ema": True, "ema_momentum": 0.7}
    growing = {"initial_scale": 8.0, "dynamic_growth_steps": 2}
    several = made.OptimizerMap(
        made.SGD(0.1, momentum=0.9, **ema),
        {"dense/kernel": made.Adam(schedules.ExponentialDecay(0.05, 3, 0.5), clipnorm=0.5),
         ".*/(bias|fil.er)": made.Lamb(0.02, weight_decay=0.1, gradient_accumulation_steps=2)})
    again = made.SGD(0.1)
    return [
        optimizer_case(made.LossScaleOptimizer(made.SGD(1.0), **growing), spoiled=spoiled),
        optimizer_case(
            made.LossScaleOptimizer(made.Adam(0.01, global_clipnorm=1.0, **ema), **growing,
                                    name="scaled"), spoiled=spoiled, finalize=True),
        optimizer_case(made.LossScaleOptimizer(made.SGD(100.0))),
        optimizer_case(made.MultiOptimizer(several), finalize=True),
        optimizer_case(made.MultiOptimizer(
            made.OptimizerMap(again, {"dense/kernel": again, "nothing": made.Adam()}),
            loss_scale_factor=4.0, name="many")),
    ]


def main():
    parts = {
        "made_with": {"keras": keras.__version__, "tensorflow": tf.__version__},
        "marks": MARKS,
        "shapes": SHAPES,
        "first": {name: numbers(value) for name, value in FIRST.items()},
        "gradients": [{name: None if g is None else numbers(g) for name, g in step.items()}
                      for step in GRADIENTS],
        "cases": optimizers(),
        "schedules": [schedule_case(made) for made in made_schedules()],
    }
    rows = []
    for key, value in parts.items():
        if isinstance(value, list):
            lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in value)
            rows.append(f'"{key}":[\n{lines}\n]')
        else:
            rows.append(f'"{key}":{json.dumps(value, separators=(",", ":"))}')
    with open("keras_optimizers.json", "w", encoding="utf-8") as out:
        out.write("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["schedule_free"]:
        print(json.dumps(schedule_free()))
    else:
        main()
