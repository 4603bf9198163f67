"""The bodies of LeaderAndIsr, StopReplica and UpdateMetadata at any version, released or draft.

Pure functions from entries of the action log, and the state when they were recorded, to messages. A
value that a version has no field for is omitted if the schema allows it (``ignorable``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec

from kproto.codec.message import Message
from kproto.dialects import Dialect
from kproto.messages.leader_and_isr_request import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from kproto.messages.stop_replica_request import (
    StopReplicaPartitionState,
    StopReplicaPartitionV0,
    StopReplicaRequest,
    StopReplicaTopicState,
    StopReplicaTopicV1,
)
from kproto.messages.update_metadata_request import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from kproto.schema.model import ZERO_UUID
from mockbroker.simulation.brokers.inter_broker.software_versions import (
    LEADER_AND_ISR,
    STOP_REPLICA,
    UPDATE_METADATA,
)
from mockbroker.simulation.state.actions import (
    LeaderAndIsrSent,
    LiveBrokersSent,
    StopReplicaSent,
    UpdateMetadataSent,
)
from mockbroker.simulation.state.cluster_parts import BrokerEndpoint, Topic
from mockbroker.simulation.state.replica_dirs import ReplicaDirs

__all__ = ["Facts", "body_of"]

_LISTENER: Final = "PLAINTEXT"
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""In the order of their numbers."""
_NO_EPOCH: Final = -1


class Facts(msgspec.Struct, frozen=True):
    """The state that a request describes.

    ``live`` maps the ids of live brokers, ascending, to (host, port, rack), and ``endpoints`` those
    whose configs name listeners to these.
    """

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    live: Mapping[int, tuple[str, int, str | None]]
    topics: Mapping[str, Topic]
    replica_dirs: ReplicaDirs
    endpoints: Mapping[int, Sequence[BrokerEndpoint]] = MappingProxyType({})


_RECOVERY_STATE_SINCE: Final = 6
"""The version of LeaderAndIsr that carries LeaderRecoveryState (KIP-704)."""


def body_of(
    codec: Dialect, api_key: int, version: int, entries: Sequence[Any], facts: Facts
) -> Message:
    """Return the body of one request; ``entries`` are of one API, each of another partition."""
    if api_key == LEADER_AND_ISR and _is_draft(codec):
        return _leader_and_isr_of_drafts(codec, version, entries, facts)
    return _BODIES[api_key](version, entries, facts)


def _is_draft(codec: Dialect) -> bool:
    """Return whether this dialect has the LeaderAndIsr of the drafts of KIP-455."""
    return "LeaderAndIsrPartitionStateV0" in codec.apis[LEADER_AND_ISR].request.STRUCTS


# ---- LeaderAndIsr --------------------------------------------------------------------------------


def _leader_and_isr(
    version: int, entries: Sequence[LeaderAndIsrSent], facts: Facts
) -> LeaderAndIsrRequest:
    request = LeaderAndIsrRequest(
        controller_id=facts.controller_id,
        controller_epoch=facts.controller_epoch,
        broker_epoch=facts.broker_epoch,
        live_leaders=[
            LeaderAndIsrLiveLeader(broker_id=broker_id, host_name=host, port=port)
            for broker_id, host, port in _live_leaders(entries, facts)
        ],
    )
    if version < 2:
        request.ungrouped_partition_states = [_state(entry, version, facts) for entry in entries]
    else:
        request.topic_states = [
            LeaderAndIsrTopicState(
                topic_name=name,
                topic_id=_topic_id(name, facts),
                partition_states=[_state(each, version, facts) for each in of_topic],
            )
            for name, of_topic in _by_topic(entries)
        ]
    return request


def _state(entry: LeaderAndIsrSent, version: int, facts: Facts) -> LeaderAndIsrPartitionState:
    return LeaderAndIsrPartitionState(
        topic_name=entry.topic,
        **_partition_fields(entry, facts),
        adding_replicas=list(entry.adding),
        removing_replicas=list(entry.removing),
        is_new=entry.is_new,
        leader_recovery_state=int(version >= _RECOVERY_STATE_SINCE and entry.recovering),
    )


def _leader_and_isr_of_drafts(
    codec: Dialect, version: int, entries: Sequence[LeaderAndIsrSent], facts: Facts
) -> Message:
    make: Any = codec.apis[LEADER_AND_ISR].request
    structs: Mapping[str, Any] = make.STRUCTS
    request = make(
        controller_id=facts.controller_id,
        controller_epoch=facts.controller_epoch,
        broker_epoch=facts.broker_epoch,
        live_leaders=[
            structs["LeaderAndIsrLiveLeader"](broker_id=broker_id, host_name=host, port=port)
            for broker_id, host, port in _live_leaders(entries, facts)
        ],
    )
    if version < 2:
        state = structs["LeaderAndIsrPartitionStateV0"]
        request.partition_states_v0 = [
            state(topic_name=entry.topic, **_fields_of_drafts(entry, facts)) for entry in entries
        ]
    else:
        state, topic = structs["LeaderAndIsrPartitionState"], structs["LeaderAndIsrTopicState"]
        request.topic_states = [
            topic(
                name=name,
                partition_states=[
                    state(
                        **_fields_of_drafts(each, facts),
                        target_replicas=_list_or_none(each.target_replicas),
                    )
                    for each in of_topic
                ],
            )
            for name, of_topic in _by_topic(entries)
        ]
    body: Message = request
    return body


