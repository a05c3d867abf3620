"""Writes framework/text/internal/unicode_differences.hpp: characters of which Hugging Face's `tokenizers` has
another opinion than utf8proc, since each has tables of another version of Unicode.

Made with tokenizers 0.23.3 and sentencepiece from PyPI and Debian's utf8proc 2.8.0. Run it in this folder, and then
tests/scripts/format.py . --fix: python3 make_unicode_differences.py
"""
import ctypes
import pathlib

from tokenizers import Regex, normalizers, pre_tokenizers

from make_tokenizers import unigram_of

CATEGORIES = ("Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs "
              "Co").split()
STABLE, COMPAT, DECOMPOSE = 2, 4, 16
LIBRARY = ctypes.CDLL("libutf8proc.so.2")
LIBRARY.utf8proc_map.argtypes = [ctypes.c_char_p, ctypes.c_ssize_t, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int]
LIBRARY.utf8proc_map.restype = ctypes.c_ssize_t
FREE = ctypes.CDLL(None).free
FREE.argtypes = [ctypes.c_void_p]

bert_words = pre_tokenizers.BertPreTokenizer()
words = pre_tokenizers.Whitespace()
digits = pre_tokenizers.Digits(True)
clean = normalizers.BertNormalizer(True, False, False, False)
bert_accents = normalizers.BertNormalizer(False, False, True, False)
accents = normalizers.StripAccents()
lower = normalizers.Lowercase()
# SentencePiece's table of replacements, of the model that lies here: it replaces a no-break space, with the rest of
# a short grapheme cluster.
clusters = normalizers.Precompiled(unigram_of((pathlib.Path(__file__).parent / "tokenizer.model").read_bytes())[1])
forms = {DECOMPOSE: normalizers.NFD(), DECOMPOSE | COMPAT: normalizers.NFKD()}


def category(c):
    return CATEGORIES[LIBRARY.utf8proc_category(c)]


def mapped(text, options):
    content, out = text.encode(), ctypes.c_void_p()
    size = LIBRARY.utf8proc_map(content, len(content), ctypes.byref(out), options | STABLE)
    result = ctypes.string_at(out.value, size).decode()
    FREE(out)
    return result


def is_word(c):
    """is_word_character() of unicode.cpp, without differences."""
    circled = any(a <= c <= b for a, b in ((0x24b6, 0x24e9), (0x1f130, 0x1f149), (0x1f150, 0x1f169),
                                           (0x1f170, 0x1f189)))
    kind = category(c)
    return kind[0] in "LM" or kind in ("Nd", "Nl", "Pc") or circled or c in (0x200c, 0x200d)


def differences(c):
    """Yields the tables that contain a character."""
    text, kind = chr(c), category(c)
    if not text.isspace():
        if (len(bert_words.pre_tokenize_str("a" + text + "a")) == 3) != (kind[0] == "P"):
            yield "punctuation"
        if c != 0xfffd and (clean.normalize_str(text) == "") != (kind in ("Cc", "Cf", "Co")):
            yield "control"
        if (len(words.pre_tokenize_str("a" + text)) == 1) != is_word(c):
            yield "word"
    if forms[DECOMPOSE].normalize_str(text) == text and (
            bert_accents.normalize_str(text) == "") != (kind == "Mn"):
        yield "nonspacing"
    if forms[DECOMPOSE].normalize_str(text) == text and (accents.normalize_str(text) == "") != (kind[0] == "M"):
        yield "mark"
    if (len(digits.pre_tokenize_str("a" + text + "a")) == 3) != (kind[0] == "N"):
        yield "number"
    # U+0334 has the lowest combining class.
    marked = "a" + text + "\u0334"
    starts = forms[DECOMPOSE].normalize_str(marked) == marked != mapped(marked, DECOMPOSE)
    if starts:
        yield "nfc_unchanged"
    if starts or forms[DECOMPOSE].normalize_str(text) == text != mapped(text, DECOMPOSE):
        yield "nfd_unchanged"
    joined = clusters.normalize_str("\xa0" + text) == " " and clusters.normalize_str("x" + text) != "x"
    if joined and LIBRARY.utf8proc_grapheme_break(0xa0, c):
        yield "extending"
    if starts or forms[DECOMPOSE | COMPAT].normalize_str(text) == text != mapped(text, DECOMPOSE | COMPAT):
        yield "nfk_unchanged"


