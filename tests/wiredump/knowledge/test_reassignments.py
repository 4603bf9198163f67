"""Reassignments as tables have them, of a mock cluster that did them: its journal as a source, and
the same journal as a capture."""

from __future__ import annotations

import io
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kproto.capture import JournalCapture
from kproto.messages import (
    AlterPartitionReassignmentsRequest,
    DeleteTopicsRequest,
    ListPartitionReassignmentsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    ReassignablePartition,
    ReassignableTopic,
)
from kproto.messages.delete_topics_request import DeleteTopicState
from mockbroker import MockCluster
from tests.mockbroker.simulation.reassignment.test_kip_455_wire import (
    alter_request,
    list_request,
    say,
)
from tests.mockbroker.wire import Wire, connect
from tests.wiredump.rows.tabled import tables_of
from wiredump.readers import Capture, Streams
from wiredump.sources.captures import CaptureItems
from wiredump.sources.journals import JournalItems

Script = Callable[[MockCluster, Wire], Awaitable[None]]


async def alter(wire: Wire, targets, *, topic: str = "foo", allow: bool | None = None) -> None:
    request = AlterPartitionReassignmentsRequest(
        topics=[
            ReassignableTopic(
                name=topic,
                partitions=[
                    ReassignablePartition(partition_index=number, replicas=replicas)
                    for number, replicas in targets.items()
                ],
            )
        ]
    )
    if allow is not None:
        request.allow_replication_factor_change = allow
    await wire.ask(request, 0 if allow is None else 1)


async def listing(wire: Wire) -> None:
    await wire.ask(ListPartitionReassignmentsRequest(topics=None), 0)


async def metadata(wire: Wire, version: int = 12) -> None:
    await wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="foo")]), version)


async def happened(
    script: Script,
    *,
    topics=("foo=1,2,3/1,2,3",),
    profile: str = "kafka-4.4",
    captured_too: bool = True,
) -> list[dict[str, Any]]:
    """The rows, from the journal; those from a capture of it are the same but for times."""
    mock = MockCluster(brokers=6, topics=topics, profile=profile, clock="manual")
    async with mock, connect(mock) as wire:
        await script(mock, wire)
    entries = list(mock.journal)
    rows = tables_of(JournalItems().read(entries))["reassignments"]
    if not captured_too:
        return rows
    writer = JournalCapture()
    data = writer.start() + b"".join(writer.add(entry) for entry in entries)
    items = CaptureItems(ports=frozenset())
    captured = tables_of(items.read(Streams().read(Capture(io.BytesIO(data)))))["reassignments"]
    assert len(captured) == len(rows)
    for one, other in zip(captured, rows, strict=True):
        for column in ("topic", "partition", "outcome", "target", "before", "evidence", "error"):
            assert one[column] == other[column]
    return rows


async def test_asked_listed_and_completed() -> None:
    async def script(mock: MockCluster, wire: Wire) -> None:
        await metadata(wire)
        await alter(wire, {0: [4, 5, 6]})
        await listing(wire)
        for broker in (4, 5, 6):
            mock.join_isr("foo-0", broker)
        await listing(wire)

    (row,) = await happened(script)
    assert row["outcome"] == "completed"
    assert row["evidence"] == "not listed"
    assert (row["topic"], row["partition"], row["client_id"]) == ("foo", 0, "wire")
    assert (row["before"], row["target"], row["rf_change"]) == ([1, 2, 3], [4, 5, 6], 0)
    assert (row["adding"], row["removing"]) == ([4, 5, 6], [1, 2, 3])
    assert row["asked_ns"] <= row["first_listed_ns"] == row["last_listed_ns"] <= row["ended_ns"]
    assert row["connection"] == row["ended_connection"]
    assert row["request_offset"] < row["ended_request_offset"]


@pytest.mark.parametrize("target", [[4, 5, 6], [1, 2, 3, 4], [1, 2]])
async def test_metadata_shows_that_it_completed_and_not_sooner(target: list[int]) -> None:
    async def script(mock: MockCluster, wire: Wire) -> None:
        await metadata(wire)
        await alter(wire, {0: target})
        await metadata(wire)
        for broker in target:
            if broker > 3:
                mock.join_isr("foo-0", broker)
        await metadata(wire)

    (row,) = await happened(script)
    assert (row["outcome"], row["evidence"]) == ("completed", "metadata")
    assert row["rf_change"] == len(target) - 3
    assert row["ended_request_offset"] > row["request_offset"]


