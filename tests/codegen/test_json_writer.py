"""The quick writer of JSON is the exact one for every message that it takes, and no other."""

from typing import Any

import kproto
from kproto.codec.json_form import StructWriter, to_value
from kproto.codec.json_writer import fast_writer
from kproto.codec.registry import plan_of, schema_of, structs_of
from kproto.reference.random_trees import random_tree
from tests.support import seeds
from tests.support.instances import to_instance
from tests.support.shaken import shake


def exactly(message: Any, version: int) -> Any:
    cls = type(message)
    return StructWriter(structs_of(cls)).struct(plan_of(cls, version).root, message, "")


def outcome(write: Any, message: Any, version: int) -> tuple[str, str]:
    """Reprs, for NaN is not itself, and 1 is True."""
    try:
        return "made", repr(write(message, version))
    except Exception as error:
        return type(error).__name__, str(error)


def quickly(message: Any, version: int) -> Any:
    return fast_writer(type(message), version)(message)


def test_every_message_is_the_same_and_what_is_wrong_with_it() -> None:
    apis = kproto.dialect("kafka").apis.values()
    taken = odd = 0
    for cls in (cls for api in apis for cls in (api.request, api.response)):
        schema = schema_of(cls)
        for version in {cls.VALID_VERSIONS.lowest, cls.VALID_VERSIONS.highest}:
            rng = seeds.generator(f"json:{cls.MESSAGE_NAME}:{version}")
            message = to_instance(cls, random_tree(schema, version, rng, size=40), schema)
            assert repr(quickly(message, version)) == repr(exactly(message, version))
            for _ in range(4):
                shaken = shake(message, rng)
                expected = outcome(exactly, shaken, version)
                assert outcome(to_value, shaken, version) == expected
                if outcome(quickly, shaken, version)[0] == "made":
                    assert expected[0] == "made"
                    taken += 1
                else:
                    odd += 1
    assert taken > 50
    assert odd > 50
