"""Text that is safe to show: peers choose client ids, topics, error messages and file names.

Unprintable characters are control characters (C0, DEL, C1), line and paragraph separators,
bidirectional and other format characters, lone surrogates, unassigned and private code points,
spaces other than U+0020, and characters that take no width. This module knows no streams:
``kproto.cli.terminal`` writes what it returns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

__all__ = ["csv_line", "json_text", "printable", "printable_json", "printable_lines"]

_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Unicode's default-ignorable characters, and a blank one, that ``str.isprintable`` accepts."""

_ASCII: Final = bytes(range(0x20, 0x7F))

_FORMULA: Final = re.compile(" *[=+\\-@\uff1d\uff0b\uff0d\uff20]")
"""How a cell begins that a spreadsheet runs; the second half are the full-width forms."""
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def printable(text: str) -> str:
    """Return ``text`` with each unprintable character, line ends included, as Python escapes it in
    a literal: ``\\x1b``, ``\\n``, ``\\u202e``."""
    if _is_printable(text):
        return text
    return "".join(char if _is_printable(char) else ascii(char)[1:-1] for char in text)


def printable_lines(text: str, *, tabs: bool = False) -> str:
    """Return ``text`` with its ``\\n`` as they are, also its tabs if ``tabs``, and all other
    unprintable characters escaped."""
    if _is_printable(text):
        return text
    if tabs:
        return "\t".join(map(printable_lines, text.split("\t")))
    return "\n".join(map(printable, text.split("\n")))


def json_text(value: Any, *, indent: int | None = None, compact: bool = False) -> str:
    """Return ``value`` as JSON whose strings contain printable characters only; others are
    ``\\uXXXX``, which stand for the same value. ``compact`` leaves out the spaces."""
    separators = (",", ":") if compact else None
    return printable_json(
        json.dumps(value, indent=indent, separators=separators, ensure_ascii=False)
    )


def printable_json(text: str) -> str:
    """Return a JSON document, of any encoder, as ``json_text`` writes it."""
    if (text.isascii() and "\x7f" not in text) or _is_printable(text):
        return text
    # Outside of strings JSON is printable, but for the line ends that indentation makes.
    return "".join(
        char if _is_printable(char) or char == "\n" else json.dumps(char)[1:-1] for char in text
    )


def csv_line(cells: Iterable[object]) -> str:
    """Return a row of comma-separated values, without a line end; None is an empty cell.

    Text is printable. Text that a spreadsheet would run as a formula gets an apostrophe in front,
    which spreadsheets take for "this is text"; numbers, also those in text, stay as they are.
    """
    return ",".join(map(_cell, cells)) or '""'


def _cell(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        return str(value)
    text = printable(value)
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        text = f"'{text}"
    return '"{}"'.format(text.replace('"', '""')) if '"' in text or "," in text else text


def _is_printable(text: str) -> bool:
    if text.isascii():  # most texts; several times as fast as isprintable
        return not text.encode().translate(None, _ASCII)
    return text.isprintable() and _INVISIBLE.search(text) is None
