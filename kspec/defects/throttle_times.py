"""Defects about throttle times (KIP-219)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from kspec.defects.declaration import defect
from kspec.reference_client.client import Client
from kspec.reference_client.link import Link

__all__: list[str] = []

_FAR_TOO_LONG: Final = 12.0
"""Seconds that show that there would be no end."""


_STORM: Final = 120
"""Number of connections that shows that there would be no end."""


@defect("waits-out-any-throttle")
class WaitsOutAnyThrottle(Client):
    """Waits as long as the broker says, beyond the timeout of its own call."""

    class Obedient(Link):
        async def keep_quiet(self) -> None:
            left = self.quiet_until - asyncio.get_running_loop().time()
            await asyncio.sleep(min(max(left, 0), _FAR_TOO_LONG))

    link: type[Link] = Obedient

    async def call(self, op: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        # Its calls get enough time for the wait and are timed all the same.
        usual = self.timeout
        self.timeout = max(usual, _FAR_TOO_LONG)
        try:
            return await super().call(op, arguments)
        finally:
            if op != "connect":
                self.timeout = usual


@defect("applies-throttles-of-successes-only")
class AppliesThrottlesOfSuccessesOnly(Link):
    """Ignores the throttle time of an answer with an error."""

    failed = False

    def decode(self, frame: bytes, api_key: int, version: int) -> Any:
        body = super().decode(frame, api_key, version)
        self.failed = bool(getattr(body, "error_code", 0))
        return body

    def apply_throttle(self, milliseconds: int, api_key: int, version: int) -> None:
        if not self.failed:
            super().apply_throttle(milliseconds, api_key, version)


@defect("reads-throttles-unsigned")
class ReadsThrottlesUnsigned(Link):
    """Reads a negative throttle time as unsigned, which is weeks."""

    def apply_throttle(self, milliseconds: int, api_key: int, version: int) -> None:
        super().apply_throttle(milliseconds % 2**32, api_key, version)


@defect("storms-after-a-throttle")
class StormsAfterAThrottle(Client):
    """Opens one connection after the other if one ends while it is throttled."""

    async def link_to(self, address: tuple[str, int]) -> Link:
        link = self.links.get(address)
        loop = asyncio.get_running_loop()
        if link is not None and link.closed is not None and link.quiet_until > loop.time():
            for _ in range(_STORM):
                await (await super().link_to(address)).close()
        return await super().link_to(address)


@defect("reconnects-to-dodge-throttles")
class ReconnectsToDodgeThrottles(Client):
    """Opens another connection when the broker throttles the current one."""

    async def link_to(self, address: tuple[str, int]) -> Link:
        link = self.links.get(address)
        throttled = link is not None and link.quiet_until > asyncio.get_running_loop().time()
        if link is not None and throttled:
            await link.close()
        return await super().link_to(address)


@defect("throttles-one-api")
class ThrottlesOneApi(Link):
    """Pauses only requests of the API whose answer had the throttle time."""

    ends: Mapping[int, float] = MappingProxyType({})

    def apply_throttle(self, milliseconds: int, api_key: int, version: int) -> None:
        if milliseconds > 0:
            end = asyncio.get_running_loop().time() + milliseconds / 1000
            self.ends = {**self.ends, api_key: end}

    async def ask(self, body: Any, version: int | None = None) -> Any:
        left = self.ends.get(body.API_KEY, 0) - asyncio.get_running_loop().time()
        await asyncio.sleep(max(0, min(left, self.timeout)))
        return await super().ask(body, version)
