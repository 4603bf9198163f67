"""Streams groups on the wire: keys 88, 89 and 93, offsets, other group APIs, and what is stored."""

from typing import Any

import pytest

from kproto.error_codes import ErrorCode, message
from mockbroker import MockCluster
from mockbroker.profiles import profile
from mockbroker.simulation.coordinators.group_facts import GroupCommit
from mockbroker.simulation.groups.classic.classic_group import (
    LeavingMember,
    SyncRequest,
    SyncResult,
)
from mockbroker.simulation.groups.streams.streams_group import Member, Tasks
from mockbroker.simulation.groups.streams.streams_records import StreamsRecords
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.releases.release import NEWEST
from mockbroker.simulation.security.authorizer import AclOperation, ResourceType
from mockbroker.simulation.security.policy import OPEN, Security
from mockbroker.simulation.state.cluster_parts import TopicPartition
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.groups.members import Answer
from tests.mockbroker.simulation.groups.streams import Streams
from tests.mockbroker.simulation.security.enforced import ADMIN, ALICE, ENFORCED, allow, on_topic
from tests.mockbroker.wire import connect
from tests.support.requests import request_of

REPARTITION, CHANGELOG = "app-by-key-repartition", "app-counts-changelog"
INTERNAL = [CHANGELOG, REPARTITION]
"""In the order of Java's hash tables."""


def counting(**topic: Any) -> dict[str, Any]:
    return {
        "epoch": 0,
        "subtopologies": [
            {
                "subtopology_id": "0",
                "source_topics": ["foo"],
                "repartition_sink_topics": [REPARTITION],
            },
            {
                "subtopology_id": "1",
                "repartition_source_topics": {"name": REPARTITION},
                "state_changelog_topics": {
                    "name": CHANGELOG,
                    "key": "cleanup.policy",
                    "value": "compact",
                    **topic,
                },
            },
        ],
    }


def joins(member: str = "m", **fields: Any) -> Any:
    fields.setdefault("topology", counting())
    tasks: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    joining = {"group_id": "g", "member_id": member, "process_id": "p", **tasks, **fields}
    return request_of("StreamsGroupHeartbeat", rebalance_timeout_ms=60_000, **joining)


def beats(epoch: int, member: str = "m", **fields: Any) -> Any:
    return request_of(
        "StreamsGroupHeartbeat", group_id="g", member_id=member, member_epoch=epoch, **fields
    )


def broker(
    profile_name: str = "kafka-4.4", *, security: Security = OPEN, **configs: str
) -> DirectBroker:
    given = {name.replace("_", "."): each for name, each in configs.items()}
    if profile(profile_name).line >= (4, 3):
        given.setdefault("group.streams.assignment.interval.ms", "0")
    cluster = simulated_cluster(
        1, release=profile(profile_name).software, topics=["foo:2:1"], broker_configs=given
    )
    Operations(cluster).set_offset("simple", "foo-0", 0)  # makes the internal topic
    return DirectBroker(cluster, profile_name=profile_name, security=security, principal=ADMIN)


@pytest.mark.requirement("DP-STREAMS-01")
@pytest.mark.parametrize("kind", ["active", "standby", "warmup"])
def test_a_joining_member_names_no_subtopology_even_without_tasks(kind: str) -> None:
    at = broker()
    answer = at.ask(joins(**{f"{kind}_tasks": {"subtopology_id": "0", "partitions": []}}), 1)
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.INVALID_REQUEST, f"{kind.capitalize()}Tasks must be empty when (re-)joining.",
    )  # fmt: skip
    assert at.ask(joins(), 1).error_code == 0


