"""Dialect kip-455-named: the newer draft of KIP-455, and topics with names in what is listed."""

from struct import pack
from typing import Any

import pytest

import kproto
from kproto.client import Admin
from kproto.dialects import Dialect
from kproto.errors import DecodeError
from mockbroker import MockCluster
from tests.mockbroker.wire import connect

NAMED, NEW = "kip-455-named", "kip-455-new"
TOPICS = ["foo=1,2/1,2", "bar=1,2/1,2"]


def listing(*topics: tuple[str, list[int] | None]) -> Any:
    request: Any = kproto.dialect(NAMED).message("ListPartitionReassignmentsRequest")
    struct = request.STRUCTS["ListPartitionReassignmentsTopics"]
    return request(topics=[struct(name=name, partition_ids=ids) for name, ids in topics])


def answer_of(dialect: Dialect) -> Any:
    response: Any = dialect.message("ListPartitionReassignmentsResponse")
    partition = response.STRUCTS["OngoingPartitionReassignment"](
        partition_id=1, current_replicas=[1, 2], target_replicas=[3]
    )
    topic = response.STRUCTS["OngoingTopicReassignment"](name="foo", partitions=[partition])
    return response(error_message=None, topics=[topic])


def reassigning() -> MockCluster:
    mock = MockCluster(4, topics=TOPICS, profile=NEW, dialect=NAMED, clock="manual")
    everything = [(name, [(0, [3, 4]), (1, [3, 4])]) for name in ("foo", "bar")]
    mock.cluster.reassignments.alter(everything)
    return mock


def found(answer: Any) -> dict[str, list[int]]:
    return {topic.name: [row.partition_id for row in topic.partitions] for topic in answer.topics}


@pytest.mark.requirement("A-06")
def test_the_name_comes_first() -> None:
    body = listing(("foo", [0, 1]), ("bar", None))
    assert body.encode(0) == (
        pack(">ii", 60_000, 2)
        + pack(">h", 3) + b"foo" + pack(">iii", 2, 0, 1)
        + pack(">h", 3) + b"bar" + pack(">i", -1)
    )  # fmt: skip
    frame = kproto.dialect(NAMED).encode_request(body, api_version=0, correlation_id=1)
    for other in (NEW, "kip-455-old", "kafka", "auto"):
        with pytest.raises(DecodeError):
            kproto.dialect(other).decode_request(frame)


@pytest.mark.requirement("A-06")
def test_everything_else_is_the_newer_drafts() -> None:
    named, new = kproto.dialect(NAMED), kproto.dialect(NEW)
    assert named.base is new
    frame = new.encode_response(answer_of(new), api_version=0, correlation_id=1)
    assert frame == named.encode_response(answer_of(named), api_version=0, correlation_id=1)
    assert named.decode_response(frame, api_key=46, api_version=0)[1] == answer_of(named)
    assert named.apis[45] == new.apis[45]
    assert named.apis[4] == new.apis[4]


@pytest.mark.requirement("A-06")
async def test_ids_filter_within_their_topic() -> None:
    async with reassigning() as mock, connect(mock) as wire:
        cases: list[tuple[list[tuple[str, list[int] | None]], dict[str, list[int]]]] = [
            ([("foo", [1])], {"foo": [1]}),
            ([("foo", [1]), ("bar", [0, 9])], {"bar": [0], "foo": [1]}),
            ([("bar", None)], {"bar": [0, 1]}),
            ([("bar", None), ("bar", [1])], {"bar": [0, 1]}),
            ([("nope", None), ("foo", [])], {}),
            ([], {}),
        ]
        for asked, expected in cases:
            assert found(await wire.ask(listing(*asked), 0)) == expected
        body = listing()
        body.topics = None
        assert found(await wire.ask(body, 0)) == {"bar": [0, 1], "foo": [0, 1]}


@pytest.mark.requirement("A-06")
async def test_admin_speaks_it() -> None:
    async with reassigning() as mock, Admin(mock.bootstrap, dialect=NAMED) as admin:
        assert set(await admin.list_partition_reassignments([("foo", 1)])) == {("foo", 1)}
        assert len(await admin.list_partition_reassignments()) == 4
        await admin.alter_partition_reassignments({("foo", 1): None}).all()
        assert len(await admin.list_partition_reassignments()) == 3
        (first, *_) = mock.journal.select(api=46, direction="request")
        assert first.dialect == NAMED