async def test_cancelled_replaced_refused_and_under_way() -> None:
    async def script(mock: MockCluster, wire: Wire) -> None:
        await alter(wire, {0: [4, 5, 6], 1: [4, 2, 3]})
        await alter(wire, {0: None})
        await alter(wire, {0: None})  # there is none any more
        await alter(wire, {1: [5, 2, 3]})
        await alter(wire, {0: [1, 2]}, allow=False)
        await alter(wire, {9: [1, 2]})
        await listing(wire)

    rows = await happened(script)
    told = [(row["partition"], row["target"], row["outcome"], row["error"]) for row in rows]
    assert sorted(told, key=str) == sorted(
        [
            (0, [4, 5, 6], "cancelled", None),
            (0, None, "refused", "NO_REASSIGNMENT_IN_PROGRESS"),
            (1, [4, 2, 3], "replaced", None),
            (1, [5, 2, 3], "in progress", None),
            (0, [1, 2], "refused", "INVALID_REPLICATION_FACTOR"),
            (9, [1, 2], "refused", "UNKNOWN_TOPIC_OR_PARTITION"),
        ],
        key=str,
    )
    (guarded,) = [row for row in rows if row["error"] == "INVALID_REPLICATION_FACTOR"]
    assert guarded["allow_rf_change"] is False
    assert guarded["error_message"] == "The replication factor is changed from 3 to 2"


async def test_nothing_to_cancel_any_more_shows_that_it_completed() -> None:
    async def script(mock: MockCluster, wire: Wire) -> None:
        await alter(wire, {0: [4]})
        mock.join_isr("foo-0", 4)
        await alter(wire, {0: None})

    rows = await happened(script)
    assert {(row["outcome"], row["evidence"]) for row in rows} == {
        ("completed", "nothing to cancel"),
        ("refused", None),
    }


async def test_one_that_began_before_the_capture() -> None:
    async def script(mock: MockCluster, wire: Wire) -> None:
        await alter(wire, {0: [4, 2, 3]})
        mock.journal.clear()
        await listing(wire)
        await alter(wire, {0: None})

    (row,) = await happened(script)
    assert row["outcome"] == "cancelled"
    assert row["asked_ns"] is None
    # What is being added comes first in a listing.
    assert (sorted(row["before"]), row["target"]) == ([1, 2, 3], [4, 2, 3])


async def test_nothing_seen_since_and_a_topic_that_is_deleted() -> None:
    async def accepted(mock: MockCluster, wire: Wire) -> None:
        await alter(wire, {0: [4]})

    (row,) = await happened(accepted)
    assert (row["outcome"], row["ended_ns"]) == ("unknown", None)

    async def deleted(mock: MockCluster, wire: Wire) -> None:
        await alter(wire, {0: [4]})
        deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name="foo")], timeout_ms=30_000)
        await wire.ask(deletion, 6)
        await listing(wire)

    (row,) = await happened(deleted)
    assert (row["outcome"], row["evidence"]) == ("unknown", "topic deleted")


async def test_clusters_have_their_ids_and_are_known_by_any_broker() -> None:
    async def script(mock: MockCluster, wire: Wire) -> None:
        await alter(wire, {0: [4]})
        async with connect(mock, 2) as other:
            await metadata(other)
        cluster_ids.append(mock.cluster.state.cluster_id)

    cluster_ids: list[str] = []
    # A journal's packets have addresses of their own, which no metadata tells of.
    (row,) = await happened(script, captured_too=False)
    assert row["cluster"] == cluster_ids[0]
    assert row["outcome"] == "in progress"  # by what the other broker said


@pytest.mark.parametrize("draft", ["kip-455-old", "kip-455-new"])
async def test_drafts_answer_by_place_and_cancel_by_nulls(draft: str) -> None:
    async def script(mock: MockCluster, wire: Wire) -> None:
        start = [("foo", [(0, [4, 5]), (1, [4])]), ("bar", [(0, [9]), (1, [5])])]
        await say(wire, alter_request(1, start))
        await say(wire, list_request(2, None))
        mock.join_isr("foo-1", 4)
        await say(wire, list_request(3, [[1]]))  # partition 1 of any topic
        await say(wire, alter_request(4, [("bar", None)]))
        await say(wire, alter_request(5, None))

    rows = await happened(script, topics=("foo=1,2/1", "bar=1,2/1"), profile=draft)
    assert {row["dialect"] for row in rows} <= {"kip-455-old", "kip-455-new"}
    assert [(row["topic"], row["partition"], row["target"], row["outcome"]) for row in rows] == [
        ("bar", 0, [9], "refused"),
        ("bar", 1, [5], "cancelled"),
        ("foo", 0, [4, 5], "cancelled"),
        ("foo", 1, [4], "completed"),
    ]
    assert [row["ended_request_offset"] is not None for row in rows] == [False, True, True, True]
