"""Admin in the dialects of drafts: KIP-455 (two revisions) and KIP-240, against brokers that speak
them."""

import asyncio
from typing import Any

import pytest

import kproto
from kproto.client import (
    UNTHROTTLED,
    Admin,
    ClusterAuthorizationError,
    InvalidReplicaAssignmentError,
    NotControllerError,
    NotRequestedError,
    PartitionReassignment,
    Reassignment,
    ReassignmentDescription,
    TopicPartition,
    UnknownServerError,
    UnknownTopicOrPartitionError,
)
from kproto.errors import UnsupportedVersionError
from mockbroker import MockCluster
from tests.client.fake import Answers, fake_broker

SOON = 20_000
FOO0, FOO1, BAR0 = TopicPartition("foo", 0), TopicPartition("foo", 1), TopicPartition("bar", 0)
DRAFTS = ["kip-455-new", "kip-455-old"]


def admin_of(address: str, dialect: str, **options: Any) -> Admin:
    options.setdefault("default_timeout_ms", SOON)
    return Admin(address, dialect=dialect, retry_backoff_ms=1, **options)


def bodies(seen: list[Any], api_key: int) -> list[Any]:
    return [event.body for event in seen if event.api.api_key == api_key]


# ---- KIP-455 ------------------------------------------------------------------------------------


def positional(dialect: str, *codes: int) -> Any:
    response = kproto.dialect(dialect).apis[45].response
    row = response.STRUCTS["ReassignablePartitionResponse"]
    rows = [row(error_code=code, error_string="no" if code else None) for code in codes]
    return response(responses=rows)


def ongoing(dialect: str, error: int = 0) -> Any:
    """foo-0, foo-1 and bar-0 move from 1,2,3,4 to 4,5,6."""
    response = kproto.dialect(dialect).apis[46].response
    topic = response.STRUCTS["OngoingTopicReassignment"]
    row = response.STRUCTS["OngoingPartitionReassignment"]
    topics = [
        topic(
            name=name,
            partitions=[
                row(partition_id=i, current_replicas=[1, 2, 3, 4], target_replicas=[4, 5, 6])
                for i in ids
            ],
        )
        for name, ids in (("bar", [0]), ("foo", [0, 1]))
    ]
    return response(error_code=error, error_message=None, topics=[] if error else topics)


@pytest.mark.parametrize("dialect", DRAFTS)
@pytest.mark.requirement("K455-04", "A-04")
async def test_outcomes_stand_in_the_order_of_the_request(dialect: str) -> None:
    async with (
        fake_broker({45: lambda _body: positional(dialect, 39, 0, 3)}, dialect) as (address, seen),
        admin_of(address, dialect) as admin,
    ):
        # Partitions of a topic travel together: the entries are those of foo-1, foo-0, bar-0.
        result = admin.alter_partition_reassignments(
            {FOO1: [4, 5, 6], BAR0: [1], FOO0: None}, timeout_ms=1234
        )
        found = await asyncio.gather(*result.values.values(), return_exceptions=True)
        assert [type(each) for each in found] == [
            InvalidReplicaAssignmentError,
            UnknownTopicOrPartitionError,
            type(None),
        ]
        assert str(found[0]) == "no"
        (body,) = bodies(seen, 45)
        assert body.timeout_ms == 1234
        assert [(t.name, [p.partition_index for p in t.partitions]) for t in body.topics] == [
            ("foo", [1, 0]),
            ("bar", [0]),
        ]
        assert body.topics[0].partitions[1].replicas is None


