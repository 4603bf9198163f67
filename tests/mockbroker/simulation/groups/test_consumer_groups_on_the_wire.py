"""Consumer groups on the wire: ConsumerGroupHeartbeat, ConsumerGroupDescribe, ListGroups."""

import uuid
from typing import Any

import pytest

from kproto.error_codes import ErrorCode, message
from mockbroker import MockCluster
from mockbroker.profiles import profile
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.security.authorizer import AclOperation, ResourceType
from mockbroker.simulation.security.policy import OPEN, Security
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.security.enforced import ADMIN, ALICE, ENFORCED, allow, on_topic
from tests.mockbroker.wire import connect
from tests.support.requests import request_of

GROUP = 32


def joins(member: str = "m", **fields: Any) -> Any:
    fields.setdefault("subscribed_topic_names", ["foo"])
    return request_of(
        "ConsumerGroupHeartbeat",
        group_id="g",
        member_id=member,
        rebalance_timeout_ms=60_000,
        **{"topic_partitions": [], **fields},
    )


def broker(
    profile_name: str = "kafka-4.4", *, security: Security = OPEN, **configs: str
) -> DirectBroker:
    cluster = simulated_cluster(
        1,
        release=profile(profile_name).software,
        topics=["foo:2:1", "bar:1:1"],
        broker_configs={name.replace("_", "."): each for name, each in configs.items()},
    )
    Operations(cluster).set_offset("simple", "foo-0", 0)  # makes the internal topic
    return DirectBroker(cluster, profile_name=profile_name, security=security, principal=ADMIN)


async def test_a_member_lives_on_the_wire() -> None:
    async with MockCluster(1, topics=["foo:2:1"]) as mock, connect(mock, 1) as wire:
        mock.set_offset("other", "foo-0", 0)
        joined = await wire.ask(joins(server_assignor="uniform", rack_id="r"), 1)
        assert (joined.error_code, joined.error_message, joined.member_id) == (0, None, "m")
        assert (joined.member_epoch, joined.heartbeat_interval_ms) == (2, 5000)
        (topic,) = joined.assignment.topic_partitions
        assert (topic.topic_id, topic.partitions) == (mock.cluster.topics["foo"].topic_id, [0, 1])
        again = await wire.ask(
            "ConsumerGroupHeartbeat",
            1,
            group_id="g",
            member_id="m",
            member_epoch=2,
            topic_id=topic.topic_id,
            partitions=[0, 1],
        )
        assert (again.error_code, again.assignment) == (0, None)
        group, other = (await wire.ask("ConsumerGroupDescribe", 1, group_ids=["g", "other"])).groups
        assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 2, 2)
        assert (group.assignor_name, group.authorized_operations) == ("uniform", -(2**31))
        (member,) = group.members
        assert (member.member_id, member.member_epoch, member.member_type) == ("m", 2, 1)
        assert (member.client_id, member.client_host, member.rack_id) == ("wire", "/127.0.0.1", "r")
        assert (member.subscribed_topic_names, member.subscribed_topic_regex) == (["foo"], "")
        for shown in (member.assignment, member.target_assignment):
            (topic,) = shown.topic_partitions
            assert (topic.topic_name, topic.partitions) == ("foo", [0, 1])
        assert (other.error_code, other.error_message) == (
            ErrorCode.GROUP_ID_NOT_FOUND, "Group other is not a consumer group.",
        )  # fmt: skip
        view = mock.group("g")
        assert (view.type, view.state, view.generation) == ("consumer", "Stable", 2)
        assert view.members[0].target == (("foo", 0), ("foo", 1))


@pytest.mark.requirement("DP-CGH-06")
@pytest.mark.parametrize("version", [0, 1])
def test_a_joining_member_names_no_topic_even_without_partitions(version: int) -> None:
    at = broker()
    empty = {"topic_id": uuid.UUID(int=0), "partitions": []}
    answer = at.ask(joins(topic_partitions=[empty]), version)
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.INVALID_REQUEST, "TopicPartitions must be empty when (re-)joining.",
    )  # fmt: skip
    assert at.ask(joins(), version).error_code == 0


@pytest.mark.requirement("DP-CGH-01", "DP-VER-06", "REL-09", "REL-10")
@pytest.mark.parametrize(
    ("profile_name", "protocols", "served"),
    [
        ("kafka-3.9", None, False),
        ("kafka-3.9", "classic,consumer", True),
        ("kafka-4.0", None, True),
        ("kafka-4.0", "classic", False),
        ("kafka-4.4", None, True),
        ("kafka-4.4", "classic", False),
    ],
)
def test_consumer_groups_can_be_off(profile_name: str, protocols: str | None, served: bool) -> None:
    configs = {} if protocols is None else {"group_coordinator_rebalance_protocols": protocols}
    at = broker(profile_name, **configs)
    refusal = ErrorCode.UNSUPPORTED_VERSION
    answer = at.ask(joins(), 0)
    assert answer.error_code == (0 if served else refusal)
    text = None if profile_name == "kafka-3.9" else message(refusal)
    assert served or answer.error_message == text
    described = at.ask("ConsumerGroupDescribe", 0, group_ids=["g"])
    assert described.groups[0].error_code == (0 if served else refusal)


