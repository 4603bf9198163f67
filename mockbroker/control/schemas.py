"""The JSON schemas of the control port's requests and answers, by name. Schemas of our classes are
generated from these classes."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kproto.journal import Entry
from mockbroker.control.routes import DURATION, TEXT, WHOLE, Schema
from mockbroker.faults import Fault
from mockbroker.faults.descriptions import MEMBERS
from mockbroker.faults.rule import DURATION_MEMBERS

__all__ = ["COMPONENTS", "array_of", "map_of", "object_of", "ref"]


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def array_of(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def map_of(values: Schema, **more: Any) -> Schema:
    return {"type": "object", "additionalProperties": values, **more}


def object_of(optional: tuple[str, ...] = (), **members: Schema) -> Schema:
    """An object with exactly these members, of which ``optional`` ones may be absent."""
    return {
        "type": "object",
        "properties": members,
        "required": [name for name in members if name not in optional],
        "additionalProperties": False,
    }


def _or_null(schema: Schema) -> Schema:
    return {"oneOf": [schema, {"type": "null"}]}


_INTEGER: Final[Schema] = {"type": "integer"}
_IDS: Final = array_of(_INTEGER)
_FLAG: Final[Schema] = {"type": "boolean"}


def _of_classes() -> dict[str, Schema]:
    _, found = msgspec.json.schema_components(
        (Entry, Fault), ref_template="#/components/schemas/{name}"
    )
    return found


def _journal_entry(entry: Schema) -> Schema:
    """An entry as in the journal's file, with its decoded body."""
    members = {
        **{name: _one_type(each) for name, each in entry["properties"].items()},
        "api": {**TEXT, "description": "The API's name, such as AlterPartitionReassignments."},
        "raw": {**TEXT, "description": "The whole frame with its size: base64, or hex on request."},
        "body": {"description": "The body as Kafka's JsonConverter writes it."},
        "error": {**TEXT, "description": "Why the body could not be decoded."},
    }
    return {
        "type": "object",
        "description": "A frame or an event. Members with their default value are omitted.",
        "properties": members,
        "required": list(entry["required"]),
        "additionalProperties": False,
    }


def _fault_rule(fault: Schema) -> Schema:
    """Members that take a number or a text are texts here."""
    texts = {name: each.text for group in MEMBERS.values() for name, each in group.items()}
    members = {
        name: {**(DURATION if name in DURATION_MEMBERS else _one_type(schema)),
               "description": texts[name]}
        for name, schema in fault["properties"].items()
    }  # fmt: skip
    return {
        **fault,
        "description": "A fault rule; see `mockbroker help faults`. Numbers are accepted in the "
        "place of texts that are one.",
        "properties": members,
    }


def _one_type(schema: Schema) -> Schema:
    """A member of a class as one type, without the default that stands for its absence."""
    kinds = [each for each in schema.get("anyOf", [schema]) if each != {"type": "null"}]
    text = next((each for each in kinds if each == {"type": "string"}), kinds[0])
    return {name: value for name, value in text.items() if name != "default"}


_CLASSES: Final = _of_classes()

_OFFSETS: Final[dict[str, Schema]] = {
    "start_offset": WHOLE,
    "high_watermark": WHOLE,
    "end_offset": {**WHOLE, "description": "The offset of the next record."},
}
_LOG_SUMMARY: Final[dict[str, Schema]] = {
    "leader": {**_INTEGER, "description": "-1 if there is none."},
    "leader_epoch": _INTEGER,
    **_OFFSETS,
    "last_stable_offset": WHOLE,
    "bytes": {**WHOLE, "description": "The size of all batches."},
    "replicas": map_of(
        object_of(
            end_offset=WHOLE,
            in_sync=_FLAG,
            held={**_FLAG, "description": "Whether hold-replication stopped it."},
        ),
        description="The end of each replica, by broker id.",
    ),
}
_BYTES: Final[Schema] = {"description": 'Text, null, or the bytes in hex: {"hex": "00ff"}.'}
_CLUSTER: Final[dict[str, Schema]] = {
    "id": TEXT,
    "bootstrap": {**TEXT, "description": "host:port of every broker, comma-separated."},
    "brokers": map_of(TEXT, description="host:port by broker id; of several listeners, the first."),
    "listeners": map_of(map_of(TEXT), description="host:port by broker id and name of a listener."),
    "profile": TEXT,
    "dialect": TEXT,
    "clock": {"type": "string", "enum": ["wall", "manual"]},
    "now_ms": {**_INTEGER, "description": "The simulated time."},
    "labels": map_of(TEXT, description="As POST /clusters was given them."),
}
_PLACE: Final[dict[str, Schema]] = {"topic": TEXT, "partition": WHOLE}

