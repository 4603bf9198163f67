"""What can be read of the data: logs, records, groups, offsets, transactions, waiting requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import islice
from typing import Any, Final, TypeVar
from uuid import UUID

from msgspec import structs

from mockbroker.control.errors import RefusedError
from mockbroker.control.routes import (
    BOOLEAN,
    TEXT,
    WAIT_TIMEOUT,
    WHOLE,
    ControlRequest,
    Member,
    Route,
    choice,
    query_boolean,
    query_integer,
    wait_timeout_ms,
)
from mockbroker.control.schemas import array_of, map_of, ref
from mockbroker.errors import ClusterError, UnknownPartitionError
from mockbroker.simulation.clients.telemetry.pushes import telemetry_json
from mockbroker.simulation.groups.classic.classic_group import GroupState
from mockbroker.simulation.groups.group_views import GroupView, group_json
from mockbroker.simulation.groups.modern.modern_group import EpochGroupState
from mockbroker.simulation.log.batches.record_documents import record_json
from mockbroker.simulation.log.log_events import event_json
from mockbroker.simulation.log.log_views import describe_log, summarize_log
from mockbroker.simulation.log.logs import PartitionData
from mockbroker.simulation.log.seeding import read_records
from mockbroker.simulation.state.cluster_parts import Partition
from mockbroker.simulation.state.option_types import text_of
from mockbroker.simulation.topics.spec import parse_topic_partition
from mockbroker.simulation.transactions.transaction_views import transaction_json
from mockbroker.simulation.transactions.transactional_ids import TransactionState

__all__ = ["DATA_ROUTES"]

_MOST_RECORDS: Final = 10_000
_USUAL_RECORDS: Final = 100
_FoundT = TypeVar("_FoundT")


async def _logs(request: ControlRequest) -> dict[str, Any]:
    request.mock.follow_clock()
    cluster = request.mock.cluster
    known = dict(cluster.logs)
    written = request.query.get("only") == "written"
    return {
        f"{name}-{each.index}": summarize_log(known.get((name, each.index)), each)
        for name, topic in sorted(cluster.topics.items())
        for each in topic.partitions
        if not written or _is_written(known.get((name, each.index)))
    }


def _is_written(data: PartitionData | None) -> bool:
    return data is not None and (data.log.end_offset > 0 or bool(data.replication.held))


def _partition(request: ControlRequest) -> tuple[str, Partition]:
    """Raises RefusedError (404)."""
    topic, index = parse_topic_partition(request.path["partition"])
    try:
        return topic, request.mock.cluster.topics.partition(topic, index)
    except UnknownPartitionError as error:
        raise RefusedError(404, str(error)) from None


async def _log(request: ControlRequest) -> dict[str, Any]:
    request.mock.follow_clock()
    return describe_log(request.mock.cluster.logs, *_partition(request))


async def _records(request: ControlRequest) -> dict[str, Any]:
    request.mock.follow_clock()
    topic, partition = _partition(request)
    tp = (topic, partition.index)
    log = request.mock.cluster.logs.log(tp)
    most = min(request.query.get("max", _USUAL_RECORDS), _MOST_RECORDS)
    records = read_records(
        tp, log, request.query.get("from", 0), committed=request.query.get("committed", False)
    )
    found = list(islice(records, most))
    as_hex = request.query.get("values") == "hex"
    return {
        "partition": f"{topic}-{partition.index}",
        "start_offset": log.start_offset,
        "high_watermark": log.high_watermark,
        "end_offset": log.end_offset,
        "records": [record_json(each, as_hex=as_hex) for each in found],
    }


# ---- groups --------------------------------------------------------------------------------------


async def _waited(
    request: ControlRequest, wait: Callable[..., Awaitable[_FoundT]], name: str
) -> _FoundT:
    """Wait for what the query asks of the entity that the path names; 408 after the time-out."""
    query = {each: value for each, value in request.query.items() if each != WAIT_TIMEOUT.name}
    try:
        return await wait(request.path[name], **query, timeout=wait_timeout_ms(request) / 1000)
    except TimeoutError as error:
        raise RefusedError(408, str(error)) from None


async def _groups(request: ControlRequest) -> dict[str, Any]:
    return {name: group_json(each) for name, each in request.mock.groups().items()}


async def _group(request: ControlRequest) -> dict[str, Any]:
    name = request.path["group"]
    found = request.mock.groups().get(name)
    if found is None:
        raise RefusedError(404, f"no group {name!r:.80}")
    return group_json(found)


async def _wait_for_group(request: ControlRequest) -> dict[str, Any]:
    found = await _waited(request, request.mock.wait_for_group, "group")
    return group_json(found)


async def _offsets(request: ControlRequest) -> dict[str, Any]:
    """Offsets stay when a group's members leave, so this needs no group."""
    cluster = request.mock.cluster
    request.mock.follow_clock()
    found = {}
    for (topic, index), each in sorted(cluster.offsets[request.path["group"]].items()):
        known = cluster.topics.get(topic)
        end = None
        if known is not None and known.partition(index) is not None:
            end = cluster.logs.log((topic, index)).high_watermark
        found[f"{topic}-{index}"] = {
            "offset": each.offset,
            "leader_epoch": each.leader_epoch,
            "metadata": each.metadata,
            "committed_ms": each.commit_ms,
            "lag": None if end is None else max(end - each.offset, 0),
        }
    return found