@pytest.mark.requirement("DP-CGH-01", "DP-CGH-02", "DP-MIGRATE-08")
def test_callers_need_permissions() -> None:
    at = broker(security=ENFORCED)
    alice = DirectBroker(at.cluster, security=ENFORCED, principal=ALICE)
    refused = alice.ask(joins(), 1)
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.GROUP_AUTHORIZATION_FAILED, message(ErrorCode.GROUP_AUTHORIZATION_FAILED),
    )  # fmt: skip
    allow(at.cluster, AclOperation.READ, "g", ResourceType.GROUP)
    refused = alice.ask(joins(), 1)
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.TOPIC_AUTHORIZATION_FAILED, None,
    )  # fmt: skip
    assert at.cluster.groups.group("g") is None
    on_topic(at.cluster, AclOperation.DESCRIBE, "foo")
    assert (alice.ask(joins(), 1)).error_code == 0
    both = joins(subscribed_topic_names=["foo", "bar"])
    refused = alice.ask(both, 1)
    assert refused.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    matched = joins("n", subscribed_topic_names=[], subscribed_topic_regex=".*")
    assert (alice.ask(matched, 1)).error_code == 0
    group = at.cluster.groups.consumer.group("g")
    assert group is not None
    assert group.resolved[".*"].topics == {"foo"}, "it may not know of the others"
    describe = request_of(
        "ConsumerGroupDescribe", group_ids=["g"], include_authorized_operations=True
    )
    shown = (alice.ask(describe, 1)).groups[0]
    assert (shown.error_code, len(shown.members)) == (0, 2)
    assert shown.authorized_operations == 1 << AclOperation.READ | 1 << AclOperation.DESCRIBE
    assert (at.ask(both, 1)).error_code == 0
    at.cluster.turns.advance(1000)
    assert (at.ask(both, 1)).error_code == 0
    shown = (alice.ask(describe, 1)).groups[0]
    assert (shown.error_code, shown.error_message, shown.members) == (
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "The group has described topic(s) that the client is not authorized to describe.",
        [],
    )


@pytest.mark.requirement("DP-MIGRATE-08")
@pytest.mark.parametrize(("profile_name", "shown"), [("kafka-4.2", [0]), ("kafka-4.3", [0, 1])])
def test_partitions_that_are_given_up_are_shown_since_4_3(profile_name, shown):
    at = broker(profile_name)
    epoch = at.ask(joins(), 1).member_epoch
    at.cluster.turns.advance(1000)
    at.ask(joins("n"), 1)
    beat = request_of("ConsumerGroupHeartbeat", group_id="g", member_id="m", member_epoch=epoch)
    assert (at.ask(beat, 1)).assignment.topic_partitions[0].partitions == [0]
    group = (at.ask("ConsumerGroupDescribe", 1, group_ids=["g"])).groups[0]
    assert group.group_state == "Reconciling"
    assert group.members[0].assignment.topic_partitions[0].partitions == shown
    assert group.members[0].target_assignment.topic_partitions[0].partitions == [0]
    assert group.members[1].assignment.topic_partitions == []


@pytest.mark.requirement("DP-OFFSET-20", "DP-OFFSET-23", "DP-OFFSET-24")
def test_groups_of_both_kinds_are_listed() -> None:
    at = broker()
    at.ask(joins(), 1)

    def listed(**filters: Any) -> list[tuple[str, str, str, str]]:
        answer = at.ask("ListGroups", 5, **filters)
        return [
            (each.group_id, each.protocol_type, each.group_state, each.group_type)
            for each in answer.groups
        ]

    simple, group = ("simple", "", "Empty", "classic"), ("g", "consumer", "Stable", "consumer")
    assert listed() == [simple, group]
    assert listed(types_filter=["Consumer"]) == [group]
    assert listed(types_filter=["classic"]) == [simple]
    assert listed(states_filter=["stable"]) == [group]
    assert listed(states_filter=["empty"], types_filter=["consumer"]) == []
    described = (at.ask("DescribeGroups", 6, groups=["g"])).groups[0]
    assert (described.group_state, described.error_code, described.error_message) == (
        "Dead", ErrorCode.GROUP_ID_NOT_FOUND, "Group g is not a classic group.",
    )  # fmt: skip
    described = (at.ask("DescribeGroups", 5, groups=["g"])).groups[0]
    assert (described.group_state, described.error_code) == ("Dead", 0)
    deleted = at.ask("DeleteGroups", 2, groups_names=["g"])
    assert deleted.results[0].error_code == ErrorCode.NON_EMPTY_GROUP


