"""The znodes of Kafka's brokers and ZooKeeper controllers: paths, texts, and parsing.

This module contains data and pure functions and stores nothing. The texts are those of
``kafka.zk``'s encoders, byte for byte, as written by Kafka 2.4.1 and 3.9.2 (Scala 2.13);
differences between releases are arguments. Unknown fields are ignored on reading, as in Kafka.
``plan_znodes`` contains what users submit to the controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import msgspec

from kproto.znodes.errors import MalformedZnodeError
from kproto.znodes.texts import BrokerId, Ids, Int32, decode, encode

__all__ = [
    "BROKER_IDS",
    "CONFIG_CHANGES",
    "CONFIG_CHANGE_PREFIX",
    "CONTROLLER",
    "CONTROLLER_EPOCH",
    "LOG_DIR_EVENTS",
    "LOG_DIR_EVENT_PREFIX",
    "TOPICS",
    "BrokerRegistration",
    "Endpoint",
    "PartitionState",
    "TopicAssignment",
    "broker_path",
    "config_path",
    "decode_broker",
    "decode_config",
    "decode_config_change",
    "decode_controller",
    "decode_controller_epoch",
    "decode_log_dir_event",
    "decode_partition_state",
    "decode_topic",
    "encode_broker",
    "encode_config",
    "encode_config_change",
    "encode_controller",
    "encode_controller_epoch",
    "encode_log_dir_event",
    "encode_partition_state",
    "encode_topic",
    "partition_state_path",
    "topic_path",
]

BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
CONFIG_CHANGES = "/config/changes"
CONFIG_CHANGE_PREFIX = "config_change_"
LOG_DIR_EVENTS = "/log_dir_event_notification"
LOG_DIR_EVENT_PREFIX = f"{LOG_DIR_EVENTS}/log_dir_event_"


def broker_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def partition_state_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


# ---- /brokers/ids/N ----------------------------------------------------------------------------


class Endpoint(msgspec.Struct, frozen=True):
    """A listener: its name, its address, and its security protocol ("PLAINTEXT", "SASL_SSL")."""

    listener: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"


class BrokerRegistration(msgspec.Struct, frozen=True, kw_only=True):
    """A broker's registration. ``timestamp`` is ms since the epoch; a ``jmx_port`` of -1 means
    none."""

    endpoints: tuple[Endpoint, ...]
    timestamp: int
    rack: str | None = None
    jmx_port: int = -1


def encode_broker(broker: BrokerRegistration, version: int = 5) -> bytes:
    """Encode version 5 since Kafka 2.7 (features, always none here), and version 4 since 0.10.2.

    ``host`` and ``port`` are those of the first PLAINTEXT endpoint, or null and -1 without one.
    """
    plain = next((e for e in broker.endpoints if e.security_protocol == "PLAINTEXT"), None)
    text: dict[str, Any] = {"features": {}} if version >= 5 else {}
    text["listener_security_protocol_map"] = {
        e.listener: e.security_protocol for e in broker.endpoints
    }
    text["endpoints"] = [f"{e.listener}://{e.host}:{e.port}" for e in broker.endpoints]
    if broker.rack is not None:
        text["rack"] = broker.rack
    text["jmx_port"] = broker.jmx_port
    text["port"] = plain.port if plain else -1
    text["host"] = plain.host if plain else None
    text["version"] = version
    text["timestamp"] = str(broker.timestamp)
    return encode(text)


class _BrokerText(msgspec.Struct):
    endpoints: tuple[Annotated[str, msgspec.Meta(pattern=r"^[^:/]+://.*:-?[0-9]{1,5}$")], ...]
    listener_security_protocol_map: dict[str, str]
    timestamp: Annotated[str, msgspec.Meta(pattern=r"^-?[0-9]{1,19}$")]
    rack: str | None = None
    jmx_port: Int32 = -1


def decode_broker(path: str, data: bytes | str) -> BrokerRegistration:
    """Decode versions 4 and 5."""
    text = decode(path, data, _BrokerText)
    endpoints = []
    for endpoint in text.endpoints:
        listener, _, address = endpoint.partition("://")
        host, _, port = address.rpartition(":")
        protocol = text.listener_security_protocol_map.get(listener)
        if protocol is None:
            reason = f"listener {listener!r} is not in listener_security_protocol_map"
            raise MalformedZnodeError(path, reason)
        endpoints.append(Endpoint(listener, host, int(port), protocol))
    return BrokerRegistration(
        endpoints=tuple(endpoints),
        timestamp=int(text.timestamp),
        rack=text.rack,
        jmx_port=text.jmx_port,
    )


# ---- /brokers/topics/T -------------------------------------------------------------------------


class TopicAssignment(msgspec.Struct, frozen=True, kw_only=True):
    """The replicas of each partition, and those that a reassignment adds and removes (KIP-455).

    ``topic_id`` is Kafka's base64 text of the id, None before 2.8.
    """

    partitions: Mapping[int, Sequence[int]]
    adding_replicas: Mapping[int, Sequence[int]] = {}
    removing_replicas: Mapping[int, Sequence[int]] = {}
    topic_id: str | None = None


def encode_topic(topic: TopicAssignment, version: int = 3) -> bytes:
    """Encode version 3 since Kafka 2.8 (topic ids), 2 since 2.4 (reassignments), and 1 before."""
    partitions = _by_partition(topic.partitions)
    if version < 2:
        return encode({"version": version, "partitions": partitions})
    moves = {
        "adding_replicas": _by_partition(topic.adding_replicas),
        "removing_replicas": _by_partition(topic.removing_replicas),
    }
    if version == 2:
        return encode({"version": version, "partitions": partitions, **moves})
    topic_id = {} if topic.topic_id is None else {"topic_id": topic.topic_id}
    return encode({"partitions": partitions, **topic_id, **moves, "version": version})


def _by_partition(replicas: Mapping[int, Sequence[int]]) -> dict[str, list[int]]:
    """Leave out partitions without replicas, as Kafka's adding and removing maps do."""
    texts = {str(index): list(ids) for index, ids in replicas.items() if ids}
    return {index: texts[index] for index in _scala_order(texts)}