@pytest.mark.parametrize("dialect", DRAFTS)
@pytest.mark.requirement("A-05")
async def test_an_error_of_the_whole_request_is_in_every_entry(dialect: str) -> None:
    codes = iter([(41, 41), (31, 31), (0,), (41, 0)])
    async with (
        fake_broker({45: lambda _body: positional(dialect, *next(codes))}, dialect) as (
            address,
            seen,
        ),
        admin_of(address, dialect) as admin,
    ):

        async def outcomes() -> list[Any]:
            result = admin.alter_partition_reassignments({FOO0: [4], FOO1: [5]})
            return await asyncio.gather(*result.values.values(), return_exceptions=True)

        # The first answer leads to another attempt, which is refused for good.
        assert [type(each) for each in await outcomes()] == [ClusterAuthorizationError] * 2
        assert len(bodies(seen, 45)) == 2
        found = await outcomes()
        assert [type(each) for each in found] == [UnknownServerError] * 2
        assert str(found[0]) == "The server returned too less results.Expected 2 but received 1"
        assert [type(each) for each in await outcomes()] == [NotControllerError, type(None)]


@pytest.mark.requirement("K455-10")
@pytest.mark.parametrize("dialect", DRAFTS)
async def test_current_and_target_come_from_the_wire(dialect: str) -> None:
    async with (
        fake_broker({46: lambda _body: ongoing(dialect)}, dialect) as (address, seen),
        admin_of(address, dialect) as admin,
    ):
        found = await admin.list_partition_reassignments()
        assert bodies(seen, 46)[-1].topics is None
        assert list(found) == [BAR0, FOO0, FOO1]
        assert found[FOO0] == PartitionReassignment(
            [1, 2, 3, 4], adding_replicas=[5, 6], removing_replicas=[1, 2, 3],
            target_replicas=[4, 5, 6],
        )  # fmt: skip
        assert (found[FOO0].current_brokers, found[FOO0].target_brokers) == (
            [1, 2, 3, 4],
            [4, 5, 6],
        )


@pytest.mark.requirement("K455-08", "A-06", "A-07")
@pytest.mark.parametrize("dialect", DRAFTS)
async def test_topics_and_partitions_are_filtered_here(dialect: str) -> None:
    """The draft's list request has no topic names, so its answer holds more than was asked."""
    async with (
        fake_broker({46: lambda _body: ongoing(dialect)}, dialect) as (address, seen),
        admin_of(address, dialect) as admin,
    ):
        assert list(await admin.list_partition_reassignments({FOO1, ("nope", 0)})) == [FOO1]
        asked = bodies(seen, 46)[-1].topics
        assert sorted(topic.partition_ids for topic in asked) == [[0], [1]]
        assert list(await admin.list_partition_reassignments({"bar"})) == [BAR0]
        asked = bodies(seen, 46)[-1].topics
        if dialect == "kip-455-new":
            assert [topic.partition_ids for topic in asked] == [None]
        else:
            assert asked is None


@pytest.mark.requirement("K455-02")
async def test_the_draft_cancels_everything_in_one_request() -> None:
    dialect = "kip-455-new"
    codes = iter([(41,), (0, 39)])
    answers: Answers = {45: lambda _body: positional(dialect, *next(codes))}
    async with (
        fake_broker(answers, dialect) as (address, seen),
        admin_of(address, dialect) as admin,
    ):
        first, second = await admin.cancel_all_partition_reassignments()
        assert first is None
        assert isinstance(second, InvalidReplicaAssignmentError)
        assert [body.topics for body in bodies(seen, 45)] == [None, None]


async def test_the_guard_is_not_in_the_draft() -> None:
    async with (
        fake_broker({45: lambda _body: None}, "kip-455-new") as (address, seen),
        admin_of(address, "kip-455-new") as admin,
    ):
        result = admin.alter_partition_reassignments(
            {FOO0: [4]}, allow_replication_factor_change=False
        )
        with pytest.raises(
            UnsupportedVersionError, match="does not support the AllowReplicationFactorChange"
        ):
            await result.all()
        assert bodies(seen, 45) == []


def test_a_client_does_not_guess_its_dialect() -> None:
    with pytest.raises(ValueError, match="a client needs a definite dialect"):
        Admin("a:1", dialect="auto")


# ---- KIP-240 ------------------------------------------------------------------------------------


