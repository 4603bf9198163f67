"""The fields of records that are found in a frame's bytes are those that decoding it finds."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kproto
from kproto.codec.registry import schema_of
from kproto.reference.random_trees import random_tree
from tests.support import engines
from tests.support.instances import to_instance
from wiredump.rows.fields import _decoded, _reader, finder_of

KAFKA = kproto.dialect("kafka")
MESSAGES = [
    (key, version) for key in (0, 1, 78) for version in KAFKA.apis[key].request.VALID_VERSIONS
]


@pytest.fixture(autouse=True, scope="module")
def native_engine() -> Any:
    engines.require_native()
    with engines.running("native"):
        yield


def frame_of(key: int, version: int, rng: random.Random) -> bytes:
    """A Produce request, or a response."""
    api = KAFKA.apis[key]
    cls = api.request if key == 0 else api.response
    schema = schema_of(cls)
    tree = random_tree(schema, version, rng, size=60, unknown_tags=True)
    message = to_instance(cls, tree, schema)
    if key == 0:
        client_id = rng.choice(("client", "clïent", None))
        return KAFKA.encode_request(
            message, api_version=version, correlation_id=1, client_id=client_id
        )
    return KAFKA.encode_response(message, api_version=version, correlation_id=1)


def found_in(key: int, version: int, frame: bytes) -> tuple[Any, Any, Any]:
    """By their places, by either way, and by decoding."""
    reader = _reader(KAFKA, key, version, key == 0)
    assert reader is not None
    assert reader.places is not None
    return (
        reader.places.find(frame),
        finder_of(KAFKA, key, version)(frame),
        _decoded(reader, frame),
    )


@pytest.mark.parametrize(("key", "version"), MESSAGES)
def test_every_version_has_places(key: int, version: int, rng: random.Random):
    for _ in range(5):
        placed, found, decoded = found_in(key, version, frame_of(key, version, rng))
        assert placed == found == decoded
        assert decoded is not None


@given(st.sampled_from(MESSAGES), st.integers(0, 2**32), st.data())
def test_any_bytes(message: tuple[int, int], seed: int, data: st.DataObject):
    """Whole, damaged or cut."""
    frame = bytearray(frame_of(*message, random.Random(seed)))
    for _ in range(data.draw(st.sampled_from([0, 1, 3]))):
        frame[data.draw(st.integers(4, len(frame) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.sampled_from([len(frame), len(frame), len(frame) - 1, len(frame) // 2]))
    whole = max(0, end - 4).to_bytes(4, "big") + bytes(frame[4:end])
    placed, found, decoded = found_in(*message, whole)
    assert found == decoded
    assert placed is None or placed == decoded
