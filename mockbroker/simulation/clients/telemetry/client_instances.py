"""The client instances that one broker knows (KIP-714), as Kafka's ``ClientMetricsManager`` keeps
them: which metrics each is to push, and when it last came.

A broker forgets an instance that stays away, and since Kafka 4.0 one whose connection closes. An
instance is made anew when a subscription has changed, so that it need not wait for its next turn.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.clients.telemetry.subscriptions import (
    ClientFacts,
    Subscription,
    requested,
    subscription_id,
)
from mockbroker.simulation.clients.telemetry.telemetry_rules import (
    EXPIRY_ROWS,
    GET_ROWS,
    PUSH_ROWS,
    Departure,
    GetAttempt,
    PushAttempt,
)
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import apply_first, rows_of_release

__all__ = ["ClientInstance", "ClientInstances", "PushedMetrics"]

_NEVER: Final = -(1 << 62)
_LEAST_STAY_MS: Final = 60_000
_INTERVALS_OF_STAY: Final = 3
_MOST: Final = 16_384
"""The most instances of a broker; past it the one that was away for longest goes."""


class ClientInstance(msgspec.Struct):
    """A client instance. Times are of the cluster's clock; ``version`` counts the changes of
    subscriptions before it was made."""

    facts: ClientFacts
    metrics: tuple[str, ...]
    interval_ms: int
    subscription_id: int
    version: int
    last_get_ms: int = _NEVER
    last_push_ms: int = _NEVER
    terminating: bool = False
    last_error: ErrorCode = ErrorCode.NONE
    expires_ms: int = 0

    def gets_on_time(self, now_ms: int) -> bool:
        """Note a GetTelemetrySubscriptions, and return whether the interval has passed since the
        last request."""
        if now_ms - max(self.last_get_ms, self.last_push_ms) < self.interval_ms:
            return False
        self.last_get_ms = now_ms
        return True

    def pushes_on_time(self, now_ms: int) -> bool:
        """Note a push, and return whether it is the first after a GetTelemetrySubscriptions or the
        interval has passed since the last one."""
        first = self.last_get_ms > self.last_push_ms
        if not first and now_ms - self.last_push_ms < self.interval_ms:
            return False
        self.last_push_ms = now_ms
        return True


class PushedMetrics(msgspec.Struct, frozen=True):
    """A PushTelemetry as it came. ``size`` is that of its metrics on the wire."""

    subscription_id: int
    terminating: bool
    compression: int
    size: int
    max_bytes: int


class ClientInstances(msgspec.Struct):
    """The instances of one broker. ``subscriptions`` gives those of the cluster, with the number of
    their changes so far."""

    release: Release
    subscriptions: Callable[[], tuple[int, Sequence[Subscription]]]
    most: int = _MOST
    _found: dict[uuid.UUID, ClientInstance] = msgspec.field(default_factory=dict)
    _by_connection: dict[int, uuid.UUID] = msgspec.field(default_factory=dict)

    def __iter__(self) -> Iterator[ClientInstance]:
        return iter(self._found.values())

    def __contains__(self, instance_id: uuid.UUID) -> bool:
        return instance_id in self._found

    def expire(self, now_ms: int) -> None:
        """Forget the instances that stayed away."""
        self._forget(key for key, each in self._found.items() if each.expires_ms <= now_ms)

    def get(self, facts: ClientFacts, connection_id: int, now_ms: int) -> GetAttempt:
        """Return whether a GetTelemetrySubscriptions of this client is refused."""
        instance = self.of(facts, connection_id, now_ms)
        attempt = GetAttempt(on_time=instance.gets_on_time(now_ms), last_error=instance.last_error)
        apply_first(rows_of_release(GET_ROWS, self.release), attempt, attempt)
        if not attempt.code:
            instance.last_error = ErrorCode.NONE
        return attempt

    def push(
        self, facts: ClientFacts, connection_id: int, now_ms: int, pushed: PushedMetrics
    ) -> PushAttempt:
        """Return whether a push of this client is refused."""
        instance = self.of(facts, connection_id, now_ms)
        attempt = PushAttempt(
            terminated=instance.terminating,
            on_time=instance.terminating or instance.pushes_on_time(now_ms),
            terminating=pushed.terminating,
            subscription_id=pushed.subscription_id,
            expected_id=instance.subscription_id,
            compression=pushed.compression,
            size=pushed.size,
            max_bytes=pushed.max_bytes,
        )
        apply_first(rows_of_release(PUSH_ROWS, self.release), attempt, attempt)
        instance.terminating = pushed.terminating
        instance.last_error = attempt.code
        return attempt

    def of(self, facts: ClientFacts, connection_id: int, now_ms: int) -> ClientInstance:
        """Return the instance of a client, which is made if it is unknown or out of date."""
        self.expire(now_ms)
        key = facts.instance_id
        version, subscriptions = self.subscriptions()
        # Those that came last are at the end.
        instance = self._found.pop(key, None)
        if instance is None or instance.version < version:
            known = facts if instance is None else instance.facts
            metrics, interval_ms = requested(subscriptions, known)
            number = subscription_id(metrics, interval_ms, key)
            instance = ClientInstance(known, metrics, interval_ms, number, version)
            self._by_connection[connection_id] = key
        stay_ms = max(_LEAST_STAY_MS, _INTERVALS_OF_STAY * instance.interval_ms)
        instance.expires_ms = now_ms + stay_ms
        self._found[key] = instance
        if len(self._found) > self.most:
            self._forget([next(iter(self._found))])
        return instance

    def connection_closed(self, connection_id: int) -> None:
        """The connection on which an instance was made is closed."""
        key = self._by_connection.pop(connection_id, None)
        departure = Departure()
        apply_first(rows_of_release(EXPIRY_ROWS, self.release), departure, departure)
        if key is not None and departure.forgets:
            self._forget([key])

    def _forget(self, keys: Iterable[uuid.UUID]) -> None:
        gone = set(keys)
        for key in gone:
            self._found.pop(key, None)
        if gone:
            self._by_connection = {
                connection: key for connection, key in self._by_connection.items()
                if key not in gone
            }  # fmt: skip
