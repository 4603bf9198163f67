"""The engine alone reads and writes every valid body: the interpreter is for errors only.

A fast path that quietly handed valid bodies to the interpreter would still be right, and slow.
"""

from typing import Any

import pytest

import kproto
from kproto.codec import interpreter, registry
from kproto.reference.random_trees import random_tree
from tests.support import engines, seeds
from tests.support.full import quickly_drawn
from tests.support.instances import to_instance
from tests.support.schemas import of_dialect


@pytest.mark.parametrize("folder", ["kafka", "kip_183", "kip_240", "kip_455_old", "kip_455_new"])
@pytest.mark.requirement("C-05")
def test_valid_bodies_never_reach_the_interpreter(folder, monkeypatch):
    def unexpected(*_args: Any) -> Any:
        raise AssertionError("handed to the interpreter")

    monkeypatch.setattr(interpreter, "decode", unexpected)
    monkeypatch.setattr(interpreter, "encode", unexpected)
    dialect = kproto.dialect(folder.replace("_", "-"))
    schemas = list(of_dialect(folder).values())
    for schema in quickly_drawn(f"fast path:{folder}", schemas, 30):
        cls = dialect.message(schema.name)
        for version in schema.valid_versions:
            for size in (3, 60):
                rng = seeds.generator(f"fast:{schema.name}:{version}:{size}")
                message = to_instance(cls, random_tree(schema, version, rng, size=size), schema)
                data = message.encode(version)
                assert cls.decode(data, version) == message, (schema.name, version)


@pytest.mark.requirement("C-02")
def test_source_is_shown_by_tracebacks_and_is_deterministic() -> None:
    import linecache

    cls = kproto.dialect("kafka").message("MetadataResponse")
    with engines.running("pure"):  # the native engine has no source to show
        cls.decode(cls().encode(9), 9)
    lines = linecache.getlines("<kproto decode MetadataResponse v9>")
    assert lines[0].startswith("def decode(buf, offset=None):")
    assert registry.source_of(cls, 9) == registry.source_of(cls, 9)
    assert "".join(lines).strip() in registry.source_of(cls, 9)
