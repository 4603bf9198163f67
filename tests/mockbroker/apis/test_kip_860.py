"""Profile kip-860 on sockets: a broker that may be told to keep the replication factor."""

from collections.abc import Sequence
from typing import Any

import pytest

import kproto
from kproto.client import Admin, InvalidReplicationFactorError
from kproto.errors import UnsupportedVersionError
from mockbroker import MockCluster
from tests.mockbroker.wire import Wire, connect
from tests.support.requests import request_of

PROFILE = "kip-860"
Rows = list[tuple[str, int, int, str | None]]
BOTH = pytest.mark.parametrize("dialect", [None, "auto", "kafka"])


def six(*topics: str, **options: Any) -> MockCluster:
    return MockCluster(6, topics=topics, profile=PROFILE, clock="manual", **options)


def change(*wanted: tuple[str, int, Sequence[int] | None], allow: bool = True) -> Any:
    return request_of(
        "AlterPartitionReassignments",
        allow_replication_factor_change=allow,
        topics=[
            {"name": name, "partition_index": index, "replicas": None if ids is None else list(ids)}
            for name, index, ids in wanted
        ],
    )


async def rows(wire: Wire, *wanted: Any, version: int = 1, allow: bool = False) -> Rows:
    answer = await wire.ask(change(*wanted, allow=allow), version)
    assert (answer.error_code, answer.allow_replication_factor_change) == (0, allow)
    return [
        (topic.name, row.partition_index, row.error_code, row.error_message)
        for topic in answer.responses
        for row in topic.partitions
    ]


@pytest.mark.requirement("K860-05", "K860-11")
@BOTH
async def test_an_old_client_hears_nothing_new(dialect: str | None) -> None:
    """Version 0 is what it was, to the byte, and may change the replication factor."""
    async with six("foo=1,2,3", dialect=dialect) as mock, connect(mock) as wire:
        assert (mock.served[45].lowest, mock.served[45].highest) == (0, 1)
        wire.send(wire.frame(change(("foo", 0, [4, 5])), 0))
        expected = kproto.encode_response(
            kproto.messages.AlterPartitionReassignmentsResponse(
                error_message=None,
                responses=[
                    kproto.messages.ReassignableTopicResponse(
                        name="foo",
                        partitions=[
                            kproto.messages.ReassignablePartitionResponse(
                                partition_index=0, error_message=None
                            )
                        ],
                    )
                ],
            ),
            api_version=0,
            correlation_id=1,
        )
        assert await wire.receive() == expected
        assert mock.cluster.topics.partition("foo", 0).target == (4, 5)


@pytest.mark.requirement("K860-06", "K860-07", "A-32")
@BOTH
async def test_who_keeps_the_number_goes_ahead(dialect: str | None) -> None:
    """Each partition for itself; what counts is how many, not which."""
    topics = ["foo=1,2,3", "bar=1,2,3", "same=1,2,3"]
    async with six(*topics, dialect=dialect) as mock, connect(mock) as wire:
        found = await rows(wire, ("foo", 0, [4, 5]), ("bar", 0, [4, 5, 6]), ("same", 0, [3, 2, 1]))
        assert [(name, index, code) for name, index, code, _ in found] == [
            ("foo", 0, 38), ("bar", 0, 0), ("same", 0, 0),
        ]  # fmt: skip
        assert found[0][3] is not None
        assert "from 3 to 2" in found[0][3]
        assert mock.cluster.topics.partition("foo", 0).replicas == (1, 2, 3)
        assert mock.cluster.topics.partition("bar", 0).target == (4, 5, 6)


@pytest.mark.requirement("K860-08", "A-32")
async def test_what_is_under_way_is_compared_by_where_it_goes() -> None:
    async with six("foo=1,2,3") as mock, connect(mock) as wire:
        assert [code for _, _, code, _ in await rows(wire, ("foo", 0, [4, 5]), allow=True)] == [0]
        assert [code for _, _, code, _ in await rows(wire, ("foo", 0, [6, 4, 5]))] == [38]
        assert mock.cluster.topics.partition("foo", 0).target == (4, 5)
        assert [code for _, _, code, _ in await rows(wire, ("foo", 0, [6, 4]))] == [0]
        assert mock.cluster.topics.partition("foo", 0).target == (6, 4)
        assert await rows(wire, ("foo", 0, None)) == [("foo", 0, 0, None)]
        assert not mock.cluster.topics.partition("foo", 0).reassigning


@pytest.mark.requirement("K860-17")
@pytest.mark.parametrize("allow", [False, True])
async def test_who_took_six_for_the_replication_factor(allow: bool) -> None:
    """A describe in the midst of a move shows six replicas, and by the time of the list there is no
    move: a tool that keeps as many as it saw asks for six. The guard refuses."""
    async with six("foo=1,2,3") as mock, connect(mock) as wire:
        assert await rows(wire, ("foo", 0, [4, 5, 6])) == [("foo", 0, 0, None)]
        seen = mock.cluster.controller.metadata_view(2).topics["foo"].partitions[0].replicas
        assert len(seen) == 6
        for broker_id in (4, 5, 6):
            mock.join_isr("foo-0", broker_id)
        assert not mock.cluster.topics.partition("foo", 0).reassigning
        ((_, _, code, why),) = await rows(wire, ("foo", 0, sorted(seen)), allow=allow)
        partition = mock.cluster.topics.partition("foo", 0)
        if allow:
            assert (code, partition.target) == (0, (1, 2, 3, 4, 5, 6))
        else:
            assert (code, partition.replicas) == (38, (4, 5, 6))
            assert why is not None
            assert "from 3 to 6" in why


@pytest.mark.requirement("K860-02", "K860-12")
async def test_admin_with_brokers_that_have_it_and_those_that_have_not() -> None:
    async with six("foo=1,2,3") as mock, Admin(mock.bootstrap, retry_backoff_ms=1) as admin:
        guarded = admin.alter_partition_reassignments(
            {("foo", 0): [4, 5]}, allow_replication_factor_change=False
        )
        with pytest.raises(InvalidReplicationFactorError):
            await guarded.all()
        await admin.alter_partition_reassignments({("foo", 0): [4, 5]}).all()
    old = MockCluster(6, topics=["foo=1,2,3"], profile="kafka-4.0")
    async with old as mock, Admin(mock.bootstrap, retry_backoff_ms=1) as admin:
        guarded = admin.alter_partition_reassignments(
            {("foo", 0): [4, 5]}, allow_replication_factor_change=False
        )
        with pytest.raises(UnsupportedVersionError):
            await guarded.all()
        assert mock.journal.select(api=45) == []
        await admin.alter_partition_reassignments({("foo", 0): [4, 5]}).all()
        assert mock.cluster.topics.partition("foo", 0).target == (4, 5)
