"""Writes keras_text.json: TextVectorization and StringLookup of Keras on TensorFlow.

Made with keras 3.15.1, tensorflow-cpu 2.21.0 and numpy 2.4.6 from PyPI. Run it in this folder:
python3 make_keras_text.py

Texts are written in hexadecimal because some are not UTF-8.
"""

import json
import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf

from keras_golden import compact, write

L = keras.layers
CORPUS = [
    "The quick brown fox jumps over the lazy dog.",
    "the LAZY dog sleeps; the fox doesn't!",
    "A fox, a dog & a cat: (friends) -- or not?",
    "quick quick QUICK \"brown\" [bear] {cub} <br /><br />",
    "naïve café déjà-vu ÀÉ … don’t stop",
    "",
    "   \t\n ",
    "[UNK] unk [UNK]",
]
TRICKY = [
    "It's GREAT -- really, GREAT!!! the fox",
    "naïve CAFÉ Àé … don’t".encode(),
    b"",
    b"  \t\r\n\x0b\x0c ",
    b"the\x0bfox\x0cdog\x1ca\x1db\x85c the",
    "fox\u00a0dog the\u3000lazy \u2003 a".encode(),
    b"fox\x00dog the \x00 \x00\x00 a",
    b"bad \xff\xfe fox\xc3 \xe2\x82 the!\xed\xa0\x80 \xf0\x9f\x98 a",
    b"!!! ... ,;: '",
    b"[UNK] unk the the the THE",
    "\U0001f600 fox \U0001f600\ufffd dog".encode(),
    b"fox " * 40,
    bytes(range(1, 128)) + b" f!o\"x d#o$g f%o&x d'o(g f)o*x d+o,g f-o.x d/o:g f;o<x d=o>g f?o@x "
    b"d[o\\g f]o^x d_o`g f{o|x d}o~g",
]
CHARACTERS = [
    b"aAbB", "é€\U0001f600".encode(), b"a\xffb", b"\xe2\x82", b"\xe2\x82a", b"\xc0\xaf",
    b"\xe0\x80\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf0\x9f\x98", b"\x80\x80",
    b"a\x00b", b"\xef\xbb\xbfa", b"\xef\xbf\xbe", b"\xf8\x88\x80\x80\x80", b"\xfe",
    b"\xf0\x80\x80\x80", b"\xe2\x28\xa1", b"\xc3", b"", b" \n!",
]


def text(value):
    data = value.encode() if isinstance(value, str) else bytes(value)
    return data.hex()


def texts(values):
    return [text(value) for value in values]


def tokens_by_index(layer):
    """Returns the vocabulary as bytes: get_vocabulary() fails for tokens that are not UTF-8."""
    lookup = getattr(layer, "_lookup_layer", layer)
    keys, values = lookup.lookup_table.export()
    return texts(token for _, token in sorted(zip(values.numpy().tolist(), keys.numpy())))


def vectorization_case(corpus=CORPUS, inputs=TRICKY, **options):
    layer = L.TextVectorization(**options)
    given = "vocabulary" in options
    if not given:
        layer.adapt(tf.constant(corpus))
    lookup = layer._lookup_layer
    output = layer(tf.constant(inputs)[:, None])
    config = json.loads(json.dumps(layer.get_config()))
    config["dtype"] = "float32"
    case = {"config": config, "corpus": None if given else texts(corpus), "inputs": texts(inputs),
            "tokens": tokens_by_index(layer), "size": layer.vocabulary_size(),
            "output": compact(output.numpy())}
    if options.get("output_mode") == "tf_idf":
        case["idf"] = compact(lookup.idf_weights_const.numpy()[:layer.vocabulary_size()])
    return case


def vectorization_cases():
    cases = []
    standards = [None, "lower", "strip_punctuation", "lower_and_strip_punctuation"]
    for standardize in standards:
        cases.append(vectorization_case(standardize=standardize))
        cases.append(vectorization_case(standardize=standardize, split="character",
                                        output_mode="count", inputs=TRICKY[:10]))
        cases.append(vectorization_case(standardize=standardize, split=None))
    for mode in ["multi_hot", "count", "tf_idf"]:
        for options in [{}, {"max_tokens": 6}, {"max_tokens": 50, "pad_to_max_tokens": True},
                        {"max_tokens": 6, "pad_to_max_tokens": True}, {"ngrams": 2},
                        {"ngrams": (2, 3), "max_tokens": 12}, {"split": None}]:
            cases.append(vectorization_case(output_mode=mode, **options))
    for options in [{"output_sequence_length": 4}, {"output_sequence_length": 60, "max_tokens": 5},
                    {"ngrams": 2}, {"ngrams": (3, 1)}, {"ngrams": 2, "output_sequence_length": 5},
                    {"max_tokens": 3}, {"max_tokens": 100, "pad_to_max_tokens": True},
                    {"split": None, "output_sequence_length": 3}, {"split": None, "ngrams": 1}]:
        cases.append(vectorization_case(**options))
    for split in ["character", "whitespace"]:
        cases.append(vectorization_case(standardize=None, split=split, corpus=CHARACTERS,
                                        inputs=CHARACTERS))
    words = ["fox", "dog", "the", "café", "dont"]
    for options in [{"vocabulary": words}, {"vocabulary": ["", "[UNK]", *words]},
                    {"vocabulary": words, "output_mode": "count"},
                    {"vocabulary": words, "output_mode": "multi_hot", "max_tokens": 9,
                     "pad_to_max_tokens": True},
                    {"vocabulary": words, "output_mode": "tf_idf",
                     "idf_weights": [0.5, 0.25, 1.5, 2.0, 0.1]},
                    {"vocabulary": ["[UNK]", *words], "output_mode": "tf_idf",
                     "idf_weights": [9.0, 0.5, 0.25, 1.5, 2.0, 0.1]}]:
        cases.append(vectorization_case(**options))
    return cases