def _scala_order(keys: Iterable[str]) -> list[str]:
    """Return keys in the iteration order of Scala 2.13's ``mutable.HashMap``, as Kafka does.

    The order is by bucket, and within one by hash. The table has 16 buckets and doubles before it
    becomes three quarters full. Up to eleven partitions are therefore in ascending order; of
    twelve, the last comes first.
    """
    hashes = {key: _hash(key) for key in keys}
    buckets = 16
    while len(hashes) >= buckets * 3 // 4:
        buckets *= 2
    return sorted(hashes, key=lambda key: (hashes[key] & (buckets - 1), _signed(hashes[key])))


def _hash(key: str) -> int:
    """Return Java's String.hashCode as improved by Scala's maps, unsigned. Digits and ASCII
    only."""
    value = 0
    for character in key:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value ^ value >> 16


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


_Replicas = dict[Annotated[str, msgspec.Meta(pattern=r"^(0|[1-9][0-9]{0,9})$")], Ids]


class _TopicText(msgspec.Struct):
    partitions: _Replicas
    adding_replicas: _Replicas = {}
    removing_replicas: _Replicas = {}
    topic_id: str | None = None


def decode_topic(path: str, data: bytes | str) -> TopicAssignment:
    """Decode any version."""
    text = decode(path, data, _TopicText)
    return TopicAssignment(
        partitions=_by_index(text.partitions),
        adding_replicas=_by_index(text.adding_replicas),
        removing_replicas=_by_index(text.removing_replicas),
        topic_id=text.topic_id,
    )


def _by_index(replicas: Mapping[str, Ids]) -> dict[int, Ids]:
    return {index: replicas[str(index)] for index in sorted(map(int, replicas))}


# ---- /brokers/topics/T/partitions/P/state ------------------------------------------------------


class PartitionState(msgspec.Struct, frozen=True, kw_only=True):
    """Leader and ISR. ``leader`` is -1 if there is none.

    ``leader_recovery_state`` (Kafka 3.2) is 1 from an unclean election until the leader has
    recovered. ``target_replicas`` belongs to the draft of KIP-455 and is None if no reassignment is
    in progress.
    """

    leader: Int32
    leader_epoch: Int32
    controller_epoch: Int32
    isr: Ids
    leader_recovery_state: Annotated[int, msgspec.Meta(ge=0, le=1)] = 0
    target_replicas: Ids | None = msgspec.field(default=None, name="targetReplicas")