@pytest.mark.requirement("DP-CGH-25")
def test_groups_have_configs() -> None:
    at = broker("kafka-4.3")

    def alter(name: str, value: str, group: str = "g") -> tuple[int, str | None]:
        resource = {
            "resource_type": GROUP,
            "resource_name": group,
            "name": name,
            "config_operation": 0,
            "value": value,
        }
        answer = at.ask("IncrementalAlterConfigs", 1, resources=[resource])
        return answer.responses[0].error_code, answer.responses[0].error_message

    heartbeat, session = "consumer.heartbeat.interval.ms", "consumer.session.timeout.ms"
    assert alter(heartbeat, "7000") == (0, None)
    bad = ErrorCode.INVALID_CONFIG
    limit = "group.consumer.max.heartbeat.interval.ms"
    assert alter(heartbeat, "15001") == (
        bad, f"{heartbeat} must be less than or equal to {limit}",
    )  # fmt: skip
    limit = "group.consumer.min.session.timeout.ms"
    assert alter(session, "44999") == (
        bad, f"{session} must be greater than or equal to {limit}",
    )  # fmt: skip
    assert alter("unknown", "1") == (bad, "Unknown group config name: unknown")
    assert alter(heartbeat, "7000", "") == (
        ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.",
    )  # fmt: skip
    described = at.ask(
        "DescribeConfigs",
        4,
        resources=[
            {"resource_type": GROUP, "resource_name": "g"},
            {"resource_type": GROUP, "resource_name": ""},
        ],
        include_synonyms=True,
    )
    found, unnamed = described.results
    assert (unnamed.error_code, unnamed.error_message) == (
        ErrorCode.INVALID_REQUEST, "Group name must not be empty",
    )  # fmt: skip
    by_name = {each.name: each for each in found.configs}
    assert (by_name[heartbeat].value, by_name[heartbeat].config_source) == ("7000", 8)
    assert [(each.name, each.value, each.source) for each in by_name[heartbeat].synonyms] == [
        (heartbeat, "7000", 8), (f"group.{heartbeat}", "5000", 5),
    ]  # fmt: skip
    assert (by_name[session].value, by_name[session].config_source) == ("45000", 5)
    assert not by_name[session].read_only
    assert by_name["share.auto.offset.reset"].value == "latest"


@pytest.mark.requirement("CONFIG-25")
@pytest.mark.parametrize(
    ("profile", "synonyms"),
    [("kafka-4.2", []), ("kafka-4.3", ["group.consumer.session.timeout.ms"])],
)
def test_synonyms_of_configs_of_groups(profile: str, synonyms: list[str]) -> None:
    name = "consumer.session.timeout.ms"
    resource = {"resource_type": GROUP, "resource_name": "g", "configuration_keys": [name]}
    at = broker(profile)

    def described() -> tuple[Any, ...]:
        body = request_of("DescribeConfigs", resources=[resource], include_synonyms=True)
        (row,) = at.ask(body, 4).results[0].configs
        return row.value, row.config_source, [each.name for each in row.synonyms]

    assert described() == ("45000", 5, synonyms or [name])
    at.cluster.config_changes.alter_incrementally([(GROUP, "g", [(name, 0, "46000")])])
    assert described() == ("46000", 8, [name, *synonyms])


@pytest.mark.requirement("CONFIG-25")
@pytest.mark.parametrize(("release", "values"), [((4, 2), (7, 7, 5)), ((4, 3), (7, 7, 7))])
def test_configs_of_groups_follow_those_of_the_broker(release, values):
    static = {
        f"group.{kind}.heartbeat.interval.ms": "7000" for kind in ("consumer", "share", "streams")
    }
    cluster = simulated_cluster(1, release=release, broker_configs=static)
    names = ("consumer.heartbeat.interval.ms", "share.heartbeat.interval.ms")
    shown = [cluster.configs.group("g", name, 1, described=True).value for name in names]
    before = cluster.configs.group("g", names[1], 1).value
    cluster.config_changes.alter_incrementally(
        [(GROUP, "g", [("consumer.session.timeout.ms", 0, "46000")])]
    )
    after = [cluster.configs.group("g", name, 1).value for name in names]
    expected = [f"{each}000" for each in values]
    assert (before, after) == (expected[0], expected[1:])
    assert shown == after


@pytest.mark.requirement("DP-CGH-25")
def test_earlier_releases_have_no_configs_of_groups() -> None:
    at = broker("kafka-3.9")
    resource = {"resource_type": GROUP, "resource_name": "g"}
    answer = at.ask("DescribeConfigs", 4, resources=[resource])
    assert answer.results[0].error_code == ErrorCode.INVALID_REQUEST
