"""Share groups on the wire: sessions, acknowledgements that come along, offsets, administration."""

import asyncio
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest

from kproto.error_codes import ErrorCode, message
from mockbroker import MockCluster
from mockbroker.profiles import profile
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.coordinators.group_facts import GroupCommit
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.security.authorizer import AclOperation, Authorizer, ResourceType
from mockbroker.simulation.security.policy import OPEN, Security
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.fetching.fetching import append
from tests.mockbroker.simulation.security.enforced import ADMIN, ALICE, ENFORCED, allow, on_topic
from tests.mockbroker.wire import connect
from tests.support.requests import request_of

ACCEPT, RELEASE, RENEW = 1, 2, 4


def broker(
    profile_name: str = "kafka-4.4",
    brokers: int = 1,
    *,
    security: Security = OPEN,
    features: Mapping[str, int] | None = None,
    **configs: str,
) -> DirectBroker:
    given = {name.replace("_", "."): each for name, each in configs.items()}
    line = profile(profile_name).line
    if line >= (4, 3):
        given.setdefault("group.share.assignment.interval.ms", "0")
    cluster = simulated_cluster(
        brokers,
        release=line,
        topics=["foo:2:1", "bar:1:1"],
        broker_configs=given,
        features=features or {},
    )
    prepare(cluster)
    return DirectBroker(cluster, profile_name=profile_name, security=security, principal=ADMIN)


def prepare(cluster: Cluster) -> None:
    """Let the group "g" begin at the start, and create the internal topic."""
    cluster.config_changes.alter_incrementally(
        [(32, "g", [("share.auto.offset.reset", 0, "earliest")])]
    )
    Operations(cluster).set_offset("simple", "foo-0", 0)


def batches(acks: Sequence[tuple[int, int, list[int]]]) -> list[dict[str, Any]]:
    """Each of ``acks`` has the first offset, the last and the types."""
    names = ("first_offset", "last_offset", "acknowledge_types")
    return [dict(zip(names, each, strict=True)) for each in acks]


class Member:
    """A member of the group "g", in front of one broker."""

    def __init__(self, at: DirectBroker, name: str = "m") -> None:
        self.at = at
        self.name = name

    @property
    def topic_id(self) -> uuid.UUID:
        return self.at.cluster.topics["foo"].topic_id

    def beat(self, epoch: int, **fields: Any) -> Any:
        return self.at.ask(
            "ShareGroupHeartbeat",
            1,
            group_id="g",
            member_id=self.name,
            member_epoch=epoch,
            **fields,
        )

    def join(self) -> None:
        epoch = self.beat(0, subscribed_topic_names=["foo"]).member_epoch
        self.beat(epoch)

    def fetch(
        self,
        epoch: int,
        partitions: Sequence[int] = (),
        acks: Sequence[tuple[int, int, list[int]]] = (),
        version: int = 2,
        **fields: Any,
    ) -> Any:
        given = {"max_wait_ms": 0, "max_records": 100, "batch_size": 100, **fields}
        rows: dict[int, Any] = {index: {"partition_index": index} for index in partitions}
        if acks:
            rows.setdefault(0, {"partition_index": 0})["acknowledgement_batches"] = batches(acks)
        topics = []
        if rows:
            topics = [{"topic_id": self.topic_id, "partitions": list(rows.values())}]
        body = request_of(
            "ShareFetch",
            group_id="g",
            member_id=self.name,
            share_session_epoch=epoch,
            topics=topics,
            **given,
        )
        return self.at.ask(body, version)

    def ack(self, epoch: int, *acks: tuple[int, int, list[int]], **fields: Any) -> Any:
        topic_id = fields.pop("topic_id", self.topic_id)
        partition = {"partition_index": 0, "acknowledgement_batches": batches(acks)}
        topics = [{"topic_id": topic_id, "partitions": partition}]
        body = request_of(
            "ShareAcknowledge",
            group_id="g",
            member_id=self.name,
            share_session_epoch=epoch,
            topics=topics if acks else [],
            **fields,
        )
        return self.at.ask(body, 2)


def row(response: Any) -> Any:
    (topic,) = response.responses
    (partition,) = topic.partitions
    return partition


def ranges(response: Any) -> list[tuple[int, int, int]]:
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for topic in response.responses
        for partition in topic.partitions
        for each in partition.acquired_records
    ]


def settled(at: DirectBroker, name: str = "m", count: int = 4) -> Member:
    member = Member(at, name)
    member.join()
    if count:
        append(at.cluster, *(b"%d" % each for each in range(count)), tp=("foo", 0))
    return member


# ---- switches ------------------------------------------------------------------------------------


