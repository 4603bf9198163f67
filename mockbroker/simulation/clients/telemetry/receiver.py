"""The telemetry of a cluster: its subscriptions, the brokers' client instances, and a receiver that
keeps what clients push.

Kafka gives pushes to plugins; this receiver stands for one. It decompresses a push as Kafka does,
and reads it as OpenTelemetry metrics only when a tester looks: other bytes are kept, too,
together with the problem.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable
from typing import Final

from kproto.error_codes import ErrorCode
from kproto.errors import KprotoError
from kproto.records import Compression
from kproto.records.compression import decompress
from kproto.records.undecodable import UndecodableError
from mockbroker.simulation.clients.telemetry.client_instances import (
    ClientInstance,
    ClientInstances,
    PushedMetrics,
)
from mockbroker.simulation.clients.telemetry.pushes import (
    ClientView,
    Push,
    SubscriptionView,
    TelemetryView,
)
from mockbroker.simulation.clients.telemetry.subscriptions import (
    ClientFacts,
    Subscription,
    shown_id,
)
from mockbroker.simulation.clients.telemetry.telemetry_rules import (
    EXPORT_ROWS,
    ID_ROWS,
    ExportAttempt,
    IdAttempt,
)
from mockbroker.simulation.configs.effective import EffectiveConfigs
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import apply_first, rows_of_release
from mockbroker.simulation.state.actions import Change, ConfigChanged
from mockbroker.simulation.state.cluster_state import CLIENT_METRICS
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.java_maps import hash_order
from mockbroker.simulation.topics.administration import fresh_id

__all__ = ["Telemetry"]

_MAX_BYTES: Final = "telemetry.max.bytes"
_MOST_PUSHES: Final = 1_000
_MOST_BYTES: Final = 16 << 20
"""The most pushes that are kept, and their bytes; the oldest go first."""
_LONGEST: Final = 64 << 20
"""The most bytes that a push is decompressed to where Kafka has no limit."""


class Telemetry:
    """The telemetry of one cluster. ``new_id`` makes the ids of client instances."""

    def __init__(
        self,
        controller: Controller,
        configs: EffectiveConfigs,
        release: Release,
        new_id: Callable[[], uuid.UUID],
    ) -> None:
        self._new_id = new_id
        self._controller = controller
        self._configs = configs
        self._release = release
        self._brokers: dict[int, ClientInstances] = {}
        self._version = 0
        self._subscriptions: tuple[Subscription, ...] | None = None
        self._pushes: deque[Push] = deque()
        self._pushed = self._kept_bytes = 0
        self.on_push: list[Callable[[str], None]] = []
        """Called with the client instance id after each push that is kept."""
        controller.add_hooks((ConfigChanged,), after=self._config_changed)

    def _config_changed(self, cause: str, change: Change) -> None:
        assert isinstance(change, ConfigChanged)
        if change.resource_type == CLIENT_METRICS:
            self._version += 1
            self._subscriptions = None

    # ---- subscriptions -------------------------------------------------------------------------

    def subscription_names(self) -> list[str]:
        """Return the names of the subscriptions that have a config, in Kafka's order."""
        return hash_order(
            name
            for (kind, name), values in self._controller.state.configs.items()
            if kind == CLIENT_METRICS and values
        )

    def subscriptions(self) -> tuple[int, tuple[Subscription, ...]]:
        """Return how often subscriptions have changed, and what they are."""
        if self._subscriptions is None:
            configs = self._controller.state.configs
            self._subscriptions = tuple(
                Subscription.of(name, configs[CLIENT_METRICS, name])
                for name in self.subscription_names()
            )
        return self._version, self._subscriptions

    def max_bytes(self, broker_id: int) -> int:
        """Return the most bytes of metrics that a broker accepts in a push."""
        return int(self._configs.broker(broker_id, _MAX_BYTES).value or 0)

    # ---- requests ------------------------------------------------------------------------------

    def broker(self, broker_id: int) -> ClientInstances:
        """Return the client instances of a broker."""
        found = self._brokers.get(broker_id)
        if found is None:
            found = self._brokers[broker_id] = ClientInstances(self._release, self.subscriptions)
        return found

    def new_instance_id(self) -> uuid.UUID:
        """Return an id for a client that has none."""
        return fresh_id(self._new_id)

    def get(
        self, broker_id: int, facts: ClientFacts, connection_id: int
    ) -> tuple[ErrorCode, ClientInstance]:
        """Carry out a GetTelemetrySubscriptions."""
        instances, now_ms = self.broker(broker_id), self._controller.now_ms
        attempt = instances.get(facts, connection_id, now_ms)
        return attempt.code, instances.of(facts, connection_id, now_ms)

    def push(
        self,
        broker_id: int,
        facts: ClientFacts,
        connection_id: int,
        pushed: PushedMetrics,
        metrics: bytes,
    ) -> ErrorCode:
        """Carry out a PushTelemetry and keep its metrics unless it is refused."""
        named = IdAttempt(instance_id=facts.instance_id)
        apply_first(rows_of_release(ID_ROWS, self._release), named, named)
        if named.code:
            return named.code
        instances, now_ms = self.broker(broker_id), self._controller.now_ms
        attempt = instances.push(facts, connection_id, now_ms, pushed)
        if attempt.code or not metrics:
            return attempt.code
        data = _decompressed(Compression(pushed.compression), metrics)
        size = None if data is None else len(data)
        export = ExportAttempt(size=size, max_bytes=pushed.max_bytes)
        apply_first(rows_of_release(EXPORT_ROWS, self._release), export, export)
        if export.code or data is None:
            instances.of(facts, connection_id, now_ms).last_error = export.code
            return export.code
        self._keep(broker_id, facts, pushed, data)
        return ErrorCode.NONE

    def _keep(self, broker_id: int, facts: ClientFacts, pushed: PushedMetrics, data: bytes) -> None:
        self._pushed += 1
        push = Push(
            number=self._pushed,
            at_ms=self._controller.now_ms,
            broker_id=broker_id,
            client_instance_id=shown_id(facts.instance_id),
            client_id=facts.client_id,
            terminating=pushed.terminating,
            compression=Compression(pushed.compression).name.lower(),
            size=pushed.size,
            data=data,
        )
        self._pushes.append(push)
        self._kept_bytes += len(data)
        while len(self._pushes) > _MOST_PUSHES or (
            self._kept_bytes > _MOST_BYTES and len(self._pushes) > 1
        ):
            self._kept_bytes -= len(self._pushes.popleft().data)
        for listener in tuple(self.on_push):
            listener(push.client_instance_id)

    # ---- what a tester sees --------------------------------------------------------------------

    def view(self) -> TelemetryView:
        """Return the subscriptions, the client instances of all brokers, and the kept pushes."""
        now_ms = self._controller.now_ms
        for each in self._brokers.values():
            each.expire(now_ms)
        return TelemetryView(
            subscriptions=tuple(
                SubscriptionView(
                    each.name,
                    each.metrics,
                    each.interval_ms,
                    tuple(f"{name}={pattern.pattern}" for name, pattern in each.match),
                )
                for each in self.subscriptions()[1]
            ),
            clients=tuple(
                _client(broker_id, each)
                for broker_id, instances in sorted(self._brokers.items())
                for each in instances
            ),
            pushes=tuple(self._pushes),
        )


def _client(broker_id: int, instance: ClientInstance) -> ClientView:
    facts = instance.facts
    software = " ".join(filter(None, (facts.software_name, facts.software_version)))
    return ClientView(
        client_instance_id=shown_id(facts.instance_id),
        broker_id=broker_id,
        client_id=facts.client_id,
        software=software or None,
        metrics=instance.metrics,
        interval_ms=instance.interval_ms,
        subscription_id=instance.subscription_id,
        terminating=instance.terminating,
        last_error=int(instance.last_error),
    )


def _decompressed(codec: Compression, metrics: bytes) -> bytes | None:
    try:
        return decompress(codec, metrics, limit=_LONGEST)
    except (UndecodableError, KprotoError):
        return None
