"""Writes tokenizers.json and tokenizer.model: small tokenizers of every implemented kind, and what Hugging
Face's `tokenizers` and SentencePiece make of texts.

Made with tokenizers 0.23.3 and sentencepiece 0.2.3 from PyPI. Run it in this folder: python3 make_tokenizers.py
"""
import base64
import io
import json
import pathlib
import random
import struct

import sentencepiece
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)

HERE = pathlib.Path(__file__).parent
CORPUS = [
    "The quick brown fox jumps over the lazy dog, and the dog doesn't mind at all.",
    "A mesh is a grid of devices with named dimensions; a layout shards each axis of a tensor.",
    "In 2024, 1234567 tokens were read: 3.14 of them (or 42%) weren't known!",
    "Größe, Übermut und Straßenbahn: naïve café déjà vu. Ελληνικά γράμματα, русские буквы.",
    "中文字符和日本語のテキスト。한국어 문장. العربية हिन्दी",
    "def f(x):\n    return x * 2  # a comment\n\n\nprint(f(21))\t\tend",
    "I'll say it's what they've done; we're sure he'd agree. THE END.",
]
TEXTS = CORPUS + [
    "", " ", "   two  spaces   ", "\n\n\t x\r\ny ", "İstanbul ǅ Σίσυφος ΑΣ ﬁne ½ ① Ⅳ",
    "e\u0301\u0323 vs \u1eb9\u0301, A\u030a \u212b", "👩‍👩‍👧‍👦 🇩🇪 👍🏽 ☃\ufe0f",
    "zero\u200bwidth\u200djoin \u2028line\u2029par\u00a0nbsp\u3000wide",
    "\x00nul \x01\x7f\x85 controls \ufffd\ufeff", "[CLS] not special [MASK] <mask> x<mask>y <|end|>",
    "x <pad>  y<wordy> wordy awordy wordy. LOWER lower", "don't 'tis ''s 1,000.50 $5 -- ...",
    "a" * 120, "x y" * 50, "\U0001d518\U0001d52b\U0001d526 \U000e0041 \U0010ffff",
    "ﷺ ㍿ Ǆ ｆｕｌｌ ｗｉｄｔｈ ﾊﾝｶｸ 힣 각 각", "▁already ▁▁ marked", "<0x41> <0xE4> byte",
]


def strings(seed, count):
    """Yields random strings of all planes."""
    draw = random.Random(seed)
    for _ in range(count):
        chosen = []
        while len(chosen) < draw.randrange(1, 30):
            c = draw.choice([draw.randrange(32, 127), draw.randrange(0x80, 0x3000), draw.randrange(0x20, 0x30000),
                             draw.choice([10, 13, 9, 0x2029, 0x200d, 0x301, 0xa0, 0x3000, 0x660, 0x2160])])
            if not 0xd800 <= c < 0xe000:
                chosen.append(chr(c))
        yield "".join(chosen)


def charsmap(pairs):
    """Returns a table of SentencePiece with these replacements, which a trained model contains."""
    rules = HERE / "rules.tmp"
    rules.write_text("".join(
        " ".join(f"{ord(c):X}" for c in a) + "\t" + " ".join(f"{ord(c):X}" for c in b) + "\n" for a, b in pairs),
        encoding="utf-8")
    return rules


def sentence_piece(kind, size, rules, **options):
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS * 3), model_writer=out, vocab_size=size, model_type=kind,
        normalization_rule_tsv=str(rules), hard_vocab_limit=False, minloglevel=2, **options)
    return out.getvalue()