@pytest.mark.requirement("DP-STREAMS-03", "DP-STREAMS-07")
async def test_a_member_lives_on_the_wire() -> None:
    configs = {"group.streams.assignment.interval.ms": "0"}
    async with (
        MockCluster(1, topics=["foo:2:1"], profile="kafka-4.4", broker_configs=configs) as mock,
        connect(mock, 1) as wire,
    ):
        mock.set_offset("other", "foo-0", 0)
        joined = await wire.ask(joins(user_endpoint={"host": "h", "port": 9}), 1)
        assert (joined.error_code, joined.member_id, joined.member_epoch) == (0, "m", 2)
        assert (joined.heartbeat_interval_ms, joined.task_offset_interval_ms) == (5000, 60_000)
        assert joined.acceptable_recovery_lag == 10_000
        (status,) = joined.status
        assert status.status_code == 3
        assert status.status_detail == f"Internal topics are missing: {', '.join(INTERNAL)}"
        assert joined.active_tasks == []
        assert mock.cluster.topics.keys() >= {*INTERNAL}
        result = await wire.ask(beats(2, client_tags=[{"key": "k", "value": "v"}]), 1)
        assert (result.status, result.member_epoch) == ([], 3)
        assert [(each.subtopology_id, each.partitions) for each in result.active_tasks] == [
            ("0", [0, 1]),
            ("1", [0, 1]),
        ]
        (endpoint,) = result.partitions_by_user_endpoint
        assert (endpoint.user_endpoint.host, endpoint.user_endpoint.port) == ("h", 9)
        assert {each.topic for each in endpoint.active_partitions} == {"foo", REPARTITION}
        await wire.ask(
            beats(3, task_offsets=[{"subtopology_id": "1", "partition": 0, "offset": 7}]), 1
        )
        described = await wire.ask(
            "StreamsGroupDescribe",
            1,
            group_ids=["g"],
            include_authorized_operations=True,
            include_topology_description=True,
        )
        (group,) = described.groups
        assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 3, 3)
        assert (group.assignor_name, group.topology_description_status) == ("sticky", 1)
        assert group.authorized_operations > 0
        first, second = group.topology.subtopologies
        assert (first.source_topics, first.repartition_sink_topics) == (["foo"], [REPARTITION])
        (changelog,) = second.state_changelog_topics
        assert (changelog.name, changelog.partitions) == (CHANGELOG, 2)
        assert [(each.key, each.value) for each in changelog.topic_configs] == [
            ("cleanup.policy", "compact")
        ]
        (member,) = group.members
        assert (member.member_id, member.process_id, member.topology_epoch) == ("m", "p", 0)
        assert (member.user_endpoint.host, member.client_tags[0].value) == ("h", "v")
        assert member.assignment == member.target_assignment
        assert [(each.subtopology_id, each.offset) for each in member.task_offsets] == [("1", 7)]
        view = mock.group("g")
        assert (view.type, view.state, view.protocol) == ("streams", "Stable", "sticky")
        assert view.members[0].assignment == (("0", 0), ("0", 1), ("1", 0), ("1", 1))
        left = await wire.ask(beats(-1), 1)
        assert (left.error_code, left.member_epoch, left.status) == (0, -1, [])


@pytest.mark.requirement("DP-STREAMS-07")
async def test_topologies_are_shown_as_they_were_sent_until_they_are_ready() -> None:
    at = broker()
    at.ask(joins(), 1)
    described = at.ask("StreamsGroupDescribe", 1, group_ids=["g", "", "simple", "none"])
    nameless, group, simple, none = described.groups
    assert group.topology.subtopologies[1].state_changelog_topics[0].partitions == 0
    assert nameless.error_code == ErrorCode.INVALID_GROUP_ID
    assert (simple.error_code, simple.error_message) == (69, "Group simple is not a streams group.")
    assert (none.error_code, none.error_message) == (69, "Group none not found.")


@pytest.mark.requirement("DP-STREAMS-21")
@pytest.mark.parametrize(
    ("name", "configs"),
    [
        ("kafka-4.1", {}),
        ("kafka-4.4", {"group_coordinator_rebalance_protocols": "classic,consumer"}),
    ],
)
async def test_streams_groups_may_be_off(name: str, configs: dict[str, str]) -> None:
    at = broker(name, **configs)
    if name == "kafka-4.1":
        assert not at.cluster.groups.streams.groups
        return
    joined = at.ask(joins(), 1)
    assert (joined.error_code, joined.error_message) == (ErrorCode.UNSUPPORTED_VERSION, None)
    (group,) = (at.ask("StreamsGroupDescribe", 1, group_ids=["g"])).groups
    assert group.error_code == ErrorCode.UNSUPPORTED_VERSION


def describes() -> Any:
    return request_of(
        "StreamsGroupTopologyDescriptionUpdate",
        group_id="g",
        member_id="m",
        topology_description={},
    )


@pytest.mark.requirement("DP-STREAMS-21")
async def test_topologies_are_not_described() -> None:
    result = broker().ask(describes(), 0)
    assert (result.error_code, result.error_message) == (
        ErrorCode.UNSUPPORTED_VERSION,
        "The broker has no streams group topology description plugin configured.",
    )
    off = broker(group_coordinator_rebalance_protocols="classic,consumer")
    result = off.ask(describes(), 0)
    assert result.error_message == message(ErrorCode.UNSUPPORTED_VERSION)
    at = broker(security=ENFORCED)
    at.principal = ALICE
    assert (at.ask(describes(), 0)).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


