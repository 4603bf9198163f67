"""Render the bytes of a frame: offset, bytes, field, type and value, one line per field.

Lines are ``rich`` texts that contain only printable characters, whatever the peer sent. Long arrays
are folded and long values truncated unless the caller requests everything. The caller says which
bytes must not be shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from rich.text import Text

from kproto import error_codes
from kproto.annotate import PARTS, FrameField, PartialFields, plain_value
from kproto.safe_text import printable

__all__ = ["Redaction", "hex_lines"]

BYTES_A_LINE: Final = 12
LONGEST_ARRAY: Final = 8
"""Of a longer array, the first few elements and the last one are shown."""
SHOWN_ELEMENTS: Final = 4
LONGEST_VALUE: Final = 60

_OFFSET_WIDTH: Final = 6
_HEX_WIDTH: Final = 3 * BYTES_A_LINE
_INDEX: Final = re.compile(r"\[(\d+)\]")


class Redaction(NamedTuple):
    """What must not be shown: the fields at these paths and, optionally, bytes that could not be
    decoded."""

    paths: Collection[str] = ()
    rest: bool = False


NOTHING: Final = Redaction()


def hex_lines(
    data: bytes, fields: PartialFields, *, unfold: bool = False, hidden: Redaction = NOTHING
) -> Iterator[Text]:
    """Yield ``fields`` of the frame ``data``, then the bytes that are in no field, and the
    reason."""
    for row in _rows(fields.rows, unfold=unfold):
        raw = data[row.offset : row.offset + row.length]
        hide = row.path in hidden.paths
        if row.type == _FOLDED:
            yield _line(row.offset, "…", row.path, "", _count(row.length), style="dim")
            continue
        value = "[redacted]" if hide else _value(row, unfold=unfold)
        style = "dim" if row.type in PARTS or row.path == "size" else ""
        yield from _lines(row, raw, value, hide=hide, unfold=unfold, style=style)
    rest = data[fields.end :]
    if rest:
        left = FrameField(fields.end, len(rest), "(not decoded)", "", None, True)
        what = _count(len(rest))
        yield from _lines(left, rest, what, hide=hidden.rest, unfold=unfold, style="red")
    if fields.error is not None:
        yield Text(printable(f"!! {fields.error}"), style="red")


# ---- which rows ------------------------------------------------------------------------------

_FOLDED: Final = "folded"


def _rows(rows: list[FrameField], *, unfold: bool) -> Iterator[FrameField]:
    """Leaves, with an array of scalars as one row and folded elements as one row."""
    counts = {} if unfold else _elements(rows)
    done = 0
    fold: FrameField | None = None
    for row in rows:
        if row.offset + row.length <= done and row.length:
            continue  # inside an array that has a row already
        folded = _folded(row.path, counts)
        if fold is not None and (folded is None or f"{folded}[…]" != fold.path):
            yield fold
            fold = None
        if folded is not None:
            if fold is None:
                fold = FrameField(row.offset, 0, f"{folded}[…]", _FOLDED, None, True)
            fold = fold._replace(length=max(fold.length, row.offset + row.length - fold.offset))
        elif not row.leaf and not unfold and _is_scalars(row):
            done = row.offset + row.length
            yield row
        elif row.leaf:
            yield row
    if fold is not None:
        yield fold


def _is_scalars(row: FrameField) -> bool:
    return isinstance(row.value, list) and bool(row.value) and not isinstance(row.value[0], dict)


def _elements(rows: Iterable[FrameField]) -> dict[str, int]:
    """Return the number of elements of each array, by its path."""
    counts: dict[str, int] = {}
    for row in rows:
        for match in _INDEX.finditer(row.path):
            array = row.path[: match.start()]
            counts[array] = max(counts.get(array, 0), int(match[1]) + 1)
    return counts


def _folded(path: str, counts: dict[str, int]) -> str | None:
    """Return the outermost array whose folded middle contains the row."""
    if not counts:
        return None
    for match in _INDEX.finditer(path):
        array = path[: match.start()]
        if array.endswith("unknown_tags"):
            continue  # the number of a tag
        count = counts[array]
        if count > LONGEST_ARRAY and SHOWN_ELEMENTS <= int(match[1]) < count - 1:
            return array
    return None


# ---- how they look ---------------------------------------------------------------------------


def _lines(
    row: FrameField, raw: bytes, value: str, *, hide: bool, unfold: bool, style: str
) -> Iterator[Text]:
    shown = "xx " * min(len(raw), BYTES_A_LINE) if hide else raw[:BYTES_A_LINE].hex(" ")
    more = len(raw) > BYTES_A_LINE and not (unfold and not hide)
    shown = shown.rstrip() + ("…" if more else "")
    kind = row.type if row.type not in PARTS else ""
    yield _line(row.offset, shown, row.path, kind, value, style=style)
    if unfold and not hide:
        for at in range(BYTES_A_LINE, len(raw), BYTES_A_LINE):
            yield _line(row.offset + at, raw[at : at + BYTES_A_LINE].hex(" "), "", "", "")


def _line(offset: int, shown: str, path: str, kind: str, value: str, *, style: str = "") -> Text:
    line = Text(no_wrap=True, overflow="ignore", style=style)
    line.append(f"{offset:>{_OFFSET_WIDTH}}  ", style="dim")
    line.append(f"{shown:<{_HEX_WIDTH}} ", style=style or "cyan")
    line.append(printable(path), style=style or "bold")
    if kind:
        line.append(f" {kind}", style="dim")
    if value:
        line.append(f" {printable(value)}", style=style or "green")
    line.rstrip()
    return line


def _value(row: FrameField, *, unfold: bool) -> str:
    value = row.value
    if row.type in ("bytes", "records", "unknown tag") and value is not None:
        return _count(len(value))
    if isinstance(value, dict):
        return ""
    text = json.dumps(plain_value(value), ensure_ascii=False)
    if isinstance(value, int) and value and row.path.endswith("error_code"):
        text += f" {error_codes.name(value)}"
    if len(text) > LONGEST_VALUE and not unfold:
        return text[: LONGEST_VALUE - 1] + "…"
    return text


def _count(size: int) -> str:
    return f"{size} byte{'s' * (size != 1)}"
