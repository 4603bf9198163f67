"""Defects about ApiVersions and about requests before it was answered."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from kproto.error_codes import ErrorCode
from kproto.errors import DecodeError
from kproto.schema.versions import Versions
from kspec.defects.declaration import defect
from kspec.reference_client.client import Client
from kspec.reference_client.link import BrokerError, Link, LinkClosedError, TimedOutError

__all__: list[str] = []

_METADATA: Final = 3
_SETTLED: Final = {_METADATA: 9}
"""A client written for Kafka 2.4, which knows no newer version."""

_NAMELESS: Final = 2
"""The newest version of ApiVersions without the client's name."""


@defect("looks-at-the-highest-alone")
class LooksAtTheHighestAlone(Link):
    """Respects the broker's highest version but not its lowest."""

    def choose_version(self, api_key: int) -> int:
        ours = self.codec.apis[api_key].valid_versions.highest
        return min(_SETTLED.get(api_key, ours), self.versions[api_key].highest)


@defect("refuses-unknown-features")
class RefusesUnknownFeatures(Link):
    """Refuses a broker that has an unknown feature."""

    def take_versions(self, body: Any) -> Mapping[int, Versions]:
        names = [each.name for each in body.supported_features if "." not in each.name]
        if names:
            raise DecodeError(f"no feature is {names[0]!r}", offset=0, path="supported_features")
        return super().take_versions(body)


@defect("names-itself-freely")
class NamesItselfFreely(Link):
    """Sends a software name with spaces; if refused, falls back to a version without the name."""

    nameless = False

    async def negotiate(self) -> None:
        try:
            await super().negotiate()
        except BrokerError:
            self.nameless = True
            await super().negotiate()

    def first_version(self) -> int:
        return _NAMELESS if self.nameless else super().first_version()

    def api_versions(self) -> Any:
        request = super().api_versions()
        if not self.nameless:
            request.client_software_name = "a client (of mine)"
        return request


@defect("ignores-apiversions-errors")
class IgnoresApiVersionsErrors(Link):
    """Continues with its own newest versions if ApiVersions fails for another reason than its
    version."""

    async def negotiate(self) -> None:
        try:
            await super().negotiate()
        except BrokerError as refused:
            if refused.code == ErrorCode.UNSUPPORTED_VERSION:
                raise
            self.versions = {key: each.valid_versions for key, each in self.codec.apis.items()}


@defect("hurries-apiversions")
class HurriesApiVersions(Link):
    """Gives ApiVersions only a tenth of the timeout of other requests."""

    async def negotiate(self) -> None:
        try:
            async with asyncio.timeout(self.timeout / 10):
                await super().negotiate()
        except TimeoutError:
            raise TimedOutError("no answer to ApiVersions") from None


@defect("forgets-the-guard")
class ForgetsTheGuard(Client):
    """Never sends the guard against changes of the replication factor."""

    class Forgetful(Link):
        def send(self, body: Any, version: int) -> Any:
            if getattr(body, "allow_replication_factor_change", True) is False:
                body.allow_replication_factor_change = True
            return super().send(body, version)

    link: type[Link] = Forgetful


@defect("has-room-for-few-apis")
class HasRoomForFewApis(Link):
    """Has room for only a thousand APIs in ApiVersions."""

    def take_versions(self, body: Any) -> Mapping[int, Versions]:
        if len(body.api_keys) > 1000:
            raise DecodeError(f"{len(body.api_keys)} apis", offset=0, path="api_keys")
        return super().take_versions(body)


@defect("refuses-an-api-listed-twice")
class RefusesAnApiListedTwice(Link):
    """Refuses a broker that lists an API twice."""

    def take_versions(self, body: Any) -> Mapping[int, Versions]:
        keys = [each.api_key for each in body.api_keys]
        if len(set(keys)) < len(keys):
            raise DecodeError("an api is there twice", offset=0, path="api_keys")
        return super().take_versions(body)


@defect("hides-that-a-broker-is-too-old")
class HidesThatABrokerIsTooOld(Link):
    """Cannot talk to releases before Kafka 2.4 and reports that no broker is available."""

    async def negotiate(self) -> None:
        await super().negotiate()
        if self.versions[_METADATA].highest < _SETTLED[_METADATA]:
            raise LinkClosedError("no broker is available")


@defect("numbers-itself-freely")
class NumbersItselfFreely(NamesItselfFreely):
    """Sends a software version with spaces; if refused, falls back to a version without it."""

    def api_versions(self) -> Any:
        request = Link.api_versions(self)
        if not self.nameless:
            request.client_software_version = "1.0 (beta)"
        return request
