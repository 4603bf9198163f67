"""Frames written down in hexadecimal, as people paste them: to items.

A line of digits is the bytes of one direction, ``>`` or ``<`` in front of it says which (a request,
a response); without one the direction stays what it was, and the first is the client's. Dumps of
several lines with offsets (``xxd``, ``hexdump -C``, Wireshark's) are read for their bytes; a new
dump begins where the offset is 0 again. Spaces, colons and ``0x`` do not matter, and what follows
``#`` or stands beside the digits is for people. Times are unknown: every frame has time 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from kproto.dialects import Dialect
from wiredump.boundaries import every_request
from wiredump.conversation import Conversation
from wiredump.model import Anomaly, Connection, Item, Place

__all__ = ["HexItems", "is_hexadecimal"]

_LINE: Final = re.compile(
    r"\s*(?P<mark>[<>])?\s*(?:(?P<offset>(?:0x)?[0-9a-fA-F]{4,8}):?[ \t]{1,2}(?=[0-9a-fA-F]{2}))?"
    r"(?P<digits>(?:0x)?(?:[0-9a-fA-F]{2}[ :]{0,2})+)(?P<rest>[ \t|#].*)?\s*"
)


def is_hexadecimal(text: str) -> bool:
    """Whether the first lines of a text are frames in hexadecimal."""
    lines = [line for line in text.splitlines()[:20] if line.split("#")[0].strip()]
    return bool(lines) and all(_LINE.fullmatch(line) for line in lines[: max(1, len(lines) - 1)])


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
        self._told = False

    def read(self, lines: Iterable[str]) -> Iterator[Item]:
        """The items of a whole text."""
        for line in lines:
            yield from self.feed(line)
        yield from self._talk.end("the text ends")

    def feed(self, line: str) -> list[Item]:
        """What a line completes."""
        place = Place(self._capture, self._offset)
        self._offset += len(line.encode(errors="surrogateescape"))
        text = line.split("#")[0].rstrip()
        if not text.strip() or re.fullmatch(r"\s*(0x)?[0-9a-fA-F]{7,8}", text):
            return []  # nothing, or the bare offset that ends a hexdump
        found = _LINE.fullmatch(text)
        raw = _bytes(found["digits"]) if found else None
        if found is None or raw is None:
            return [Anomaly("damaged", "neither hexadecimal nor a dump of it", place, 0)]
        self._turn(found["mark"], raw)
        return self._talk.data(self._from_client, raw, 0, place)

    def _turn(self, mark: str | None, raw: bytes) -> None:
        """Whose bytes these are: as marked, or, as long as nothing is, as they look."""
        if mark is not None:
            self._told = True
            self._from_client = mark == ">"
        elif not self._told and every_request().fits(raw, 0, len(raw)):
            self._from_client = True
        elif not self._told and self._offset and len(raw) >= 8:
            size = int.from_bytes(raw[:4], "big", signed=True)
            if size == len(raw) - 4:
                self._from_client = False


def _bytes(digits: str) -> bytes | None:
    try:
        return bytes.fromhex(digits.replace("0x", "").replace(":", " "))
    except ValueError:
        return None
