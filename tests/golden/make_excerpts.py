"""Writes excerpts/: the real data of the first ten steps of TensorFlow's and Keras' traces.

mnist/ has the first 1280 training images and 16 test images, in MNIST's format (by Yann LeCun and
Corinna Cortes, CC BY-SA 3.0). Reviews are stored only as counts of the vocabulary's words, for the
first 640 rows in the order of datasets::imdb(): no text can be recovered.

Run it in this folder: python3 make_excerpts.py FOLDER, where FOLDER is $TESSERA_DATA.
"""

import gzip
import json
import pathlib
import re
import struct
import sys
import tarfile

DATA = pathlib.Path(sys.argv[1])
OUT = pathlib.Path("excerpts")
# TensorFlow's lower() and split() know ASCII only.
PUNCTUATION = re.compile(rb'[!"#$%&()*+,\-./:;<=>?@\[\\\]^_`{|}~\']')
ROWS = 640


def write(name, shape, data):
    head = struct.pack(f">BBBB{len(shape)}I", 0, 0, 8, len(shape), *shape)
    path = OUT / f"{name}.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(head + data, 9, mtime=0))


def digits(name, shape, count):
    """Returns the first `count` entries of an MNIST file."""
    data = gzip.decompress((DATA / "mnist" / f"{name}.gz").read_bytes())[4 + 4 * len(shape):]
    bytes_of_one = len(data) // shape[0]
    write(f"mnist/{name}", (count, *shape[1:]), data[:count * bytes_of_one])


def reviews():
    texts = {}
    with tarfile.open(DATA / "imdb/aclImdb_v1.tar.gz") as archive:
        for member in archive:
            if re.fullmatch(r"aclImdb/train/(neg|pos)/[^/]+\.txt", member.name):
                texts[member.name] = archive.extractfile(member).read()
    names = sorted(texts)
    return [(texts[name], "/pos/" in name)
            for name in (names[i * 7919 % len(names)] for i in range(ROWS))]


def check(row, counts, golden):
    """Checks that weighted counts equal TensorFlow's."""
    for column, count in enumerate(counts):
        expected = golden["sample_rows"][str(row)].get(str(column), 0)
        assert abs(count * golden["idf"][column] - expected) < 1e-5 * max(1, expected)


digits("train-images-idx3-ubyte", (60000, 28, 28), 1280)
digits("train-labels-idx1-ubyte", (60000,), 1280)
digits("t10k-images-idx3-ubyte", (10000, 28, 28), 16)
digits("t10k-labels-idx1-ubyte", (10000,), 16)

words = pathlib.Path("imdb_vocabulary.txt").read_bytes().split(b"\n")[:-1]
columns = {word: column for column, word in enumerate(words)}
golden = json.loads(pathlib.Path("imdb_text.json").read_text())
table, labels = bytearray(), bytearray()
for row, (text, positive) in enumerate(reviews()):
    counts = [0] * len(words)
    for word in PUNCTUATION.sub(b"", text.lower()).split():
        counts[columns.get(word, 0)] += 1
    if str(row) in golden["sample_rows"]:
        check(row, counts, golden)
    table += struct.pack(f">{len(counts)}H", *counts)
    labels.append(positive)
write("imdb-counts-idx3-ubyte", (ROWS, len(words), 2), bytes(table))
write("imdb-labels-idx1-ubyte", (ROWS,), bytes(labels))