@pytest.mark.requirement("DP-VER-05")
def test_4_1_has_share_groups_switched_off() -> None:
    at = broker("kafka-4.1")
    text = message(ErrorCode.UNSUPPORTED_VERSION)
    member = Member(at)
    answers = [
        member.fetch(0, [0], version=1),
        at.ask("ShareAcknowledge", 1, group_id="g", member_id="m"),
    ]
    assert {(each.error_code, each.error_message) for each in answers} == {(35, None)}
    answers = [
        at.ask("AlterShareGroupOffsets", 0, group_id="g"),
        at.ask("DeleteShareGroupOffsets", 0, group_id="g"),
    ]
    assert {(each.error_code, each.error_message) for each in answers} == {(35, text)}
    refused = member.beat(0, subscribed_topic_names=["foo"])
    assert (refused.error_code, refused.error_message) == (35, None)
    (group,) = at.ask("ShareGroupDescribe", 1, group_ids=["g"]).groups
    assert group.error_code == 35
    (group,) = at.ask("DescribeShareGroupOffsets", 0, group_id="g", topics=[]).groups
    assert group.error_code == 35


@pytest.mark.requirement("DP-SHARE-20")
def test_member_ids_have_a_length() -> None:
    at = broker()
    for name in ("", "x" * 37):
        member = Member(at, name)
        for answer in (member.fetch(0, [0]), member.ack(1, (0, 0, [ACCEPT]))):
            assert answer.error_code == 42
            assert answer.error_message is None
        refused = member.beat(0, subscribed_topic_names=["foo"])
        assert (refused.error_code, refused.error_message) == (42, None)
    assert Member(at, "x" * 36).beat(0, subscribed_topic_names=["foo"]).error_code == 0
    for body in (
        request_of("ShareFetch", member_id="m"),
        request_of("ShareAcknowledge", member_id="m"),
    ):
        answer = at.ask(body, 2)
        assert (answer.error_code, answer.error_message) == (42, None)


# ---- sessions ------------------------------------------------------------------------------------


@pytest.mark.requirement("DP-SHARE-03", "DP-SHARE-10")
def test_a_session() -> None:
    at = broker()
    member = settled(at)
    assert member.fetch(1).error_code == 122
    assert member.fetch(-1).error_code == 122
    assert member.ack(0).error_code == 123
    assert member.ack(1).error_code == 122
    assert member.fetch(0, [0], [(0, 0, [ACCEPT])]).error_code == 42
    first = member.fetch(0, [0])
    assert (ranges(first), first.acquisition_lock_timeout_ms) == ([(0, 3, 1)], 30_000)
    assert member.fetch(2).error_code == 123
    second = member.fetch(1)
    assert (second.error_code, second.responses) == (0, [])
    third = member.fetch(2, [1])
    assert [each.partition_index for each in third.responses[0].partitions] == [1]
    assert member.fetch(3).responses == [], "a partition without news is left out"
    assert member.ack(5).error_code == 123
    assert row(member.ack(4, (0, 0, [ACCEPT]))).error_code == 0
    last = member.fetch(-1)
    assert (last.error_code, last.responses) == (0, [])
    assert member.fetch(5).error_code == 122
    assert ranges(member.fetch(0, [0])) == [(1, 3, 2)], "what was acquired was released"
    assert ranges(member.fetch(0, [0])) == [], "a session that begins anew releases nothing"
    assert member.ack(-1).error_code == 0
    assert member.fetch(1).error_code == 122


@pytest.mark.requirement("DP-SHARE-03")
def test_the_epoch_of_a_session_begins_anew_at_1() -> None:
    at = broker()
    member = settled(at)
    member.fetch(0, [0])
    session = at.cluster.share_fetches.session(1, "g", "m")
    assert session is not None
    session.epoch = 2**31 - 1
    assert member.fetch(2**31 - 1).error_code == 0
    assert member.fetch(1).error_code == 0
    assert [(each, found.member_id) for each, found in at.cluster.share_fetches.sessions()] == [
        (1, "m")
    ]


@pytest.mark.requirement("DP-SHARE-34")
async def test_sessions_are_limited() -> None:
    configs = {"group.share.max.share.sessions": "1"}
    async with (
        MockCluster(1, profile="kafka-4.4", topics=["foo:1:1"], broker_configs=configs) as mock,
        connect(mock, 1) as wire,
    ):
        answers = [
            await wire.ask("ShareFetch", 2, group_id="g", member_id=each, max_wait_ms=1)
            for each in ("a", "b", "a")
        ]
        assert [each.error_code for each in answers] == [0, 133, 0]


@pytest.mark.requirement("DP-SHARE-10")
async def test_a_session_goes_with_its_connection() -> None:
    async with MockCluster(1, profile="kafka-4.4", topics=["foo:1:1"]) as mock:
        async with connect(mock, 1) as wire:
            body = request_of("ShareFetch", group_id="g", member_id="a")
            assert (await wire.ask(body, 2)).error_code == 0
            assert len(list(mock.cluster.share_fetches.sessions())) == 1
        async with connect(mock, 1) as wire:
            for _ in range(1000):
                await wire.ask("ListGroups", 5)
                if not list(mock.cluster.share_fetches.sessions()):
                    break
            assert not list(mock.cluster.share_fetches.sessions())


