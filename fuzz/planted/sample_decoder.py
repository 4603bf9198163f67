"""A hand-written decoder of ListPartitionReassignments' response, version 0, with ten optional
bugs.

It is small and otherwise correct, and imports only the standard library. ``BUGS`` describes the
bugs. It raises ``BadAnswer`` for invalid bytes; any other exception is a bug.
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ["BUGS", "BadAnswer", "Reader", "answer"]

BUGS: Final = {
    1: "allocates an array by its count before looking at the data",
    2: "reads tagged fields recursively without checking for the end of the data",
    3: "accepts bytes behind the answer",
    4: "replaces invalid UTF-8 by question marks",
    5: "iterates over a null array",
    6: "reads a length above 2147483647 as negative, and so as null",
    7: "reads varints of at most two bytes",
    8: "reads the size of a tagged field as one byte",
    9: "reads error codes as unsigned",
    10: "loops as often as the count of tagged fields says",
}


class BadAnswer(Exception):
    """The bytes are not a valid answer."""


class Reader:
    """Bytes and a read position."""

    def __init__(self, data: bytes, bug: int = 0) -> None:
        self.data = data
        self.at = 0
        self.bug = bug

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise BadAnswer(f"{size} bytes needed at {self.at}")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big", signed=True)

    def varint(self) -> int:
        value = 0
        for place in range(2 if self.bug == 7 else 5):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                break
        else:
            if self.bug != 7:
                raise BadAnswer(f"a varint too long at {self.at}")
        if value > 0xFFFFFFFF:
            raise BadAnswer(f"a varint too large at {self.at}")
        return value

    def length(self) -> int | None:
        """Return a string; None means null."""
        said = self.varint()
        if said > 0x80000000:
            if self.bug == 6:
                return None
            raise BadAnswer(f"a length of {said - 1}")
        return said - 1 if said else None

    def text(self, *, nullable: bool) -> str | None:
        length = self.length()
        if length is None:
            if nullable or self.bug == 6:
                return None
            raise BadAnswer("null for a name")
        if length > 32767:
            raise BadAnswer(f"a text of {length} bytes")
        try:
            return self.take(length).decode(errors="replace" if self.bug == 4 else "strict")
        except UnicodeDecodeError as error:
            raise BadAnswer(f"a text that is none: {error}") from None

    def count(self, least: int) -> int:
        """Return the length of a non-nullable array with at least ``least`` bytes per element."""
        count = self.length()
        if count is None:
            if self.bug == 5:
                return len(None)  # type: ignore[arg-type]
            if self.bug == 6:
                return 0
            raise BadAnswer("null for an array")
        if self.bug == 1:
            [None] * count
        if count * least > len(self.data) - self.at:
            raise BadAnswer(f"{count} elements at {self.at}")
        return count

    def numbers(self) -> list[int]:
        return [self.number(4) for _ in range(self.count(4))]

    # ---- tagged fields ---------------------------------------------------------------------------

    def tags(self) -> None:
        count = self.varint()
        if self.bug == 10:
            return self._round(count)
        if self.bug == 2:
            return self._down(count)
        last = -1
        if count > len(self.data) - self.at:
            raise BadAnswer(f"{count} tagged fields at {self.at}")
        for _ in range(count):
            tag = self.varint()
            if tag <= last or tag > 0x7FFFFFFF:
                raise BadAnswer(f"tag {tag} after {last}")
            last = tag
            self.take(self.take(1)[0] if self.bug == 8 else self.varint())
        return None

    def _round(self, count: int) -> None:
        """Skip a tagged field. Past the end every byte reads as 0, and so as a tag of no bytes."""
        last = -1
        for _ in range(count):
            if self.at >= len(self.data):
                continue
            tag = self.varint()
            if tag <= last or tag > 0x7FFFFFFF:
                raise BadAnswer(f"tag {tag} after {last}")
            last = tag
            self.take(self.varint())

    def _down(self, left: int, last: int = -1) -> None:
        if not left:
            return
        if self.at < len(self.data):
            tag = self.varint()
            if tag <= last or tag > 0x7FFFFFFF:
                raise BadAnswer(f"tag {tag} after {last}")
            last = tag
            self.take(self.varint())
        self._down(left - 1, last)


def answer(data: bytes, bug: int = 0) -> dict[str, Any]:
    """Decode the body behind a response header of version 1, as Kafka's JSON. ``data`` begins
    behind the correlation id. Raises BadAnswer."""
    reader = Reader(data, bug)
    reader.tags()
    said: dict[str, Any] = {"throttleTimeMs": reader.number(4)}
    code = reader.number(2)
    said["errorCode"] = code & 0xFFFF if bug == 9 else code
    said["errorMessage"] = reader.text(nullable=True)
    said["topics"] = [_topic(reader) for _ in range(reader.count(3))]
    reader.tags()
    if reader.at != len(data) and bug != 3:
        raise BadAnswer(f"{len(data) - reader.at} bytes too many")
    return said


def _topic(reader: Reader) -> dict[str, Any]:
    said: dict[str, Any] = {"name": reader.text(nullable=False)}
    said["partitions"] = [_partition(reader) for _ in range(reader.count(8))]
    reader.tags()
    return said


def _partition(reader: Reader) -> dict[str, Any]:
    said: dict[str, Any] = {"partitionIndex": reader.number(4)}
    for name in ("replicas", "addingReplicas", "removingReplicas"):
        said[name] = reader.numbers()
    reader.tags()
    return said
