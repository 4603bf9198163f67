"""Turn frames in hexadecimal, as people paste them, into items.

A line of digits is the bytes of one direction. ``>`` or ``<`` in front of it marks a request or a
response; without a mark the direction stays the same, and the first one is the client's unless the
bytes show otherwise. Spaces, colons and ``0x`` between digits are ignored, as is everything after
``#`` or ``|``.

Dumps of several lines with offsets are supported: those of xxd, ``hexdump -C``, ``od``, librdkafka
and Wireshark, including its "Follow TCP Stream" as a hex dump, which indents the broker's bytes. A
new dump begins where the offset is 0 again. Times are unknown: every frame has time 0.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kproto.dialects import Dialect
from wiredump.conversation import Conversation
from wiredump.frame_boundaries import REQUEST_PREFIX, every_request
from wiredump.model import Anomaly, Connection, Item, Place

__all__ = ["HexItems", "is_hexadecimal"]

_FRONT: Final = re.compile(r"(?P<indent>\s*)(?P<mark>[<>])?[ \t]*(?P<rest>.*)")
_OFFSET: Final = re.compile(r"(?:0x)?(?P<offset>[0-9a-fA-F]{4,8})(?P<colon>:?)(?P<gap>[ \t]+|$)")
_TOKEN: Final = re.compile(r"(?P<digits>[0-9a-fA-F]+)(?P<gap>[ \t]*)")
_TITLE: Final = re.compile(r"\S.* hexdump \(\d+ bytes\):")
"""The line that librdkafka writes above a dump."""

_A_LINE: Final = 16
"""The most bytes in a line of a dump; the rest of the line is their text."""
_HALF: Final = 8
"""The number of bytes after which some dumps have a wider gap."""
_INDENTED: Final = 4


class _Line(NamedTuple):
    """A line. ``offset`` is None if it is not part of a dump; ``raw`` is empty if it has no
    bytes."""

    raw: bytes
    mark: str | None = None
    offset: int | None = None
    is_indented: bool = False


def is_hexadecimal(text: str) -> bool:
    """Whether the first lines of a text are frames in hexadecimal."""
    lines = text.splitlines()[:20]
    if len(lines) > 1 and not text.endswith("\n"):
        lines.pop()  # may be cut
    due, has_bytes = 0, False
    for line in lines:
        read = _read(line, due)
        if read is None:
            return False
        if read.raw:
            has_bytes = True
            due = 0 if read.offset is None else read.offset + len(read.raw)
    return has_bytes


def _read(text: str, due: int) -> _Line | None:
    """Parse a line; None if it is neither hexadecimal nor part of a dump. ``due`` is the expected
    offset of the next line of the current dump."""
    text = text.rstrip("\r\n").split("#")[0].rstrip()
    if not text or _TITLE.fullmatch(text):
        return _Line(b"")
    front = _FRONT.fullmatch(text)
    assert front is not None
    mark, rest = front["mark"], front["rest"]
    found = _OFFSET.match(rest)
    if found is not None:
        offset, behind = int(found["offset"], 16), rest[found.end() :]
        is_offset = bool(found["colon"]) or len(found["gap"]) > 1 or _is_pairs(behind)
        if not behind and offset == due and due:
            return _Line(b"")  # the offset without bytes that ends a dump
        in_dump = bool(found["colon"]) or (due > 0 and len(found["gap"]) > 1)
        if is_offset and (in_dump or offset in (0, due)):
            raw = _dumped(behind)
            return None if raw is None else _Line(raw, mark, offset, _is_indented(front["indent"]))
    raw = _plain(rest)
    return None if raw is None else _Line(raw, mark)


def _is_indented(indent: str) -> bool:
    return len(indent.expandtabs()) >= _INDENTED


def _is_pairs(text: str) -> bool:
    first = text.split(maxsplit=1)[:1]
    return bool(first) and len(first[0]) == 2


def _dumped(text: str) -> bytes | None:
    """Return the digits of a dump's line, without the text beside them."""
    digits = ""
    while (found := _TOKEN.match(text)) is not None and len(found["digits"]) % 2 == 0:
        digits += found["digits"]
        count, text = len(digits) // 2, text[found.end() :]
        gap = found["gap"]
        if count >= _A_LINE or "\t" in gap or not gap:
            break
        if len(gap) > 2 or (len(gap) == 2 and count != _HALF):
            break
    return bytes.fromhex(digits) if 0 < len(digits) <= 2 * _A_LINE else None