@pytest.mark.requirement("DP-CTL-36")
def test_a_tester_ends_a_session() -> None:
    at = broker()
    member = settled(at)
    member.fetch(0, [0])
    assert Operations(at.cluster).expire_share_session("g", "m") == 1
    assert Operations(at.cluster).expire_share_session("g", "m") == 0
    assert member.fetch(1).error_code == 122
    assert ranges(member.fetch(0, [0])) == [(0, 3, 2)]


@pytest.mark.requirement("DP-SHARE-10")
def test_a_broker_that_stops_forgets_its_sessions() -> None:
    at = broker(brokers=2)
    member = settled(at)
    member.fetch(0, [0])
    Operations(at.cluster).stop_broker(1)
    assert not list(at.cluster.share_fetches.sessions())


# ---- acknowledgements ----------------------------------------------------------------------------


@pytest.mark.requirement("DP-SHARE-05", "DP-SHARE-08", "DP-SHARE-30", "DP-SHARE-35")
def test_acknowledgements_come_with_fetches() -> None:
    at = broker()
    member = settled(at)
    member.fetch(0, [0])
    found = row(member.fetch(1, acks=[(0, 1, [ACCEPT]), (2, 2, [RELEASE])]))
    assert (found.acknowledge_error_code, found.acknowledge_error_message) == (0, None)
    assert found.acquired_records == []
    found = row(member.fetch(2, acks=[(0, 0, [9])]))
    assert found.acknowledge_error_code == 42
    assert [each.first_offset for each in found.acquired_records] == [2]
    found = row(member.fetch(3, acks=[(3, 3, [ACCEPT]), (9, 9, [ACCEPT])]))
    text = "Batch record not found. The first offset in request is past acquired records."
    assert (found.acknowledge_error_code, found.acknowledge_error_message) == (42, text)


@pytest.mark.requirement("DP-SHARE-30", "DP-SHARE-10")
def test_acknowledgements_of_their_own() -> None:
    at = broker()
    member = settled(at)
    member.fetch(0, [0])
    answer = member.ack(1, (0, 3, [RELEASE]))
    assert (row(answer).error_code, answer.acquisition_lock_timeout_ms) == (0, 30_000)
    found = row(member.ack(2, (0, 3, [ACCEPT])))
    text = "The batch cannot be acknowledged. The batch is not in the acquired state."
    assert (found.error_code, found.error_message) == (121, text)
    found = row(member.ack(3, (0, 3, [ACCEPT]), topic_id=uuid.UUID(int=7)))
    assert found.error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.requirement("DP-SHARE-31")
def test_a_request_that_renews_locks_fetches_nothing() -> None:
    at = broker()
    member = settled(at)
    member.fetch(0, [0])
    nothing = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "max_wait_ms": 0}
    refused = member.fetch(
        1, acks=[(0, 3, [RENEW])], is_renew_ack=True, **{**nothing, "max_bytes": 1}
    )
    assert (refused.error_code, refused.error_message) == (42, None)
    at.cluster.turns.advance(20_000)
    found = row(member.fetch(1, acks=[(0, 3, [RENEW])], is_renew_ack=True, **nothing))
    assert (found.acknowledge_error_code, found.records) == (0, b"")
    at.cluster.turns.advance(20_000)
    assert row(member.ack(2, (0, 3, [ACCEPT]))).error_code == 0
    at.cluster.turns.advance(40_000)
    assert ranges(member.fetch(3)) == [], "an acceptance renews nothing"


@pytest.mark.requirement("DP-SHARE-35")
async def test_what_a_fetch_releases_comes_after_everything_else() -> None:
    configs = {"group.share.assignment.interval.ms": "0"}
    async with (
        MockCluster(1, profile="kafka-4.4", topics=["foo:1:1"], broker_configs=configs) as mock,
        connect(mock, 1) as wire,
    ):
        topic_id = mock.cluster.topics["foo"].topic_id
        prepare(mock.cluster)
        beat = request_of(
            "ShareGroupHeartbeat",
            group_id="g",
            member_id="m",
            member_epoch=0,
            subscribed_topic_names=["foo"],
        )
        await wire.ask(beat, 1)
        append(mock.cluster, b"0", b"1", tp=("foo", 0))

        async def read(epoch: int, *released: int) -> list[tuple[int, int, int]]:
            batches = [
                {"first_offset": each, "last_offset": each, "acknowledge_types": [RELEASE]}
                for each in released
            ]
            partition = {"partition_index": 0, "acknowledgement_batches": batches}
            body = request_of(
                "ShareFetch",
                group_id="g",
                member_id="m",
                share_session_epoch=epoch,
                max_wait_ms=60_000,
                min_bytes=1,
                max_records=100,
                batch_size=100,
                topics={"topic_id": topic_id, "partitions": [partition]},
            )
            return ranges(await wire.ask(body, 2))

        assert await read(0) == [(0, 1, 1)]
        append(mock.cluster, b"2", tp=("foo", 0))
        assert await read(1, 0, 1) == [(2, 2, 1)]
        assert await read(2) == [(0, 1, 2)]
        assert await read(3, 0, 1) == [(0, 1, 3)], "there was nothing else"


