"""Wrong about flexible versions: tagged fields, compact lengths, nulls (KIP-482)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from kproto.error_codes import ErrorCode
from kproto.errors import DecodeError
from kspec.wrong.client import Client
from kspec.wrong.link import API_VERSIONS, BrokerError, Link
from kspec.wrong.registry import misbehaves

__all__: list[str] = []

_KNOWN: Final = frozenset(code.value for code in ErrorCode)
_ONE_BYTE: Final = 0x7F
"""The largest number that one byte of an unsigned varint holds; compact lengths are one more."""


def _structs(value: Any) -> Iterator[msgspec.Struct]:
    """Every struct of an answer, the outermost first."""
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
    """Decodes as it should, and then finds that it cannot: ``chokes`` says at what."""

    chokes: Callable[[Any], bool]

    def decode(self, frame: bytes, api_key: int, version: int) -> Any:
        body = super().decode(frame, api_key, version)
        if self.chokes(body):
            raise DecodeError("this is beyond me", offset=len(frame), path="")
        return body


@misbehaves("expects-no-tags-in-elements")
class ExpectsNoTagsInElements(_Choking):
    """Passes over tagged fields of a whole answer, and not over those of an array's structs."""

    def chokes(self, body: Any) -> bool:
        return any(_tags(each) for each in _structs(body) if each is not body)


@misbehaves("expects-no-tags-in-apiversions")
class ExpectsNoTagsInApiVersions(_Choking):
    """Passes over unknown tagged fields everywhere but in ApiVersions."""

    def chokes(self, body: Any) -> bool:
        return body.API_KEY == API_VERSIONS and any(_tags(each) for each in _structs(body))


@misbehaves("reads-tags-of-one-byte")
class ReadsTagsOfOneByte(_Choking):
    """Takes a tagged field's number and its size for one byte each."""

    def chokes(self, body: Any) -> bool:
        return any(
            tag > _ONE_BYTE or len(data) > _ONE_BYTE
            for each in _structs(body)
            for tag, data in _tags(each).items()
        )


@misbehaves("has-room-for-few-tags")
class HasRoomForFewTags(_Choking):
    """Has room for sixteen tagged fields in a struct, and no more."""

    def chokes(self, body: Any) -> bool:
        return any(len(_tags(each)) > 16 for each in _structs(body))


@misbehaves("reads-lengths-of-one-byte")
class ReadsLengthsOfOneByte(_Choking):
    """Takes the length of a compact string or array for one byte."""

    def chokes(self, body: Any) -> bool:
        if body.API_KEY == API_VERSIONS:
            return False
        values = (getattr(each, name) for each in _structs(body) for name in each.__struct_fields__)
        return any(isinstance(each, str | list) and len(each) >= _ONE_BYTE for each in values)


@misbehaves("knows-no-null-arrays")
class KnowsNoNullArrays(_Choking):
    """Cannot read an array that is null, where it may be."""

    def chokes(self, body: Any) -> bool:
        return any(getattr(each, "configs", ()) is None for each in _structs(body))


@misbehaves("takes-empty-for-null")
class TakesEmptyForNull(_Choking):
    """Takes an empty compact array for one that is null, and misses it."""

    def chokes(self, body: Any) -> bool:
        return getattr(body, "topics", None) == [] and not getattr(body, "brokers", None)


@misbehaves("needs-every-known-tag")
class NeedsEveryKnownTag(_Choking):
    """Cannot do without a tagged field that it knows, where the default is due."""

    def chokes(self, body: Any) -> bool:
        return body.API_KEY == API_VERSIONS and not body.finalized_features


@misbehaves("never-forgives-a-bad-tag")
class NeverForgivesABadTag(Client):
    """Once it could not read ApiVersions, fails every call, whatever the broker says then."""

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


@misbehaves("asks-on-at-unknown-codes")
class AsksOnAtUnknownCodes(Client):
    """Asks again and again where it does not know the error code."""

    least_attempts = 60

    def may_ask_again(self, problem: Exception, attempt: int) -> bool:
        if isinstance(problem, BrokerError) and problem.code not in _KNOWN:
            return True
        return super().may_ask_again(problem, attempt)

    def pause(self, attempt: int) -> float:
        return 0.01