def _plain(text: str) -> bytes | None:
    digits = re.sub(r"0x|[ \t:]", "", text.split("|")[0])
    try:
        return bytes.fromhex(digits) or None
    except ValueError:
        return None


class HexItems:
    """Takes lines in order. All of them belong to one connection with this ``number``."""

    def __init__(self, codec: Dialect | None = None, *, capture: int = 0, number: int = 0) -> None:
        connection = Connection(
            number, "client:0", "broker:9092", 0, from_start=True, place=Place(capture, 0)
        )
        self.connections = {number: connection}
        self._talk = Conversation(connection, codec)
        self._capture = capture
        self._offset = 0
        self._from_client = True
        self._by_mark = False
        self._by_indent = False
        self._unanswered: Counter[bytes] = Counter()
        """How many requests with a correlation id have no response yet."""
        self._due = {True: 0, False: 0}

    def read(self, lines: Iterable[str]) -> Iterator[Item]:
        """Yield the items of a whole text."""
        for line in lines:
            yield from self.feed(line)
        yield from self._talk.end("the text ends")

    def feed(self, text: str) -> list[Item]:
        """Return the items that a line completes."""
        place = Place(self._capture, self._offset)
        self._offset += len(text.encode(errors="surrogateescape"))
        line = _read(text, self._due_of(text))
        if line is None:
            return [Anomaly("damaged", "neither hexadecimal nor a dump of it", place, 0)]
        if not line.raw:
            return []
        self._turn(line)
        items: list[Item] = []
        due = self._due[self._from_client]
        if line.offset is not None and line.offset not in (0, due):
            reason = f"the dump continues at {line.offset:#x} instead of {due:#x}"
            items.append(Anomaly("damaged", reason, place, 0))
        self._due[self._from_client] = 0 if line.offset is None else line.offset + len(line.raw)
        return items + self._talk.data(self._from_client, line.raw, 0, place)

    def _due_of(self, text: str) -> int:
        """Return the expected offset: there may be a dump for each direction."""
        if not self._by_indent:
            return self._due[self._from_client]
        return self._due[not _is_indented(text[: len(text) - len(text.lstrip())])]

    def _turn(self, line: _Line) -> None:
        """Find the direction of a line: by its mark or indentation or, without any, by its
        bytes."""
        if line.mark is not None:
            self._by_mark = True
            self._from_client = line.mark == ">"
        elif self._by_mark:
            return
        elif line.offset is not None and (line.is_indented or self._by_indent):
            self._by_indent = True
            self._from_client = not line.is_indented
        elif not line.offset:
            self._guess(line.raw, line.offset == 0)

    def _guess(self, raw: bytes, is_dump: bool) -> None:
        """Guess the direction by the first bytes of a line or a dump, where a frame is assumed to
        begin."""
        if len(raw) < REQUEST_PREFIX:
            return
        answered = raw[4:8]
        fits = every_request().fits(raw, 0, len(raw))
        if self._unanswered[answered] > 0:
            self._unanswered[answered] -= 1
            self._from_client = False
        elif fits or (fits is None and is_dump):
            self._unanswered[raw[8:12]] += 1
            self._from_client = True
        elif is_dump or int.from_bytes(raw[:4], "big", signed=True) == len(raw) - 4:
            self._from_client = False