@pytest.mark.requirement("DP-SHARE-09")
def test_there_are_two_acquire_modes() -> None:
    at = broker()
    member = settled(at)
    for nothing in ([], [99]):
        answer = member.fetch(0, nothing, share_acquire_mode=2)
        assert answer.error_code == 0, "there is nothing to acquire"
    member.fetch(0, [0])
    assert member.fetch(1, acks=[(0, 0, [ACCEPT])], share_acquire_mode=2).error_code == -1
    found = row(member.ack(2, (0, 0, [ACCEPT]), (1, 3, [ACCEPT])))
    assert found.error_code == 0, "a record before the start offset counts for nothing"


@pytest.mark.requirement("DP-SHARE-03", "DP-SHARE-37")
@pytest.mark.parametrize(("name", "code"), [("kafka-4.3", -1), ("kafka-4.4", 0)])
def test_a_topic_that_was_deleted_in_a_session(name: str, code: int) -> None:
    at = broker(name)
    member = settled(at)
    assert member.fetch(0, [0]).error_code == 0
    at.cluster.topics.delete([("foo", uuid.UUID(int=0))])
    answer = member.fetch(1)
    assert answer.error_code == code
    if code:
        assert answer.responses == []
        return
    found = [each.error_code for each in answer.responses[0].partitions]
    assert found == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    again = Member(at, "n")
    topic = {"topic_id": uuid.UUID(int=7), "partition_index": 0}
    body = request_of(
        "ShareFetch", group_id="g", member_id=again.name, topics=[topic], max_records=1
    )
    assert row(at.ask(body, 2)).error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.requirement("DP-SHARE-39")
@pytest.mark.parametrize(
    ("security", "code"), [(OPEN, 0), (Security(authorizer=Authorizer(frozenset({ADMIN}))), -1)]
)
def test_an_authorizer_needs_the_names_of_topics(security: Security, code: int) -> None:
    at = broker(security=security)
    member = settled(at)
    topics = [
        {"topic_id": topic_id, "partition_index": 0}
        for topic_id in (at.cluster.topics["foo"].topic_id, uuid.UUID(int=7))
    ]
    asked = {"group_id": "g", "member_id": member.name, "max_records": 1}
    body = request_of("ShareFetch", topics=topics, **asked)
    answer = at.ask(body, 2)
    assert answer.error_code == code
    assert len(answer.responses) == (0 if code else 2)
    batch = {"first_offset": 0, "last_offset": 5, "acknowledge_types": [2]}
    rows = {
        "topic_id": uuid.UUID(int=7),
        "partitions": [{"partition_index": 0, "acknowledgement_batches": [batch]}],
    }
    acknowledgement = request_of(
        "ShareAcknowledge",
        group_id="g",
        member_id=member.name,
        topics=[rows],
        share_session_epoch=1,
    )
    assert at.ask(acknowledgement, 2).error_code == code
    at.cluster.topics.delete([("foo", uuid.UUID(int=0))])
    body.topics, body.share_session_epoch = [], 2
    assert at.ask(body, 2).error_code == code, "the session has the topic"


@pytest.mark.requirement("DP-SHARE-46")
def test_a_session_begins_with_each_partition_once() -> None:
    at = broker()
    member = settled(at)
    partition = {"partition_index": 1}
    topic = {"topic_id": at.cluster.topics["foo"].topic_id, "partitions": [partition]}

    def repeated(epoch: int) -> int:
        body = request_of(
            "ShareFetch",
            group_id="g",
            member_id=member.name,
            share_session_epoch=epoch,
            max_records=1,
            topics=[topic, topic],
        )
        code: int = at.ask(body, 2).error_code
        return code

    assert repeated(0) == -1
    assert member.fetch(0, [0]).error_code == 0
    assert repeated(1) == 0, "a later request may"
    assert member.fetch(0, [0], acks=[(0, 0, [ACCEPT])]).error_code == ErrorCode.INVALID_REQUEST
    assert member.fetch(2).error_code == 0
    assert repeated(0) == -1
    assert member.fetch(3).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_groups_without_an_id_are_described_first() -> None:
    at = broker()
    settled(at)
    answer = at.ask("ShareGroupDescribe", 1, group_ids=["g", "", "other"])
    assert [(each.group_id, each.error_code) for each in answer.groups] == [
        ("", ErrorCode.INVALID_GROUP_ID), ("g", 0), ("other", ErrorCode.GROUP_ID_NOT_FOUND),
    ]  # fmt: skip


