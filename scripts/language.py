"""Find words in names, comments, docstrings and messages that do not read as English prose.

``NAMES`` and ``PHRASES`` are the list, each with what to write instead. Names are split into words
at underscores and capitals. Checked are the Python and C files of the packages; messages are string
literals with a space.

    python -m scripts.language            # findings in all packages; exits with 1 if there are any
    python -m scripts.language kspec      # findings in one package
    python -m scripts.language --count    # the number of findings by package and word

``make lint`` runs this.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["NAMES", "PACKAGES", "PHRASES", "Finding", "findings", "main"]

ROOT = Path(__file__).resolve().parent.parent
PACKAGES: Final = ("kproto", "mockbroker", "wiredump", "kspec")
GENERATED: Final = "kproto/messages/"

NAMES: Final[Mapping[str, str]] = {
    "asked": "requested, or the kind of object: request, query, expected",
    "heard": "received, or messages",
    "heed": "apply, accept, or handle",
    "heeds": "applies, accepts, or handles",
    "lent": "passed, or owned by the other side",
    "nobody": "unknown, none, or no client",
    "somebody": "another process, client, or thread",
    "told": "reported, notified, or result",
    "unasked": "unsolicited, or unmatched",
    "whoever": "the caller, or the name of the role",
}
"""Words that no name contains."""

PHRASES: Final[Mapping[str, str]] = {
    r"as it has to": "as expected",
    r"as \S+ (?:has|have) (?:it|them)": "as in ...; in the form of ...",
    r"(?:be|is|was|were) gone (?:on|through)": "continued; processed",
    r"(?:are|is|be) told of": "reported",
    r"heed(?:s|ed)?": "apply, accept, or handle",
    r"(?<!there )is no (?!longer|more|other|larger|less|better)[a-z]+": "is not a ...",
    r"it takes (?:no )?more than": "more than ... is needed",
    r"nobody": "no one, no reader, or the passive",
    r"not gone through": "skipped, or not finished",
    r"somebody": "a caller, another process, or the passive",
    r"(?:that|which) (?:is|are) none": "not a ...",
    r"told": "reported, or known",
    r"gave something else": "expected ..., got ...",
    r"what it came to": "result",
    r"where there is one": "if there is one",
    r"whoever": "the caller, or the name of the role",
    r"whose each": "a subject and a verb",
}
"""Regular expressions for text between word boundaries, in lower case."""

_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_GAP: Final = r"\s+(?:#:?\s+)?"
_TEXTS: Final = {phrase: re.compile(rf"\b(?:{phrase})\b", re.IGNORECASE) for phrase in PHRASES}
_C_TOKEN: Final = re.compile(
    r"(?P<text>/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\")|'(?:\\.|[^'\\\n])*'|(?P<name>[A-Za-z_]\w*)",
    re.DOTALL,
)


class Finding(NamedTuple):
    """``word`` is the key of ``NAMES`` or ``PHRASES``, ``instead`` its value; ``shown`` is the name
    or the text found."""

    path: str
    line: int
    word: str
    shown: str
    instead: str


def findings(package: str, root: Path = ROOT) -> Iterator[Finding]:
    """Yield the findings of a package."""
    for path in sorted((root / package).rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.suffix in (".py", ".c", ".h") and not name.startswith(GENERATED):
            yield from _of_name(name, 0, path.stem)
            tokens = _python if path.suffix == ".py" else _c
            for is_name, line, text in tokens(path.read_text()):
                yield from (_of_name if is_name else _of_text)(name, line, text)


def _python(source: str) -> Iterator[tuple[bool, int, str]]:
    middle = getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            yield True, token.start[0], token.string
        elif token.type == tokenize.COMMENT or (
            token.type in (tokenize.STRING, middle) and " " in token.string
        ):
            yield False, token.start[0], token.string


def _c(source: str) -> Iterator[tuple[bool, int, str]]:
    for match in _C_TOKEN.finditer(source):
        line = source.count("\n", 0, match.start()) + 1
        if match["name"]:
            yield True, line, match["name"]
        elif match["text"]:
            yield False, line, match["text"]


def _of_name(path: str, line: int, name: str) -> Iterator[Finding]:
    for word in _WORDS.findall(name):
        if word.lower() in NAMES:
            yield Finding(path, line, word.lower(), name, NAMES[word.lower()])


def _of_text(path: str, line: int, text: str) -> Iterator[Finding]:
    flat = re.sub(_GAP, " ", text)
    for phrase, pattern in _TEXTS.items():
        for match in pattern.finditer(flat):
            words = re.search(_GAP.join(map(re.escape, match[0].split())), text)
            at = line + text.count("\n", 0, words.start() if words else 0)
            yield Finding(path, at, phrase, match[0], PHRASES[phrase])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.language",
        description="Find words that do not read as English prose, with what to write instead.",
    )
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", default=PACKAGES)
    parser.add_argument("--count", action="store_true", help="count by package and word instead")
    options = parser.parse_args(arguments)
    if options.count:
        for package in PACKAGES:
            counts = Counter(finding.word for finding in findings(package))
            listed = ", ".join(f"{word} {count}" for word, count in counts.most_common())
            print(f"{package}: {counts.total()}" + (f" ({listed})" if listed else ""))
        return 0
    found = [finding for package in options.packages for finding in findings(package)]
    for finding in found:
        print(f"{finding.path}:{finding.line}: {finding.shown!r}; write {finding.instead}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
