"""Hypothesis strategies of message trees, from the schema model: small values that shrink well.

``values`` generates large trees by seed; these are for properties.
"""

import uuid
from functools import lru_cache
from typing import Any, Final

from hypothesis import strategies as st

from kproto.reference import default_value
from kproto.schema.model import FieldType, MessageSchema, Struct

__all__ = ["message_trees", "messages_and_trees"]

_SCALARS: Final[dict[str, st.SearchStrategy[Any]]] = {
    "bool": st.booleans(),
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False),
    "uuid": st.one_of(st.just(uuid.UUID(int=0)), st.uuids()),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    "bytes": st.binary(max_size=20),
    "records": st.binary(max_size=20),
}
_MOST_ELEMENTS: Final = 3


@lru_cache(maxsize=4096)
def message_trees(schema: MessageSchema, version: int) -> st.SearchStrategy[dict[str, Any]]:
    """Trees that survive a round trip at ``version``."""
    return _struct(schema, version, schema.root)


def messages_and_trees(
    schemas: list[MessageSchema],
) -> st.SearchStrategy[tuple[MessageSchema, int, dict[str, Any]]]:
    """Any of ``schemas`` at any valid version, with a tree for it."""
    pairs = [(schema, version) for schema in schemas for version in schema.valid_versions]
    return st.sampled_from(pairs).flatmap(
        lambda pair: st.tuples(st.just(pair[0]), st.just(pair[1]), message_trees(*pair))
    )


def _struct(
    schema: MessageSchema, version: int, struct: Struct
) -> st.SearchStrategy[dict[str, Any]]:
    parts: dict[str, st.SearchStrategy[Any]] = {}
    for field in struct.fields:
        if version in field.versions:
            values = _value(schema, version, field.type)
            nullable = field.is_nullable(version)
            parts[field.python_name] = st.none() | values if nullable else values
        else:
            parts[field.python_name] = st.builds(default_value, st.just(field))
    parts["unknown_tags"] = (
        _unknown_tags({field.tag for field in struct.fields})
        if schema.is_flexible(version)
        else st.builds(dict)
    )
    return st.fixed_dictionaries(parts)


def _value(schema: MessageSchema, version: int, type_: FieldType) -> st.SearchStrategy[Any]:
    if type_.struct is not None:
        return _struct(schema, version, type_.struct)
    if type_.element is not None:
        return st.lists(_value(schema, version, type_.element), max_size=_MOST_ELEMENTS)
    return _SCALARS[type_.kind]


def _unknown_tags(taken: set[int | None]) -> st.SearchStrategy[dict[int, bytes]]:
    tags = st.integers(0, 2**31 - 1).filter(lambda tag: tag not in taken)
    drawn = st.dictionaries(tags, st.binary(max_size=5), max_size=2)
    return drawn.map(lambda tree: dict(sorted(tree.items())))
