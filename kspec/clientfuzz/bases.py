"""Good frames to start from: the values of the vectors, in whole frames of any api and version.

Knows no mutation and no socket. The same frames every time, so that a seed says everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from kproto import Dialect
from kproto.codec.registry import schema_of
from kproto.errors import UnsupportedVersionError
from kspec.vectors.frames import wrapping
from kspec.vectors.values import instances

__all__ = ["Base", "Direction", "bases", "bases_of"]

Direction: TypeAlias = Literal["request", "response"]


class Base(NamedTuple):
    """``frame`` is whole, size included; ``pattern`` is the name of its values' kind
    (``kspec.vectors.values``)."""

    api_key: int
    version: int
    direction: Direction
    pattern: str
    frame: bytes


def bases(
    dialect: Dialect, api_key: int, direction: Direction, version: int | None = None
) -> list[Base]:
    """The frames of one api at one version, or at all it has. Raises UnsupportedVersionError for
    what the dialect does not have."""
    api = dialect.api(api_key, version)
    cls = api.request if direction == "request" else api.response
    schema = schema_of(cls)
    found = []
    for each in api.valid_versions if version is None else (version,):
        for pattern, value in instances(cls, schema, each):
            wrapped = wrapping(dialect, cls, each, unknown_tags=pattern == "unknown-tags")
            frame, _ = wrapped.wrap(value.encode(each))
            found.append(Base(api_key, each, direction, pattern, frame))
    return found


def bases_of(
    dialect: Dialect, api_keys: Sequence[int], direction: Direction, version: int | None = None
) -> list[Base]:
    """Of several apis; those without the version are left out, but not all of them."""
    found = []
    for api_key in api_keys or sorted(dialect.apis):
        try:
            found += bases(dialect, api_key, direction, version)
        except UnsupportedVersionError:
            if len(api_keys) == 1:
                raise
    return found