# ---- leaders -------------------------------------------------------------------------------------


@pytest.mark.requirement("DP-SHARE-13")
def test_clients_hear_who_leads() -> None:
    at = broker(brokers=2)
    member = settled(at)
    led = at.cluster.topics["foo"].partitions[1].leader
    assert led == 2
    answer = member.fetch(0, [1])
    found = row(answer)
    assert (found.error_code, found.current_leader.leader_id) == (6, 2)
    assert [each.node_id for each in answer.node_endpoints] == [2]
    assert [each.error_code for each in member.fetch(1).responses[0].partitions] == [6]


# ---- offsets -------------------------------------------------------------------------------------


def offsets(at: DirectBroker, topics: Any = None, version: int = 1) -> Any:
    group = {"group_id": "g", "topics": topics}
    (found,) = at.ask("DescribeShareGroupOffsets", version, groups=[group]).groups
    return found


@pytest.mark.requirement("DP-SHARE-11")
def test_offsets_are_described() -> None:
    at = broker()
    assert offsets(at).topics == []
    member = settled(at)
    (topic,) = offsets(at).topics
    assert [(each.partition_index, each.start_offset, each.lag) for each in topic.partitions] == [
        (0, -1, -1), (1, -1, -1),
    ]  # fmt: skip
    member.fetch(0, [0])
    member.ack(1, (1, 1, [ACCEPT]))
    first = offsets(at).topics[0].partitions[0]
    assert (first.start_offset, first.lag) == (0, 3)
    asked = [{"topic_name": name, "partitions": [0]} for name in ("foo", "none")]
    known, unknown = offsets(at, asked, 0).topics
    assert (known.topic_name, known.partitions[0].start_offset) == ("foo", 0)
    assert (unknown.topic_id.int, unknown.partitions[0].start_offset) == (0, -1)


@pytest.mark.requirement("DP-SHARE-11")
def test_offsets_are_described_once_or_not_at_all() -> None:
    at = broker()
    settled(at)

    def asked(*rows: tuple[str, list[int]]) -> list[Any]:
        return [{"topic_name": name, "partitions": indexes} for name, indexes in rows]

    found = offsets(at, asked(("foo", [0]), ("none", [0]), ("foo", [1, 0, 1]), ("none", [0])))
    assert [
        (each.topic_name, [row.partition_index for row in each.partitions]) for each in found.topics
    ] == [("foo", [0, 1]), ("none", [0]), ("none", [0])]
    assert offsets(at, asked(("none", []))).error_code == 0
    text = message(ErrorCode.UNKNOWN_SERVER_ERROR)
    for indexes in ([], [0, -1]):
        refused = offsets(at, asked(("foo", indexes), ("bar", [0])))
        assert (refused.error_code, refused.error_message, refused.topics) == (-1, text, [])


def change(at: DirectBroker, name: str, index: int, offset: int) -> Any:
    return change_all(at, (name, [(index, offset)]))


def change_all(at: DirectBroker, *topics: tuple[str, list[tuple[int, int]]]) -> Any:
    """Alter the offsets of partitions of topics."""
    rows = [
        {
            "topic_name": name,
            "partitions": [
                {"partition_index": index, "start_offset": offset} for index, offset in offsets
            ],
        }
        for name, offsets in topics
    ]
    return at.ask("AlterShareGroupOffsets", 0, group_id="g", topics=rows)


def forget(at: DirectBroker, *names: str) -> Any:
    topics = [{"topic_name": each} for each in names]
    return at.ask("DeleteShareGroupOffsets", 0, group_id="g", topics=topics)


@pytest.mark.requirement("DP-SHARE-11")
def test_offsets_are_altered_while_the_group_is_empty() -> None:
    at = broker()
    assert row(change(at, "foo", 0, 2)).error_code == 0
    assert offsets(at).topics[0].partitions[0].start_offset == 2
    group = at.cluster.groups.share.group("g")
    assert group is not None
    assert (group.epoch, group.target_epoch) == (1, 1)
    assert row(change(at, "foo", 9, 2)).error_code == 3
    assert row(change(at, "none", 0, 2)).error_code == 3
    member = settled(at)
    assert change(at, "foo", 0, 1).error_code == ErrorCode.NON_EMPTY_GROUP
    assert ranges(member.fetch(0, [0])) == [(2, 3, 1)]


