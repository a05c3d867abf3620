"""Writes small valid inputs for every fuzz target into FOLDER/TARGET/: make_seeds.py FOLDER"""
import bz2
import gzip
import io
import json
import lzma
import pathlib
import struct
import sys
import tarfile
import zipfile


def safetensors(tensors, metadata=None):
    """Returns a safetensors file. `tensors`: name -> (dtype, shape, bytes)."""
    header = {"__metadata__": metadata} if metadata else {}
    data = b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def gguf(tensors, values=(), version=3):
    """Returns a GGUF file. `tensors`: (name, extents, type, bytes); `values`: (key, type, bytes)."""
    def text(name):
        return struct.pack("<Q", len(name)) + name.encode()
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(values))
    for key, kind, content in values:
        head += text(key) + struct.pack("<I", kind) + content
    data = b""
    for name, extents, kind, content in tensors:
        head += text(name) + struct.pack(f"<I{len(extents)}Q", len(extents), *extents)
        head += struct.pack("<IQ", kind, len(data))
        data += content + bytes(-len(content) % 32)
    return head + bytes(-len(head) % 32) + data


def idx(shape):
    size = 1
    for extent in shape:
        size *= extent
    return bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + bytes(size)


def tar(files, mode, kind):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=kind) as archive:
        for name, content, entry in files:
            info = tarfile.TarInfo(name)
            info.type = entry
            info.size = len(content)
            info.linkname = "a" if entry in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
            archive.addfile(info, io.BytesIO(content))
    # Removes most of the padding, since shorter inputs mutate better.
    return bytes([mode]) + out.getvalue().rstrip(b"\0") + bytes(1024)


def npy(descr, shape, data, version=1):
    text = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n" % (descr, shape)
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode() + data


