"""Writes the examples in the comments of public headers as functions of one C++ source.

Arguments: the root of the tree, the source to write.

An example is an indented block of a doc comment, which may use the names of header_names.hpp. It
becomes the body of a function or, if its first line overrides one, the members of a class. It may
be a single expression. JSON and HTTP requests are skipped.
"""
import pathlib
import re
import sys

from extract import as_function

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "scripts"))
from public_headers import headers, is_internal  # noqa: E402

BLOCK = re.compile(r"^ *///\n((?: */// {5}.*\n| *///\n(?= */// {5}))+)", re.MULTILINE)
MARK = re.compile(r"^ *///(?: {5})?", re.MULTILINE)
NO_CPP = re.compile(r'\{"|(GET|POST) /')
WITHOUT_END = re.compile(r"[^;{}\s](?=\s*(//.*)?\s*\Z)")


def examples(header, text):
    for match in BLOCK.finditer(text):
        code = MARK.sub("", match[1])
        if NO_CPP.match(code):
            continue
        line = text.count("\n", 0, match.start(1)) + 1
        name = f"{re.sub(r'[/.]', '_', header)}_{line}"
        if code.split("\n")[0].endswith("override {"):
            yield as_function(name, "struct Own : Model {\n", code + "};\n", line, header)
        else:
            # Some examples have a return statement, as a part of main().
            code = WITHOUT_END.sub(r"\g<0>;", code)
            yield as_function(name, "", code, line, header, returns="int")


def main():
    root = pathlib.Path(sys.argv[1])
    text = '#include "tests/readme/header_names.hpp"\nusing namespace tessera;\n'
    for header in headers():
        if not is_internal(header):
            text += "".join(examples(header, (root / header).read_text(encoding="utf-8")))
    pathlib.Path(sys.argv[2]).write_text(text, encoding="utf-8")


main()
