"""Admin's reassignments (KIP-455, KIP-860) against the mock cluster of several releases."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kproto.client import (
    Admin,
    ClusterAuthorizationError,
    InvalidReplicaAssignmentError,
    InvalidReplicationFactorError,
    InvalidTopicError,
    NewPartitionReassignment,
    NoReassignmentInProgressError,
    PartitionReassignment,
    RequestTimedOutError,
    TopicPartition,
    UnknownServerError,
    UnknownTopicOrPartitionError,
)
from kproto.errors import UnsupportedVersionError
from kproto.messages import (
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from mockbroker import MockCluster
from tests.client.fake import fake_broker

RELEASES = ["kafka-2.4", "kafka-3.9-zk", "kafka-4.1", "kafka-4.4"]
TOPICS = ["foo=1,2,3/2,3,4", "bar=1,2,3"]
SOON = 20_000
FOO0, FOO1, BAR0 = TopicPartition("foo", 0), TopicPartition("foo", 1), TopicPartition("bar", 0)

NO_GUARD = (
    "The broker does not support the AllowReplicationFactorChange option for the "
    "AlterPartitionReassignments API. Consider re-sending the request without the option or "
    "updating the server version"
)


@asynccontextmanager
async def cluster(profile: str = "kafka-4.1", **options: Any) -> AsyncIterator[Any]:
    async with (
        MockCluster(brokers=6, topics=TOPICS, profile=profile, **options) as mock,
        Admin(mock.bootstrap, default_timeout_ms=SOON, retry_backoff_ms=1) as admin,
    ):
        yield mock, admin


def sent(mock: MockCluster, api_key: int) -> list[Any]:
    entries = mock.journal.select(api=api_key, direction="request")
    return [entry.decode(mock.dialect).body for entry in entries]


@pytest.mark.parametrize("profile", RELEASES)
@pytest.mark.requirement("K455-01", "K455-02", "K455-09")
async def test_two_in_flight_and_one_cancelled(profile: str) -> None:
    async with cluster(profile) as (mock, admin):
        await admin.alter_partition_reassignments({FOO0: [4, 5, 6]}).all()
        await admin.alter_partition_reassignments({FOO1: [5, 6, 1]}).all()
        listed = admin.list_partition_reassignments()
        assert isinstance(listed, asyncio.Future)
        assert set(await listed) == {FOO0, FOO1}
        assert (await listed)[FOO0].target_replicas == [4, 5, 6]
        await admin.alter_partition_reassignments({FOO0: None}).all()
        assert list(await admin.list_partition_reassignments()) == [FOO1]
        bodies = sent(mock, 45)
        assert bodies[-1].topics[0].partitions[0].replicas is None
        for replica in (5, 6, 1):
            mock.join_isr("foo-1", replica)
        assert await admin.list_partition_reassignments() == {}


@pytest.mark.requirement("K455-03")
async def test_no_replicas_are_refused_at_once() -> None:
    text = "Cannot create a new partition reassignment without any replicas"
    with pytest.raises(ValueError, match=f"^{text}$"):
        NewPartitionReassignment([])
    async with cluster() as (mock, admin):
        with pytest.raises(ValueError, match=text):
            admin.alter_partition_reassignments({FOO0: [4, 5, 6], FOO1: []})
        # Nothing of the call is sent, the good partition included.
        assert await admin.list_partition_reassignments() == {}
        assert sent(mock, 45) == []
        new = NewPartitionReassignment([4, 5, 6])
        assert new.target_brokers == new.target_replicas == [4, 5, 6]
        await admin.alter_partition_reassignments({FOO0: new}).all()
        assert sent(mock, 45)[0].topics[0].partitions[0].replicas == [4, 5, 6]


@pytest.mark.parametrize("profile", RELEASES)
@pytest.mark.requirement("K455-04", "K455-22")
async def test_each_partition_has_its_own_outcome(profile: str) -> None:
    async with cluster(profile) as (mock, admin):
        nope, empty, negative = ("nope", 0), ("", 0), ("foo", -1)
        result = admin.alter_partition_reassignments(
            {FOO0: [4, 5, 6], FOO1: [1, 1, 2], BAR0: None, nope: [1], empty: [1], negative: [1]}
        )
        assert list(result.values) == [FOO0, FOO1, BAR0, nope, empty, negative]
        found = await asyncio.gather(*result.values.values(), return_exceptions=True)
        assert [type(each) for each in found] == [
            type(None),
            InvalidReplicaAssignmentError,
            NoReassignmentInProgressError,
            UnknownTopicOrPartitionError,
            InvalidTopicError,
            InvalidTopicError,
        ]
        assert str(found[4]) == "The given topic name '' cannot be represented in a request."
        assert str(found[5]) == "The given partition index -1 is not valid."
        with pytest.raises(InvalidReplicaAssignmentError):
            await result.all()
        (body,) = sent(mock, 45)
        names = [(topic.name, len(topic.partitions)) for topic in body.topics]
        assert names == [("foo", 2), ("bar", 1), ("nope", 1)]


async def test_nothing_to_send() -> None:
    async with cluster() as (mock, admin):
        assert await admin.alter_partition_reassignments({}).all() == {}
        result = admin.alter_partition_reassignments({("", 0): [1], ("x" * 40_000, 0): None})
        with pytest.raises(InvalidTopicError):
            await result.all()
        await admin.describe_cluster()
        assert sent(mock, 45) == []


@pytest.mark.requirement("K455-05")
async def test_the_time_out_is_sent_as_it_is() -> None:
    async with cluster() as (mock, admin):
        await admin.alter_partition_reassignments({FOO0: [4, 5, 6]}, timeout_ms=1234).all()
        await admin.list_partition_reassignments(timeout_ms=2345)
        await admin.list_partition_reassignments()
        assert sent(mock, 45)[0].timeout_ms == 1234
        assert [body.timeout_ms for body in sent(mock, 46)] == [2345, SOON]
        for wrong in (-1, 2**31):
            with pytest.raises(ValueError, match="timeout_ms is"):
                admin.list_partition_reassignments(timeout_ms=wrong)
            with pytest.raises(ValueError, match="timeout_ms is"):
                admin.cancel_all_partition_reassignments(timeout_ms=wrong)


@pytest.mark.requirement("K455-06", "K455-07", "K455-08")
async def test_what_may_be_listed() -> None:
    async with cluster() as (mock, admin):
        await admin.alter_partition_reassignments({FOO0: [4, 5, 6], BAR0: [2, 3, 4]}).all()
        for wrong in (None, "foo", [FOO0, "foo"]):
            with pytest.raises(
                TypeError, match=r"leave it out for all|partitions and topics are mi"
            ):
                admin.list_partition_reassignments(wrong)
        for unrepresentable in ({("", 0)}, {("foo", -1), FOO0}, {""}):
            with pytest.raises(InvalidTopicError):
                await admin.list_partition_reassignments(unrepresentable)
        assert sent(mock, 46) == []

        both = await admin.list_partition_reassignments()
        assert set(both) == {FOO0, BAR0}
        assert sent(mock, 46)[-1].topics is None
        some = await admin.list_partition_reassignments({FOO0, FOO1, TopicPartition("nope", 7)})
        assert some == {FOO0: both[FOO0]}
        assert {topic.name for topic in sent(mock, 46)[-1].topics} == {"foo", "nope"}
        # Released Kafka has no way to ask for whole topics: they are picked from everything.
        assert await admin.list_partition_reassignments({"bar", "nope"}) == {BAR0: both[BAR0]}
        assert sent(mock, 46)[-1].topics is None
        assert await admin.list_partition_reassignments(set()) == {}
        assert sent(mock, 46)[-1].topics == []


@pytest.mark.requirement("K455-10")
def test_current_and_target() -> None:
    released = PartitionReassignment([4, 5, 6, 1, 2, 3], [4, 5, 6], [1, 2, 3])
    assert released.target_brokers == [4, 5, 6]
    assert released.current_brokers == released.replicas == [4, 5, 6, 1, 2, 3]
    draft = PartitionReassignment.towards([1, 2, 3, 4], [4, 5, 6])
    assert (draft.current_brokers, draft.target_brokers) == ([1, 2, 3, 4], [4, 5, 6])
    assert (draft.adding_replicas, draft.removing_replicas) == ([5, 6], [1, 2, 3])


@pytest.mark.parametrize("profile", ["kafka-4.1", "kafka-3.9-zk"])
async def test_cancel_all(profile: str) -> None:
    async with cluster(profile) as (_, admin):
        assert await admin.cancel_all_partition_reassignments() == []
        await admin.alter_partition_reassignments({FOO0: [4, 5, 6], BAR0: [2, 3, 4]}).all()
        assert await admin.cancel_all_partition_reassignments() == [None, None]
        assert await admin.list_partition_reassignments() == {}


# ---- what an answer may be ----------------------------------------------------------------------


def answered(*rows: tuple[str, int, int], error: int = 0, text: str | None = None) -> Any:
    topics: dict[str, list[Any]] = {}
    for name, index, code in rows:
        row = ReassignablePartitionResponse(
            partition_index=index, error_code=code, error_message=None
        )
        topics.setdefault(name, []).append(row)
    return AlterPartitionReassignmentsResponse(
        error_code=error,
        error_message=text,
        responses=[ReassignableTopicResponse(name=n, partitions=p) for n, p in topics.items()],
    )


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([], "The server returned too less results.Expected 2 but received 0"),
        ([("foo", 0, 0)], "The server returned too less results.Expected 2 but received 1"),
        (
            [("foo", 0, 0), ("foo", 1, 0), ("bar", 0, 0)],
            "The server returned too many results.Expected 2 but received 3",
        ),
    ],
)
async def test_too_few_or_many_answers_fail_every_future(rows: Any, text: str) -> None:
    async with cluster() as (mock, admin):
        mock.script(45, answered(*rows))
        result = admin.alter_partition_reassignments({FOO0: [4, 5, 6], FOO1: [5, 6, 1]})
        found = await asyncio.gather(*result.values.values(), return_exceptions=True)
        assert [type(each) for each in found] == [UnknownServerError] * 2
        assert {str(each) for each in found} == {text}


async def test_a_partition_left_out_beside_an_error_does_not_wait_for_ever() -> None:
    async with cluster() as (mock, admin):
        mock.script(45, answered(("foo", 0, 39)))
        result = admin.alter_partition_reassignments({FOO0: [4, 5, 6], FOO1: [5, 6, 1]})
        found = await asyncio.gather(*result.values.values(), return_exceptions=True)
        assert [type(each) for each in found] == [InvalidReplicaAssignmentError, UnknownServerError]


@pytest.mark.parametrize("echoed", [True, False])
@pytest.mark.parametrize(
    ("code", "kind"), [(31, ClusterAuthorizationError), (7, RequestTimedOutError)]
)
@pytest.mark.requirement("K455-22", "K455-25")
async def test_a_top_level_error_is_everyones(echoed: bool, code: int, kind: type) -> None:
    async with cluster() as (mock, admin):
        rows = [("foo", 0, code)] if echoed else []
        mock.script(45, answered(*rows, error=code, text="No, thank you."))
        result = admin.alter_partition_reassignments({FOO0: [4, 5, 6]})
        with pytest.raises(kind, match=r"^No, thank you\.$"):
            await result.values[FOO0]
        mock.script(46, ListPartitionReassignmentsResponse(error_code=code, error_message=None))
        with pytest.raises(kind):
            await admin.list_partition_reassignments()


# ---- KIP-860 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", RELEASES)
@pytest.mark.requirement("K860-01", "K860-11", "A-36")
async def test_the_replication_factor_may_change_by_default(profile: str) -> None:
    async with cluster(profile) as (mock, admin):
        await admin.alter_partition_reassignments({FOO0: [1, 2]}).all()
        (entry,) = mock.journal.select(api=45, direction="request")
        body = entry.decode().body
        assert entry.api_version == mock.served[45].highest
        assert body.allow_replication_factor_change is True


@pytest.mark.parametrize("profile", ["kafka-4.1", "kafka-4.4"])
@pytest.mark.requirement("K860-02", "K860-03")
async def test_the_guard(profile: str) -> None:
    async with cluster(profile) as (mock, admin):
        await admin.alter_partition_reassignments({BAR0: [2, 3, 4]}).all()
        result = admin.alter_partition_reassignments(
            {FOO0: [1, 2], FOO1: [4, 5, 6], BAR0: None}, allow_replication_factor_change=False
        )
        found = await asyncio.gather(*result.values.values(), return_exceptions=True)
        assert [type(each) for each in found] == [
            InvalidReplicationFactorError, type(None), type(None)
        ]  # fmt: skip
        assert sent(mock, 45)[-1].allow_replication_factor_change is False


@pytest.mark.parametrize("profile", ["kafka-2.4", "kafka-3.9-zk", "kafka-4.0"])
@pytest.mark.requirement("K860-10", "K860-12", "A-33", "A-34")
async def test_the_guard_on_a_broker_without_it(profile: str) -> None:
    """Only cancels included; nothing reaches the broker, and the caller may do without."""
    async with cluster(profile) as (mock, admin):
        for wanted in ({FOO0: [4, 5, 6], FOO1: None}, {FOO0: None, BAR0: None}):
            result = admin.alter_partition_reassignments(
                wanted, allow_replication_factor_change=False
            )
            found = await asyncio.gather(*result.values.values(), return_exceptions=True)
            assert [type(each) for each in found] == [UnsupportedVersionError] * 2
            assert {str(each) for each in found} == {NO_GUARD}
        assert sent(mock, 45) == []
        await admin.alter_partition_reassignments({FOO0: [4, 5, 6]}).all()
        assert len(sent(mock, 45)) == 1


async def test_brokers_without_the_api() -> None:
    """Texts 1 and 2 of Kafka's client: the api is absent, or no version of it is common."""
    async with cluster("kafka-2.3") as (_, admin):
        for guard in (True, False):
            result = admin.alter_partition_reassignments(
                {FOO0: [4, 5, 6]}, allow_replication_factor_change=guard
            )
            with pytest.raises(
                UnsupportedVersionError,
                match=r"^The node does not support ALTER_PARTITION_REASSIGNMENTS$",
            ):
                await result.values[FOO0]
        with pytest.raises(UnsupportedVersionError, match=r"support LIST_PARTITION_REASSIGNMENTS$"):
            await admin.list_partition_reassignments()


async def test_no_common_version() -> None:
    async with (
        fake_broker({}, served={3: (0, 13), 45: (2, 3)}) as (address, seen),
        Admin(address, default_timeout_ms=SOON) as admin,
    ):
        result = admin.alter_partition_reassignments({FOO0: [4, 5, 6]})
        with pytest.raises(UnsupportedVersionError) as caught:
            await result.all()
        assert str(caught.value) == (
            "The node does not support ALTER_PARTITION_REASSIGNMENTS with version in range [0,1]. "
            "The supported range is [2,3]."
        )
        assert {event.api.api_key for event in seen} == {3, 18}