async def _wait_for_offset(request: ControlRequest) -> dict[str, Any]:
    if "partition" not in request.query:
        raise ClusterError("the parameter partition is required, such as partition=foo-0")
    requested = {request.query["partition"]: request.query.get("offset", 0)}
    try:
        await request.mock.wait_for_committed(
            request.path["group"], requested, timeout=wait_timeout_ms(request) / 1000
        )
    except TimeoutError as error:
        raise RefusedError(408, str(error)) from None
    return await _offsets(request)


# ---- delegation tokens ---------------------------------------------------------------------------


async def _tokens(request: ControlRequest) -> list[dict[str, Any]]:
    request.mock.follow_clock()
    now_ms = request.mock.cluster.timers.now_ms
    return [
        {**structs.asdict(each), "expired": each.expires_ms < now_ms}
        for each in request.mock.cluster.tokens.all
    ]


# ---- transactions --------------------------------------------------------------------------------


async def _transactions(request: ControlRequest) -> dict[str, Any]:
    return {name: transaction_json(each) for name, each in request.mock.transactions().items()}


async def _transaction(request: ControlRequest) -> dict[str, Any]:
    name = request.path["transactional_id"]
    found = request.mock.transactions().get(name)
    if found is None:
        raise RefusedError(404, f"no transactional id {name!r:.80}")
    return transaction_json(found)


async def _wait_for_transaction(request: ControlRequest) -> dict[str, Any]:
    found = await _waited(request, request.mock.wait_for_transaction, "transactional_id")
    return transaction_json(found)


# ---- logs and waits ------------------------------------------------------------------------------


async def _data_actions(request: ControlRequest) -> dict[str, Any]:
    events = request.mock.cluster.logs.events
    first = max(request.query.get("since", 0), events.dropped)
    found = events.since(first)[:_MOST_RECORDS]
    return {
        "dropped": events.dropped,
        "next": first + len(found),
        "actions": [
            {"number": number, **event_json(each)} for number, each in enumerate(found, first)
        ],
    }


async def _sessions(request: ControlRequest) -> list[dict[str, Any]]:
    request.mock.follow_clock()
    topics = {each.topic_id: name for name, each in request.mock.cluster.topics.items()}
    return [
        {
            "broker": broker_id,
            "session_id": session.session_id,
            "epoch": session.epoch,
            "from_replica": session.privileged,
            "created_ms": session.created_ms,
            "used_ms": session.used_ms,
            "partitions": [
                f"{topics.get(key, key) if isinstance(key, UUID) else key}-{index}"
                for key, index in session.partitions
            ],
        }
        for broker_id, session in request.mock.cluster.fetches.all_sessions()
    ]


async def _waiting(request: ControlRequest) -> dict[str, Any]:
    request.mock.follow_clock()
    cluster = request.mock.cluster
    groups = request.mock.groups()
    return {
        "now_ms": cluster.timers.now_ms,
        "next_due_ms": cluster.timers.next_due_ms,
        "fetches": [
            {
                "broker": each.query.broker_id,
                "partitions": [f"{topic}-{index}" for topic, index in each.partitions],
                "bytes": each.waiting_bytes,
                "min_bytes": each.min_bytes,
            }
            for each in cluster.fetches.waiting()
        ],
        "held_produces": cluster.appender.holds.waiting,
        "watched_logs": {
            f"{topic}-{index}": data.log.watched
            for (topic, index), data in cluster.logs
            if data.log.watched
        },
        "joins": _members(groups, "joining"),
        "syncs": _members(groups, "syncing"),
        "commits": cluster.offsets.waiting_commits(),
        "timers": [{"due_ms": due_ms, "name": name} for due_ms, name in cluster.timers.pending()],
    }


def _members(groups: dict[str, GroupView], waits: str) -> dict[str, list[str]]:
    """Member ids by group: of those whose answer waits."""
    found = {
        name: [member.member_id for member in each.members if getattr(member, waits)]
        for name, each in groups.items()
    }
    return {name: members for name, members in found.items() if members}


_NO_PARTITION: Final = {404: "There is no cluster of this id, or no such partition."}
_VALUES: Final = choice("text", "hex")
_GROUP_STATES: Final = choice(*dict.fromkeys(str(each) for each in (*GroupState, *EpochGroupState)))


async def _telemetry(request: ControlRequest) -> dict[str, Any]:
    return telemetry_json(request.mock.telemetry())


_TRANSACTION_STATES: Final = choice(*(str(each) for each in TransactionState))
_NO_TRANSACTION: Final = {404: "There is no cluster of this id, or no such transactional id."}
_NO_GROUP: Final = {404: "There is no cluster of this id, or no such group."}

