"""Writes framework/text/internal/unicode_differences.hpp: characters of which Hugging Face's `tokenizers` has
another opinion than utf8proc, since each has tables of another version of Unicode.

Made with tokenizers 0.23.3 from PyPI and Debian's utf8proc 2.8.0. Run it in this folder, and then
tests/scripts/format.py . --fix: python3 make_unicode_differences.py
"""
import ctypes
import pathlib

from tokenizers import normalizers, pre_tokenizers

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
    if forms[DECOMPOSE].normalize_str(text) == text != mapped(text, DECOMPOSE):
        yield "undecomposed"
    if forms[DECOMPOSE | COMPAT].normalize_str(text) == text != mapped(text, DECOMPOSE | COMPAT):
        yield "uncompatible"


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
              "undecomposed": "to_normal_form(), which NFD does not change",
              "uncompatible": "to_normal_form(), which NFKC and NFKD do not change"}
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
        lines.append(f"constexpr CharacterRange {name}_differences[] = {{")
        lines.append(", ".join(f"{{0x{a:X}, 0x{b:X}}}" for a, b in ranges(chosen[name])) + "};")
        lines.append("")
    lines += ["/// Capital letters and their lower case.", "struct LowerCase {", "  char32_t capital;",
              "  char32_t lower;", "};", "constexpr LowerCase lower_case_differences[] = {",
              ", ".join(f"{{0x{a:X}, 0x{b:X}}}" for a, b in lowered) + "};", "", "}  // namespace tessera::detail", ""]
    path = pathlib.Path(__file__).parent.parent.parent / "framework/text/internal/unicode_differences.hpp"
    path.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