@pytest.mark.requirement("DP-STREAMS-01")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "__consumer_offsets",
            "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is "
            "prohibited.",
        ),
        ("a b", "Topic names a b are not valid topic names."),
    ],
)
async def test_topics_that_no_topology_may_have(name: str, text: str) -> None:
    topology = {"subtopology_id": "0", "source_topics": [name]}
    result = broker().ask(joins(topology=topology), 1)
    assert (result.error_code, result.error_message) == (ErrorCode.STREAMS_INVALID_TOPOLOGY, text)


@pytest.mark.requirement("DP-STREAMS-03", "DP-STREAMS-07")
async def test_who_may_use_the_topics() -> None:
    at = broker(security=ENFORCED)
    at.principal = ALICE
    assert at.ask(joins(), 1).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    (group,) = (at.ask("StreamsGroupDescribe", 1, group_ids=["g"])).groups
    assert group.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    allow(at.cluster, AclOperation.READ, "g", ResourceType.GROUP)
    allow(at.cluster, AclOperation.DESCRIBE, "g", ResourceType.GROUP)
    assert at.ask(joins(), 1).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    for name in ("foo", *INTERNAL):
        on_topic(at.cluster, AclOperation.DESCRIBE, name)
    result = at.ask(joins(), 1)
    assert result.status[0].status_detail == (
        f"Internal topics are missing: {', '.join(INTERNAL)}; Unauthorized to CREATE on topics "
        f"{', '.join(INTERNAL)}."
    )
    assert not at.cluster.topics.keys() & {*INTERNAL}
    for name in INTERNAL:
        on_topic(at.cluster, AclOperation.CREATE, name)
    at.ask(beats(result.member_epoch), 1)
    assert at.cluster.topics.keys() >= {*INTERNAL}


@pytest.mark.requirement("DP-STREAMS-07")
async def test_groups_with_topics_that_are_not_visible() -> None:
    at = broker(security=ENFORCED)
    at.ask(joins(), 1)
    at.principal = ALICE
    allow(at.cluster, AclOperation.DESCRIBE, "g", ResourceType.GROUP)
    (group,) = (at.ask("StreamsGroupDescribe", 1, group_ids=["g"])).groups
    assert (group.error_code, group.error_message, group.members) == (
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "The described group uses topics that the client is not authorized to describe.",
        [],
    )


@pytest.mark.requirement("DP-STREAMS-03")
async def test_topics_that_cannot_be_created() -> None:
    at = broker()
    first = at.ask(joins(topology=counting(replication_factor=9)), 1)
    assert first.status[0].status_detail == f"Internal topics are missing: {', '.join(INTERNAL)}"
    second = at.ask(beats(first.member_epoch), 1)
    assert second.status[0].status_detail.startswith(
        f"Internal topics are missing: {CHANGELOG}; Creation failed: {CHANGELOG} ("
    )


# ---- other APIs ----------------------------------------------------------------------------------


