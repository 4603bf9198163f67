"""Defects about flexible versions: tagged fields, compact lengths and nulls (KIP-482)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from kproto.error_codes import ErrorCode
from kproto.errors import DecodeError
from kspec.defects.declaration import defect
from kspec.reference_client.client import Client
from kspec.reference_client.link import API_VERSIONS, BrokerError, Link

__all__: list[str] = []

_KNOWN: Final = frozenset(code.value for code in ErrorCode)
_ONE_BYTE: Final = 0x7F
"""The largest number in a one-byte unsigned varint. Compact lengths are one more than the length.
"""


def _structs(value: Any) -> Iterator[msgspec.Struct]:
    """Yield every struct of an answer, outermost first."""
    if isinstance(value, list):
        for each in value:
            yield from _structs(each)
    elif isinstance(value, msgspec.Struct):
        yield value
        for name in value.__struct_fields__:
            yield from _structs(getattr(value, name))


def _tags(value: Any) -> dict[int, bytes]:
    return getattr(value, "unknown_tags", {})


class _Choking(Link):
    """Decodes correctly and then fails on what ``chokes`` names."""

    chokes: Callable[[Any], bool]

    def decode(self, frame: bytes, api_key: int, version: int) -> Any:
        body = super().decode(frame, api_key, version)
        if self.chokes(body):
            raise DecodeError("this is beyond me", offset=len(frame), path="")
        return body


@defect("expects-no-tags-in-elements")
class ExpectsNoTagsInElements(_Choking):
    """Skips tagged fields of the whole answer but not those of array elements."""

    def chokes(self, body: Any) -> bool:
        return any(_tags(each) for each in _structs(body) if each is not body)


@defect("expects-no-tags-in-apiversions")
class ExpectsNoTagsInApiVersions(_Choking):
    """Skips unknown tagged fields everywhere except in ApiVersions."""

    def chokes(self, body: Any) -> bool:
        return body.API_KEY == API_VERSIONS and any(_tags(each) for each in _structs(body))


@defect("reads-tags-of-one-byte")
class ReadsTagsOfOneByte(_Choking):
    """Reads a tagged field's number and size as one byte each."""

    def chokes(self, body: Any) -> bool:
        return any(
            tag > _ONE_BYTE or len(data) > _ONE_BYTE
            for each in _structs(body)
            for tag, data in _tags(each).items()
        )


@defect("has-room-for-few-tags")
class HasRoomForFewTags(_Choking):
    """Has room for only sixteen tagged fields in a struct."""

    def chokes(self, body: Any) -> bool:
        return any(len(_tags(each)) > 16 for each in _structs(body))


@defect("reads-lengths-of-one-byte")
class ReadsLengthsOfOneByte(_Choking):
    """Reads the length of a compact string or array as one byte."""

    def chokes(self, body: Any) -> bool:
        if body.API_KEY == API_VERSIONS:
            return False
        values = (getattr(each, name) for each in _structs(body) for name in each.__struct_fields__)
        return any(isinstance(each, str | list) and len(each) >= _ONE_BYTE for each in values)


@defect("knows-no-null-arrays")
class KnowsNoNullArrays(_Choking):
    """Cannot read a null array in a nullable field."""

    def chokes(self, body: Any) -> bool:
        return any(getattr(each, "configs", ()) is None for each in _structs(body))


@defect("takes-empty-for-null")
class TakesEmptyForNull(_Choking):
    """Treats an empty compact array as null and fails on it."""

    def chokes(self, body: Any) -> bool:
        return getattr(body, "topics", None) == [] and not getattr(body, "brokers", None)


@defect("needs-every-known-tag")
class NeedsEveryKnownTag(_Choking):
    """Requires a known tagged field instead of using its default."""

    def chokes(self, body: Any) -> bool:
        return body.API_KEY == API_VERSIONS and not body.finalized_features


@defect("never-forgives-a-bad-tag")
class NeverForgivesABadTag(Client):
    """Fails every call after it could once not read ApiVersions."""

    gave_up: DecodeError | None

    def connect(self, arguments: Mapping[str, Any]) -> None:
        super().connect(arguments)
        self.gave_up = None

    async def link_to(self, address: tuple[str, int]) -> Link:
        if self.gave_up is not None:
            raise self.gave_up
        try:
            return await super().link_to(address)
        except DecodeError as error:
            self.gave_up = error
            raise


@defect("asks-on-at-unknown-codes")
class AsksOnAtUnknownCodes(Client):
    """Retries without end on an unknown error code."""

    least_attempts = 60

    def may_ask_again(self, problem: Exception, attempt: int) -> bool:
        if isinstance(problem, BrokerError) and problem.code not in _KNOWN:
            return True
        return super().may_ask_again(problem, attempt)

    def pause(self, attempt: int) -> float:
        return 0.01
