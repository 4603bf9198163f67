"""Version ranges in the notation of Kafka's schemas: ``0``, ``1-4``, ``2+``, ``none``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import msgspec

__all__ = ["MAX_VERSION", "Versions"]

MAX_VERSION = 32767
"""The end of an open range: api versions are int16."""


class Versions(msgspec.Struct, frozen=True):
    """A closed range of versions. It is empty if ``highest < lowest``."""

    lowest: int
    highest: int

    NONE: ClassVar[Versions]
    ALL: ClassVar[Versions]

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Parse Kafka's notation. Raises ValueError with the problem in ``text``."""
        text = text.strip()
        if text in ("none", ""):
            return cls.NONE
        try:
            if text.endswith("+"):
                lowest, highest = int(text[:-1]), MAX_VERSION
            elif "-" in text:
                first, _, last = text.partition("-")
                lowest, highest = int(first), int(last)
            else:
                lowest = highest = int(text)
        except ValueError:
            raise ValueError(f"{text!r} is not a version range; write 3, 1-4, 2+ or none") from None
        if not 0 <= lowest <= highest <= MAX_VERSION:
            raise ValueError(f"version range {text!r} must rise from 0 to {MAX_VERSION} at most")
        return cls(lowest, highest)

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.lowest <= version <= self.highest

    def __bool__(self) -> bool:
        return self.lowest <= self.highest

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.lowest, self.highest + 1))

    def __len__(self) -> int:
        return max(0, self.highest - self.lowest + 1)

    def intersect(self, other: Versions) -> Versions:
        if other.lowest <= self.lowest <= self.highest <= other.highest:
            return self
        lowest, highest = max(self.lowest, other.lowest), min(self.highest, other.highest)
        return Versions(lowest, highest) if lowest <= highest else Versions.NONE

    def covers(self, other: Versions) -> bool:
        """Whether this range contains every version of ``other``."""
        return not other or (self.lowest <= other.lowest and other.highest <= self.highest)

    def __str__(self) -> str:
        if not self:
            return "none"
        if self.highest == MAX_VERSION:
            return f"{self.lowest}+"
        return str(self.lowest) if self.lowest == self.highest else f"{self.lowest}-{self.highest}"


Versions.NONE = Versions(0, -1)
Versions.ALL = Versions(0, MAX_VERSION)
