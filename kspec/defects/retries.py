"""Defects about retries: when, where, how often and how soon."""

from __future__ import annotations

from typing import Final

from kspec.defects.declaration import defect
from kspec.reference_client.client import Client
from kspec.reference_client.link import BrokerError, Link, LinkClosedError

__all__: list[str] = []

_RECONNECTS: Final = 180


@defect("retries-forever")
class RetriesForever(Client):
    """Retries at once whatever the answer, for as long as the call lasts."""

    least_attempts = 420

    def may_ask_again(self, problem: Exception, attempt: int) -> bool:
        return True

    def pause(self, attempt: int) -> float:
        return 0.002


@defect("never-retries")
class NeverRetries(Client):
    """Does not retry where that would have helped."""

    def may_ask_again(self, problem: Exception, attempt: int) -> bool:
        return False


@defect("pauses-evenly")
class PausesEvenly(Client):
    """Pauses as long before the tenth attempt as before the second."""

    least_attempts = 10

    def pause(self, attempt: int) -> float:
        return 0.3


@defect("keeps-the-stale-controller")
class KeepsTheStaleController(Client):
    """Sends a request again to a broker that said it is not the controller."""

    def forget(self, problem: Exception) -> None:
        """Discards nothing."""


@defect("any-broker-is-controller")
class AnyBrokerIsController(Client):
    """Sends controller requests to the first broker it knows."""

    async def controller_link(self) -> Link:
        return await self.any_link()


@defect("ignores-throttle")
class IgnoresThrottle(Link):
    """Keeps sending although the broker asked for a pause."""

    def apply_throttle(self, milliseconds: int, api_key: int, version: int) -> None:
        """Ignored."""


@defect("knows-its-bootstrap-only")
class KnowsItsBootstrapOnly(Client):
    """Connects only to its bootstrap brokers."""

    def learn_brokers(self, brokers: dict[int, tuple[str, int]], controller_id: int) -> None:
        known = set(self.bootstrap)
        kept = {key: where for key, where in brokers.items() if where in known}
        super().learn_brokers(kept, controller_id)


@defect("forgets-its-bootstrap")
class ForgetsItsBootstrap(Client):
    """Does not return to its bootstrap brokers when no known broker is left."""

    def learn_brokers(self, brokers: dict[int, tuple[str, int]], controller_id: int) -> None:
        super().learn_brokers(brokers, controller_id)
        self.bootstrap = []


@defect("reconnects-without-pause")
class ReconnectsWithoutPause(Client):
    """Reconnects 180 times without a pause when connections fail."""

    async def link_to(self, address: tuple[str, int]) -> Link:
        for _ in range(_RECONNECTS):
            try:
                return await super().link_to(address)
            except (LinkClosedError, BrokerError):
                continue
        return await super().link_to(address)
