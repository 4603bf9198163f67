"""What the log says a broker was sent, and what its sockets carried, in one form to compare."""

from dataclasses import dataclass
from typing import Any

from kproto.dialects import dialect
from mockbroker import MockCluster
from mockbroker.simulation.state.actions import (
    LeaderAndIsrSent,
    StopReplicaSent,
    UpdateMetadataSent,
)

__all__ = ["INTER_BROKER", "Heard", "alter", "heard", "recorded", "said"]

INTER_BROKER = (4, 5, 6)


@dataclass(frozen=True)
class Heard:
    """A request as the journal has it."""

    broker_id: int
    connection_id: int
    api_key: int
    version: int
    client_id: str | None
    correlation_id: int
    dialect: str
    body: Any
    sequence: int


def alter(mock: MockCluster, replicas: list[int] | None, tp: tuple[str, int] = ("foo", 0)) -> int:
    """The error code."""
    (topic,) = mock.cluster.reassignments.alter([(tp[0], [(tp[1], replicas)])]).topics
    return topic.partitions[0].error_code


def heard(mock: MockCluster, broker_id: int | None = None, after: int = 0) -> list[Heard]:
    """The controller's requests, decoded by the codec of their dialect, oldest first."""
    found = []
    for entry in mock.journal.select(direction="request", after=after):
        if entry.api_key not in INTER_BROKER or broker_id not in (None, entry.broker_id):
            continue
        header, body = dialect(entry.dialect).decode_request(entry.raw)
        assert header.request_api_key == entry.api_key
        assert header.request_api_version == entry.api_version
        found.append(
            Heard(
                broker_id=entry.broker_id,
                connection_id=entry.connection_id,
                api_key=entry.api_key,
                version=entry.api_version,
                client_id=header.client_id,
                correlation_id=header.correlation_id,
                dialect=entry.dialect,
                body=body,
                sequence=entry.sequence,
            )
        )
    return found


def recorded(mock: MockCluster, broker_id: int, since: int = 0) -> list[tuple[Any, ...]]:
    """Of the log: (offset-free) api key, version, partition and what is said of it."""
    rows: list[tuple[Any, ...]] = []
    for action in mock.cluster.log.since(since):
        change = action.change
        if not isinstance(change, LeaderAndIsrSent | StopReplicaSent | UpdateMetadataSent):
            continue
        if broker_id not in change.to:
            continue
        version = change.versions[change.to.index(broker_id)]
        rows.append((version, *_of_log(change, version, mock.dialect.name)))
    return rows


def _of_log(change: Any, version: int, dialect_name: str) -> tuple[Any, ...]:
    tp = (change.topic, change.index)
    match change:
        case LeaderAndIsrSent():
            state = (change.leader, change.leader_epoch, change.isr, change.zk_version)
            moving: tuple[Any, ...] = ()
            if version >= 3:
                released = (change.adding, change.removing)
                moving = released if dialect_name == "kafka" else (change.target_replicas,)
            new = change.is_new and version >= 1
            return (4, tp, state, change.replicas, moving, new)
        case StopReplicaSent():
            return (5, tp, change.delete)
        case _:
            state = (change.leader, change.leader_epoch, change.isr, change.zk_version)
            return (6, tp, state, change.replicas)


def said(request: Heard) -> list[tuple[Any, ...]]:
    """The same of a request."""
    rows = {4: _leader_and_isr, 5: _stop_replica, 6: _update_metadata}[request.api_key](request)
    return [(request.version, request.api_key, *row) for row in rows]


def _leader_and_isr(request: Heard) -> list[tuple[Any, ...]]:
    body, version = request.body, request.version
    draft = request.dialect != "kafka"
    if version < 2:
        states = body.partition_states_v0 if draft else body.ungrouped_partition_states
        rows = [((state.topic_name, state.partition_index), state) for state in states]
    else:
        rows = [
            ((topic.name if draft else topic.topic_name, state.partition_index), state)
            for topic in body.topic_states
            for state in topic.partition_states
        ]
    return [_replica(tp, state, version, draft) for tp, state in rows]


def _replica(tp: Any, state: Any, version: int, draft: bool) -> tuple[Any, ...]:
    moving: tuple[Any, ...] = ()
    if draft:
        seen = (state.leader_key, state.leader_epoch, tuple(state.isr_replicas), state.zk_version)
        if version >= 3:
            target = state.target_replicas
            moving = (None if target is None else tuple(target),)
    else:
        seen = (state.leader, state.leader_epoch, tuple(state.isr), state.partition_epoch)
        if version >= 3:
            moving = (tuple(state.adding_replicas), tuple(state.removing_replicas))
    return (tp, seen, tuple(state.replicas), moving, state.is_new)


def _stop_replica(request: Heard) -> list[tuple[Any, ...]]:
    body, version = request.body, request.version
    if version == 0:
        return [
            ((each.topic_name, each.partition_index), body.delete_partitions)
            for each in body.ungrouped_partitions
        ]
    if version < 3:
        return [
            ((topic.name, index), body.delete_partitions)
            for topic in body.topics
            for index in topic.partition_indexes
        ]
    return [
        ((topic.topic_name, state.partition_index), state.delete_partition)
        for topic in body.topic_states
        for state in topic.partition_states
    ]


def _update_metadata(request: Heard) -> list[tuple[Any, ...]]:
    body = request.body
    if request.version < 5:
        rows = [((s.topic_name, s.partition_index), s) for s in body.ungrouped_partition_states]
    else:
        rows = [
            ((topic.topic_name, state.partition_index), state)
            for topic in body.topic_states
            for state in topic.partition_states
        ]
    return [
        (
            tp,
            (state.leader, state.leader_epoch, tuple(state.isr), state.zk_version),
            tuple(state.replicas),
        )
        for tp, state in rows
    ]