@pytest.mark.requirement("DP-STREAMS-20", "DP-STREAMS-04")
async def test_other_group_apis() -> None:
    at = broker()
    at.ask(joins(), 1)
    listed = at.ask("ListGroups", 5, types_filter=["streams"])
    assert [
        (each.group_id, each.protocol_type, each.group_state, each.group_type)
        for each in listed.groups
    ] == [("g", "streams", "NotReady", "streams")]
    (described,) = (at.ask("DescribeGroups", 6, groups=["g"])).groups
    assert (described.error_code, described.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Group g is not a classic group.",
    )
    groups = at.cluster.groups
    synced = Answer[SyncResult]()
    groups.sync(SyncRequest("g", "m", 1), synced)
    assert synced.code == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.heartbeat("g", "m", None, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.leave("g", [LeavingMember("m")]) == (0, (ErrorCode.UNKNOWN_MEMBER_ID,))
    deletes = request_of("DeleteGroups", groups_names=["g"])
    assert (at.ask(deletes, 2)).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    group = groups.streams.group("g")
    at.ask(beats(-1), 1)
    assert (at.ask(deletes, 2)).results[0].error_code == 0
    assert groups.group("g") is None
    assert group is not None
    assert group.state == "Dead"


# ---- offsets -------------------------------------------------------------------------------------

FOO_0: TopicPartition = ("foo", 0)


@pytest.mark.requirement("DP-STREAMS-17")
def test_commits_of_members() -> None:
    at = Streams()
    at.join()
    Operations(at.cluster).rebalance("g")
    at.beat(owned=True)
    groups = at.cluster.groups

    def commit(member: str, epoch: int, *partitions: TopicPartition, **fields: Any) -> ErrorCode:
        fields.setdefault("version", 9)
        return groups.validate_commit(
            GroupCommit("g", member, None, epoch, partitions=partitions, **fields)
        )

    assert at.member_state("a") == (3, "STABLE")
    assert commit("a", 3, FOO_0, ("bar", 0)) == 0
    assert commit("a", 2, FOO_0) == 0, "it has the task since epoch 2"
    assert commit("a", 1, FOO_0) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit("a", 4, FOO_0) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit("a", 2, ("bar", 0)) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit("a", 2, ("foo", 9)) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit("b", 3, FOO_0) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit("", -1, FOO_0) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit("a", 3, FOO_0, version=8) == ErrorCode.UNSUPPORTED_VERSION
    assert commit("a", 3, FOO_0, version=3, transactional=True) == 0
    assert commit("", -1, FOO_0, version=3, transactional=True) == 0
    assert commit("a", 1, FOO_0, transactional=True) == ErrorCode.ILLEGAL_GENERATION
    assert groups.is_subscribed("g", "foo")
    assert not groups.is_subscribed("g", "bar")
    at.leave()
    assert commit("", -1, FOO_0) == 0
    assert not groups.is_subscribed("g", "foo")


@pytest.mark.requirement("DP-STREAMS-17")
def test_fetches_of_members() -> None:
    at = Streams()
    at.join()
    fetch = at.cluster.groups.validate_fetch
    assert fetch("g", None, -1) == 0
    assert fetch("g", None, 2) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert fetch("g", "b", 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert fetch("g", "a", 2) == 0
    assert fetch("g", "a", 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert at.cluster.groups.validate_offset_delete("g") == 0


@pytest.mark.requirement("DP-STREAMS-20")
def test_an_empty_group_goes_with_its_offsets() -> None:
    at = Streams()
    at.join()
    at.cluster.groups.offsets_gone("g")
    assert at.state == "Stable"
    at.leave()
    at.cluster.groups.offsets_gone("g")
    assert at.state == "none"


# ---- what is stored ------------------------------------------------------------------------------


@pytest.mark.requirement("DP-STREAMS-19")
def test_only_active_tasks_have_epochs_in_the_log() -> None:
    tasks_of = Tasks(frozenset({("0", 0)}), frozenset({("1", 0)}), frozenset({("1", 1)}))
    member = Member("m", epoch=3, assigned=tasks_of, epochs={("0", 0): 2})
    _, value = StreamsRecords(NEWEST).current("g", member)
    assert value is not None
    read: Any = type(value).decode(value.encode(0), 0)
    assert [each.assignment_epochs for each in read.active_tasks] == [[2]]
    assert [each.assignment_epochs for each in read.standby_tasks + read.warmup_tasks] == [[], []]


@pytest.mark.requirement("DP-STREAMS-19")
@pytest.mark.parametrize(("release", "time_ms"), [((4, 2), 0), ((4, 3), 7)])
def test_when_a_target_was_made_is_written_since_4_3(release, time_ms):
    at = Streams(release)
    at.cluster.turns.advance(7)
    targets: list[Any] = []

    def write(_group_id: str, records: Any) -> None:
        kind = "StreamsGroupTargetAssignmentMetadataKey"
        targets.extend(value for key, value in records if type(key).__name__ == kind)

    at.groups.membership._write = write
    at.join("a")
    assert [each.assignment_timestamp for each in targets] == [time_ms]


@pytest.mark.requirement("DP-STREAMS-19")
async def test_what_is_written() -> None:
    configs = {"group.streams.assignment.interval.ms": "0"}
    async with (
        MockCluster(2, topics=["foo:2:1"], profile="kafka-4.4", broker_configs=configs) as mock,
        connect(mock, 1) as wire,
    ):
        mock.set_offset("g", "foo-0", 0)
        mock.move_coordinator("group", "g", 1)
        await wire.ask(joins(), 1)
        await wire.ask(beats(2), 1)
        written = [each.key for each in list(mock.records("__consumer_offsets")) if each.key]
        kinds = [int.from_bytes(key[:2], "big") for key in written]
        assert {17, 19, 20, 21, 22, 23} <= {*kinds}
        mock.move_coordinator("group", "g", 2)
        assert mock.group("g").members[0].member_id == "m"
        async with connect(mock, 2) as other:
            moved = await other.ask(beats(3), 1)
            assert (moved.error_code, moved.active_tasks) == (0, None)
            await other.ask(beats(-1), 1)
            deleted = await other.ask("DeleteGroups", 2, groups_names=["g"])
            assert deleted.results[0].error_code == 0
        deletions = [
            int.from_bytes(each.key[:2], "big")
            for each in mock.records("__consumer_offsets")
            if each.key and each.value is None
        ]
        assert {2, 17, 19, 20, 21, 22, 23} <= {*deletions}
        assert deletions[-4:] == [1, 20, 17, 23], "those of its offsets come first"