COMPONENTS: Final[dict[str, Schema]] = {
    "Error": object_of(error={**TEXT, "description": "The problem, in one line."}),
    "Duration": {
        **TEXT,
        "pattern": "^([0-9]{1,12}(ms|s|m|h)|0)$",
        "description": "A number with a unit. JSON numbers are accepted, too, as milliseconds.",
        "examples": ["500ms", "2s", "1m"],
    },
    "Fault": _fault_rule(_CLASSES["Fault"]),
    "ClientSoftware": _CLASSES["ClientSoftware"],
    "JournalEntry": _journal_entry(_CLASSES["Entry"]),
    "FrameField": object_of(
        offset={**WHOLE, "description": "Counted from the first byte of the frame's size."},
        length=WHOLE,
        path={**TEXT, "description": "Such as topics[0].partitions[3].replicas."},
        type=TEXT,
        value={},
        leaf={
            **_FLAG,
            "description": "Whether the field has no parts. Such fields are contiguous.",
        },
    ),
    "Frame": object_of(
        optional=("problem",),
        entry=ref("JournalEntry"),
        hex={**TEXT, "description": "The whole frame with its size; empty if there is none."},
        fields=array_of(ref("FrameField")),
        end={**WHOLE, "description": "The offset after the last field."},
        problem={**TEXT, "description": "Why the fields end there."},
    ),
    "Partition": object_of(
        optional=("original",),
        replicas=_IDS,
        isr=_IDS,
        leader={**_INTEGER, "description": "-1 if there is none."},
        leader_epoch=_INTEGER,
        adding=_IDS,
        removing=_IDS,
        target=_or_null(_IDS),
        original={**_or_null(_IDS), "description": "Only with the drafts of KIP-236."},
    ),
    "State": object_of(
        controller=_INTEGER,
        controller_epoch=_INTEGER,
        brokers=map_of(object_of(live=_FLAG)),
        topics=map_of(map_of(ref("Partition"))),
    ),
    "Action": {
        "type": "object",
        "properties": {
            "offset": WHOLE,
            "at_ms": {**_INTEGER, "description": "The simulated time."},
            "cause": {**TEXT, "description": "The call or the command that caused it."},
            "kind": {
                **TEXT,
                "description": "Such as PartitionChanged; it determines the other members.",
            },
        },
        "required": ["offset", "at_ms", "cause", "kind"],
    },
    "Actions": object_of(actions=array_of(ref("Action"))),
    "Rule": object_of(
        name=TEXT,
        hits=WHOLE,
        matched=WHOLE,
        live={**_FLAG, "description": "Whether the rule can still be hit."},
        failed={
            **array_of(TEXT),
            "description": "What the rule was to do and could not, such as a step, without "
            "repeats.",
        },
        rule={
            "type": "object",
            "description": "The rule's members as they are kept: errors as codes, durations as "
            "milliseconds.",
            "additionalProperties": True,
        },
    ),
    "Rules": object_of(faults=array_of(ref("Rule"))),
    "NewFaults": object_of(faults=array_of(ref("Fault"))),
    "NewRecord": object_of(
        optional=("key", "value", "headers", "timestamp"),
        key=_BYTES,
        value=_BYTES,
        headers={**array_of(array_of({})), "description": "Pairs of a name and bytes."},
        timestamp={**_INTEGER, "description": "Milliseconds since the epoch."},
    ),
    "NewRecords": {
        **object_of(
            optional=(
                *("records", "batch", "codec", "producer_id", "producer_epoch"),
                *("base_sequence", "transactional"),
            ),
            records=array_of(ref("NewRecord")),
            batch={**TEXT, "description": "A whole batch in hex, in the place of records."},
            codec=TEXT,
            producer_id=_INTEGER,
            producer_epoch=_INTEGER,
            base_sequence=_INTEGER,
            transactional=_FLAG,
        ),
        "description": "The records of one batch. A record alone, a list of records, and a text, "
        "which is a value, are accepted, too.",
    },
    "Znode": object_of(path=TEXT, text=TEXT, stat=map_of({}), children=array_of(TEXT)),
    "LogSummary": object_of((), **_LOG_SUMMARY),
    "LogDescription": object_of(
        (),
        partition=TEXT,
        **_LOG_SUMMARY,
        local_start_offset={
            **WHOLE,
            "description": "Records before it are in remote storage only.",
        },
        highest_remote_offset={
            **_INTEGER,
            "description": "The last offset that was copied to remote storage; -1 if none was.",
        },
        batches=WHOLE,
        watermark_lag={**WHOLE, "description": "What lag-high-watermark has set."},
        waiting={**WHOLE, "description": "The requests that wait for this log."},
        epochs=array_of(object_of(epoch=_INTEGER, start_offset=WHOLE)),
        segments=array_of(map_of(_INTEGER)),
        aborted=array_of(map_of(_INTEGER)),
        producers=array_of(map_of(_or_null(_INTEGER))),
    ),
    "Record": object_of(
        (
            *("offset", "timestamp", "key", "value", "headers"),
            *("base_offset", "last_offset", "size", "problem"),
        ),
        **_PLACE,
        offset=WHOLE,
        timestamp={**_INTEGER, "description": "Milliseconds since the epoch; -1 without one."},
        key=_BYTES,
        value=_BYTES,
        headers={**array_of(array_of({})), "description": "Pairs of a name and bytes."},
        base_offset={**WHOLE, "description": "Of a batch that cannot be decoded."},
        last_offset=WHOLE,
        size=WHOLE,
        problem={**TEXT, "description": "Why the batch cannot be decoded."},
    ),
    "Records": object_of((), partition=TEXT, **_OFFSETS, records=array_of(ref("Record"))),
    "Group": object_of(
        group_id=TEXT,
        type={**TEXT, "enum": ["classic", "consumer", "streams", "share"]},
        state={
            **TEXT,
            "description": "Empty, PreparingRebalance, CompletingRebalance, Stable; of a consumer "
            "group Empty, Assigning, Reconciling, Stable; of a streams group NotReady, too; "
            "of a share group Empty, Stable.",
        },
        generation={**_INTEGER, "description": "The epoch of a consumer, streams or share group."},
        protocol_type=_or_null(TEXT),
        protocol=_or_null(TEXT),
        leader={**_or_null(TEXT), "description": "The member id of the leader."},
        held={
            **_FLAG,
            "description": "Whether hold-joins keeps its rebalance from completing, or "
            "hold-assignment its members from their targets.",
        },
        target_epoch={
            **_or_null(_INTEGER),
            "description": "The epoch of the target; null for classic groups.",
        },
        pinned={**_FLAG, "description": "Whether set-target-assignment made the target."},
        members=array_of(
            object_of(
                member_id=TEXT,
                instance_id=_or_null(TEXT),
                client_id=TEXT,
                client_host=TEXT,
                assignment={
                    **_or_null(array_of(TEXT)),
                    "description": "Partitions; null if it is not that of a consumer. Active tasks "
                    "in streams groups: subtopology and partition.",
                },
                joining={**_FLAG, "description": "Whether its JoinGroup waits."},
                syncing={**_FLAG, "description": "Whether its SyncGroup waits."},
                session_ends_ms=_or_null(_INTEGER),
                epoch={
                    **_or_null(_INTEGER),
                    "description": "Null for members of classic groups, like the rest below.",
                },
                state={
                    **_or_null(TEXT),
                    "description": "STABLE, UNREVOKED (it has to give up partitions) or "
                    "UNRELEASED (it waits for others to).",
                },
                target=_or_null(array_of(TEXT)),
                revoking={
                    **_or_null(array_of(TEXT)),
                    "description": "Partitions that it has to give up.",
                },
                standby={
                    **_or_null(array_of(TEXT)),
                    "description": "Standby tasks of a member of a streams group.",
                },
            )
        ),
        share_partitions={
            **_or_null(
                array_of(
                    object_of(
                        partition=TEXT,
                        start_offset={**_INTEGER, "description": "-1 before the first fetch."},
                        stored_start_offset={
                            **_INTEGER,
                            "description": "As DescribeShareGroupOffsets shows it.",
                        },
                        in_flight=array_of(
                            object_of(
                                first=_INTEGER,
                                last=_INTEGER,
                                state={
                                    **TEXT,
                                    "enum": ["Available", "Acquired", "Acknowledged", "Archived"],
                                },
                                delivery_count=_INTEGER,
                                member_id=_or_null(TEXT),
                                lock_ends_ms=_or_null(_INTEGER),
                            )
                        ),
                    )
                )
            ),
            "description": "Of a share group (KIP-932); null for others.",
        },
    ),
    "CommittedOffset": object_of(
        offset=_INTEGER,
        leader_epoch=_INTEGER,
        metadata=TEXT,
        committed_ms=_INTEGER,
        lag={**_or_null(WHOLE), "description": "Records up to the high watermark."},
    ),
    "Telemetry": object_of(
        subscriptions=array_of(
            object_of(name=TEXT, metrics=array_of(TEXT), interval_ms=WHOLE, match=array_of(TEXT))
        ),
        clients=array_of(
            object_of(
                client_instance_id=TEXT,
                broker_id=_INTEGER,
                client_id=_or_null(TEXT),
                software=_or_null(TEXT),
                metrics={**array_of(TEXT), "description": "Prefixes; * stands for all."},
                interval_ms=WHOLE,
                subscription_id=_INTEGER,
                terminating={**_FLAG, "description": "Whether its last push was its last."},
                last_error={**_INTEGER, "description": "The error code of its last push."},
            )
        ),
        pushes=array_of(
            object_of(
                number=WHOLE,
                at_ms=_INTEGER,
                broker_id=_INTEGER,
                client_instance_id=TEXT,
                client_id=_or_null(TEXT),
                terminating=_FLAG,
                compression=TEXT,
                size={**WHOLE, "description": "Bytes of the metrics on the wire."},
                metrics=array_of(ref("Metric")),
                problem={
                    **_or_null(TEXT),
                    "description": "Why the bytes are no OpenTelemetry metrics.",
                },
            )
        ),
    ),
    "Metric": object_of(
        name=TEXT,
        type={**TEXT, "description": "gauge, sum, histogram and the like."},
        unit=TEXT,
        temporality={**_or_null(TEXT), "description": "delta or cumulative."},
        monotonic=_FLAG,
        scope=TEXT,
        resource={"type": "object", "description": "The attributes of the resource."},
        points=array_of(
            object_of(
                attributes={"type": "object"},
                value={
                    "description": "A number; an object with count and sum for a histogram; nan "
                    "and inf are texts."
                },
                time_ns=_INTEGER,
                start_ns=_INTEGER,
            )
        ),
    ),
    "DelegationToken": object_of(
        token_id=TEXT,
        owner={**TEXT, "description": "Whom the token stands for, such as User:alice."},
        requester={**TEXT, "description": "Who created it."},
        renewers={**array_of(TEXT), "description": "Who may renew it besides the owner."},
        issued_ms=_INTEGER,
        expires_ms=_INTEGER,
        max_ms={**_INTEGER, "description": "No renewal moves the expiry beyond it."},
        expired={**_FLAG, "description": "A periodic check removes expired tokens."},
    ),
    "Transaction": object_of(
        transactional_id=TEXT,
        state={
            **TEXT,
            "description": "Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit or "
            "CompleteAbort.",
        },
        pending={
            **_or_null(TEXT),
            "description": "The state that follows once it is written, or the markers are.",
        },
        producer_id=_INTEGER,
        epoch=_INTEGER,
        partitions={
            **array_of(TEXT),
            "description": "Those of the open transaction, or those that lack their marker.",
        },
        start_ms={**_INTEGER, "description": "-1 if no transaction was ever begun."},
        timeout_ms=_INTEGER,
        held={**_FLAG, "description": "Whether hold-markers keeps markers from being written."},
    ),
    "DataActions": object_of(
        dropped={**WHOLE, "description": "How many events the ring has dropped."},
        next={**WHOLE, "description": "The number of the next event."},
        actions=array_of(
            {
                "type": "object",
                "properties": {
                    "number": WHOLE,
                    "kind": {**TEXT, "description": "Such as Appended; it determines the others."},
                    "partition": TEXT,
                    "at_ms": {**_INTEGER, "description": "The simulated time."},
                },
                "required": ["number", "kind", "partition", "at_ms"],
            }
        ),
    ),
    "FetchSession": object_of(
        broker=_INTEGER,
        session_id=_INTEGER,
        epoch={**_INTEGER, "description": "That of the next request."},
        from_replica={**_FLAG, "description": "Whether another broker fetches."},
        created_ms=_INTEGER,
        used_ms=_INTEGER,
        partitions={**array_of(TEXT), "description": "In the order of answers."},
    ),
    "Waiting": object_of(
        now_ms={**_INTEGER, "description": "The simulated time."},
        next_due_ms={**_or_null(_INTEGER), "description": "When the next timer is due."},
        fetches=array_of(
            object_of(broker=_INTEGER, partitions=array_of(TEXT), bytes=WHOLE, min_bytes=_INTEGER)
        ),
        held_produces={**WHOLE, "description": "Answers that hold-produces keeps."},
        watched_logs=map_of(WHOLE, description="Requests that wait for each log."),
        joins=map_of(array_of(TEXT), description="Members whose JoinGroup waits, by group."),
        syncs=map_of(array_of(TEXT), description="Members whose SyncGroup waits, by group."),
        commits=map_of(WHOLE, description="Commits that are held or not replicated, by group."),
        timers=array_of(object_of(due_ms=_INTEGER, name=TEXT)),
    ),
    "Cluster": object_of((), **_CLUSTER),
    "RemovedCluster": object_of(
        (),
        **_CLUSTER,
        problems={**array_of(TEXT), "description": "What a test must not pass with, a line each."},
    ),
    "TlsFiles": object_of(
        optional=("client_ca",),
        certificate={**TEXT, "description": "The certificate chain, as PEM."},
        key={**TEXT, "description": "Its private key, as PEM, without a password."},
        client_ca={
            **TEXT,
            "description": "Require client certificates of these authorities (PEM), whose owners "
            "are then the principals.",
        },
    ),
    "Versions": object_of(
        kproto={**TEXT, "description": "The release of this server."},
        python=TEXT,
        kafka={**TEXT, "description": "The release that the default profile behaves as."},
    ),
    "Clusters": object_of(clusters=array_of(ref("Cluster"))),
    "Scenario": object_of(name=TEXT, title=TEXT, requirements=array_of(TEXT)),
    "Scenarios": object_of(scenarios=array_of(ref("Scenario"))),
    "ScenarioRun": object_of(
        optional=("error",),
        name=TEXT,
        title=TEXT,
        ok={**_FLAG, "description": "Whether every claim held."},
        facts={**WHOLE, "description": "The number of claims that held."},
        lines=array_of(TEXT),
        error=TEXT,
    ),
}
"""Schemas by the name in ``$ref``."""