def fields(data):
    """Yields (number, value) of a protobuf message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 2:
            size = varint()
            yield key >> 3, data[at:at + size]
            at += size
        else:
            size = 4 if key & 7 == 5 else 8
            yield key >> 3, data[at:at + size]
            at += size


def unigram_of(model):
    """Returns the pieces, and the table of replacements, of a model of SentencePiece."""
    pieces, table = [], b""
    for number, value in fields(model):
        if number == 1:
            piece = dict(fields(value))
            pieces.append((piece[1].decode(), round(struct.unpack("<f", piece[2])[0], 4) if 2 in piece else 0.0))
        if number == 3:
            table = dict(fields(value)).get(2, b"")
    return pieces, table


def trained(model, trainer):
    model.train_from_iterator(CORPUS * 3, trainer)
    return model


def bert():
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=40))
    t.normalizer = normalizers.BertNormalizer()
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    trained(t, trainers.WordPieceTrainer(
        vocab_size=250, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    t.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    t.enable_truncation(24)
    t.enable_padding(length=24, pad_id=0, pad_token="[PAD]")
    return t


def gpt2():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    trained(t, trainers.BpeTrainer(vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                   show_progress=False))
    t.add_special_tokens(["<|end|>", AddedToken("<mask>", lstrip=True, special=True),
                          AddedToken("<pad>", rstrip=True, lstrip=True, special=True)])
    t.add_tokens([AddedToken("wordy", single_word=True), AddedToken("LOWER", normalized=True)])
    return t


def deepseek():
    t = Tokenizer(models.BPE(ignore_merges=True))
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "isolated"),
        pre_tokenizers.Split(Regex("[一-龥぀-ゟ゠-ヿ]+"), "isolated"),
        pre_tokenizers.Split(Regex(
            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
            "?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    trained(t, trainers.BpeTrainer(vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                   special_tokens=["<|end|>"], show_progress=False))
    t.enable_padding(pad_id=7, pad_type_id=2, direction="left", pad_to_multiple_of=8)
    t.enable_truncation(20, direction="left")
    return t


def llama():
    t = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                   decoders.Strip(" ", 1, 0)])
    trained(t, trainers.BpeTrainer(vocab_size=500, special_tokens=["<unk>", "<s>", "</s>"] +
                                   [f"<0x{b:02X}>" for b in range(256)], show_progress=False))
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1",
                                                     special_tokens=[("<s>", 1)])
    return t


def roberta():
    t = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase(), normalizers.StripAccents()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(True)])
    t.decoder = decoders.BPEDecoder("</w>")
    trained(t, trainers.BpeTrainer(vocab_size=250, special_tokens=["<s>", "</s>", "<unk>"],
                                   continuing_subword_prefix="##", end_of_word_suffix="</w>", show_progress=False))
    t.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    t.enable_truncation(16, strategy="longest_first")
    return t


def unigram(pieces, table):
    t = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Precompiled(table), normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    t.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="first")])
    t.post_processor = processors.BertProcessing(("</s>", 2), ("<s>", 1))
    t.add_special_tokens(["<mask>"])
    return t


def word_level():
    t = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    t.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKD(), normalizers.Strip()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()])
    trained(t, trainers.WordLevelTrainer(vocab_size=90, special_tokens=["[UNK]"], show_progress=False))
    t.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=True),
        processors.TemplateProcessing(single="$A:3 [UNK]:4", pair=None, special_tokens=[("[UNK]", 0)])])
    return t


def encoding(e):
    return {"ids": e.ids, "type_ids": e.type_ids, "attention_mask": e.attention_mask,
            "special_tokens_mask": e.special_tokens_mask}


def cases(t):
    out = []
    for text in TEXTS + list(strings(1, 12)):
        e = t.encode(text)
        out.append({"text": text, **encoding(e), "plain": t.encode(text, add_special_tokens=False).ids,
                    "decoded": t.decode(e.ids), "all": t.decode(e.ids, skip_special_tokens=False)})
    pairs = [{"first": a, "second": b, **encoding(t.encode(a, b))} for a, b in zip(TEXTS[:12], TEXTS[3:])]
    batch = [encoding(e) for e in t.encode_batch(TEXTS[:6])]
    return {"json": json.loads(t.to_str()), "cases": out, "pairs": pairs, "batch": batch}


PRE_TOKENIZERS = [
    {"type": "BertPreTokenizer"}, {"type": "Whitespace"}, {"type": "WhitespaceSplit"},
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    {"type": "Metaspace", "replacement": "_", "prepend_scheme": "never", "split": False},
    {"type": "Digits", "individual_digits": False}, {"type": "Digits", "individual_digits": True},
    {"type": "CharDelimiterSplit", "delimiter": "e"},
    {"type": "Sequence", "pretokenizers": [
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        {"type": "Split", "pattern": {"String": "Ġ"}, "behavior": "Isolated", "invert": False}]},
] + [{"type": "Punctuation", "behavior": b} for b in ("Removed", "Contiguous")] + [
    {"type": "Split", "pattern": p, "behavior": b, "invert": i}
    for p in ({"Regex": "[ -]"}, {"Regex": r"\d*"}, {"String": "aa"}, {"Regex": "(?i:'s|t)|\\b"})
    for b in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
    for i in (False, True)]
SPLIT_TEXTS = ["the-final--countdown 12 it's", "aaaa baab  a", "", "日本 12é3 ½٣ T'S e\u0301x", "-x -", " ",
               "  hey ▁friend_\n"]
NORMALIZERS = [{"type": name} for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Nmt", "StripAccents",
                                           "ByteLevel")] + [
    {"type": "BertNormalizer", "clean_text": c, "handle_chinese_chars": h, "strip_accents": s, "lowercase": l}
    for c, h, s, l in ((True, True, None, True), (False, False, True, False), (True, False, False, True))] + [
    {"type": "Strip", "strip_left": True, "strip_right": False},
    {"type": "Strip", "strip_left": True, "strip_right": True},
    {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": "·"},
    {"type": "Replace", "pattern": {"String": "o"}, "content": "00"},
    {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]}]
TOKENS = [["he", "##llo", "wor", "##ld", "!", "do", "not", "."], ["▁Hi", "▁▁you", "x"],
          ["<0x61>", "<0xE4>", "<0xBD>", "<0xA0>", "b", "<0xFF>", "<0xC3>"], ["Ġhé", "ÃŃ", "ł", "日"],
          ["ab</w>", "c", "d</w>"], [" a", "  b ", ""], []]
DECODERS = [{"type": "WordPiece", "prefix": "##", "cleanup": c} for c in (True, False)] + [
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": True},
    {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 1},
    {"type": "BPEDecoder", "suffix": "</w>"}, {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
    {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]}]


def shell(**parts):
    """Returns a tokenizer with the given parts, whose model does not matter."""
    base = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
            "pre_tokenizer": None, "post_processor": None, "decoder": None,
            "model": {"type": "WordLevel", "vocab": {"x": 0}, "unk_token": "x"}}
    return Tokenizer.from_str(json.dumps({**base, **parts}))


def usable(config, tokens):
    """Whether `tokenizers` does not fail: its Strip reads the last character of an empty token."""
    return config["type"] != "Strip" or "" not in tokens


def pieces_of(config, text):
    return [piece for piece, _ in shell(pre_tokenizer=config).pre_tokenizer.pre_tokenize_str(text)]


def main():
    rules = charsmap([("ﬁ", "fi"), ("½", "1⁄2"), ("\t", " "), ("\u3000", " "), ("\u00a0", " "), ("e\u0301", "é"),
                      ("①", "1"), ("\u212b", "\u00c5"), ("\u200b", ""), ("A", "a")])
    model = sentence_piece("unigram", 420, rules, byte_fallback=True)
    (HERE / "tokenizer.model").write_bytes(sentence_piece("bpe", 420, rules, byte_fallback=True))
    rules.unlink()
    pieces, table = unigram_of(model)
    reader = sentencepiece.SentencePieceProcessor(model_proto=(HERE / "tokenizer.model").read_bytes())
    texts = TEXTS + list(strings(2, 20))
    NORMALIZERS.append({"type": "Precompiled", "precompiled_charsmap": base64.b64encode(table).decode()})
    golden = {
        "tokenizers": {make.__name__: cases(make()) for make in (bert, gpt2, deepseek, llama, roberta, word_level)},
        "pre_tokenizers": [{"config": c, "pieces": [[t, pieces_of(c, t)] for t in SPLIT_TEXTS]}
                           for c in PRE_TOKENIZERS],
        "normalizers": [{"config": c, "texts": [[t, shell(normalizer=c).normalizer.normalize_str(t)]
                                                for t in TEXTS]} for c in NORMALIZERS],
        "decoders": [{"config": c, "tokens": [[t, shell(decoder=c).decoder.decode(t)] for t in TOKENS if usable(c, t)]}
                     for c in DECODERS],
        "sentence_piece": [{"text": t, "ids": reader.encode(t), "decoded": reader.decode(reader.encode(t))}
                           for t in texts],
    }
    golden["tokenizers"]["unigram"] = cases(unigram(pieces, table))
    (HERE / "tokenizers.json").write_text(json.dumps(golden, ensure_ascii=False, separators=(",", ":")) + "\n",
                                          encoding="utf-8")


if __name__ == "__main__":
    main()