@pytest.mark.requirement("DP-SHARE-11")
@pytest.mark.parametrize(
    ("topics", "rows", "starts"),
    [
        ([], {}, None),
        ([("none", [])], {}, None),
        ([("none", [(0, 1)])], {"none": [(0, 3)]}, None),
        ([("foo", [])], {"foo": []}, {}),
        ([("foo", [(9, 1)])], {"foo": [(9, 3)]}, {}),
        ([("foo", [(0, 1), (0, 2)])], {"foo": [(0, 0), (0, 0)]}, {0: 2}),
        ([("foo", [(0, 1)]), ("foo", [(9, 1)])], {"foo": [(0, 0), (9, 3)]}, {0: 1}),
        (
            [("foo", [(1, 1)]), ("none", [(0, 1)]), ("none", [(0, 1)])],
            {"none": [(0, 3), (0, 3)], "foo": [(1, 0)]},
            {1: 1},
        ),
        ([("foo", [(0, 1), (-7, 1), (-1, 1)])], "-1", {}),
        ([("none", [(0, 1)]), ("foo", [(-2, 1)])], "-2", {}),
    ],
)
def test_topics_that_exist_make_a_group_by_their_offsets(topics, rows, starts):
    """``rows`` is the partition that fails the request, or the answer; without ``starts`` there is
    no group."""
    at = broker()
    answer = change_all(at, *topics)
    if isinstance(rows, str):
        named = urlsafe_b64encode(at.cluster.topics["foo"].topic_id.bytes).decode().rstrip("=")
        text = f"Initialize share group parameters has invalid partitionId - g {named} {rows}"
        assert (answer.error_code, answer.error_message, answer.responses) == (-1, text, [])
    else:
        found = {
            topic.topic_name: [(each.partition_index, each.error_code) for each in topic.partitions]
            for topic in answer.responses
        }
        assert (answer.error_code, list(found.items())) == (0, list(rows.items()))
    assert (at.cluster.groups.share.group("g") is None) == (starts is None)
    if starts is not None:
        described = [each for topic in offsets(at).topics for each in topic.partitions]
        assert {each.partition_index: each.start_offset for each in described} == starts
        deletion = at.ask("DeleteGroups", 2, groups_names=["g"]).results[0]
        assert deletion.error_code == (-1 if isinstance(rows, str) else 0)


@pytest.mark.requirement("DP-SHARE-11")
@pytest.mark.parametrize("name", ["kafka-4.1", "kafka-4.2"])
def test_offsets_make_a_group_since_kafka_4_2(name: str) -> None:
    at = broker(name, features={"share.version": 1})
    answer = change(at, "foo", 0, 2)
    if name == "kafka-4.2":
        assert (answer.error_code, row(answer).error_code) == (0, 0)
        assert change(at, "foo", -1, 2).error_code == -1
        return
    assert (answer.error_code, answer.error_message) == (69, "Group g not found.")
    settled(at).beat(-1)
    assert row(change(at, "foo", 0, 2)).error_code == 0
    assert row(change(at, "foo", -1, 2)).error_code == 3


@pytest.mark.requirement("DP-SHARE-04")
@pytest.mark.parametrize(("name", "start"), [("kafka-4.3", -1), ("kafka-4.4", 0)])
@pytest.mark.parametrize("altered", [0, 9])
def test_where_a_group_begins_in_further_partitions(name: str, start: int, altered: int) -> None:
    at = broker(name)
    change(at, "foo", altered, 2)
    Member(at).join()
    (topic,) = offsets(at).topics
    assert [each.start_offset for each in topic.partitions] == [
        2 if each == altered else start for each in (0, 1)
    ]


@pytest.mark.requirement("DP-SHARE-11")
def test_the_lag_of_an_offset_below_zero() -> None:
    at = broker()
    for offset, lag in ((-2, 2), (-1, -1)):
        change(at, "foo", 0, offset)
        found = offsets(at).topics[0].partitions[0]
        assert (found.start_offset, found.lag) == (offset, lag)


@pytest.mark.requirement("DP-SHARE-36")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "kafka-4.3",
            "The share coordinator rejected the request because the share-group state epoch did "
            "not match.",
        ),
        (
            "kafka-4.4",
            "The coordinator rejected the request because the state epoch did not match.",
        ),
    ],
)
def test_a_leader_goes_on_with_offsets_that_were_altered(name: str, text: str) -> None:
    at = broker(name)
    member = settled(at)
    member.fetch(0, [0])
    member.ack(1, (0, 0, [ACCEPT]))
    member.beat(-1)
    assert row(change(at, "foo", 0, 3)).error_code == 0
    assert offsets(at).topics[0].partitions[0].start_offset == 3
    assert member.fetch(2).responses == [], "the leader waits for records behind what it has"
    answer = member.ack(3, (1, 1, [ACCEPT]))
    found = row(answer)
    assert (found.error_code, found.error_message) == (6, f"Error in write state RPC. {text}")
    assert (found.current_leader.leader_id, answer.node_endpoints[0].node_id) == (1, 1)
    assert row(member.ack(4, (1, 1, [ACCEPT]))).error_code == 3
    assert ranges(member.fetch(5)) == [(3, 3, 1)]
    # The group's epoch is that at which the leader has loaded the state: it may store what it has.
    assert row(change(at, "foo", 0, 1)).error_code == 0
    assert offsets(at).topics[0].partitions[0].start_offset == 1
    assert row(member.ack(6, (3, 3, [ACCEPT]))).error_code == 0
    assert offsets(at).topics[0].partitions[0].start_offset == 3


