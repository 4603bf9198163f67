"""Frames written down in hexadecimal, as people paste them: to items.

A line of digits is the bytes of one direction, ``>`` or ``<`` in front of it says which (a request,
a response); without one the direction stays what it was, and the first is the client's, unless the
bytes say otherwise. Spaces, colons and ``0x`` between the digits do not matter, and what follows
``#`` or ``|`` is for people.

Dumps of several lines with offsets are read for their bytes: xxd's, ``hexdump -C``'s, ``od``'s,
librdkafka's, Wireshark's, and its "Follow TCP Stream" as a hex dump, which indents what the broker
said. A new dump begins where the offset is 0 again. Times are unknown: every frame has time 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kproto.dialects import Dialect
from wiredump.boundaries import REQUEST_PREFIX, every_request
from wiredump.conversation import Conversation
from wiredump.model import Anomaly, Connection, Item, Place

__all__ = ["HexItems", "is_hexadecimal"]

_FRONT: Final = re.compile(r"(?P<indent>\s*)(?P<mark>[<>])?[ \t]*(?P<rest>.*)")
_OFFSET: Final = re.compile(r"(?:0x)?(?P<offset>[0-9a-fA-F]{4,8})(?P<colon>:?)(?P<gap>[ \t]+|$)")
_TOKEN: Final = re.compile(r"(?P<digits>[0-9a-fA-F]+)(?P<gap>[ \t]*)")
_TITLE: Final = re.compile(r"\S.* hexdump \(\d+ bytes\):")
"""What librdkafka writes above a dump."""

_A_LINE: Final = 16
"""Bytes that a line of a dump has at most: what follows them is their text."""
_HALF: Final = 8
"""Bytes after which some dumps leave a wider gap."""
_INDENTED: Final = 4


class _Line(NamedTuple):
    """``offset`` is None for digits that are no dump; ``raw`` is empty for what has no bytes."""

    raw: bytes
    mark: str | None = None
    offset: int | None = None
    is_indented: bool = False


def is_hexadecimal(text: str) -> bool:
    """Whether the first lines of a text are frames in hexadecimal."""
    lines = text.splitlines()[:20]
    if len(lines) > 1 and not text.endswith("\n"):
        lines.pop()  # perhaps cut
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
    """One line; None where it is neither hexadecimal nor a dump of it. ``due`` is the offset that
    the next line of a dump has, if it is not that of another dump."""
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
            return _Line(b"")  # the bare offset that ends a dump
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
    """The digits of a dump's line, without the text beside them."""
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
    """Feed it lines in order. All is one connection, numbered ``number``."""

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
        self._asked: list[bytes] = []
        self._due = {True: 0, False: 0}

    def read(self, lines: Iterable[str]) -> Iterator[Item]:
        """The items of a whole text."""
        for line in lines:
            yield from self.feed(line)
        yield from self._talk.end("the text ends")

    def feed(self, text: str) -> list[Item]:
        """What a line completes."""
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
            reason = f"the dump goes on at {line.offset:#x}, where {due:#x} was due"
            items.append(Anomaly("damaged", reason, place, 0))
        self._due[self._from_client] = 0 if line.offset is None else line.offset + len(line.raw)
        return items + self._talk.data(self._from_client, line.raw, 0, place)

    def _due_of(self, text: str) -> int:
        """Two dumps may be under way, one of each direction."""
        if not self._by_indent:
            return self._due[self._from_client]
        return self._due[not _is_indented(text[: len(text) - len(text.lstrip())])]

    def _turn(self, line: _Line) -> None:
        """Whose bytes these are: as marked or indented, or, as long as nothing is, as they look."""
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
        """By the bytes that begin a line, or a dump, where a frame is taken to begin."""
        if len(raw) < REQUEST_PREFIX:
            return
        answered = raw[4:8]
        fits = every_request().fits(raw, 0, len(raw))
        if answered in self._asked:
            self._asked.remove(answered)
            self._from_client = False
        elif fits or (fits is None and is_dump):
            self._asked.append(raw[8:12])
            self._from_client = True
        elif is_dump or int.from_bytes(raw[:4], "big", signed=True) == len(raw) - 4:
            self._from_client = False