def archive(members, comment=b"", wide=False):
    """Returns a zip archive. `members`: (name, bytes, whether it is compressed)."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        for name, content, packed in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
            with made.open(info, "w", force_zip64=wide) as member:
                member.write(content)
        made.comment = comment
    return out.getvalue()


def piece(begin, end, shard=0):
    return {"shard": shard, "begin": begin, "end": end, "checksums": ["0123456789abcdef" * 2]}


def index(tensors, shards=1, state=None):
    return json.dumps({
        "format": "tessera checkpoint", "version": 1,
        "shards": [{"bytes": 100, "header_checksum": "ab" * 16}] * shards,
        "tensors": [{"name": name, "dtype": dtype, "shape": shape, "pieces": pieces}
                    for name, dtype, shape, pieces in tensors],
        "state": state}).encode()


def serialized(tree, found):
    """Collects everything with a class name in a tree, which may hold JSON as text."""
    if isinstance(tree, str) and tree.startswith("{") and '"class_name"' in tree:
        tree = json.loads(tree)
    if isinstance(tree, dict) and isinstance(tree.get("config"), dict) and "class_name" in tree:
        found.append(tree)
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        serialized(part, found)
    return found


def model_configs():
    """Yields the models that Keras wrote for the tests, and a Sequential of each kind of layer in
    them."""
    models, layers = [], {}
    for path in sorted((pathlib.Path(__file__).parent.parent / "golden").glob("**/*.json")):
        for part in serialized(json.loads(path.read_text()), []):
            if part["class_name"] in ("Functional", "Sequential"):
                models.append(part)
            elif part["config"].get("trainable") is not None:
                layers.setdefault(part["class_name"], part)
    for shape in ([None, 4], [None, 6, 4], [None, 4, 4, 2], [None, 4, 4, 4, 2]):
        start = {"class_name": "InputLayer", "config": {"batch_shape": shape, "name": "i"}}
        models += [{"class_name": "Sequential", "config": {"name": "m", "layers": [start, layer]}}
                   for layer in layers.values()]
    return [json.dumps(model).encode() for model in models]


def tokenizers():
    """Yields a tokenizer of each kind of the tests, with a small vocabulary, and a text."""
    golden = pathlib.Path(__file__).parent.parent / "golden/tokenizers.json"
    golden = json.loads(golden.read_text(encoding="utf-8"))
    for entry in golden["tokenizers"].values():
        tokenizer = entry["json"]
        model = tokenizer["model"]
        if isinstance(model["vocab"], list):
            model["vocab"] = model["vocab"][:40]
        else:
            # Without tokens that only merges make.
            model["vocab"] = {t: i for t, i in model["vocab"].items() if len(t) == 1 or i < 10}
        if "merges" in model:
            model["merges"] = []
        text = entry["cases"][0]["text"]
        yield json.dumps(tokenizer, ensure_ascii=False).encode() + b"\0" + text.encode()
    parts = {"added_tokens": [{"id": 1, "content": "<s>", "special": True, "lstrip": True}],
             "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}}
    for kind in ("normalizer", "pre_tokenizer", "decoder"):
        for entry in golden[kind + "s"]:
            yield json.dumps({**parts, kind: entry["config"]}).encode() + b"\0a <s> b1\xff"


def bmp(bits, size, palette, rows, compression=0):
    header = struct.pack("<IiiHHI20x", 40, *size, 1, bits, compression)
    data = 14 + len(header) + len(palette)
    return b"BM" + struct.pack("<III", data + len(rows), 0, data) + header + palette + rows


GIF = bytes.fromhex(
    "474946383961020002008100000a0b0c1415161e1f2028292a21f90401000002002c00000000020002004002"
    "040445e400003b")
FILE, FOLDER, LINK, HARD = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
PLAIN = [("a/", b"", FOLDER), ("a/b.txt", b"text", FILE), ("a/c.skip", b"x" * 600, FILE)]
LONG = [("d/" * 60 + "e" * 120, b"long", FILE)]
CRAFTED = [("a", b"", FILE), ("../b", b"", FILE), ("c", b"", LINK), ("d", b"", HARD)]

SEEDS = {
    "safetensors": [
        safetensors({}),
        safetensors({"a": ("F32", [2, 3], bytes(24)), "b/c": ("I64", [], bytes(8))}),
        safetensors({"w": ("BF16", [4], bytes(8)), "e": ("F64", [0, 3], b""),
                     "m": ("BOOL", [3], b"\0\1\0"), "f": ("F4", [2], b"\x12")},
                    {"format": "tessera"}),
    ],
    "gguf": [
        gguf([]),
        gguf([("a", [3, 2], 0, bytes(24)), ("b", [], 1, bytes(2)), ("c", [4], 30, bytes(8))],
             [("general.alignment", 4, struct.pack("<I", 32)), ("t", 8, struct.pack("<Q", 1) + b"x"),
              ("n", 9, struct.pack("<IQ", 8, 1) + struct.pack("<Q", 2) + b"ab"),
              ("m", 9, struct.pack("<IQ", 4, 2) + bytes(8)), ("y", 7, b"\1")]),
        gguf([("q", [32, 2], 8, bytes(68)), ("r", [64], 2, bytes(36)), ("s", [32], 3, bytes(20)),
              ("e", [0, 2], 0, b"")], version=2),
    ],
    "idx": [idx([0]), idx([5]), idx([2, 3, 4]), idx([1, 1, 1, 1, 1])],
    "archive": [tar(files, mode, kind)
                for files in (PLAIN, LONG, CRAFTED) for mode in (1, 3)
                for kind in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
                if not (files is LONG and kind == tarfile.USTAR_FORMAT)],
    "checkpoint_index": [
        index([]),
        index([("a", "F32", [], [piece([], [])]), ("e", "I64", [0, 2], [])], state={"step": 1}),
        index([("w", "F32", [4, 6], [piece([0, 0], [2, 6]), piece([2, 0], [4, 6], 1)])], 2,
              ["text", 1.5, None, True]),
        index([("w", "F64", [2, 2], [piece([r, c], [r + 1, c + 1]) for r in (0, 1)
                                     for c in (0, 1)])]),
    ],
    "layout_file": [json.dumps(file).encode() for file in (
        {"mesh": {"batch": 2, "model": 2}, "data": {"x": ["batch", None], "y": ["batch"]},
         "layouts": [{"match": "hidden/kernel", "layout": [None, "model"]}]},
        {"layouts": [{"match": ".*/bias", "layout": [["batch", "model"]], "use": [None],
                      "slots": ["batch"], "optional": True}], "on_multiple": "first"},
        {"mesh": {"batch": -1}, "data": {}, "layouts": []}, {},
        {"pipeline": {"stages": "model", "microbatches": 4, "schedule": "interleaved", "chunks": 2,
                      "split": ["a", "b", "c"]},
         "layouts": [{"match": "a/.*", "stage": 1},
                     {"match": "b", "layout": [None, "batch"], "stage": 3}]})],
    "model_config": model_configs(),
    "pipeline_schedule": [
        b"0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", b"0F0,,0I0,0W0\r\n1F0 , 1I0,1W0\r\n",
        b"0F0,3F0,3I0,3W0,0I0,0W0\n1F0,2F0,2I0,2W0,1I0,1W0\n",
        b"0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"],
    "npy": [npy("<f4", "(2, 3)", bytes(24)), npy("|u1", "()", b"x"), npy("<i8", "(0, 5)", b"", 2),
            npy("|b1", "(3,)", b"\0\1\0", 3), npy(">c16", "(1L,)", bytes(16)),
            npy("<U2", "(2, )", "ab\u20ac\0".encode("utf-32-le")), npy("|S3", "(2,)", b"ab\0cde"),
            npy("<u2", "(2, 2)", bytes(8)).replace(b"False", b"True ")],
    "csv": [bytes([block, 0]) + text for block in (0, 6, 200) for text in (
        b"a,b\n1,2.5\n-3,\n", b"n,\"t \"\"q\"\"\"\r\ntrue,\"x,\ny\"\r\nFalse,NA\r\n", b"1\n\nx",
        b"a,a,\n1e400,nan,inf\n", b"a,b\r1,\xc3\xa9\r\r9223372036854775808,\r")] +
           [bytes([6, bits]) + text for bits, text in (
               (1, b" a  b\n1 \t\"x y\"\n"), (2, b"#c \"\na,b\n1,2#d\n"), (4, b"a, \"b, c\"\n1, 2\n"),
               (8, b"a,b\n1\n"), (16, b"a\n1.234,5\n"), (32, b"a\n\xe9\n"), (64, b"a\n\x80\n"),
               (96, "\ufeffa\n\U0001f600\n".encode("utf-16-be")), (128, b"title\na\n1\n"))] +
           [bytes([6, 0]) + pack(b"a,b\n1,2\n") for pack in (gzip.compress, bz2.compress,
                                                           lzma.compress)] +
           [bytes([6, 0]) + archive([("a.csv", b"a,b\n1,2\n", packed)]) for packed in (0, 1)],
    "image": [bytes([mode]) + path.read_bytes() for mode in (0, 1, 2) for path in sorted(
        (pathlib.Path(__file__).parent.parent / "golden/pictures").glob("*.[!n]*"))] +
             [bytes([2]) + picture for picture in (
                 bmp(24, (2, 2), b"", bytes(16)), bmp(8, (3, -1), bytes(1024), b"\1\2\3\0"),
                 bmp(32, (1, 1), bytes.fromhex("0000ff0000ff0000ff000000"), bytes(4), 3), GIF)],
    "json_lines": [b'{"text": "a"}\n\n{"prompt": "a", "completion": "b"}\r\n',
                   json.dumps({"messages": [{"role": role, "content": "na\u00efve"} for role in (
                       "system", "user", "assistant")]}).encode()],
    "tokenizer": list(tokenizers()),
    "zip": [archive([]), archive([("config.json", b"{}", False)]),
            archive([("config.json", b"{}" * 500, True), ("assets/", b"", False),
                     ("assets/v.txt", b"a\nb\n", True), ("model.weights.h5", b"w" * 64, False)]),
            archive([("a", b"A", False), ("b", b"B" * 99, True)], b"a comment", True)],
    "predict_request": [json.dumps(body).encode() for body in (
        {"instances": ["a text", "na\u00efve"]},
        {"instances": [{"text": "a"}, {"text": "b"}], "signature_name": "serving_default"},
        {"instances": [[1, 2.5], [-3e4, 0]]},
        {"instances": [{"input": [[1], [2]]}]},
        {"inputs": ["a", "b"]}, {"inputs": {"text": ["a"]}}, {"inputs": [[1, 2]]},
        {"instances": [{"b64": "AGY="}, {"text": {"b64": "Yw=="}}]},
        {"instances": [{"text": [1, 2], "b": True}]}, {"inputs": {"text": ["a"], "b": [[1]]}},
        {"instances": [1, 2, 3]}, {"instances": []}, [])],
}

if len(sys.argv) != 2:
    sys.exit(__doc__)
for target, seeds in SEEDS.items():
    folder = pathlib.Path(sys.argv[1]) / target
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        (folder / f"seed-{number}").write_bytes(seed)