class Znodes:
    """A broker of KIP-240's: partition -> (id, start, brokers), as the test sets it."""

    def __init__(self) -> None:
        self.ongoing: dict[TopicPartition, tuple[int, int, list[int]]] = {}
        self.error = 0
        codec = kproto.dialect("kip-240")
        self._list: Any = codec.message("ListReassignmentsResponse")
        self._describe: Any = codec.message("DescribeReassignmentsResponse")

    @property
    def answers(self) -> Answers:
        return {32240: self.list, 32241: self.describe}

    def list(self, body: Any) -> Any:
        wanted = None if body.topic_partitions is None else [
            TopicPartition(t.topic, i) for t in body.topic_partitions for i in t.partition_ids
        ]  # fmt: skip
        topic, row = (self._list.STRUCTS[name] for name in ("Reassignment", "TopicReassignment"))
        rows = [
            topic(
                topic=key.topic,
                topic_reassignments=[row(partition_id=key.partition, reassignment_id=czxid)],
            )
            for key, (czxid, _, _) in self.ongoing.items()
            if wanted is None or key in wanted
        ]
        return self._list(error_code=self.error, error_message=None, reassignments=rows)

    def describe(self, body: Any) -> Any:
        wanted = None if body.topic_reassignments is None else [
            (TopicPartition(t.topic, r.partition_id), r.reassignment_id)
            for t in body.topic_reassignments
            for r in t.reassignments
        ]  # fmt: skip
        row, new = (self._describe.STRUCTS[name] for name in ("Description", "NewAssigned"))
        rows = [
            row(
                reassignment_id=czxid,
                start_time=start,
                leader_id=1,
                leader_throttle=UNTHROTTLED,
                new_assigned=[
                    new(broker_id=b, follower_throttle=UNTHROTTLED if b == 3 else 1000 + b)
                    for b in brokers
                ],
            )
            for key, (czxid, start, brokers) in self.ongoing.items()
            if wanted is None or (key, czxid) in wanted
        ]
        return self._describe(error_code=self.error, error_message=None, descriptions=rows)


@pytest.mark.requirement("K240-01", "K240-02", "K240-04", "K240-05", "A-26")
async def test_listing_reassignments() -> None:
    broker = Znodes()
    broker.ongoing = {FOO0: (7, 1000, [2, 3]), BAR0: (9, 2000, [3, 4])}
    async with (
        fake_broker(broker.answers, "kip-240") as (address, seen),
        admin_of(address, "kip-240") as admin,
    ):
        everything = admin.list_reassignments(timeout_ms=1234)
        assert [each.topic_partition for each in await everything.all()] == [FOO0, BAR0]
        body = bodies(seen, 32240)[-1]
        assert (body.topic_partitions, body.timeout_ms) == (None, 1234)
        assert await everything.get(FOO1) is None

        result = admin.list_reassignments([FOO0, FOO1, FOO0, BAR0])
        found = await result.get(("foo", 0))
        assert isinstance(found, Reassignment)
        assert found.topic_partition == FOO0
        assert await result.get(FOO1) is None
        with pytest.raises(NotRequestedError, match=r"^nope-3 was not part of the call") as caught:
            result.get(("nope", 3))
        assert isinstance(caught.value, KeyError)
        asked = bodies(seen, 32240)[-1].topic_partitions
        assert [(t.topic, t.partition_ids) for t in asked] == [("foo", [0, 1]), ("bar", [0])]

        for code, kind in (31, ClusterAuthorizationError), (3, UnknownTopicOrPartitionError):
            broker.error = code
            refused = admin.list_reassignments([FOO0])
            with pytest.raises(kind):
                await refused.all()
            with pytest.raises(kind):
                await refused.get(FOO0)
        broker.error = 41
        with pytest.raises(NotControllerError):
            await admin.list_reassignments(timeout_ms=400).all()


