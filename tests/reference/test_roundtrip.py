"""Every message of every schema folder at every version: round trip, prefixes, spans that tile."""

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto import reference
from kproto.errors import DecodeError
from kproto.reference.random_trees import random_tree
from kproto.schema.load import load_directory, schemas_directory
from kproto.schema.model import MessageSchema
from tests.support import seeds
from tests.support.full import quickly_drawn
from tests.support.roundtrip import assert_roundtrip
from tests.support.schemas import released
from tests.support.strategies import messages_and_trees
from tests.support.values import FieldCoverage

FOLDERS = sorted(path for path in schemas_directory().iterdir() if any(path.glob("*.json")))
RELEASED = list(released().values())
TREES_A_VERSION = 1


def assert_spans_tile(schema: MessageSchema, version: int, data: bytes) -> None:
    """The leaves cover the data once, in order; every other span covers leaves it begins with."""
    end = 0
    starts = set()
    for span in reference.fields(schema, version, data):
        starts.add(span.offset)
        assert span.offset + span.length <= len(data)
        if span.leaf:
            assert span.offset == end, span
            end += span.length
        else:
            assert span.offset == end, f"{span} does not begin where its first leaf does"
    assert end == len(data)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
@pytest.mark.requirement("C-03")
def test_every_message_and_version(folder: Path) -> None:
    coverage = FieldCoverage()
    schemas = list(load_directory(folder).values())
    for schema in quickly_drawn(f"reference:{folder.name}", schemas, 25):
        for version in schema.valid_versions:
            rng = seeds.generator(f"reference:{folder.name}:{schema.name}:{version}")
            for _ in range(TREES_A_VERSION):
                tree = random_tree(schema, version, rng)
                coverage.add(schema, version, tree)
                data = assert_roundtrip(
                    tree,
                    encode=partial(reference.encode, schema, version),
                    decode=partial(reference.decode, schema, version),
                    most_cuts=4,
                )
                assert_spans_tile(schema, version, data)
    print(f"{folder.name}: {coverage}")
    assert coverage.filled_share >= 0.5


@given(messages_and_trees(RELEASED))
def test_round_trip(drawn: tuple[MessageSchema, int, dict[str, object]]) -> None:
    schema, version, tree = drawn
    data = assert_roundtrip(
        tree,
        encode=partial(reference.encode, schema, version),
        decode=partial(reference.decode, schema, version),
        most_cuts=40,
    )
    assert_spans_tile(schema, version, data)


@given(messages_and_trees(RELEASED), st.data())
@pytest.mark.requirement("C-09")
def test_damaged_bytes_raise_or_are_another_message(drawn, data):
    schema, version, tree = drawn
    damaged = bytearray(reference.encode(schema, version, tree))
    for _ in range(data.draw(st.integers(1, 3))):
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        other = reference.decode(schema, version, damaged)
    except DecodeError as error:
        offset = error.offset
    else:
        offset = 0
        again = reference.encode(schema, version, other)
        # Compared as text: a damaged float may be NaN. The bytes may differ in how a varint or a
        # bool was written, not in what they say.
        assert repr(reference.decode(schema, version, again)) == repr(other)
        assert_spans_tile(schema, version, bytes(damaged))
    assert 0 <= offset <= len(damaged)


def test_any_contiguous_buffer() -> None:
    schema = next(schema for schema in RELEASED if schema.name == "MetadataRequest")
    data = reference.encode(schema, 12, {"topics": [{"name": "t"}]})
    tree = reference.decode(schema, 12, data)
    for buffer in (bytearray(data), memoryview(b"--" + data)[2:]):
        assert reference.decode(schema, 12, buffer) == tree
