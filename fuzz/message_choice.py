"""Choose the message and version of an input by its first four bytes.

::

    dialect   1 byte, modulo their number
    message   2 bytes, the checksum of its name; another number means the next one above
    version   1 byte, modulo the number of its versions

So every input selects some message, and still selects the same one after messages and versions are
added.
"""

from __future__ import annotations

import bisect
import zlib
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple

import kproto
from kproto.codec import registry
from kproto.schema.model import MessageSchema
from kspec.vectors import vectors

__all__ = ["HEAD", "Choice", "choice_of", "head_of", "of_vectors", "pairs"]

HEAD: Final = 4

_DIALECTS: Final = ("kafka", "kip-183", "kip-240", "kip-455-old", "kip-455-new", "kip-860")
"""New dialects are added at the end."""


class Choice(NamedTuple):
    dialect: str
    name: str
    version: int

    @property
    def message(self) -> Any:
        return kproto.dialect(self.dialect).message(self.name)

    @property
    def schema(self) -> MessageSchema:
        return registry.schema_of(self.message)


def choice_of(head: bytes) -> Choice:
    """Decode the first four bytes, or as many as there are."""
    head = head.ljust(HEAD, b"\0")
    dialect = _DIALECTS[head[0] % len(_DIALECTS)]
    marks, names = _messages(dialect)
    at = bisect.bisect_left(marks, int.from_bytes(head[1:3], "big")) % len(marks)
    versions = list(kproto.dialect(dialect).message(names[at]).VALID_VERSIONS)
    return Choice(dialect, names[at], versions[head[3] % len(versions)])


def head_of(choice: Choice) -> bytes:
    """Return the bytes that choose it."""
    versions = list(choice.message.VALID_VERSIONS)
    place = versions.index(choice.version)
    dialect = _DIALECTS.index(choice.dialect)
    return bytes((dialect,)) + _mark(choice.name).to_bytes(2, "big") + bytes((place,))


@cache
def pairs() -> tuple[Choice, ...]:
    """Return every (message, version) of the released protocol, and those that drafts change."""
    found = []
    for dialect in _DIALECTS:
        kafka = kproto.dialect("kafka")
        for name in _messages(dialect)[1]:
            cls = kproto.dialect(dialect).message(name)
            if dialect == "kafka" or name not in _names("kafka") or cls is not kafka.message(name):
                found += [Choice(dialect, name, version) for version in cls.VALID_VERSIONS]
    return tuple(found)


def of_vectors(one_in: int) -> Iterator[tuple[Choice, bytes]]:
    """Yield bodies of ``kspec vectors``, valid and invalid, of one version in so many of each
    message."""
    for choice in pairs():
        if _mark(f"{choice.name} {choice.version}") % one_in == 0:
            dialect = kproto.dialect(choice.dialect)
            seen = set()
            for vector in vectors(dialect, [choice.name]):
                if vector.version == choice.version and vector.kind not in seen:
                    seen.add(vector.kind)
                    yield choice, vector.data[vector.body_at :]


def _mark(name: str) -> int:
    return zlib.crc32(name.encode()) & 0xFFFF


@cache
def _names(dialect: str) -> frozenset[str]:
    return frozenset(_messages(dialect)[1])


@cache
def _messages(dialect: str) -> tuple[list[int], list[str]]:
    made = kproto.dialect(dialect)
    names = [name for name in made.message_names() if name == made.message(name).MESSAGE_NAME]
    marked = sorted((_mark(name), name) for name in names)
    return [mark for mark, _ in marked], [name for _, name in marked]
