"""Text that peers choose to damage a terminal, and the check that none of it got through.

``R3D`` marks the text in an output; ``FAKE`` would begin a line of its own if a line end got
through. No shown ``R3D`` may have lost the markup in front of it.
"""

import csv
import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

__all__ = [
    "ARGUMENT",
    "FILE_NAME",
    "FORMULA",
    "JSON",
    "PLAIN_NAME",
    "WIRE",
    "check",
    "check_csv",
    "check_json",
    "strings",
]

WIRE = (
    "[red]R3D[/red]\x1b[31m\x1b[2J\r\nFAKE\t\x00\x07\x08\x0b\x7f\x85\x9b31m\xa0\xad\u034f\u061c"
    "\u115f\u200b\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069\u3164\ufe0f\ufeff\uffa0\U000e0041"
    "\x1b]8;;http://evil\x07link\x1b]8;;\x07:boom:"
)
"""What fits into a string of the protocol, which is UTF-8."""
JSON = WIRE + "\ud800\udc9b\ud83d"
"""What fits into JSON: lone surrogates, too."""
ARGUMENT = WIRE.replace("\x00", "") + "\udcff\udc9b"
"""What fits into the argument of a command: undecodable bytes, but no zero."""
FILE_NAME = "[red]R3D\x1b[2J\r\nFAKE\t\x07\x7f\x9b\u202e\u2066\u200b\udcff\udc9b"
PLAIN_NAME = FILE_NAME[:-2]
"""A file's name without undecodable bytes, which pyarrow does not take."""
FORMULA = "=R3D()+HYPERLINK(1)"

_STYLES = re.compile(r"\x1b\[(?:[\d;]*m|\?25[lh]|\d+A|2K)|\r(?=\x1b\[)")
"""Colours, weights and the redrawing of a line, which are ours. Hostile texts clear the screen."""


def check(output: bytes, *, styled: bool = False, lines: bool = False) -> str:
    """Return the output as text; fail for anything in it that does not belong on a terminal.

    Tabs are between columns of ours only. ``lines``: a document may have line ends of peers, and
    shorten names.
    """
    text = output.decode()
    if styled:
        text = _STYLES.sub("", text)
    wrong = {char for char in text if char not in "\n\t" and not _is_visible(char)}
    assert not wrong, f"{sorted(map(ascii, wrong))} in {text!r}"
    assert "FAKE\t" not in text, text
    forged = [line for line in text.split("\n") if line.lstrip().startswith("FAKE")]
    assert lines or not forged, text
    assert lines or text.count("R3D") == text.count("[red]R3D") + text.count("=R3D"), text
    return text


def check_json(text: str) -> list[Any]:
    """Return the JSON document, or the JSON lines, of an output."""
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]


def check_csv(text: str) -> None:
    """Fail for a cell that a spreadsheet would run."""
    for row in csv.reader(text.splitlines()):
        for cell in row:
            assert not cell.startswith(("=", "+", "@")), cell
            assert not cell.startswith("-") or cell[1:].replace(".", "").isdigit(), cell


def strings(value: Any) -> Iterator[str]:
    """Yield every string in a JSON value, keys too."""
    match value:
        case str():
            yield value
        case dict():
            for key, each in value.items():
                yield key
                yield from strings(each)
        case list():
            for each in value:
                yield from strings(each)


def _is_visible(char: str) -> bool:
    return char == " " or (
        unicodedata.category(char)[0] not in "CZ" and char not in "\u034f\u115f\u3164\ufe0f\uffa0"
    )