def properties():
    """Returns, by name, the characters that have a property in patterns of `tokenizers` and none in Debian's
    Oniguruma 6.9.8."""
    onig = ctypes.CDLL("libonig.so.5")
    utf8 = ctypes.addressof(ctypes.c_char.in_dll(onig, "OnigEncodingUTF8"))
    onig.onigenc_unicode_property_name_to_ctype.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    onig.onigenc_unicode_is_code_ctype.argtypes = [ctypes.c_uint, ctypes.c_uint, ctypes.c_void_p]
    every = "".join(chr(c) for c in range(0x80, 0x34000) if not 0xd800 <= c < 0xe000)
    found = {}
    for name in ("L", "Lu", "Ll", "Lm", "Lo", "M", "N", "P", "S"):
        split = pre_tokenizers.Split(Regex(rf"\p{{{name}}}+"), "removed", invert=True)
        # A C string: its address, and that of its end.
        text = ctypes.create_string_buffer(name.encode())
        kind = onig.onigenc_unicode_property_name_to_ctype(
            utf8, ctypes.cast(text, ctypes.c_char_p), ctypes.addressof(text) + len(name))
        found[name] = [ord(c) for piece, _ in split.pre_tokenize_str(every) for c in piece
                       if not onig.onigenc_unicode_is_code_ctype(ord(c), kind, utf8)]
    return found


def ranges(chosen):
    found = []
    for c in sorted(chosen):
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


def main():
    tables = {"punctuation": "is_bert_punctuation()", "control": "is_bert_control()",
              "nonspacing": "is_nonspacing_mark()", "mark": "is_mark()", "number": "is_number()",
              "word": "is_word_character()",
              "extending": "grapheme_length(), in up to 3 bytes: they belong to the character before them",
              "nfc_unchanged": "to_normal_form(): NFC does not change or move them",
              "nfd_unchanged": "to_normal_form(): NFD does not change or move them",
              "nfk_unchanged": "to_normal_form(): NFKC and NFKD do not change or move them"}
    chosen = {name: [] for name in tables}
    lowered = []
    for c in range(0x80, 0x110000):
        # Planes without characters.
        if 0xd800 <= c < 0xe000 or 0x34000 <= c < 0xe0000 or c >= 0xe0200:
            continue
        for name in differences(c):
            chosen[name].append(c)
        made = lower.normalize_str(chr(c))
        if len(made) == 1 and ord(made) != LIBRARY.utf8proc_tolower(c):
            lowered.append((c, ord(made)))
    lines = ["#pragma once", "",
             "/// Characters of which `tokenizers` has another opinion than utf8proc 2.8.0, since their tables are of",
             "/// other versions of Unicode. Written by tests/golden/make_unicode_differences.py.",
             "namespace tessera::detail {", "",
             "/// A range of characters, both ends included.", "struct CharacterRange {", "  char32_t first;",
             "  char32_t last;", "};", ""]
    for name, function in tables.items():
        lines.append(f"/// Exceptions from {function}.")
        lines.append(f"constexpr CharacterRange {name if 'nf' in name else name + '_differences'}[] = {{")
        lines.append(", ".join(f"{{0x{a:X}, 0x{b:X}}}" for a, b in ranges(chosen[name])) + "};")
        lines.append("")
    for name, characters in properties().items():
        lines.append(f"/// Characters that have the property {name} in patterns, in addition to Oniguruma's.")
        lines.append(f"constexpr CharacterRange property_{name.lower()}_additions[] = {{")
        lines.append(", ".join(f"{{0x{a:X}, 0x{b:X}}}" for a, b in ranges(characters)) + "};")
        lines.append("")
    lines += ["/// Capital letters and their lower case.", "struct LowerCase {", "  char32_t capital;",
              "  char32_t lower;", "};", "constexpr LowerCase lower_case_differences[] = {",
              ", ".join(f"{{0x{a:X}, 0x{b:X}}}" for a, b in lowered) + "};", "", "}  // namespace tessera::detail", ""]
    path = pathlib.Path(__file__).parent.parent.parent / "framework/text/internal/unicode_differences.hpp"
    path.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
