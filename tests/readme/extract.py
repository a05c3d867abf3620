"""Writes the ```cpp blocks of a markdown file as C++ sources, one each.

Arguments: markdown file, folder for the sources. Prints a line "program NAME" or "body NAME" each.

A block that defines main() is a program, compiled as it is and run. Any other block is the body of
a function, after `#include <tessera/tessera.hpp>` and `using namespace tessera`; its #include lines
move to the top. What the reader should not be bothered with comes before it, in a comment right
above the block:

    <!-- cpp
    Sequential model({Dense(1)});
    -->
    ```cpp
    // example: summary
    model.summary();
    ```

The first line may name the block as above; else it is example_1 and so on.
"""
import pathlib
import re
import sys

BLOCK = re.compile(r"^(?:<!-- cpp\n(?P<hidden>(?:(?!-->).)*?)-->\n+)?```cpp\n(?P<code>.*?)^```$",
                   re.DOTALL | re.MULTILINE)
NAME = re.compile(r"// example: (\w+)$", re.MULTILINE)
MAIN = re.compile(r"^int main\(", re.MULTILINE)
INCLUDE = re.compile(r"^#include .*\n", re.MULTILINE)


def located(text, line, source):
    return f'#line {line} "{source}"\n{text}'


def as_source(match, name, text, source):
    code = match["code"]
    line = text.count("\n", 0, match.start("code")) + 1
    if MAIN.search(code):
        return located(code, line, source)
    hidden = match["hidden"] or ""
    includes = "".join(INCLUDE.findall(hidden + code))
    # An empty line in its place keeps the numbers of the lines.
    body = INCLUDE.sub("\n", code)
    return (f"#include <tessera/tessera.hpp>\n{includes}using namespace tessera;\n"
            f"[[maybe_unused]] static void {name}() {{\n{INCLUDE.sub('', hidden)}"
            + located(body, line, source) + "}\n")


def write_if_changed(path, content):
    if not path.is_file() or path.read_text(encoding="utf-8") != content:
        path.write_text(content, encoding="utf-8")


def main():
    source, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    text = source.read_text(encoding="utf-8")
    matches = list(BLOCK.finditer(text))
    if len(matches) != len(re.findall(r"^```cpp", text, re.MULTILINE)):
        sys.exit(f"{source}: a ```cpp block that does not end, or begins with more than ```cpp")
    for number, match in enumerate(matches, 1):
        named = NAME.match(match["code"])
        name = named[1] if named else f"example_{number}"
        write_if_changed(folder / f"{name}.cpp", as_source(match, name, text, source))
        print("program" if MAIN.search(match["code"]) else "body", name)


main()
