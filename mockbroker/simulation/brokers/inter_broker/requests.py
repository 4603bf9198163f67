"""Turns entries of the action log into the requests that a controller sends. No sockets.

The log has one entry for each partition, while a request carries many partitions, as Kafka's
controllers batch what one event causes. All entries that one step records for a broker are sent in
as few requests as possible, keeping the order of the entries of each partition. A request describes
the state when it was recorded, so the log is replayed here along the way; only the endpoints of
brokers are those of the time when it is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import msgspec

from kproto.codec.message import Message
from kproto.dialects import Dialect
from kproto.znodes.kafka_znodes import broker_path
from mockbroker.simulation.brokers.inter_broker.bodies import Facts, body_of
from mockbroker.simulation.brokers.inter_broker.software_versions import (
    LEADER_AND_ISR,
    STOP_REPLICA,
    UPDATE_METADATA,
)
from mockbroker.simulation.state.actions import (
    Action,
    BrokerChanged,
    ControllerChanged,
    LeaderAndIsrSent,
    LiveBrokersSent,
    SentRequest,
    StopReplicaSent,
    TopicDeleted,
)
from mockbroker.simulation.state.cluster_parts import Broker, find_partition
from mockbroker.simulation.state.cluster_state import ClusterState

__all__ = ["Ended", "Outgoing", "RequestWriter"]

_MOST_OPEN = 16
"""The highest number of open requests per broker. More are needed only if one step changes the same
partition many times."""

_DELETE_IN_EACH_SINCE = 3
"""The first version of StopReplica with a delete flag for each partition."""


class Outgoing(msgspec.Struct, frozen=True):
    """A request to send. ``offsets`` are the log entries that it carries."""

    to: int
    controller_id: int
    api_key: int
    version: int
    body: Message
    offsets: tuple[int, ...]


class Ended(msgspec.Struct, frozen=True):
    """A broker stopped, so requests that are still pending for it are dropped."""

    broker_id: int


class _Batch(msgspec.Struct):
    api_key: int
    version: int
    delete: bool | None
    entries: list[SentRequest] = msgspec.field(default_factory=list)
    offsets: list[int] = msgspec.field(default_factory=list)
    partitions: set[tuple[str, int]] = msgspec.field(default_factory=set)

    def is_for(self, change: SentRequest, version: int) -> bool:
        """Return whether this request can carry the change. LiveBrokersSent is sent alone."""
        kind = (_api_key(change), version, _delete(change, version))
        return bool(self.partitions) and (self.api_key, self.version, self.delete) == kind

    def add(self, offset: int, change: SentRequest) -> None:
        self.entries.append(change)
        self.offsets.append(offset)
        if not isinstance(change, LiveBrokersSent):
            self.partitions.add((change.topic, change.index))


class RequestWriter:
    """Writes requests from the action log, which it has to be fed from the start.

    ``registered`` returns a broker with its present endpoints.
    """

    def __init__(self, codec: Dialect, registered: Callable[[int], Broker]) -> None:
        self._codec = codec
        self._registered = registered
        self._state = ClusterState("")
        self._filling: dict[int, list[_Batch]] = {}
        self._without_controller: list[tuple[int, int, SentRequest]] = []

    @property
    def offset(self) -> int:
        """The offset of the first entry that was not written yet."""
        return self._state.offset

    def write(self, actions: Iterable[Action]) -> Iterator[Outgoing | Ended]:
        """Yield the requests that the actions of one or several steps cause, in order."""
        for action in actions:
            change = action.change
            if isinstance(change, SentRequest):
                for to, version in zip(change.to, change.versions, strict=True):
                    if version >= 0:
                        yield from self._take(to, action.offset, change, version)
            elif isinstance(change, BrokerChanged | ControllerChanged | TopicDeleted):
                # The live brokers, the controller or a topic id are about to change.
                yield from self._flush()
            self._state.apply(action)
            if isinstance(change, BrokerChanged) and change.before.live and not change.after.live:
                yield Ended(change.after.broker_id)
            elif isinstance(change, ControllerChanged):
                yield from self._resume()
        yield from self._flush()

    def _take(self, to: int, offset: int, change: SentRequest, version: int) -> Iterator[Outgoing]:
        if not self._controller_lives():
            self._without_controller.append((to, offset, change))
            return
        if isinstance(change, StopReplicaSent) and change.leader_epoch is None:
            change = replace(change, leader_epoch=self._leader_epoch(change))
        batches = self._filling.setdefault(to, [])
        batch = _place(batches, change, version)
        if batch is None:
            # Live brokers are sent alone, before requests that depend on them.
            if isinstance(change, LiveBrokersSent) or len(batches) == _MOST_OPEN:
                yield from self._flush_one(to)
                batches = self._filling[to] = []
            batch = _Batch(_api_key(change), version, _delete(change, version))
            batches.append(batch)
        batch.add(offset, change)

    def _leader_epoch(self, change: StopReplicaSent) -> int | None:
        partition = find_partition(self._state.topics, (change.topic, change.index))
        return None if partition is None else partition.leader_epoch

    def _controller_lives(self) -> bool:
        controller = self._state.brokers.get(self._state.controller_id)
        return controller is not None and controller.live

    def _resume(self) -> Iterator[Outgoing]:
        """Send what was recorded without a controller on behalf of the next one."""
        held, self._without_controller = self._without_controller, []
        for to, offset, change in held:
            version = change.versions[change.to.index(to)]
            yield from self._take(to, offset, change, version)

    def _flush(self) -> Iterator[Outgoing]:
        for to in list(self._filling):
            yield from self._flush_one(to)

    def _flush_one(self, to: int) -> Iterator[Outgoing]:
        for batch in self._filling.pop(to):
            yield self._finish(to, batch)

    def _finish(self, to: int, batch: _Batch) -> Outgoing:
        state = self._state
        stat = state.znode_stats.get(broker_path(to))
        facts = Facts(
            controller_id=state.controller_id,
            controller_epoch=state.controller_epoch,
            broker_epoch=-1 if stat is None else stat.czxid,
            live={
                broker_id: (present.host, present.port, broker.rack)
                for broker_id, broker in sorted(state.brokers.items())
                if broker.live
                for present in [self._registered(broker_id)]
            },
            topics=state.topics,
            replica_dirs=state.replica_dirs,
            endpoints={
                broker_id: self._registered(broker_id).endpoints for broker_id in state.brokers
            },
        )
        body = body_of(self._codec, batch.api_key, batch.version, batch.entries, facts)
        return Outgoing(
            to, state.controller_id, batch.api_key, batch.version, body, tuple(batch.offsets)
        )


def _place(batches: list[_Batch], change: SentRequest, version: int) -> _Batch | None:
    """Return the first open request that can carry the change and follows all of its partition."""
    if isinstance(change, LiveBrokersSent):
        return None
    found = None
    for batch in reversed(batches):
        if (change.topic, change.index) in batch.partitions:
            break
        if batch.is_for(change, version):
            found = batch
    return found


def _api_key(change: SentRequest) -> int:
    match change:
        case LeaderAndIsrSent():
            return LEADER_AND_ISR
        case StopReplicaSent():
            return STOP_REPLICA
        case _:
            return UPDATE_METADATA


def _delete(change: SentRequest, version: int) -> bool | None:
    """Return the delete flag that all entries of a request share, or None."""
    if isinstance(change, StopReplicaSent) and version < _DELETE_IN_EACH_SINCE:
        return change.delete
    return None