@pytest.mark.requirement("DP-SHARE-36")
def test_a_leader_goes_on_with_offsets_that_were_deleted() -> None:
    at = broker()
    member = settled(at)
    member.fetch(0, [0])
    member.beat(-1)
    assert [each.error_code for each in forget(at, "foo", "foo").responses] == [0]
    assert member.fetch(1).responses == []
    found = row(member.ack(2, (0, 0, [ACCEPT])))
    text = "Write operation on uninitialized share partition not allowed."
    assert (found.error_code, found.error_message) == (-1, f"Error in write state RPC. {text}")
    assert member.fetch(-1).error_code == 0
    assert ranges(member.fetch(0, [0])) == [], "what the session had could not be released"
    member.join()
    assert member.fetch(1).responses == [], "another state makes no difference"


@pytest.mark.requirement("DP-SHARE-03")
@pytest.mark.parametrize(
    ("requests", "closed", "left"),
    [
        ("b0A", "A", ""),
        ("b0A b1B", "B", "b"),
        ("b0A b1B", "A", ""),
        ("b0A b0B", "A", "b"),
        ("b0A b0B", "B", ""),
        ("b0A b0A", "A", ""),
        ("b0A c0A", "A", "b"),
        ("b0A c0A b-1A", "A", "c"),
        ("b0A c0A b0B", "A", "bc"),
        ("b0A c0A c-1A", "A", "b"),
    ],
)
async def test_a_connection_ends_the_session_that_began_there_last(requests, closed, left):
    """A request is of a member, at an epoch, on a connection."""
    async with MockCluster(1, profile="kafka-4.4", topics=["foo:1:1"]) as mock:
        topic = {"topic_id": mock.cluster.topics["foo"].topic_id, "partition_index": 0}
        async with AsyncExitStack() as stack:
            wires = {}
            for name in "AB":
                inner = await stack.enter_async_context(AsyncExitStack())
                wires[name] = inner, await inner.enter_async_context(connect(mock, 1))
            for request in requests.split():
                on = request[-1]
                epoch = int(request[1:-1])
                asked: dict[str, Any] = {"member_id": request[0], "share_session_epoch": epoch}
                asked["topics"] = [] if epoch else [topic]
                answer = await wires[on][1].ask("ShareFetch", 2, group_id="g", **asked)
                assert answer.error_code == 0
            before = mock.connections(1)
            await wires[closed][0].aclose()
            async with asyncio.timeout(60):
                while mock.connections(1) == before:
                    await asyncio.sleep(0.01)
            members = [session.member_id for _, session in mock.cluster.share_fetches.sessions()]
            assert sorted(members) == [*left]


@pytest.mark.requirement("DP-SHARE-36")
@pytest.mark.parametrize("ends", [False, True])
async def test_a_leader_forgets_a_group_without_connections(ends: bool) -> None:
    configs = {"group.share.assignment.interval.ms": "0"}
    async with MockCluster(
        1, profile="kafka-4.4", topics=["foo:1:1"], broker_configs=configs
    ) as mock:
        at = DirectBroker(mock.cluster, profile_name="kafka-4.4")
        prepare(mock.cluster)
        member = settled(at)
        topic = {"topic_id": member.topic_id, "partition_index": 0}
        limits = {"min_bytes": 1, "max_records": 9, "batch_size": 9}
        body = request_of("ShareFetch", group_id="g", member_id="m", topics=[topic], **limits)
        async with connect(mock, 1) as wire:
            assert ranges(await wire.ask(body, 2)) == [(0, 3, 1)]
            member.beat(-1)
            change(at, "foo", 0, 2)
            if ends:
                body.share_session_epoch, body.topics = -1, []
                assert (await wire.ask(body, 2)).error_code == 0
                assert mock.cluster.share_fetches.session(1, "g", "m") is None
        async with asyncio.timeout(60):
            while mock.connections(1):
                await asyncio.sleep(0.01)
        assert ranges(member.fetch(0, [0])) == [(2, 3, 1)]