DATA_ROUTES: Final = (
    Route(
        "GET",
        "/logs",
        "listLogs",
        "Show where the log of each partition begins and ends.",
        _logs,
        map_of(ref("LogSummary")),
        query=(Member("only", *choice("written"), "Only partitions that were written to."),),
    ),
    Route(
        "GET",
        "/logs/{partition}",
        "getLog",
        "Show the log of a partition.",
        _log,
        ref("LogDescription"),
        refusals=_NO_PARTITION,
    ),
    Route(
        "GET",
        "/logs/{partition}/records",
        "listRecords",
        "Show the records of a partition.",
        _records,
        ref("Records"),
        query=(
            Member("from", {**WHOLE, "default": 0}, query_integer, "The first offset."),
            Member(
                "max",
                {**WHOLE, "default": _USUAL_RECORDS, "maximum": _MOST_RECORDS},
                query_integer,
                "The most records.",
            ),
            Member(
                "committed",
                {**BOOLEAN, "default": False},
                query_boolean,
                "Only the records that a consumer with read_committed gets.",
            ),
            Member(
                "values", *_VALUES, 'Bytes as text where they are UTF-8, or always as {"hex": ...}.'
            ),
        ),
        refusals=_NO_PARTITION,
        details="Control records are left out. A batch that cannot be decoded has the member "
        "`problem`.",
    ),
    Route(
        "GET",
        "/groups",
        "listGroups",
        "Show the groups with their members.",
        _groups,
        map_of(ref("Group")),
    ),
    Route(
        "GET",
        "/groups/{group}",
        "getGroup",
        "Show a group with its members.",
        _group,
        ref("Group"),
        refusals=_NO_GROUP,
    ),
    Route(
        "GET",
        "/groups/{group}/wait",
        "waitForGroup",
        "Wait until a group is as the query says.",
        _wait_for_group,
        ref("Group"),
        query=(
            Member("state", *_GROUP_STATES, "Its state."),
            Member("members", WHOLE, query_integer, "How many members it has."),
            Member("generation", WHOLE, query_integer, "Its generation or epoch."),
            WAIT_TIMEOUT,
        ),
        refusals={408: "The time-out has passed."},
    ),
    Route(
        "GET",
        "/offsets/{group}",
        "listOffsets",
        "Show the committed offsets of a group, with the lag.",
        _offsets,
        map_of(ref("CommittedOffset")),
    ),
    Route(
        "GET",
        "/offsets/{group}/wait",
        "waitForOffset",
        "Wait until a group has committed an offset of a partition, or a later one.",
        _wait_for_offset,
        map_of(ref("CommittedOffset")),
        query=(
            Member(
                "partition",
                {**TEXT, "examples": ["foo-0"]},
                text_of,
                "The partition, which must be given.",
            ),
            Member("offset", {**WHOLE, "default": 0}, query_integer, "The offset."),
            WAIT_TIMEOUT,
        ),
        refusals={408: "The time-out has passed."},
    ),
    Route(
        "GET",
        "/transactions",
        "listTransactions",
        "Show the transactional ids with their transactions.",
        _transactions,
        map_of(ref("Transaction")),
    ),
    Route(
        "GET",
        "/transactions/{transactional_id}",
        "getTransaction",
        "Show a transaction.",
        _transaction,
        ref("Transaction"),
        refusals=_NO_TRANSACTION,
    ),
    Route(
        "GET",
        "/transactions/{transactional_id}/wait",
        "waitForTransaction",
        "Wait until a transaction is as the query says.",
        _wait_for_transaction,
        ref("Transaction"),
        query=(Member("state", *_TRANSACTION_STATES, "Its state."), WAIT_TIMEOUT),
        refusals={408: "The time-out has passed."},
    ),
    Route(
        "GET",
        "/tokens",
        "listDelegationTokens",
        "Show the delegation tokens, without their HMACs.",
        _tokens,
        array_of(ref("DelegationToken")),
    ),
    Route(
        "GET",
        "/data-actions",
        "listDataActions",
        "Show what happened to logs: appends, compactions and the like.",
        _data_actions,
        ref("DataActions"),
        query=(
            Member(
                "since", {**WHOLE, "default": 0}, query_integer, "The number of the first event."
            ),
        ),
        details="A bounded ring keeps them; `dropped` is the number of the oldest one.",
    ),
    Route(
        "GET",
        "/telemetry",
        "getTelemetry",
        "Show subscriptions to clients' metrics, client instances, and what they pushed (KIP-714).",
        _telemetry,
        ref("Telemetry"),
    ),
    Route(
        "GET",
        "/sessions",
        "listFetchSessions",
        "Show the fetch sessions of the brokers (KIP-227).",
        _sessions,
        array_of(ref("FetchSession")),
    ),
    Route(
        "GET",
        "/waiting",
        "getWaiting",
        "Show the requests that wait, and for what.",
        _waiting,
        ref("Waiting"),
    ),
)
