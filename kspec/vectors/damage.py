"""Invalid bodies made from valid ones, one change at a time, each with a known verdict.

The reference codec's spans give the places. Of fields that occur several times, only the first is
changed. Inside the schema's own tagged sections only tags are changed, as a change of length there
would also need changes to the enclosing sizes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from kproto import reference
from kproto.codec.runtime import unsigned_varint
from kproto.reference import FieldSpan
from kproto.schema.model import MessageSchema
from kspec.vectors.places import Place, padded, place_of
from kspec.vectors.vector import Verdict

__all__ = ["KINDS", "InvalidBody", "damaged"]

KINDS: Final = {
    "prefix": "the body ends early, at a field's first byte or in its midst",
    "trailing": "a byte behind the body",
    "length": "a length of one byte more than there is",
    "count": "a count of 2147483647 elements",
    "negative-length": "a length or count of -2",
    "unexpected-null": "null where the version does not allow it",
    "utf-8": "a string with a byte that UTF-8 never has",
    "long-varint": "a length or count as a varint of six bytes",
    "padded-varint": "a length or count as a varint of a byte more than it takes",
    "bool": "a bool of 2",
    "presence": "a nullable struct's marker that is neither of the two",
    "tag-count": "2147483647 tagged fields",
    "tag-size": "an unknown tagged field of one byte more than there is",
    "tag-twice": "the same unknown tag twice",
    "tag-order": "tags in descending order",
    "known-tag-size": "a known tagged field with a size of one more than its value takes",
}
"""Every kind of damage, with a description."""

_HUGE: Final = 2**31 - 1


class InvalidBody(NamedTuple):
    """An invalid body. ``where`` is the damaged field's path without indices, or the offset at
    which a prefix ends; it is empty for damage to the body as a whole."""

    kind: str
    where: str
    verdict: Verdict
    body: bytes


class _Change(NamedTuple):
    """Puts ``new`` in place of the bytes from ``start`` to ``end``."""

    kind: str
    verdict: Verdict
    start: int
    end: int
    new: bytes


def damaged(schema: MessageSchema, version: int, body: bytes) -> Iterator[InvalidBody]:
    """Yield invalid variants of ``body``, which is valid. All differ from it and from each
    other."""
    spans = reference.fields(schema, version, body)
    yield from _prefixes(spans, body)
    yield InvalidBody("trailing", "", "acceptable", body + b"\x00")
    seen: set[tuple[str, str]] = set()
    for span in _outside_tagged(spans):
        where = re.sub(r"\[\d+\]", "[]", span.path)
        for kind, verdict, start, end, new in _changes(schema, version, span, spans, body):
            if (kind, where) not in seen:
                seen.add((kind, where))
                yield InvalidBody(kind, where, verdict, body[:start] + new + body[end:])
    if schema.is_flexible(version):
        yield from _known_tags(spans, body)
        yield from _last_tags(spans, body)


def _prefixes(spans: list[FieldSpan], body: bytes) -> Iterator[InvalidBody]:
    cuts = {span.offset + part for span in spans if span.leaf for part in (0, span.length // 2)}
    for cut in sorted(cuts):
        if cut < len(body):
            yield InvalidBody("prefix", str(cut), "invalid", body[:cut])


def _outside_tagged(spans: list[FieldSpan]) -> Iterator[FieldSpan]:
    until = 0
    for span in spans:
        if span.type == "tagged fields":
            until = max(until, span.offset + span.length)
        if span.offset >= until:
            yield span


def _changes(
    schema: MessageSchema, version: int, span: FieldSpan, spans: list[FieldSpan], body: bytes
) -> Iterator[_Change]:
    if span.type == "bool":
        yield _Change("bool", "valid", span.offset, span.offset + 1, b"\x02")
    elif span.type == "presence":
        yield _Change("presence", "acceptable", span.offset, span.offset + 1, b"\x05")
    elif span.type in ("count", "string", "bytes", "records") and span.value is not None:
        place = place_of(schema, version, span, spans)
        yield from _lengths(place)
        if span.type == "count":
            yield _Change("count", "invalid", place.start, place.end, place.prefix(_HUGE))
            return
        longer = place.prefix(len(body) - place.end + 1)
        yield _Change("length", "invalid", place.start, place.end, longer)
        if span.type == "string" and place.value:
            yield _Change("utf-8", "acceptable", place.end, place.end + 1, b"\xff")


def _lengths(place: Place) -> Iterator[_Change]:
    assert place.value is not None
    start, end = place.start, place.end
    if not place.nullable:
        # Null is valid in nullable fields; the pattern ``null`` covers it.
        yield _Change("unexpected-null", "invalid", start, place.whole, place.prefix(None))
    if not place.flexible:
        verdict: Verdict = "acceptable" if place.nullable else "invalid"
        negative = (-2).to_bytes(place.size, "big", signed=True)
        yield _Change("negative-length", verdict, start, place.whole, negative)
        return
    varint = place.prefix(place.value)
    yield _Change("padded-varint", "valid", start, end, padded(varint, len(varint) + 1))
    yield _Change("long-varint", "invalid", start, end, padded(varint, 6))


def _known_tags(spans: list[FieldSpan], body: bytes) -> Iterator[InvalidBody]:
    """Find the size of the schema's first tagged field."""
    for span in spans:
        end = span.offset + span.length
        # Its last byte is the size, if that is a varint of one byte.
        if span.type == "tag" and ".unknown_tags" not in f".{span.path}" and body[end - 2] < 0x80:
            if body[end - 1] < 0x7F:
                changed = body[: end - 1] + bytes((body[end - 1] + 1,)) + body[end:]
                where = re.sub(r"\[\d+\]", "[]", span.path)
                yield InvalidBody("known-tag-size", where, "acceptable", changed)
            return


def _last_tags(spans: list[FieldSpan], body: bytes) -> Iterator[InvalidBody]:
    """Replace the body's own tagged section, which is its last bytes. Fields that it had become
    absent."""
    section = next(each for each in spans if each.type == "tagged fields" and not each.path)
    for kind, verdict, tags in _SECTIONS:
        yield InvalidBody(kind, "", verdict, body[: section.offset] + tags)


def _unknown(number: int) -> bytes:
    return unsigned_varint(number) + b"\x01\xaa"


_SECTIONS: Final[tuple[tuple[str, Verdict, bytes], ...]] = (
    ("tag-count", "invalid", unsigned_varint(_HUGE)),
    ("tag-size", "invalid", b"\x01" + unsigned_varint(1000) + b"\x02\xaa"),
    ("tag-twice", "acceptable", b"\x02" + 2 * _unknown(1000)),
    ("tag-order", "acceptable", b"\x02" + _unknown(20000) + _unknown(1000)),
)