def _fields_of_drafts(entry: LeaderAndIsrSent, facts: Facts) -> dict[str, Any]:
    fields = _partition_fields(
        entry, facts, leader="leader_key", isr="isr_replicas", epoch="zk_version"
    )
    return {**fields, "is_new": entry.is_new}


def _live_leaders(
    entries: Iterable[LeaderAndIsrSent], facts: Facts
) -> Iterable[tuple[int, str, int]]:
    leaders = {entry.leader for entry in entries}
    for broker_id, (host, port, _) in facts.live.items():
        if broker_id in leaders:
            yield broker_id, host, port


# ---- StopReplica ---------------------------------------------------------------------------------


def _stop_replica(
    version: int, entries: Sequence[StopReplicaSent], facts: Facts
) -> StopReplicaRequest:
    request = StopReplicaRequest(
        controller_id=facts.controller_id,
        controller_epoch=facts.controller_epoch,
        broker_epoch=facts.broker_epoch,
    )
    if version < 3:
        # The request has one flag for all partitions, so all entries have the same.
        request.delete_partitions = entries[0].delete
    if version == 0:
        request.ungrouped_partitions = [
            StopReplicaPartitionV0(topic_name=entry.topic, partition_index=entry.index)
            for entry in entries
        ]
    elif version < 3:
        request.topics = [
            StopReplicaTopicV1(name=name, partition_indexes=[each.index for each in of_topic])
            for name, of_topic in _by_topic(entries)
        ]
    else:
        request.topic_states = [
            StopReplicaTopicState(
                topic_name=name,
                partition_states=[
                    StopReplicaPartitionState(
                        partition_index=each.index,
                        leader_epoch=_NO_EPOCH if each.leader_epoch is None else each.leader_epoch,
                        delete_partition=each.delete,
                    )
                    for each in of_topic
                ],
            )
            for name, of_topic in _by_topic(entries)
        ]
    return request


# ---- UpdateMetadata ------------------------------------------------------------------------------


def _update_metadata(
    version: int, entries: Sequence[UpdateMetadataSent | LiveBrokersSent], facts: Facts
) -> UpdateMetadataRequest:
    partitions = [entry for entry in entries if isinstance(entry, UpdateMetadataSent)]
    request = UpdateMetadataRequest(
        controller_id=facts.controller_id,
        controller_epoch=facts.controller_epoch,
        broker_epoch=facts.broker_epoch,
        live_brokers=[
            _live_broker(broker_id, *where, version, facts.endpoints.get(broker_id, ()))
            for broker_id, where in facts.live.items()
        ],
    )
    if version < 5:
        request.ungrouped_partition_states = [_metadata(each, facts) for each in partitions]
    else:
        request.topic_states = [
            UpdateMetadataTopicState(
                topic_name=name,
                topic_id=_topic_id(name, facts),
                partition_states=[_metadata(each, facts) for each in of_topic],
            )
            for name, of_topic in _by_topic(partitions)
        ]
    return request


def _live_broker(
    broker_id: int,
    host: str,
    port: int,
    rack: str | None,
    version: int,
    endpoints: Sequence[BrokerEndpoint],
) -> UpdateMetadataBroker:
    broker = UpdateMetadataBroker(id=broker_id, rack=rack)
    if version == 0:
        broker.v0_host, broker.v0_port = host, port
    else:
        broker.endpoints = [
            UpdateMetadataEndpoint(
                port=each.port,
                host=each.host,
                listener=each.listener,
                security_protocol=_PROTOCOLS.index(each.protocol),
            )
            for each in endpoints or (BrokerEndpoint(_LISTENER, _LISTENER, host, port),)
        ]
    return broker


def _metadata(entry: UpdateMetadataSent, facts: Facts) -> UpdateMetadataPartitionState:
    return UpdateMetadataPartitionState(
        topic_name=entry.topic,
        **_partition_fields(entry, facts, epoch="zk_version"),
        offline_replicas=[
            replica
            for replica in entry.replicas
            if replica not in facts.live
            or facts.replica_dirs.is_reported(replica, (entry.topic, entry.index))
        ],
    )


_BODIES: Final[Mapping[int, Callable[[int, Sequence[Any], Facts], Message]]] = {
    LEADER_AND_ISR: _leader_and_isr,
    STOP_REPLICA: _stop_replica,
    UPDATE_METADATA: _update_metadata,
}


# ---- shared --------------------------------------------------------------------------------------


def _partition_fields(
    entry: LeaderAndIsrSent | UpdateMetadataSent,
    facts: Facts,
    *,
    leader: str = "leader",
    isr: str = "isr",
    epoch: str = "partition_epoch",
) -> dict[str, Any]:
    """Return the fields that all partition states have; three of them differ in their names."""
    return {
        "partition_index": entry.index,
        "controller_epoch": facts.controller_epoch,
        leader: entry.leader,
        "leader_epoch": entry.leader_epoch,
        isr: list(entry.isr),
        epoch: entry.zk_version,
        "replicas": list(entry.replicas),
    }


def _by_topic(entries: Iterable[Any]) -> list[tuple[str, list[Any]]]:
    """Group entries by topic, in the order of their first occurrence."""
    found: dict[str, list[Any]] = {}
    for each in entries:
        found.setdefault(each.topic, []).append(each)
    return list(found.items())


def _topic_id(name: str, facts: Facts) -> Any:
    topic = facts.topics.get(name)
    return ZERO_UUID if topic is None else topic.topic_id


def _list_or_none(values: tuple[int, ...] | None) -> list[int] | None:
    return None if values is None else list(values)