@pytest.mark.requirement("DP-SHARE-11")
def test_offsets_are_deleted_while_the_group_is_empty() -> None:
    at = broker()
    missing = forget(at, "foo")
    assert (missing.error_code, missing.error_message) == (69, "Group g not found.")
    member = settled(at)
    assert forget(at, "foo").error_code == ErrorCode.NON_EMPTY_GROUP
    member.beat(-1)
    for name, text in (
        ("none", message(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)),
        ("bar", "There is no offset information to delete."),
    ):
        (found,) = forget(at, name).responses
        assert (found.error_code, found.error_message) == (3, text)
    (found,) = forget(at, "foo").responses
    assert (found.error_code, found.topic_id) == (0, member.topic_id)
    assert offsets(at).topics == []


# ---- groups of any kind --------------------------------------------------------------------------


@pytest.mark.requirement("DP-SHARE-15")
def test_a_share_group_among_others() -> None:
    at = broker()
    member = settled(at)
    (listed,) = at.ask("ListGroups", 5, types_filter=["share"]).groups
    assert (listed.group_id, listed.protocol_type, listed.group_state, listed.group_type) == (
        "g", "share", "Stable", "share",
    )  # fmt: skip
    (classic,) = at.ask("DescribeGroups", 6, groups=["g"]).groups
    assert (classic.error_code, classic.error_message) == (69, "Group g is not a classic group.")
    (described,) = at.ask("ShareGroupDescribe", 1, group_ids=["g"]).groups
    assert (described.group_state, described.assignor_name) == ("Stable", "simple")
    (only,) = described.members
    (topic,) = only.assignment.topic_partitions
    assert (only.member_id, topic.topic_name, topic.partitions) == ("m", "foo", [0, 1])
    for name, code in (("none", 69), ("simple", 69), ("", 24)):
        (other,) = at.ask("ShareGroupDescribe", 1, group_ids=[name]).groups
        assert other.error_code == code
        assert (other.error_message is None) == (code == 24)
    joined = at.ask(
        "JoinGroup",
        9,
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        name="range",
        metadata=b"",
    )
    assert joined.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    groups = at.cluster.groups
    assert groups.validate_commit(GroupCommit("g", "m", None, 3)) is ErrorCode.GROUP_ID_NOT_FOUND
    assert groups.validate_fetch("g", None, -1) is ErrorCode.NONE, "it has no offsets"
    assert groups.validate_offset_delete("g") is ErrorCode.GROUP_ID_NOT_FOUND
    gone = request_of("DeleteGroups", groups_names=["g"])
    assert at.ask(gone, 2).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    member.beat(-1)
    assert at.ask(gone, 2).results[0].error_code == 0
    assert at.cluster.groups.group("g") is None


@pytest.mark.requirement("DP-CTL-36")
async def test_a_tester_sees_what_is_in_flight() -> None:
    async with MockCluster(1, profile="kafka-4.4", topics=["foo:1:1"]) as mock:
        at = DirectBroker(mock.cluster, profile_name="kafka-4.4")
        mock.set_offset("simple", "foo-0", 0)
        prepare(mock.cluster)
        member = settled(at)
        member.fetch(0, [0])
        view = mock.group("g")
        assert (view.type, view.state, view.protocol) == ("share", "Stable", "simple")
        assert view.share_partitions is not None
        (shared,) = view.share_partitions
        (flight,) = shared.in_flight
        assert (flight.first, flight.last, flight.state, flight.member_id) == (
            0, 3, "Acquired", "m",
        )  # fmt: skip


# ---- permissions ---------------------------------------------------------------------------------


@pytest.mark.requirement("DP-SHARE-21", "DP-SHARE-11")
def test_permissions() -> None:
    at = broker(security=ENFORCED)
    settled(at)
    at.principal = ALICE
    member = Member(at)

    def codes() -> list[int]:
        answers: list[Any] = [
            member.beat(0, subscribed_topic_names=["foo"]),
            member.fetch(0, [0]),
            member.ack(1, (0, 0, [ACCEPT])),
            at.ask("AlterShareGroupOffsets", 0, group_id="g"),
            at.ask("DeleteShareGroupOffsets", 0, group_id="g"),
            at.ask("ShareGroupDescribe", 1, group_ids=["g"]).groups[0],
            offsets(at),
        ]
        return [each.error_code for each in answers]

    assert codes() == [30] * 7
    for operation in (AclOperation.READ, AclOperation.DELETE):
        allow(at.cluster, operation, "g", ResourceType.GROUP)
    assert codes() == [29, 0, 0, 68, 68, 29, 0]
    assert row(member.fetch(0, [0])).error_code == 29
    assert row(member.ack(1, (0, 0, [ACCEPT]))).error_code == 29
    assert offsets(at).topics == []
    on_topic(at.cluster, AclOperation.READ, "foo")
    assert codes()[:1] == [0]
