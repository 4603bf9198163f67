"""Walking through a frame finds the records that decoding it finds, or says nothing of it."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kproto
from kproto.codec.registry import schema_of
from kproto.reference import default_value
from kproto.schema.model import Struct
from tests.support.instances import to_instance
from tests.support.values import random_tree
from wiredump import native
from wiredump.rows.fields import _reader, walk_in

pytestmark = pytest.mark.usefixtures("extension")

KAFKA = kproto.dialect("kafka")
MESSAGES = [
    (key, version) for key in (0, 1, 78) for version in KAFKA.apis[key].request.VALID_VERSIONS
]


def frame_of(key: int, version: int, rng: random.Random, *, plain: bool) -> bytes:
    """A Produce request, or a response; ``plain``: with no text but ASCII, and no tags."""
    api = KAFKA.apis[key]
    cls = api.request if key == 0 else api.response
    schema = schema_of(cls)
    tree = random_tree(schema, version, rng, size=60, unknown_tags=not plain)
    if plain:
        tree = _plainly(tree, schema.root, version)
    message = to_instance(cls, tree, schema)
    if key == 0:
        client_id = "client" if plain else rng.choice(("client", "clïent", None))
        return KAFKA.encode_request(
            message, api_version=version, correlation_id=1, client_id=client_id
        )
    return KAFKA.encode_response(message, api_version=version, correlation_id=1)


def _plainly(tree: Any, struct: Struct, version: int) -> Any:
    """Without what a walk leaves to Python: fields in the tagged section, and letters."""
    plain = dict(tree)
    for field in struct.fields:
        value = tree.get(field.python_name)
        if field.is_tagged(version):
            plain[field.python_name] = default_value(field)
        elif isinstance(value, str):
            plain[field.python_name] = "t" * len(value)
        elif (inner := field.type.inner_struct) is not None and isinstance(value, list):
            plain[field.python_name] = [_plainly(each, inner, version) for each in value]
        elif inner is not None and value is not None:
            plain[field.python_name] = _plainly(value, inner, version)
    return plain


def both(key: int, version: int, frame: bytes) -> tuple[Any, Any, Any]:
    """What the walk itself says, what is made of it, and what decoding says."""
    reader = _reader(KAFKA, key, version, key == 0)
    assert reader is not None
    assert reader.walk is not None
    module = native.built()
    assert module is not None
    with native.using(module):
        made = walk_in(KAFKA, key, version)(frame)
    with native.using(None):
        decoded = walk_in(KAFKA, key, version)(frame)
    return module.find_records(reader.walk, frame), made, decoded


@pytest.mark.parametrize(("key", "version"), MESSAGES)
def test_every_version_is_walked(key: int, version: int, rng: random.Random):
    for _ in range(5):
        walked, made, decoded = both(key, version, frame_of(key, version, rng, plain=True))
        assert walked is not None
        assert len(walked) == len(decoded)
        assert made == decoded


@given(st.sampled_from(MESSAGES), st.integers(0, 2**32), st.data())
def test_any_bytes(message: tuple[int, int], seed: int, data: st.DataObject):
    """Whole, damaged or cut: and what the walk does not take is decoded."""
    rng = random.Random(seed)
    frame = bytearray(frame_of(*message, rng, plain=data.draw(st.booleans())))
    for _ in range(data.draw(st.sampled_from([0, 1, 3]))):
        frame[data.draw(st.integers(4, len(frame) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.sampled_from([len(frame), len(frame), len(frame) - 1, len(frame) // 2]))
    whole = max(0, end - 4).to_bytes(4, "big") + bytes(frame[4:end])
    walked, made, decoded = both(*message, whole)
    assert made == decoded
    assert walked is None or len(walked) == len(decoded)


@given(st.binary(max_size=64), st.binary(max_size=200))
def test_any_program(program: bytes, rest: bytes):
    """Programs are our own; what they are made of is held to, all the same."""
    module = native.built()
    assert module is not None
    found = module.find_records(program, len(rest).to_bytes(4, "big") + rest)
    assert found is None or isinstance(found, list)


def test_what_is_no_program_or_frame_is_refused():
    module = native.built()
    assert module is not None
    for arguments in ((b"", 1), (None, b""), (b"",)):
        with pytest.raises(TypeError):
            module.find_records(*arguments)
    assert module.find_records(b"", b"") is None
    assert module.find_records(b"", b"\0\0\0\1") is None
    assert module.find_records(b"", bytes(4)) == []
