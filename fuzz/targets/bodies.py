"""Any bytes as the body of any message, at any version, of any dialect.

**Holds:** generated Python and the C engine agree: on the same value to the bit, or on the same
error with the same offset, path and text; from the beginning and from an offset, with more bytes
behind, and in ``validate``, which makes no value. So does the reference codec, which reads the
schemas independently. A decoder reserves at most 2000 bytes per byte of input.

Both engines encode the decoded value to the same bytes. These are the input, unless it contains one
of these (``differences``; Kafka's own classes accept all of them, and correct peers never send
them):

- a bool other than 0 and 1, which is true and is written as 1;
- a varint with more bytes than necessary: a length, a count, a tag, a size, a presence marker;
- a known tagged field that holds its default, which encoders leave out.

The encoded bytes decode to an equal value and encode to the same bytes again.

**Accepted:** DecodeError from decoders. Nothing from encoders: what was decoded can be encoded.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache, partial
from typing import Any, Final, NamedTuple

from fuzz import bounds, message_choice
from fuzz.instruments import instrumented
from fuzz.mutations import Mutate, telling
from kproto import reference
from kproto.codec import registry
from kproto.codec.runtime import unsigned_varint
from kproto.errors import DecodeError
from kproto.native.compiled import UnsupportedPlan, compile_plan
from kproto.reference.random_trees import random_tree
from kproto.schema.model import MessageSchema
from tests.support.instances import to_instance, to_tree

__all__ = ["check", "differences", "mutate", "seeds"]

A_BYTE: Final = 2000
REFERRED: Final = 8
"""The reference codec decodes one body in so many."""

_VARINT_FIRST: Final = ("string", "bytes", "records", "count", "tag count", "presence")


class _Codecs(NamedTuple):
    schema: MessageSchema
    pure_decode: Any
    pure_encode: Any
    native: Any


@cache
def _codecs(choice: message_choice.Choice) -> _Codecs:
    cls, version = choice.message, choice.version
    plan, structs = registry.plan_of(cls, version), registry.structs_of(cls)
    explained = registry._explain_decode(plan, structs), registry._explain_encode(plan, structs)
    try:
        native: Any = compile_plan(plan, structs, *explained)
    except UnsupportedPlan as error:
        raise AssertionError(f"the engine does not support {choice}: {error}") from None
    pure_decode = instrumented(registry.generated_decoder(cls, version))
    pure_encode = instrumented(registry.generated_encoder(cls, version))
    return _Codecs(choice.schema, pure_decode, pure_encode, native)


def check(data: bytes) -> None:
    choice = message_choice.choice_of(data[: message_choice.HEAD])
    body = data[message_choice.HEAD :]
    codecs = _codecs(choice)
    decoded = _outcome(codecs.pure_decode, body, 0)
    described = _describe(decoded)
    assert _describe(_outcome(codecs.native.decode, body, 0)) == described
    assert _outcome(codecs.native.validate, body, 0) == (
        decoded if isinstance(decoded, _Error) else decoded[1]
    )
    for decode in (codecs.pure_decode, codecs.native.decode):
        bounds.allocating(partial(_outcome, decode, body, 0), body, a_byte=A_BYTE)
    _same_within(codecs, decoded, body)
    if bounds.is_due(body, REFERRED):
        _same_by_reference(choice, codecs.schema, decoded, body)
    if not isinstance(decoded, _Error):
        _same_written(choice, codecs, decoded[0], body[: decoded[1]])


class _Error(NamedTuple):
    kind: str
    text: str
    offset: int
    path: str


def _outcome(call: Any, *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except DecodeError as error:
        return _Error(type(error).__name__, error.problem, error.offset, error.path)


def _describe(outcome: Any) -> Any:
    """Return a value as text that shows types and bits, including those of a NaN."""
    return outcome if isinstance(outcome, _Error) else (repr(outcome[0]), outcome[1])


def _same_within(codecs: _Codecs, decoded: Any, body: bytes) -> None:
    """Decode inside a buffer, as headers are decoded. The bytes behind may make an error
    disappear."""
    before = b"\xff\x01\x00"
    found = _outcome(codecs.pure_decode, before + body, len(before))
    assert _describe(_outcome(codecs.native.decode, before + body, len(before))) == _describe(found)
    if isinstance(decoded, _Error):
        assert found == decoded._replace(offset=decoded.offset + len(before))
    else:
        assert (repr(found[0]), found[1]) == (repr(decoded[0]), decoded[1] + len(before))


def _same_by_reference(
    choice: message_choice.Choice, schema: MessageSchema, decoded: Any, body: bytes
) -> None:
    found = _outcome(lambda: reference.decode(schema, choice.version, body, allow_trailing=True))
    if isinstance(decoded, _Error):
        assert found == decoded
    else:
        assert repr(found) == repr(to_tree(decoded[0]))


def _same_written(choice: message_choice.Choice, codecs: _Codecs, value: Any, body: bytes) -> None:
    written = codecs.pure_encode(value)
    assert codecs.native.encode(value) == written
    if written != body or bounds.is_due(body, REFERRED):
        found = differences(codecs.schema, choice.version, body, written)
        assert (written != body) == bool(found), (found, written.hex(), body.hex())
    again, end = codecs.native.decode(written, 0)
    assert (repr(again), end) == (repr(value), len(written))
    assert codecs.native.encode(again) == written


def differences(schema: MessageSchema, version: int, body: bytes, written: bytes) -> set[str]:
    """Return what in the valid ``body`` no encoder writes. ``written`` is what one did write."""
    flexible = schema.is_flexible(version)
    found = set()
    spans = reference.fields(schema, version, body)
    sent = {span.path for span in spans if span.type == "tag"}
    if sent - {
        each.path for each in reference.fields(schema, version, written) if each.type == "tag"
    }:
        found.add("default")
    for span in spans:
        if not span.leaf:
            continue
        if span.type == "bool" and body[span.offset] > 1:
            found.add("bool")
        if span.type == "tag":
            tag = _varint(body, span.offset)
            size = _varint(body, span.offset + tag[1])
            if tag[1] + size[1] != len(unsigned_varint(tag[0])) + len(unsigned_varint(size[0])):
                found.add("varint")
        elif flexible and span.type in _VARINT_FIRST and not _is_marker(span, body):
            number, length = _varint(body, span.offset)
            if length != len(unsigned_varint(number)):
                found.add("varint")
    return found


def _is_marker(span: reference.FieldSpan, body: bytes) -> bool:
    """A presence marker of one byte, not a varint: -1 or 1."""
    return span.type == "presence" and body[span.offset] == 0xFF


def _varint(body: bytes, at: int) -> tuple[int, int]:
    """Decode an unsigned varint, and return its length too."""
    value = length = 0
    while True:
        byte = body[at + length]
        value |= (byte & 0x7F) << (7 * length)
        length += 1
        if byte < 0x80:
            return value, length


def seeds() -> Iterator[bytes]:
    """Yield vectors, valid and invalid, of a version or two of every message."""
    for choice, body in message_choice.of_vectors(9):
        if len(body) < 600:
            yield message_choice.head_of(choice) + body


def mutate(data: bytes, max_size: int, rng: random.Random, plainly: Mutate) -> bytes:
    """Mutate the body only, write a special number in it, change the version, or make a new
    body."""
    head, body = data[: message_choice.HEAD], data[message_choice.HEAD :]
    kind = rng.randrange(4)
    if kind == 0:
        return head + plainly(body, max(1, max_size - message_choice.HEAD))
    if kind == 1:
        return head + telling(body, rng)
    if kind == 2:
        return head[:3] + bytes((rng.randrange(256),)) + body
    choice = (
        rng.choice(message_choice.pairs()) if rng.random() < 0.5 else message_choice.choice_of(head)
    )
    tree = random_tree(choice.schema, choice.version, rng, size=rng.choice((2, 5, 20)), nan=True)
    message = to_instance(choice.message, tree, choice.schema)
    return message_choice.head_of(choice) + bytes(message.encode(choice.version))
