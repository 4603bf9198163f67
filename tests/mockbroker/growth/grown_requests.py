"""Requests with one long array: of every API that a profile serves, each array in turn."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kproto.codec.registry import schema_of
from kproto.schema.model import Field, Struct
from mockbroker.profiles import Profile
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.filled_requests import filled_request
from tests.mockbroker.simulated import simulated_cluster

__all__ = ["LongArray", "broker_of", "long_arrays"]


class LongArray(NamedTuple):
    """An array of a request by the names of the members that lead to it. Its elements are distinct,
    or the same one again and again."""

    kind: Any
    version: int
    path: tuple[str, ...]
    field: Field
    distinct: bool

    def __str__(self) -> str:
        elements = "distinct" if self.distinct else "equal"
        return f"{self.kind.__name__} {self.version} {'.'.join(self.path)}, {elements} elements"

    def of(self, length: int) -> Any:
        """The request with so many elements there."""
        body = owner = filled_request(self.kind, self.version)
        for name in self.path[:-1]:
            found = getattr(owner, name)
            if isinstance(found, list):
                del found[1:]
            owner = found[0] if isinstance(found, list) else found
        (first, *_) = getattr(owner, self.path[-1])
        make = self._element if self.distinct else lambda _first, _number: first
        setattr(owner, self.path[-1], [make(first, number) for number in range(length)])
        return body

    def _element(self, first: Any, number: int) -> Any:
        """Like the first, but for every text, id and index in it."""
        inner = self.field.type.inner_struct
        if inner is None:
            return _distinct(first, number)
        return type(first)(**{
            each.python_name: _distinct(getattr(first, each.python_name), number)
            for each in inner.fields
            if self.version in each.versions
        })  # fmt: skip

    def asked(self, profile: Profile) -> Callable[[int], Callable[[], object]]:
        """Return what a new broker does with the request of a length."""

        def prepare(length: int) -> Callable[[], object]:
            broker = broker_of(profile)
            frame = broker.codec.encode_request(
                self.of(length), api_version=self.version, correlation_id=1, client_id="test"
            )
            return lambda: broker.send(frame)

        return prepare


def broker_of(profile: Profile, **options: Any) -> DirectBroker:
    """A broker of three that behave as the profile does, with these options."""
    cluster = simulated_cluster(
        3, topics=["foo:2:3", "bar:2:3"], release=profile.software, profile=profile.name,
        reassignment=profile.reassignment, **options,
    )  # fmt: skip
    return DirectBroker(cluster, profile_name=profile)


def long_arrays(profile: Profile) -> Iterator[LongArray]:
    """Every array of the newest version of every API that the profile serves."""
    broker = broker_of(profile)
    for key, versions in sorted(broker.dispatcher.served.items()):
        kind, version = broker.codec.apis[key].request, versions.highest
        for path, field in _arrays(schema_of(kind).root, version):
            for distinct in (True, False):
                yield LongArray(kind, version, path, field, distinct)


def _arrays(
    struct: Struct, version: int, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Field]]:
    for field in struct.fields:
        if version in field.versions:
            here = (*path, field.python_name)
            if field.type.element is not None:
                yield here, field
            if field.type.inner_struct is not None:
                yield from _arrays(field.type.inner_struct, version, here)


def _distinct(value: Any, number: int) -> Any:
    match value:
        case bool() | float() | None:
            return value
        case str():
            return f"{value}{number}"
        case uuid.UUID():
            return uuid.UUID(int=number + 1 << 64)
        case int() if value < 2:  # an index, or an epoch; other numbers select among few
            return number % 127
    return value
