"""Checks that comments, names and messages use the words of docs/words.md, as far as a script can.

`--room FOLDER` checks one folder, `--counts` prints the number of offenders of each kind.
"""
import collections
import re
import sys

from sources import LIBRARY, finish, sources

# Words with which a comment before a declaration may not begin.
OPENING = re.compile(r"^\s*/// (?:Of|The same|Those|Whose|What|Where|In|For|As|That|So many|With what)\b")
TRAILING = re.compile(r"///< (?:of|as)\b")
# Words that comments and messages may not have, and what docs/words.md has in their place.
WORDS = {
    r"truth[- ]values?": "bool",
    r"whole numbers?": "integer",
    r"half(?:[- ]precision)? types?": "float16 and bfloat16",
    r"small letters": "lower case",
    r"addends?": "partial sum",
    r"pending sums?": "partial sum",
    r"(?:lies?|lying|lay|lain) (?:on|in(?! [\[(])|at|as|beside|there|here|elsewhere|where)": "is placed on, is stored in",
    r"cut up": "sharded",
    r"as a whole": "replicated, in full",
    r"nobody vouches": "untrusted",
    r"made to harm": "malicious",
    r"(?:makes?|made) again": "rematerialize",
    r"lets? go": "release",
    r"go(?:es)? round": "rotate",
    r"hears?|unheard": "records, is notified",
    r"logarithms? of sums": "log-sum-exp",
    r"so many": "the number of",
    r"strangers?": "unknown peer",
    r"alike": "equal, the same",
    r"likeliest": "most probable",
    r"by place": "by position",
}
BANNED = [(re.compile(rf"\b(?:{word})\b", re.IGNORECASE), term) for word, term in WORDS.items()]
NAMES = re.compile(
    r"\b(most_\w+|\w+_most_\w+|ControlRounds|judge\w*|said_by|culprits|hears\w*|unheard|untaped|alike|"
    r"\w+_alike|(?:Attention|Ring|Routing|Csv|Folder|Cifar|Json)Form|heeds_\w+|let_go|made_again|"
    r"make_again|likeliest\w*|CrowdJudge|SleepyThreads|machine_is_crowded)\b")
STRING = re.compile(r'"(?:\\.|[^"\\])*"')


def findings(line):
    """Yields (kind, text) of each offender in a line."""
    code, _, comment = line.partition("//")
    strings = " ".join(STRING.findall(code))
    if OPENING.match(line):
        yield "opening", line.strip()
    if TRAILING.search(line):
        yield "trailing", line.strip()
    for pattern, term in BANNED:
        for match in pattern.finditer(comment + " " + strings):
            yield "word", f"{match.group()}; write {term}"
    for match in NAMES.finditer(STRING.sub("", code)):
        yield "name", match.group(1)


def main():
    room = sys.argv[sys.argv.index("--room") + 1] if "--room" in sys.argv else ""
    offenders, counts, seen = [], collections.Counter(), 0
    for path, lines in sources([*LIBRARY, "apps"]):
        if not path.as_posix().startswith(room):
            continue
        for number, line in enumerate(lines, 1):
            seen += 1
            for kind, text in findings(line):
                counts[kind] += 1
                offenders.append(f"{path}:{number}: {kind}: {text}")
    if "--counts" in sys.argv:
        print(dict(counts))
        return
    finish(offenders, "docs/words.md: the field's words", seen)


if __name__ == "__main__":
    main()
