"""The message classes against the reference codec: same bytes, same values, same errors.

Each engine is held to it. Every message and version takes part, with valid bodies, with bodies cut
short and with damaged ones; a validator takes what the decoder takes, and says what it says.
"""

import random
from collections.abc import Iterator
from typing import Any

import pytest

import kproto.messages
from kproto import reference
from kproto.errors import DecodeError
from kproto.reference.random_trees import random_tree
from kproto.schema.model import MessageSchema
from tests.support import engines, seeds
from tests.support.full import quickly_drawn
from tests.support.instances import to_instance, to_tree
from tests.support.schemas import released

DAMAGED_A_BODY = 6
_TELLING_BYTES = (0x00, 0x01, 0x7F, 0x80, 0xFF)


def damaged(data: bytes, rng: random.Random) -> Iterator[bytes]:
    """Bodies that are probably not valid, and a few that are."""
    yield data + b"\0"
    for _ in range(DAMAGED_A_BODY if data else 0):
        yield data[: rng.randrange(len(data))]
        changed = bytearray(data)
        for _ in range(rng.choice((1, 1, 2))):
            byte = rng.choice((*_TELLING_BYTES, rng.randrange(256)))
            changed[rng.randrange(len(changed))] = byte
        yield bytes(changed)


def outcome(decode: Any, *args: Any) -> tuple[Any, ...]:
    """What decoding came to, comparable: a damaged float may be NaN, so values go by text."""
    try:
        return ("read", repr(to_tree(decode(*args))))
    except DecodeError as error:
        return (error.offset, error.path, error.problem)


@pytest.mark.parametrize("engine", engines.BUILT)
@pytest.mark.requirement("A-51", "C-09")
def test_every_message_and_version(engine: str) -> None:
    with engines.running(engine):
        schemas = list(released().values())
        for schema in quickly_drawn("agreement", schemas, 25):
            for version in schema.valid_versions:
                agrees(schema, version)


def agrees(schema: MessageSchema, version: int) -> None:
    cls = getattr(kproto.messages, schema.name)
    rng = seeds.generator(f"agreement:{schema.name}:{version}")
    tree = random_tree(schema, version, rng, size=60)
    instance = to_instance(cls, tree, schema)
    data = reference.encode(schema, version, tree)
    assert instance.encode(version).hex() == data.hex(), (schema.name, version)
    assert cls.decode(data, version) == instance, (schema.name, version)
    cls.validate(data, version)
    for body in damaged(data, rng):
        expected = outcome(reference.decode, schema, version, body)
        place = schema.name, version, body.hex()
        assert outcome(cls.decode, body, version) == expected, place
        validated = outcome(cls.validate, body, version)
        assert validated == (("read", "None") if expected[0] == "read" else expected), place
