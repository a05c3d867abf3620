"""Writes the ```cpp blocks of markdown files as C++ sources.

Arguments: folder for the sources, markdown files. Prints the name of each source in a line: the
first has the bodies of all files, each further one is a program.

A block that defines main() is a program, which is compiled unchanged and run. Any other block is
the body of a function, after `#include <tessera/tessera.hpp>` and `using namespace tessera`; its
#include lines move to the top. Code that the reader need not see is in a comment right above the
block and comes before it:

    <!-- cpp
    Sequential model({Dense(1)});
    -->
    ```cpp
    // example: summary
    model.summary();
    ```

The first line may name the block as above; the default is example_1 and so on. A block below a line
`<!-- file: PATH -->` is that file of the tree, which is compiled elsewhere;
tests/scripts/check_texts.py compares the two.
"""
import pathlib
import re
import sys

BLOCK = re.compile(r"^(?:<!-- (?:cpp\n(?P<hidden>(?:(?!-->).)*?)|(?P<file>file: \S+ ))-->\n+)?"
                   r"```cpp\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
NAME = re.compile(r"// example: (\w+)$", re.MULTILINE)
MAIN = re.compile(r"^int main\(", re.MULTILINE)
INCLUDE = re.compile(r"^#include .*\n", re.MULTILINE)


def located(text, line, source):
    return f'#line {line} "{source}"\n{text}'


def as_function(name, hidden, code, line, source, returns="void"):
    # An empty line in place of an #include keeps the line numbers.
    body = located(INCLUDE.sub("\n", code), line, source)
    return f"[[maybe_unused]] static {returns} {name}() {{\n{INCLUDE.sub('', hidden)}{body}}}\n"


def write_if_changed(path, content):
    if not path.is_file() or path.read_text(encoding="utf-8") != content:
        path.write_text(content, encoding="utf-8")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    includes, functions, programs = {"#include <tessera/tessera.hpp>\n"}, [], {}
    for source in map(pathlib.Path, sys.argv[2:]):
        text = source.read_text(encoding="utf-8")
        matches = list(BLOCK.finditer(text))
        if len(matches) != len(re.findall(r"^```cpp", text, re.MULTILINE)):
            sys.exit(f"{source}: a ```cpp block that does not end, or begins with more than ```cpp")
        for number, match in enumerate(matches, 1):
            if match["file"]:
                continue
            code, hidden = match["code"], match["hidden"] or ""
            named = NAME.match(code)
            name = f"{source.stem.lower()}_{named[1] if named else f'example_{number}'}"
            line = text.count("\n", 0, match.start("code")) + 1
            if MAIN.search(code):
                programs[name] = located(code, line, source)
            else:
                includes.update(INCLUDE.findall(hidden + code))
                functions.append(as_function(name, hidden, code, line, source))
    bodies = "".join(sorted(includes)) + "using namespace tessera;\n" + "".join(functions)
    for name, content in {"bodies": bodies, **programs}.items():
        write_if_changed(folder / f"{name}.cpp", content)
        print(name)


if __name__ == "__main__":
    main()
