"""Coordinators of groups and of transactions: which broker it is, and requests to it.

Each rule is a method. A request is repeated with growing pauses while the coordinator moves, loads
or is busy, and for no longer than a call may take.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kspec.reference_client.link import BrokerError, Link, LinkClosedError, TimedOutError
from kspec.reference_client.rules import ClientRules
from kspec.reference_client.topics import message

__all__ = ["GROUP", "TRANSACTION", "Coordinators", "GroupMetadata"]

GROUP: Final = 0
TRANSACTION: Final = 1
"""Types of keys in FindCoordinator."""

_COORDINATOR_LOAD_IN_PROGRESS: Final = 14
_COORDINATOR_NOT_AVAILABLE: Final = 15
_NOT_COORDINATOR: Final = 16
_CONCURRENT_TRANSACTIONS: Final = 51
_MOVED: Final = (_COORDINATOR_NOT_AVAILABLE, _NOT_COORDINATOR)
_KEYS_SINCE: Final = 4


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """What a consumer knows about its membership (KIP-447)."""

    group: str
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


Version = Callable[[Link], int | None]


class Coordinators:
    """The coordinators that a client knows, by type and key."""

    def __init__(self, client: ClientRules) -> None:
        self.client = client
        self.known: dict[tuple[int, str], tuple[str, int]] = {}

    async def ask(
        self,
        kind: int,
        key: str,
        body: Any | Callable[[Link], Any],
        code_of: Callable[[Any], int],
        version: Version = lambda _link: None,
    ) -> Any:
        """Send a request, or what ``body`` makes for the connection, to the coordinator until its
        error is none that passes.

        Returns that answer, which may have an error. Raises BrokerError for an error of
        FindCoordinator, and what a connection does when time is up.
        """
        loop = asyncio.get_running_loop()
        ends, attempt = loop.time() + self.client.timeout, 0
        while True:
            attempt += 1
            pause = self.client.pause(attempt)
            is_last = loop.time() + pause > ends
            try:
                link = await self.link(kind, key)
                request = body(link) if callable(body) else body
                answer = await link.ask(request, version(link))
            except (LinkClosedError, TimedOutError):
                self.forget(kind, key)
                if is_last:
                    raise
            except BrokerError as error:
                if is_last or not self.passes(error.code):
                    raise
            else:
                code = code_of(answer)
                if is_last or not self.passes(code):
                    return answer
                if code in _MOVED:
                    self.forget(kind, key)
            await asyncio.sleep(pause)

    def passes(self, code: int) -> bool:
        """Whether the same request may succeed a little later."""
        return code in (*_MOVED, _COORDINATOR_LOAD_IN_PROGRESS, _CONCURRENT_TRANSACTIONS)

    async def link(self, kind: int, key: str) -> Link:
        """Connect to the coordinator, which any broker names. Raises BrokerError."""
        address = self.known.get((kind, key))
        if address is None:
            address = self.known[kind, key] = await self.find(kind, key)
        return await self.client.link_to(address)

    async def find(self, kind: int, key: str) -> tuple[str, int]:
        link = await self.client.any_link()
        request = message("FindCoordinatorRequest")
        has_keys = link.choose_version(request.API_KEY) >= _KEYS_SINCE
        named = {"coordinator_keys": [key]} if has_keys else {"key": key}
        answer = await link.ask(request(key_type=kind, **named))
        row = answer.coordinators[0] if has_keys else answer
        if row.error_code:
            raise BrokerError(row.error_code, row.error_message)
        return row.host, row.port

    def forget(self, kind: int, key: str) -> None:
        self.known.pop((kind, key), None)
