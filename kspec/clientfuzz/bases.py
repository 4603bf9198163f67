"""Valid frames to mutate: the values of the test vectors, in whole frames of any API and version.

The frames are always the same, so that a seed identifies a mutated frame.
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
    """``frame`` is whole, size included. ``pattern`` names the kind of its values (see
    ``kspec.vectors.values``)."""

    api_key: int
    version: int
    direction: Direction
    pattern: str
    frame: bytes


def bases(
    dialect: Dialect, api_key: int, direction: Direction, version: int | None = None
) -> list[Base]:
    """Return the frames of one API at one version, or at every version.

    Raises UnsupportedVersionError if the dialect lacks it.
    """
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
    """Return the frames of several APIs. APIs without the version are left out, unless only one is
    given."""
    found = []
    for api_key in api_keys or sorted(dialect.apis):
        try:
            found += bases(dialect, api_key, direction, version)
        except UnsupportedVersionError:
            if len(api_keys) == 1:
                raise
    return found
