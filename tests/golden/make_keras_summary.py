"""Writes keras_summary.json: the output of keras.Model.summary() to a pipe and to terminals of 80
and 120 columns, as bytes. Run with Keras 3 on TensorFlow from PyPI:

    python make_keras_summary.py keras_summary.json
"""
import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios

MARK = "=== "


def sequential(layers, **options):
    import keras
    return keras.Sequential(layers, **options)


def mlp():
    from keras import layers
    return sequential([layers.Input((28, 28)), layers.Flatten(),
                       layers.Dense(128, activation="relu"), layers.Dropout(0.2),
                       layers.Dense(10)], name="mnist_mlp")


def unbuilt():
    from keras import layers
    return sequential([layers.Flatten(), layers.Dense(128)])


def frozen():
    from keras import layers
    return sequential([layers.Input((7,)), layers.Dense(1000, name="frozen", trainable=False),
                       layers.Dropout(0.5), layers.Dense(3)])


def long_names():
    from keras import layers
    return sequential([layers.Input((5,)),
                       layers.Dense(4, name="a_very_long_name_of_a_layer_that_does_not_fit_in"),
                       layers.Dense(1234567, name="wide")], name="[red]odd name")


def two_inputs():
    import keras
    from keras import layers
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    shared = layers.Dense(4, name="shared")
    both = layers.Add(name="add")([shared(a), shared(b)])
    left = layers.Dense(2, name="left")(both)
    right = layers.Dense(3, name="right")(layers.Concatenate(name="join")([both, a, b]))
    return keras.Model([a, b], [left, right], name="two")


def automatic_names():
    import keras
    from keras import layers
    x = keras.Input((3,))
    y = keras.Input((3,))
    return keras.Model([x, y], layers.Multiply()([layers.Dense(3)(x), layers.Dense(3)(y)]))


def chain():
    import keras
    from keras import layers
    x = keras.Input((6,), name="in")
    return keras.Model(x, layers.Dense(2, name="out")(layers.Reshape((2, 3))(x)), name="chain")


def nested():
    import keras
    from keras import layers
    block = sequential([layers.Input((4,)), layers.Dense(4, name="inner"),
                        layers.Activation("tanh", name="act")], name="block")
    x = keras.Input((4,), name="x")
    return keras.Model(x, layers.Add(name="sum")([block(x), x]), name="outer")


def compiled():
    model = mlp()
    model.compile(optimizer="adam", loss="mse")
    model.optimizer.build(model.trainable_variables)
    return model


CASES = {
    "mlp": (mlp, {}),
    "unbuilt": (unbuilt, {}),
    "frozen": (frozen, {"show_trainable": True}),
    "long_names": (long_names, {}),
    "long_names_60": (long_names, {"line_length": 60}),
    "two_inputs": (two_inputs, {}),
    "two_inputs_trainable": (two_inputs, {"show_trainable": True}),
    "automatic_names": (automatic_names, {}),
    "chain": (chain, {}),
    "nested": (nested, {}),
    "nested_expanded": (nested, {"expand_nested": True}),
    "compiled": (compiled, {}),
    "positions": (mlp, {"positions": [0.3, 0.7, 1.0]}),
    "layer_range": (mlp, {"layer_range": ["dense", "dropout"]}),
}


def child():
    import keras
    for name, (make, options) in CASES.items():
        keras.utils.clear_session()
        model = make()
        print(MARK + name, flush=True)
        model.summary(**options)
        sys.stdout.flush()
    print(MARK, flush=True)


def split(text):
    parts = text.split(MARK)[1:-1]
    return {part.split("\n", 1)[0].strip(): part.split("\n", 1)[1] for part in parts}


def environment():
    env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", TERM="xterm-256color")
    for name in ["COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "COLORTERM"]:
        env.pop(name, None)
    return env


def in_pipe():
    command = [sys.executable, __file__, "--child"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          env=environment(), check=True)
    return split(done.stdout.decode())


def in_terminal(columns):
    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen([sys.executable, __file__, "--child"], stdin=other, stdout=other,
                               stderr=subprocess.DEVNULL, env=environment())
    os.close(other)
    data = b""
    while True:
        try:
            piece = os.read(main, 65536)
        except OSError:
            break
        if not piece:
            break
        data += piece
    assert process.wait() == 0
    return split(data.decode().replace("\r\n", "\n"))


def main():
    forms = {"pipe": in_pipe(), "80": in_terminal(80), "120": in_terminal(120)}
    cases = {name: {form: texts[name] for form, texts in forms.items()} for name in CASES}
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump(cases, out, indent=1, ensure_ascii=False)
        out.write("\n")


if __name__ == "__main__":
    child() if sys.argv[1] == "--child" else main()
