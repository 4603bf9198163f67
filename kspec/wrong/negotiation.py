"""Wrong about what ApiVersions says, and about what may be done before it was said."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from kproto.error_codes import ErrorCode
from kproto.errors import DecodeError
from kproto.schema.versions import Versions
from kspec.wrong.client import Client
from kspec.wrong.link import BrokerError, Link, LinkClosedError, TimedOutError
from kspec.wrong.registry import misbehaves

__all__: list[str] = []

_METADATA: Final = 3
_SETTLED: Final = {_METADATA: 9}
"""Where it has learned no newer version, as a client written for Kafka 2.4."""

_NAMELESS: Final = 2
"""The newest ApiVersions without the client's name."""


@misbehaves("looks-at-the-highest-alone")
class LooksAtTheHighestAlone(Link):
    """Keeps below the broker's highest version, and does not look at its lowest."""

    def choose_version(self, api_key: int) -> int:
        ours = self.codec.apis[api_key].valid_versions.highest
        return min(_SETTLED.get(api_key, ours), self.versions[api_key].highest)


@misbehaves("refuses-unknown-features")
class RefusesUnknownFeatures(Link):
    """Cannot live with a broker that has a feature it does not know."""

    def take_versions(self, body: Any) -> Mapping[int, Versions]:
        names = [each.name for each in body.supported_features if "." not in each.name]
        if names:
            raise DecodeError(f"no feature is {names[0]!r}", offset=0, path="supported_features")
        return super().take_versions(body)


@misbehaves("names-itself-freely")
class NamesItselfFreely(Link):
    """Gives a software name with blanks in it; refused, asks in a version that has none."""

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


@misbehaves("ignores-apiversions-errors")
class IgnoresApiVersionsErrors(Link):
    """Where ApiVersions fails, and not for its version, goes on at its own newest versions."""

    async def negotiate(self) -> None:
        try:
            await super().negotiate()
        except BrokerError as refused:
            if refused.code == ErrorCode.UNSUPPORTED_VERSION:
                raise
            self.versions = {key: each.valid_versions for key, each in self.codec.apis.items()}


@misbehaves("hurries-apiversions")
class HurriesApiVersions(Link):
    """Gives ApiVersions no more than a tenth of the time that other requests have."""

    async def negotiate(self) -> None:
        try:
            async with asyncio.timeout(self.timeout / 10):
                await super().negotiate()
        except TimeoutError:
            raise TimedOutError("no answer to ApiVersions") from None


@misbehaves("forgets-the-guard")
class ForgetsTheGuard(Client):
    """Never sends what keeps the replication factor from changing."""

    class Forgetful(Link):
        def send(self, body: Any, version: int) -> Any:
            if getattr(body, "allow_replication_factor_change", True) is False:
                body.allow_replication_factor_change = True
            return super().send(body, version)

    link: type[Link] = Forgetful


@misbehaves("has-room-for-few-apis")
class HasRoomForFewApis(Link):
    """Has room for a thousand apis in what a broker says it has."""

    def take_versions(self, body: Any) -> Mapping[int, Versions]:
        if len(body.api_keys) > 1000:
            raise DecodeError(f"{len(body.api_keys)} apis", offset=0, path="api_keys")
        return super().take_versions(body)


@misbehaves("refuses-an-api-listed-twice")
class RefusesAnApiListedTwice(Link):
    """Cannot live with a broker that lists an api twice."""

    def take_versions(self, body: Any) -> Mapping[int, Versions]:
        keys = [each.api_key for each in body.api_keys]
        if len(set(keys)) < len(keys):
            raise DecodeError("an api is there twice", offset=0, path="api_keys")
        return super().take_versions(body)


@misbehaves("hides-that-a-broker-is-too-old")
class HidesThatABrokerIsTooOld(Link):
    """Cannot talk to releases before Kafka 2.4, and says of them that no broker is available."""

    async def negotiate(self) -> None:
        await super().negotiate()
        if self.versions[_METADATA].highest < _SETTLED[_METADATA]:
            raise LinkClosedError("no broker is available")


@misbehaves("numbers-itself-freely")
class NumbersItselfFreely(NamesItselfFreely):
    """Gives a software version with blanks in it; refused, asks in a version that has none."""

    def api_versions(self) -> Any:
        request = Link.api_versions(self)
        if not self.nameless:
            request.client_software_version = "1.0 (beta)"
        return request