WORDS = ["a", "bb", "ccc", "dé"]
TOKENS = [["a", "zz", "bb"], ["", "dé", "ccc"], ["[UNK]", "a", "a"], ["hello", "w" * 70, "ccc"]]


def lookup_case(inputs, adapt=None, **options):
    layer = L.StringLookup(**options)
    if adapt is not None:
        layer.adapt(tf.constant(adapt))
    output = layer(tf.constant(inputs)).numpy()
    config = json.loads(json.dumps(layer.get_config()))
    config["dtype"] = "float32"
    case = {"config": config, "vocabulary": [str(x) for x in layer.get_vocabulary()],
            "tokens": [str(x) for x in layer.get_vocabulary(include_special_tokens=False)],
            "inputs": inputs, "adapt": adapt}
    if options.get("invert"):
        case["output"] = [x.decode() for x in output.ravel()]
    else:
        case["output"] = compact(output)
    return case


def lookup_cases():
    cases = []
    for mask in [None, "", "a!"]:
        for count in [1, 3]:
            for inputs in [TOKENS, TOKENS[3], [[x] for x in TOKENS[0]]]:
                cases.append(lookup_case(inputs, vocabulary=WORDS, mask_token=mask,
                                         num_oov_indices=count))
    for mode in ["one_hot", "multi_hot", "count", "tf_idf"]:
        for extra in [{}, {"mask_token": ""}, {"num_oov_indices": 2},
                      {"max_tokens": 9, "pad_to_max_tokens": True, "mask_token": "a!"}]:
            options = {"output_mode": mode, **extra}
            if mode == "tf_idf":
                options["idf_weights"] = [0.25, 0.75, 0.6, 0.4]
            cases.append(lookup_case(TOKENS, vocabulary=WORDS, **options))
            cases.append(lookup_case(TOKENS[0], vocabulary=WORDS, **options))
            cases.append(lookup_case([["bb"], ["q"]], vocabulary=WORDS, **options))
    known = [["a", "ccc"], ["dé", "bb"]]
    cases.append(lookup_case(known, vocabulary=WORDS, num_oov_indices=0))
    cases.append(lookup_case([*known, ["", "a"]], vocabulary=WORDS, num_oov_indices=0,
                             mask_token=""))
    corpus = [["x", "y", "x"], ["z", "y", ""], ["[UNK]", "q", "x"]]
    for options in [{}, {"mask_token": ""}, {"max_tokens": 3}, {"output_mode": "tf_idf"},
                    {"output_mode": "tf_idf", "num_oov_indices": 2, "max_tokens": 5},
                    {"output_mode": "count", "max_tokens": 10, "pad_to_max_tokens": True}]:
        cases.append(lookup_case(corpus, adapt=corpus, **options))
        cases.append(lookup_case(corpus, adapt=[x for row in corpus for x in row], **options))
    for options in [{}, {"mask_token": ""}, {"mask_token": "m", "num_oov_indices": 2},
                    {"oov_token": "?"}, {"num_oov_indices": 0}]:
        cases.append(lookup_case([[0, 1, 2], [3, 4, 5], [6, 99, -1]], vocabulary=WORDS,
                                 invert=True, **options))
    return cases


def hash_cases():
    rng = np.random.default_rng(7)
    cases = []
    for size in [*range(0, 70), 95, 127, 128, 129, 191, 192, 193, 1000]:
        data = rng.integers(0, 256, size, dtype=np.uint8).tobytes()
        bucket = tf.strings.to_hash_bucket_fast([data], (1 << 62) + 57).numpy()[0]
        cases.append([text(data), str(bucket)])
    return cases


write("keras_text.json", {
    "vectorization": vectorization_cases(),
    "lookup": lookup_cases(),
    "hash": hash_cases(),
})