@pytest.mark.requirement("K240-03", "K240-06", "K240-18")
async def test_a_reassignment_is_itself_and_no_other() -> None:
    """Equal by identity of the znode, which nobody sees."""
    broker = Znodes()
    czxid = 4611686018427387904
    broker.ongoing = {FOO0: (czxid, 1000, [2, 3])}
    async with (
        fake_broker(broker.answers, "kip-240") as (address, _),
        admin_of(address, "kip-240") as admin,
    ):
        (first,) = await admin.list_reassignments().all()
        broker.ongoing = {FOO0: (czxid, 1000, [2, 4])}  # modified
        (same,) = await admin.list_reassignments().all()
        broker.ongoing = {FOO0: (czxid + 1, 1500, [2, 4])}  # another one of the same partition
        (other,) = await admin.list_reassignments().all()
        assert first == same
        assert hash(first) == hash(same)
        assert first != other
        assert len({first, same, other}) == 2
        assert first != FOO0
        assert repr(first) == str(first) == "Reassignment(foo-0)"
        assert str(czxid) not in repr(other) + str(vars(type(first)))
        public = [name for name in dir(first) if not name.startswith("_")]
        assert public == ["topic_partition"]


@pytest.mark.requirement("K240-07", "K240-08", "K240-10", "K240-11", "K240-12", "K240-13", "A-23")
async def test_describing_reassignments() -> None:
    broker = Znodes()
    broker.ongoing = {FOO0: (7, 1000, [5, 3]), FOO1: (8, 1100, [2]), BAR0: (9, 2000, [3, 4])}
    async with (
        fake_broker(broker.answers, "kip-240") as (address, seen),
        admin_of(address, "kip-240") as admin,
    ):
        foo0, foo1, bar0 = await admin.list_reassignments().all()
        del broker.ongoing[FOO1]
        result = admin.describe_reassignments([bar0, foo1, foo0, foo0], timeout_ms=1234)
        described = await result.get(foo0)
        assert described == ReassignmentDescription(
            start_time=1000,
            current_leader=1,
            leader_throttle=UNTHROTTLED,
            new_assigned_brokers=[5, 3],
            new_assigned_throttles={5: 1005, 3: UNTHROTTLED},
        )
        assert list(described.new_assigned_throttles) == described.new_assigned_brokers
        assert await result.get(foo1) is None
        assert set(await result.all()) == set(await result.reassignments()) == {foo0, bar0}
        body = bodies(seen, 32241)[-1]
        assert body.timeout_ms == 1234
        assert [t.topic for t in body.topic_reassignments] == ["bar", "foo"]
        assert len(body.topic_reassignments[1].reassignments) == 2
        partial = admin.describe_reassignments([foo0])
        with pytest.raises(NotRequestedError, match=r"^Reassignment\(bar-0\) was not part of"):
            partial.get(bar0)
        broker.error = 31
        with pytest.raises(ClusterAuthorizationError):
            await admin.describe_reassignments([foo0]).get(foo0)


@pytest.mark.requirement("K240-09")
async def test_describing_all_of_them() -> None:
    broker = Znodes()
    async with (
        fake_broker(broker.answers, "kip-240") as (address, seen),
        admin_of(address, "kip-240") as admin,
    ):
        assert await admin.describe_reassignments().reassignments() == []
        broker.ongoing = {FOO0: (7, 1000, [5, 3]), BAR0: (9, 2000, [3, 4])}
        result = admin.describe_reassignments()
        found = await result.reassignments()
        assert [each.topic_partition for each in found] == [FOO0, BAR0]
        described = await result.get(found[1])
        assert described is not None
        assert described.start_time == 2000
        assert bodies(seen, 32241)[-1].topic_reassignments is None


async def test_kafka_has_no_such_requests() -> None:
    async with MockCluster(brokers=1) as mock, admin_of(mock.bootstrap, "kafka") as admin:
        with pytest.raises(
            UnsupportedVersionError,
            match=r"^dialect kafka has no ListReassignmentsRequest; use dialect='kip-240'$",
        ):
            await admin.list_reassignments().all()
    async with MockCluster(brokers=1) as mock, admin_of(mock.bootstrap, "kip-240") as admin:
        with pytest.raises(
            UnsupportedVersionError, match=r"^The node does not support DESCRIBE_REASSIGNMENTS$"
        ):
            await admin.describe_reassignments([Reassignment(FOO0, 1)]).all()
