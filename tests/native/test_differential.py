"""Native against pure against the reference: the same values, bytes and errors, to the word."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kproto
import kproto.messages
from kproto import reference
from kproto.codec import registry
from kproto.errors import DecodeError, KprotoError
from kproto.reference.random_trees import random_tree
from kproto.schema.model import MessageSchema
from tests.support import engines, seeds
from tests.support.full import quickly_drawn
from tests.support.instances import to_instance, to_tree
from tests.support.schemas import of_dialect, released
from tests.support.shaken import shake
from tests.support.strategies import messages_and_trees

RELEASED = list(released().values())
Drawn = tuple[MessageSchema, int, dict[str, Any]]


class Codecs:
    """The codecs of both engines for one message and version."""

    def __init__(self, schema: MessageSchema, version: int, folder: str = "kafka") -> None:
        self.cls = kproto.dialect(folder.replace("_", "-")).message(schema.name)
        compiled = registry.compiled_plan(self.cls, version)
        assert compiled is not None, "refused"
        self.native: Any = compiled
        self.pure_decode = registry.generated_decoder(self.cls, version)
        self.pure_encode = registry.generated_encoder(self.cls, version)


def outcome(call: Any, *args: Any) -> Any:
    """A value as text (a damaged float may be NaN) or an error, word by word."""
    try:
        value = call(*args)
    except KprotoError as error:
        place = (error.offset, error.path) if isinstance(error, DecodeError) else ()
        return type(error), str(error), place
    if isinstance(value, tuple):
        return repr(to_tree(value[0])), value[1]
    return value


def same_decoding(codecs: Codecs, data: bytes, *, offset: int = 0) -> Any:
    expected = outcome(codecs.pure_decode, data, offset)
    assert outcome(codecs.native.decode, data, offset) == expected, data.hex()
    validated = outcome(codecs.native.validate, data, offset)
    assert validated == (expected if isinstance(expected[0], type) else expected[1]), data.hex()
    return expected


@given(messages_and_trees(RELEASED), st.binary(max_size=3))
@pytest.mark.requirement("A-51")
def test_valid_messages(drawn: Drawn, before: bytes) -> None:
    schema, version, tree = drawn
    codecs = Codecs(schema, version)
    message = to_instance(codecs.cls, tree, schema)
    data = codecs.native.encode(message)
    assert data == codecs.pure_encode(message) == reference.encode(schema, version, tree)
    assert codecs.native.takes(data) == (True, True)
    decoded, end = codecs.native.decode(data)
    assert decoded == message
    assert end == len(data)
    assert to_tree(decoded) == reference.decode(schema, version, data)
    for buffer in (bytearray(data), memoryview(data)):
        assert codecs.native.decode(buffer) == (message, end)
    # From an offset, and with more after it.
    assert same_decoding(codecs, before + data + before, offset=len(before)) == (
        repr(to_tree(message)),
        len(before) + len(data),
    )


@given(messages_and_trees(RELEASED), st.data())
@pytest.mark.requirement("C-09")
def test_damaged_bytes(drawn: Drawn, draw: st.DataObject) -> None:
    schema, version, tree = drawn
    codecs = Codecs(schema, version)
    damaged = bytearray(reference.encode(schema, version, tree))
    for _ in range(draw.draw(st.integers(1, 3))):
        at = draw.draw(st.integers(0, len(damaged)))
        kind = draw.draw(st.sampled_from(["set", "cut", "insert", "remove"]))
        byte = draw.draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xC3, 0xFE, 0xFF]))
        if kind == "cut":
            del damaged[at:]
        elif kind == "insert":
            damaged.insert(at, byte)
        elif at < len(damaged) and kind == "set":
            damaged[at] = byte
        elif at < len(damaged):
            del damaged[at]
    data = bytes(damaged)
    found = same_decoding(codecs, data)
    expected = outcome(lambda: (reference.decode(schema, version, data, allow_trailing=True), None))
    assert found == expected if isinstance(found[0], type) else found[0] == expected[0]
    # What the engine gives up is exactly what is wrong.
    valid = not isinstance(found[0], type)
    assert codecs.native.takes(data) == (valid, valid)


@given(messages_and_trees(RELEASED), st.randoms(use_true_random=False), st.integers(1, 3))
@pytest.mark.requirement("C-04")
def test_wrong_values(drawn: Drawn, rng: Any, times: int) -> None:
    schema, version, tree = drawn
    codecs = Codecs(schema, version)
    message = shake(to_instance(codecs.cls, tree, schema), rng, times)
    same_encoding(codecs, message)


def same_encoding(codecs: Codecs, message: Any) -> None:
    expected = outcome(codecs.pure_encode, message)
    assert outcome(codecs.native.encode, message) == expected


@pytest.mark.parametrize(
    "folder", ["kafka", "kip_183", "kip_240", "kip_455_old", "kip_455_new", "kip_860"]
)
@pytest.mark.requirement("C-03")
def test_every_message_and_version(folder: str) -> None:
    """Every one is taken, none is left to Python; with values richer than hypothesis draws."""
    schemas = list(of_dialect(folder).values())
    for schema in quickly_drawn(f"differential:{folder}", schemas, 30):
        for version in schema.valid_versions:
            codecs = Codecs(schema, version, folder)
            rng = seeds.generator(f"differential:{folder}:{schema.name}:{version}")
            tree = random_tree(schema, version, rng, size=40, nan=True)
            message = to_instance(codecs.cls, tree, schema)
            data = codecs.native.encode(message)
            assert data == codecs.pure_encode(message)
            assert codecs.native.takes(data) == (True, True)
            same_decoding(codecs, data)
            for cut in {rng.randrange(len(data)) for _ in range(4)} if data else set():
                same_decoding(codecs, data[:cut])
            other = shake(message, rng)
            same_encoding(codecs, other)


@contextmanager
def uuids_by_constructor() -> Iterator[None]:
    from kproto.native.compiled import use_uuid_slots

    assert use_uuid_slots(False) is False
    try:
        yield
    finally:
        assert use_uuid_slots(True) is True, "this interpreter's UUIDs are not assembled"


def test_uuids_either_way() -> None:
    """Assembled from their slots, and, for an interpreter that has others, by Python."""
    schema = next(schema for schema in RELEASED if schema.name == "MetadataResponse")
    rng = seeds.generator("uuids")
    codecs = Codecs(schema, 12)
    for _ in range(20):
        message = to_instance(codecs.cls, random_tree(schema, 12, rng, size=40), schema)
        data = codecs.native.encode(message)
        with uuids_by_constructor():
            assert codecs.native.encode(message) == data
            assert codecs.native.decode(data)[0] == message
            same_decoding(codecs, data[: len(data) // 2])
        decoded = codecs.native.decode(data)[0]
        assert decoded == message
        for topic in decoded.topics:
            assert repr(topic.topic_id) == repr(type(topic.topic_id)(str(topic.topic_id)))
            assert hash(topic.topic_id) == hash(type(topic.topic_id)(str(topic.topic_id)))


def test_the_engine_runs_what_it_is_held_to() -> None:
    assert kproto.engine == "native"
    assert engines.BUILT == ("pure", "native")
    cls: Any = kproto.messages.MetadataResponse
    cls().encode(9)
    assert type(cls._ENCODERS[9].__self__).__name__ == "Plan"