def encode_partition_state(state: PartitionState) -> bytes:
    """Encode as Kafka does; with target replicas, in the order of KIP-455's draft."""
    isr = list(state.isr)
    if state.target_replicas is not None:
        return encode(
            {
                "version": 1,
                "leader": state.leader,
                "leader_epoch": state.leader_epoch,
                "controller_epoch": state.controller_epoch,
                "isr": isr,
                "targetReplicas": list(state.target_replicas),
            }
        )
    recovery = {"leader_recovery_state": 1} if state.leader_recovery_state else {}
    return encode(
        {
            "controller_epoch": state.controller_epoch,
            "leader": state.leader,
            "version": 1,
            **recovery,
            "leader_epoch": state.leader_epoch,
            "isr": isr,
        }
    )


def decode_partition_state(path: str, data: bytes | str) -> PartitionState:
    return decode(path, data, PartitionState)


# ---- /controller, /controller_epoch ------------------------------------------------------------


def encode_controller(broker_id: int, timestamp: int, version: int = 2) -> bytes:
    """Encode version 2 since Kafka 3.4 (``kraftControllerEpoch``: -1, no migration), and 1
    before."""
    text = {"version": version, "brokerid": broker_id, "timestamp": str(timestamp)}
    return encode(text | ({"kraftControllerEpoch": -1} if version >= 2 else {}))


class _ControllerText(msgspec.Struct):
    brokerid: BrokerId


def decode_controller(path: str, data: bytes | str) -> int:
    """Return the controller's broker id."""
    return decode(path, data, _ControllerText).brokerid


def encode_controller_epoch(epoch: int) -> bytes:
    """Encode a number without quotes, which is also valid JSON."""
    return str(epoch).encode()


def decode_controller_epoch(path: str, data: bytes | str) -> int:
    return decode(path, data, Int32)


# ---- /config/topics/T, /config/brokers/N, /config/changes/... ----------------------------------

_CONFIG_FOLDERS = {2: "topics", 4: "brokers"}
"""By the resource type's number on the wire (``ConfigResource.Type``)."""
_DEFAULT = "<default>"


def config_path(resource_type: int, name: str) -> str:
    """Return the path of a topic (2) or of a broker (4), whose empty name is the cluster-wide
    default."""
    return f"/config/{_CONFIG_FOLDERS[resource_type]}/{name or _DEFAULT}"


def encode_config(values: Mapping[str, str]) -> bytes:
    """Encode overrides only, in the given order."""
    return encode({"version": 1, "config": dict(values)})


class _ConfigText(msgspec.Struct):
    config: dict[str, str]


def decode_config(path: str, data: bytes | str) -> dict[str, str]:
    return decode(path, data, _ConfigText).config


def encode_config_change(resource_type: int, name: str) -> bytes:
    """Encode a notification as Kafka 0.10 and later do: version 2, the entity by its path."""
    path = config_path(resource_type, name).removeprefix("/config/")
    return encode({"version": 2, "entity_path": path})


class _ConfigChangeText(msgspec.Struct):
    entity_path: str


def decode_config_change(path: str, data: bytes | str) -> tuple[int, str] | None:
    """Return the resource type and name in a notification; None for users and clients."""
    folder, _, name = decode(path, data, _ConfigChangeText).entity_path.partition("/")
    for resource_type, known in _CONFIG_FOLDERS.items():
        if folder == known and name and "/" not in name:
            return resource_type, "" if name == _DEFAULT else name
    return None


# ---- /log_dir_event_notification/log_dir_event_N -------------------------------------------------


class _LogDirEventText(msgspec.Struct):
    broker: int


_LOG_DIR_FAILURE = 1


def decode_log_dir_event(path: str, data: bytes | str) -> int:
    """Return the id of the broker with a failed log directory."""
    return decode(path, data, _LogDirEventText).broker


def encode_log_dir_event(broker_id: int) -> bytes:
    """What a broker writes when a log directory of it has failed (KIP-112)."""
    return encode({"version": 1, "broker": broker_id, "event": _LOG_DIR_FAILURE})
