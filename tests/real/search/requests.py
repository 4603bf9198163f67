"""Valid requests, from the schemas: a body for each API and version, and the state it is about.

Values follow from a field's entity type and name; ``VALUES`` has those of single fields. A text
that begins with ``$`` stands for something of the program: ``$t`` for the topic's name, ``$tid``
for its id, and names that a step keeps for parts of an answer.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Final

from kproto.codec.registry import schema_of
from kproto.dialects import dialect
from kproto.records import Compression, build_batch
from kproto.schema.model import Field, MessageSchema, Struct
from kproto.schema.versions import Versions
from tests.real.data.batches import record
from tests.real.search.encode import ASSIGNMENT, BATCH, SUBSCRIPTION, THEN, default_of, field_name

__all__ = [
    "EXCLUDED",
    "NEEDS",
    "SHORT_SESSION_MS",
    "SHORT_TRANSACTION_MS",
    "STATE_WAIT_MS",
    "THEN",
    "TRANSACTIONAL",
    "batch_of",
    "batch_text",
    "body_of",
    "row_of",
    "schema",
    "setup",
    "subscription",
]

STATE_WAIT_MS: Final = 300
"""How long a ShareFetch may wait. A leader needs a moment to read the state of a partition, and
answers without the partition until it has."""

Step = dict[str, Any]

EXCLUDED: Final[Mapping[int, str]] = {
    4: "LeaderAndIsr takes a partition away from its leader",
    5: "StopReplica deletes partitions under their leader",
    6: "UpdateMetadata tells a broker of others",
    7: "ControlledShutdown takes the leadership of every partition away",
    56: "AlterPartition is for controllers",
    58: "Envelope is for controllers",
    80: "AddRaftVoter asks the new voter, and waits for it",
    67: "AllocateProducerIds is for controllers",
}
"""APIs of which a valid request harms the cluster of all programs."""


@cache
def batch_text(*values: bytes, magic: int = 2, codec: str = "NONE", **fields: Any) -> str:
    """One batch, in base64."""
    rows = [record(each, b"k", THEN + place) for place, each in enumerate(values or (b"a", b"b"))]
    made = build_batch(rows, magic=magic, compression=Compression[codec], **fields)
    return b64encode(made).decode()


def schema(api_key: int) -> MessageSchema:
    return schema_of(dialect("kafka").api(api_key).request)


_BY_ENTITY: Final[Mapping[str, Any]] = {
    "topicName": "$t", "groupId": "$g", "transactionalId": "$x", "brokerId": 1,
    "producerId": "$pid",
}  # fmt: skip
_BY_NAME: Final[Mapping[str, Any]] = {
    "topicId": "$tid", "timeoutMs": 30_000, "brokerIds": 1, "replicas": 1, "replicaId": -1,
    "maxBytes": 1_000_000, "partitionMaxBytes": 1_000_000, "producerEpoch": "$pepoch",
    "leaderEpoch": 0, "currentLeaderEpoch": -1, "lastFetchedEpoch": -1,
}  # fmt: skip

_ACL: Final = {"resourceTypeFilter": 2, "resourceNameFilter": "$t", "patternTypeFilter": 3,
               "principalFilter": None, "hostFilter": None, "operation": 1,
               "permissionType": 1}  # fmt: skip
_FETCH_TOPICS: Final[Mapping[str, Any]] = {"forgottenTopicsData": []}

VALUES: Final[Mapping[int, Mapping[str, Any]]] = {
    0: {"transactionalId": None, "acks": -1},
    1: {"maxWaitMs": 0, "sessionEpoch": -1, "logStartOffset": -1, **_FETCH_TOPICS},
    2: {"topics[].partitions[].timestamp": -1},
    3: {"topics[].topicId": "A" * 22},
    8: {"generationIdOrMemberEpoch": -1, "memberId": "", "retentionTimeMs": -1,
        "topics[].partitions[].committedOffset": 2, "topics[].partitions[].committedMetadata": "m",
        "topics[].partitions[].commitTimestamp": -1,
        "topics[].partitions[].committedLeaderEpoch": -1},
    9: {"groups[].memberEpoch": -1, "groups[].memberId": None},
    10: {"key": "$g", "coordinatorKeys": "$g"},
    11: {"groupId": "$c", "sessionTimeoutMs": 30_000, "rebalanceTimeoutMs": 30_000,
         "memberId": "$member", "protocolType": "consumer", "protocols[].name": "range",
         "protocols[].metadata": "bWV0YQ=="},
    12: {"groupId": "$c", "generationId": 1, "memberId": "$member"},
    13: {"groupId": "$c", "memberId": "$member", "members[].memberId": "$member"},
    14: {"groupId": "$c", "generationId": 1, "memberId": "$member", "protocolType": "consumer",
         "protocolName": "range", "assignments[].memberId": "$member",
         "assignments[].assignment": "YXNzaWdu"},
    15: {"groups": "$c"},
    16: {"statesFilter": [], "typesFilter": []},
    17: {"mechanism": "PLAIN"},
    18: {"clientSoftwareName": "search", "clientSoftwareVersion": "1.0"},
    19: {"topics[].name": "$n", "topics[].numPartitions": 2, "topics[].replicationFactor": 1,
         "topics[].assignments": [], "topics[].configs[].name": "retention.ms",
         "topics[].configs[].value": "100000"},
    20: {"topics[].topicId": "A" * 22},
    21: {"topics[].partitions[].offset": 1},
    22: {"transactionTimeoutMs": 60_000, "producerId": -1, "producerEpoch": -1},
    24: {"v3AndBelowTransactionalId": "$x", "v3AndBelowProducerId": "$pid",
         "v3AndBelowProducerEpoch": "$pepoch", "transactions[].producerEpoch": "$pepoch",
         "v3AndBelowTopics[].partitions": 0},
    26: {"committed": True},
    27: {"markers[].transactionResult": True, "markers[].transactionVersion": 0,
         "markers[].coordinatorEpoch": 0},
    28: {"generationId": -1, "memberId": "", "groupInstanceId": None,
         "topics[].partitions[].committedOffset": 2,
         "topics[].partitions[].committedLeaderEpoch": -1},
    29: _ACL,
    30: {"creations[].resourceType": 2, "creations[].resourceName": "$t",
         "creations[].resourcePatternType": 3, "creations[].principal": "User:$u",
         "creations[].host": "*", "creations[].operation": 3, "creations[].permissionType": 3},
    31: {f"filters[].{name}": value for name, value in _ACL.items()},
    32: {"resources[].resourceType": 2, "resources[].resourceName": "$t",
         "resources[].configurationKeys": "retention.ms"},
    33: {"resources[].resourceType": 2, "resources[].resourceName": "$t",
         "resources[].configs[].name": "retention.ms", "resources[].configs[].value": "100000"},
    34: {"dirs[].path": "/nowhere"},
    36: {"authBytes": "AHVzZXIAcHc="},
    37: {"topics[].count": 3, "topics[].assignments": None},
    38: {"ownerPrincipalType": None, "ownerPrincipalName": None,
         "renewers[].principalType": "User", "renewers[].principalName": "$u",
         "maxLifetimeMs": -1},
    39: {"hmac": "aG1hYw==", "renewPeriodMs": 1000},
    40: {"hmac": "aG1hYw==", "expiryTimePeriodMs": 1000},
    41: {"owners[].principalType": "User", "owners[].principalName": "$u"},
    42: {"groupsNames": "$g"},
    43: {"timeoutMs": 5000},
    44: {"resources[].resourceType": 2, "resources[].resourceName": "$t",
         "resources[].configs[].name": "retention.ms", "resources[].configs[].value": "100000"},
    48: {"components[].entityType": "user", "components[].matchType": 0,
         "components[].match": "$u"},
    49: {"entries[].entity[].entityType": "user", "entries[].entity[].entityName": "$u",
         "entries[].ops[].key": "producer_byte_rate", "entries[].ops[].value": 1e9},
    50: {"users[].name": "$u"},
    51: {"deletions": [], "upsertions[].name": "$u", "upsertions[].mechanism": 1,
         "upsertions[].iterations": 4096, "upsertions[].salt": "c2FsdA==",
         "upsertions[].saltedPassword": "cGFzc3dvcmQ="},
    55: {"topics[].topicName": "__cluster_metadata"},
    57: {"featureUpdates[].feature": "transaction.version", "featureUpdates[].maxVersionLevel": 2,
         "featureUpdates[].upgradeType": 1, "featureUpdates[].allowDowngrade": False},
    60: {"endpointType": 1},
    64: {"brokerId": 99},
    66: {"stateFilters": [], "producerIdFilters": [], "durationFilter": -1},
    68: {"groupId": "$k", "memberId": "~1", "memberEpoch": 0, "rebalanceTimeoutMs": 30_000,
         "rackId": None, "topicPartitions": [], "subscribedTopicNames": "$t",
         "subscribedTopicRegex": None, "serverAssignor": None},
    69: {"groupIds": "$k"},
    74: {"resourceTypes": []},
    75: {"cursor": None, "responsePartitionLimit": 100},
    76: {"groupId": "$s", "memberId": "~1", "memberEpoch": 0, "subscribedTopicNames": "$t",
         "rackId": None},
    77: {"groupIds": "$s"},
    78: {"groupId": "$s", "memberId": "~1", "shareSessionEpoch": 0, "maxWaitMs": STATE_WAIT_MS,
         "minBytes": 0,
         "maxRecords": 100, "batchSize": 100, "topics[].partitions[].acknowledgementBatches": [],
         **_FETCH_TOPICS},
    79: {"groupId": "$s", "memberId": "~1", "shareSessionEpoch": 1,
         "topics[].partitions[].acknowledgementBatches[].acknowledgeTypes": 1},
    80: {"voterId": 99, "clusterId": None, "voterDirectoryId": "BBBBBBBBBBBBBBBBBBBBBA",
         "listeners[].name": "CONTROLLER", "listeners[].host": "127.0.0.1", "listeners[].port": 1},
    81: {"voterId": 99, "clusterId": None, "voterDirectoryId": "BBBBBBBBBBBBBBBBBBBBBA"},
    83: {"groupId": "$s"}, 84: {"groupId": "$s"}, 85: {"groupId": "$s"}, 86: {"groupId": "$s"},
    87: {"groupId": "$s"},
    88: {"groupId": "$m", "memberId": "~1", "memberEpoch": 0, "processId": "p",
         "endpointInformationEpoch": -1, "rebalanceTimeoutMs": 30_000, "instanceId": None,
         "rackId": None, "userEndpoint": None, "clientTags": [], "taskOffsets": None,
         "taskEndOffsets": None, "activeTasks": [], "standbyTasks": [], "warmupTasks": [],
         "topology.epoch": 0, "topology.subtopologies[].subtopologyId": "0",
         "topology.subtopologies[].sourceTopicRegex": [],
         "topology.subtopologies[].stateChangelogTopics": [],
         "topology.subtopologies[].repartitionSinkTopics": [],
         "topology.subtopologies[].repartitionSourceTopics": [],
         "topology.subtopologies[].copartitionGroups": []},
    89: {"groupIds": "$m"},
    90: {"groups[].groupId": "$s"},
    91: {"groupId": "$s2"},
    92: {"groupId": "$s2"},
    93: {"groupId": "$m", "memberId": "~1"},
    94: {"controllerId": 99},
}  # fmt: skip
"""By API key and path. A text or number at the path of an array is that of its one element."""

NEEDS: Final[Mapping[int, tuple[str, ...]]] = {
    10: (), 16: ("group",), 17: (), 18: (), 19: (), 22: (), 36: (), 38: (), 39: (), 40: (), 41: (),
    48: ("quota",), 49: (), 50: ("scram",), 51: (), 55: (), 57: (), 60: (), 64: (), 80: (), 81: (),
    94: (), 29: ("topic", "acl"), 31: ("topic", "acl"),
    9: ("topic", "group"), 42: ("topic", "group"), 47: ("topic", "group"),
    **dict.fromkeys((11, 12, 13, 14, 15), ("topic", "classic")),
    **dict.fromkeys((24, 25, 26, 27, 28, 61, 65, 66), ("topic", "transaction")),
    **dict.fromkeys((68, 69), ("topic", "consumer")),
    **dict.fromkeys((76, 77, 78, 79, 83, 84, 85, 86, 87, 90), ("topic", "share")),
    **dict.fromkeys((88, 89, 93), ("topic", "streams")),
}  # fmt: skip
"""What a program needs for a request; where nothing is said, a topic with records."""


def body_of(api_key: int, version: int) -> dict[str, Any]:
    """A valid body."""
    values = VALUES.get(api_key, {})
    return _object(schema(api_key).root, version, "", values, api_key)


def row_of(api_key: int, version: int, kind: Struct, path: str) -> dict[str, Any]:
    """A valid element, with one of its own in each array, for the array at ``path``, or the object
    there; a field that may be null is not."""
    given = {at: value for at, value in VALUES.get(api_key, {}).items() if value not in (None, [])}
    return _object(kind, version, f"{path}.", given, api_key)


def _object(
    kind: Struct, version: int, path: str, values: Mapping[str, Any], api_key: int
) -> dict[str, Any]:
    found = {}
    for field in kind.fields:
        if version not in field.versions or field.is_tagged(version):
            continue
        at = f"{path}{field_name(field)}"
        found[field_name(field)] = _value(field, version, at, values, api_key)
    return found


def _value(field: Field, version: int, path: str, values: Mapping[str, Any], api_key: int) -> Any:
    given = values.get(path, ...)
    if given is None and not field.is_nullable(version):
        given = ...
    if field.type.kind == "array":
        assert field.type.element is not None
        if given is None or isinstance(given, list):
            return given
        if field.type.element.struct is None:
            return [_leaf(field, given, api_key, version)]
        return [_object(field.type.element.struct, version, f"{path}[].", values, api_key)]
    if field.type.struct is not None:
        if given is None:
            return None
        return _object(field.type.struct, version, f"{path}.", values, api_key)
    return _leaf(field, given, api_key, version)


def _leaf(field: Field, given: Any, api_key: int, version: int) -> Any:
    if given is not ...:
        return given
    kind = field.type.element.kind if field.type.element is not None else field.type.kind
    if kind == "records":
        return batch_text(magic=2 if version >= 3 else version // 2)
    if field_name(field) in _BY_NAME:
        return _BY_NAME[field_name(field)]
    if field.entity_type is not None and field.entity_type in _BY_ENTITY:
        return _BY_ENTITY[field.entity_type]
    if field.type.kind == "array":
        return {"string": "", "uuid": "A" * 22}.get(kind, 0)
    default = default_of(field)
    return default


# ---- the state that programs begin with ----------------------------------------------------------


def setup(parts: tuple[str, ...], served: Mapping[int, Versions]) -> list[Step]:
    """Steps that make the parts. Those whose APIs are not served are left out."""
    steps = [step for part in parts for step in _PARTS[part](served)]
    for step in steps:
        step["setup"] = True
    return [step for step in steps if step["api"] in served]


def _step(
    served: Mapping[int, Versions],
    api_key: int,
    at_most: int,
    changes: Mapping[str, Any],
    **more: Any,
) -> Step:
    versions = served.get(api_key, Versions(0, 0))
    version = max(versions.lowest, min(versions.highest, at_most))
    body = body_of(api_key, version)
    for path, value in changes.items():
        _put(body, path.split("."), value)
    return {"api": api_key, "version": version, "body": body, **more}


def _put(value: Any, path: list[str], given: Any) -> None:
    """Set the fields at a path, in each element of an array. Do not add a field that the version
    lacks."""
    name, *rest = path
    if isinstance(value, list):
        for each in value:
            _put(each, path, given)
    elif isinstance(value, dict) and name in value:
        if rest:
            _put(value[name], rest, given)
        else:
            value[name] = given


def _topic(served: Mapping[int, Versions]) -> list[Step]:
    configs = [{"name": "retention.ms", "value": "-1"}]
    return [
        _step(served, 19, 4, {"topics.name": "$t", "topics.configs": configs}),
        _step(served, 3, 12, {}, until=True, keep={"tid": "topics[0].topicId"}),
        _step(served, 0, 7, {}, until=True),
        _step(served, 0, 7, {}),
        _step(served, 2, 5, {}, until=True),
    ]


def _topic_with(served: Mapping[int, Versions], **configs: str) -> list[Step]:
    steps = _topic(served)
    for name, value in configs.items():
        config = {"name": name.replace("_", "."), "value": value}
        steps[0]["body"]["topics"][0]["configs"].append(config)
    return steps


def _trimmed(served: Mapping[int, Versions]) -> list[Step]:
    """A topic that begins after its first record."""
    return [*_topic(served), _step(served, 21, 1, {}, until=True)]


def _aborted(served: Mapping[int, Versions]) -> list[Step]:
    """A topic with records of a transaction that was aborted, between others."""
    produced = {
        "transactionalId": "$x",
        "topicData.partitionData.records": batch_of("$pid", "$pepoch", 0),
    }
    return [
        *_topic(served), *_transaction(served), _step(served, 0, 7, produced),
        _step(served, 26, 3, {"committed": False}), _step(served, 0, 7, {}),
    ]  # fmt: skip


TRANSACTIONAL: Final = 16
"""An attribute of batches."""


def batch_of(
    producer_id: Any, epoch: Any, sequence: int, attributes: int = TRANSACTIONAL
) -> dict[str, Any]:
    """A batch of a producer, whose id may be a name."""
    return {BATCH: {"producer_id": producer_id, "producer_epoch": epoch,
                    "base_sequence": sequence, "attributes": attributes}}  # fmt: skip


def subscription(version: int, *topics: str, **more: Any) -> dict[str, Any]:
    """What a member of the classic protocol says that it reads."""
    return {SUBSCRIPTION: {"topics": list(topics), **more}, "version": version}


def _migrated(served: Mapping[int, Versions]) -> list[Step]:
    """A consumer group with a member of each protocol: the classic one came first, alone in its
    group."""
    member = {"groupId": "$k", "protocols.metadata": subscription(1, "$t")}
    joins = _classic(served)[:2]
    for each in joins:
        for path, value in member.items():
            _put(each["body"], path.split("."), value)
    dealt = {ASSIGNMENT: {"assignedPartitions": [{"topic": "$t", "partitions": [0, 1]}]}}
    synced = _step(served, 14, 5, {"groupId": "$k", "assignments.assignment": dealt})
    joined = _step(served, 68, 1, {"serverAssignor": "range"}, until=True)
    return [*joins, synced, joined]


def _group(served: Mapping[int, Versions]) -> list[Step]:
    return [_step(served, 8, 7, {}, until=True)]


SHORT_SESSION_MS: Final = 4_000
SHORT_TRANSACTION_MS: Final = 2_000
SHORT_LOCK_MS: Final = 2_000


def _classic(served: Mapping[int, Versions], lasting_ms: int = 30_000) -> list[Step]:
    lasts = {"sessionTimeoutMs": lasting_ms, "rebalanceTimeoutMs": lasting_ms}
    first = {"memberId": "", **lasts}
    joins = [_step(served, 11, 7, first, until=True, keep={"member": "memberId"})]
    if served[11].highest >= 4:
        joins.append(_step(served, 11, 7, lasts))
    return [*joins, _step(served, 14, 5, {})]


def _configured(
    served: Mapping[int, Versions], group: str, configs: Mapping[str, str]
) -> list[Step]:
    """Configs of a group, which the broker then knows."""
    rows = [{"name": name, "configOperation": 0, "value": each} for name, each in configs.items()]
    resource = {"resourceType": 32, "resourceName": group}
    described = {**resource, "configurationKeys": list(configs)}
    return [
        _step(served, 44, 1, {"resources": [{**resource, "configs": rows}]}),
        _step(served, 32, 1, {"resources": [described]}),
    ]


def _short_session(served: Mapping[int, Versions], group: str, kind: str) -> list[Step]:
    """Heartbeats have to come more often than sessions last."""
    session = {
        f"{kind}.heartbeat.interval.ms": str(SHORT_SESSION_MS // 4),
        f"{kind}.session.timeout.ms": str(SHORT_SESSION_MS),
    }
    return _configured(served, group, session)


def _consumer(served: Mapping[int, Versions]) -> list[Step]:
    return [_step(served, 68, 1, {}, until=True)]


def _share(served: Mapping[int, Versions], **configs: str) -> list[Step]:
    named = {name.replace("_", "."): value for name, value in configs.items()}
    return [
        *_configured(served, "$s", {"share.auto.offset.reset": "earliest", **named}),
        _step(served, 76, 1, {}, until="assignment.topicPartitions"),
    ]


def _streams(served: Mapping[int, Versions]) -> list[Step]:
    return [_step(served, 88, 0, {}, until=True)]


def _transaction(served: Mapping[int, Versions], lasting_ms: int = 60_000) -> list[Step]:
    keep = {"pid": "producerId", "pepoch": "producerEpoch"}
    return [
        _step(served, 22, 4, {"transactionTimeoutMs": lasting_ms}, until=True, keep=keep),
        _step(served, 24, 3, {}, until=True),
    ]


def _acl(served: Mapping[int, Versions]) -> list[Step]:
    return [_step(served, 30, 2, {})]


def _quota(served: Mapping[int, Versions]) -> list[Step]:
    return [_step(served, 49, 1, {})]


def _scram(served: Mapping[int, Versions]) -> list[Step]:
    return [_step(served, 51, 0, {})]


_PARTS: Final[Mapping[str, Callable[[Mapping[int, Versions]], list[Step]]]] = {
    "topic": _topic, "trimmed": _trimmed, "aborted": _aborted, "migrated": _migrated,
    "compacted": partial(_topic_with, cleanup_policy="compact"),
    "stamped": partial(_topic_with, message_timestamp_type="LogAppendTime"),
    "small": partial(_topic_with, max_message_bytes="100"),
    "group": _group, "classic": _classic, "consumer": _consumer, "share": _share,
    "streams": _streams, "transaction": _transaction, "acl": _acl, "quota": _quota, "scram": _scram,
    "short classic": partial(_classic, lasting_ms=SHORT_SESSION_MS),
    "short consumer": lambda served: _short_session(served, "$k", "consumer") + _consumer(served),
    "short share": lambda served: _short_session(served, "$s", "share") + _share(served),
    "short streams": lambda served: _short_session(served, "$m", "streams") + _streams(served),
    "share locks": partial(_share, share_record_lock_duration_ms=str(SHORT_LOCK_MS)),
    "short transaction": partial(_transaction, lasting_ms=SHORT_TRANSACTION_MS),
}  # fmt: skip
