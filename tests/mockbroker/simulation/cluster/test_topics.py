"""CreateTopics (19), DeleteTopics (20), CreatePartitions (37)."""

import uuid
from typing import Any

import pytest

from kproto.schema.model import ZERO_UUID
from mockbroker.errors import ClusterError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.cluster_parts import Broker
from mockbroker.simulation.state.results import (
    CreatePartitionsResult,
    CreateTopicResult,
    DeleteTopicResult,
    NewTopic,
)
from tests.mockbroker.simulated import simulated_cluster


def create(cluster: Cluster, *args: Any, **kwargs: Any) -> CreateTopicResult:
    (result,) = cluster.topics.create([NewTopic(*args, **kwargs)])
    return result


def replicas(cluster: Cluster, topic: str) -> list[tuple[int, ...]]:
    return [partition.replicas for partition in cluster.topics[topic].partitions]


def test_replicas_are_spread_from_the_partitions_own_place() -> None:
    cluster = Cluster(3)
    result = create(cluster, "foo", 4, 2)
    assert replicas(cluster, "foo") == [(1, 2), (2, 3), (3, 1), (1, 2)]
    assert replicas(cluster, "foo") == replicas(Cluster(3, topics=["foo:4:2"]), "foo")
    assert (result.num_partitions, result.replication_factor) == (4, 2)
    assert result.topic_id == cluster.topics["foo"].topic_id


def test_replicas_are_in_as_many_racks_as_possible() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    cluster = Cluster([Broker(each, rack=rack) for each, rack in racks.items()])
    create(cluster, "foo", 8, 2)
    create(cluster, "bar", 4, 3)
    assert replicas(cluster, "foo") == [(1, 3), (3, 2), (2, 4), (4, 1)] * 2
    assert all(len({racks[each] for each in row}) == 2 for row in replicas(cluster, "bar"))


def test_replicas_are_in_the_racks_that_there_are() -> None:
    racks = {1: "a", 2: "a", 3: "a", 4: "b", 5: None}
    cluster = Cluster([Broker(each, rack=rack) for each, rack in racks.items()])
    create(cluster, "foo", 5, 3)
    assert all(
        {racks[each] for each in row} == {"a", "b", None} for row in replicas(cluster, "foo")
    )
    create(cluster, "bar", 5, 5)
    assert [sorted(row) for row in replicas(cluster, "bar")] == [[1, 2, 3, 4, 5]] * 5


def test_stopped_brokers_come_last() -> None:
    cluster = Cluster(3)
    Operations(cluster).stop_broker(1)
    create(cluster, "foo", 2, 3)
    assert replicas(cluster, "foo") == [(2, 3, 1), (3, 2, 1)]
    assert cluster.topics.partition("foo", 0).isr == (2, 3)


def test_defaults_are_the_brokers() -> None:
    cluster = simulated_cluster(
        3, broker_configs={"num.partitions": "5", "default.replication.factor": "2"}
    )
    result = create(cluster, "foo")
    assert (result.num_partitions, result.replication_factor) == (5, 2)
    create(Cluster(1), "foo")


def test_configs_given_are_kept_and_all_are_returned() -> None:
    cluster = Cluster(1)
    result = create(cluster, "foo", configs=(("retention.ms", "7"),))
    shown = {entry.name: (entry.value, entry.source) for entry in result.configs}
    assert (shown["retention.ms"], shown["segment.bytes"]) == (("7", 1), ("1073741824", 5))
    assert list(shown) == sorted(shown)
    assert cluster.configs.describe(2, "foo").configs == result.configs


def test_validate_only_changes_nothing() -> None:
    cluster = Cluster(1)
    before = len(cluster.log)
    (result,) = cluster.topics.create([NewTopic("foo", 2)], validate_only=True)
    assert (result.error_code, result.num_partitions) == (0, 2)
    (result,) = cluster.topics.create([NewTopic("foo", 2, 2)], validate_only=True)
    assert result.error_code == 38
    assert len(cluster.log) == before


LONG = "x" * 250


@pytest.mark.parametrize(
    ("topic", "code", "text"),
    [
        (NewTopic("foo", 1, 1), 36, "Topic 'foo' already exists."),
        (NewTopic(""), 17, "Topic name is invalid: the empty string is not allowed"),
        (NewTopic(".."), 17, "Topic name is invalid: '..' is not allowed"),
        (
            NewTopic("a b"),
            17,
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII "
            "alphanumerics, '.', '_' and '-'",
        ),
        (
            NewTopic(LONG),
            17,
            f"Topic name is invalid: the length of '{LONG}' is longer than the max allowed "
            "length 249",
        ),
        (NewTopic("a_b"), 17, "Topic 'a_b' collides with existing topic: a.b"),
        (
            NewTopic("new", 1, 4),
            38,
            "Unable to replicate the partition 4 time(s): The target replication factor of 4 "
            "cannot be reached because only 3 broker(s) are registered or some brokers have all "
            "their log directories cordoned.",
        ),
        (
            NewTopic("new", 1, 0),
            38,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (NewTopic("new", 0), 37, "Number of partitions was set to an invalid non-positive value."),
        (NewTopic("new", 10_001), 44, "Excessively large number of partitions per request."),
        (
            NewTopic("new", 1, -1, ((0, (1,)),)),
            42,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (
            NewTopic("new", -1, 1, ((0, (1,)),)),
            42,
            "A manual partition assignment was specified, but replication factor was not set to "
            "-1.",
        ),
        (
            NewTopic("new", assignments=((0, (1,)), (0, (2,)))),
            39,
            "Found multiple manual partition assignments for partition 0",
        ),
        (
            NewTopic("new", assignments=((0, (1,)), (2, (2,)))),
            39,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            NewTopic("new", assignments=((0, (1,)), (1, (2, 3)))),
            39,
            "The manual partition assignment includes a partition with 2 replica(s), but this is "
            "not consistent with previous partitions, which have 1 replica(s).",
        ),
        (
            NewTopic("new", assignments=((0, (1, 8)),)),
            39,
            "The manual partition assignment includes broker 8, but no such broker is registered.",
        ),
        (
            NewTopic("new", configs=(("retention.ms", None), ("x", None))),
            40,
            "Null value not supported for topic configs: retention.ms,x",
        ),
        (NewTopic("new", configs=(("x", "1"),)), 40, "Unknown topic config name: x"),
        (
            NewTopic("__cluster_metadata"),
            42,
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
    ],
    ids=lambda value: value.name[:12] if isinstance(value, NewTopic) else None,
)
def test_refusals(topic: NewTopic, code: int, text: str) -> None:
    cluster = Cluster(3, topics=["foo:1:1", "a.b:1:1"])
    before = len(cluster.log)
    assert cluster.topics.create([topic]) == (CreateTopicResult(topic.name, code, text),)
    assert len(cluster.log) == before


def test_all_brokers_stopped() -> None:
    cluster = Cluster(1)
    Operations(cluster).stop_broker(1)
    assert create(cluster, "foo").error_message == (
        "Unable to replicate the partition 1 time(s): All brokers are currently fenced, "
        "or have all their log directories cordoned."
    )
    assert create(cluster, "foo", assignments=((0, (1,)),)).error_code == 39


@pytest.mark.requirement("REL-12")
@pytest.mark.parametrize(("release", "cordoned"), [((4, 2), False), ((4, 3), True)])
def test_log_directories_can_be_cordoned_since_4_3(release, cordoned):
    cluster = simulated_cluster(1, release=release)
    texts = [create(cluster, "foo", replication_factor=2).error_message]
    Operations(cluster).stop_broker(1)
    texts.append(create(cluster, "foo").error_message)
    assert [("cordoned" in (text or "")) for text in texts] == [cordoned] * 2


@pytest.mark.requirement("REL-14")
@pytest.mark.parametrize(("release", "names"), [((4, 2), "Set(node.id)"), ((4, 3), "[node.id]")])
def test_names_of_configs_were_a_set_of_scalas(release: tuple[int, int], names: str) -> None:
    cluster = simulated_cluster(1, release=release)
    (refused,) = cluster.config_changes.alter_incrementally([(4, "1", [("node.id", 0, "7")])])
    assert refused.error_message == f"Cannot update these configs dynamically: {names}"


def test_topics_of_a_request_stand_alone_and_repeats_are_refused() -> None:
    cluster = Cluster(1)
    results = cluster.topics.create(
        [NewTopic("twice"), NewTopic("good"), NewTopic("bad", 0), NewTopic("twice")]
    )
    assert [(r.name, r.error_code, r.error_message) for r in results] == [
        ("twice", 42, "Duplicate topic name."),
        ("good", 0, None),
        ("bad", 37, "Number of partitions was set to an invalid non-positive value."),
    ]
    assert list(cluster.topics) == ["good"]


def test_topic_ids_never_look_like_an_option() -> None:
    ids = iter([uuid.UUID(bytes=b"\xf8" + bytes(15)), uuid.UUID(int=5)])
    cluster = simulated_cluster(1, new_topic_id=lambda: next(ids), topics=["foo:1:1"])
    assert cluster.topics["foo"].topic_id == uuid.UUID(int=5)


def test_auto_creation() -> None:
    cluster = Cluster(1)
    assert cluster.topics.auto_create("new") == 3
    assert "new" in cluster.topics
    assert cluster.topics.auto_create("in valid") == 17
    strict = simulated_cluster(1, broker_configs={"auto.create.topics.enable": "false"})
    assert strict.topics.auto_create("new") == 3
    assert not strict.topics


def test_a_tester_adds_partitions_and_deletes_topics() -> None:
    cluster = Cluster(1, topics=["foo:1:1"])
    cluster.topics.extend("foo", 3)
    assert len(cluster.topics["foo"].partitions) == 3
    with pytest.raises(ClusterError, match="'foo' has no 2 partitions: "):
        cluster.topics.extend("foo", 2)
    cluster.topics.remove("foo")
    assert not cluster.topics
    with pytest.raises(ClusterError, match="'foo' was not deleted: "):
        cluster.topics.remove("foo")


# ---- delete --------------------------------------------------------------------------------------


def test_delete_by_name_and_by_id() -> None:
    cluster = Cluster(1, topics=["foo:1:1", "bar:1:1"])
    foo, bar = (cluster.topics[name].topic_id for name in ("foo", "bar"))
    assert cluster.topics.delete([("foo", ZERO_UUID), (None, bar)]) == (
        DeleteTopicResult("foo", foo),
        DeleteTopicResult("bar", bar),
    )
    assert not cluster.topics


def test_delete_forgets_the_configs() -> None:
    cluster = Cluster(1)
    create(cluster, "foo", configs=(("retention.ms", "7"),))
    cluster.topics.delete([("foo", ZERO_UUID)])
    create(cluster, "foo")
    assert cluster.configs.topic("foo", "retention.ms").source == 5


def test_delete_refusals() -> None:
    cluster = Cluster(1, topics=["foo:1:1", "bar:1:1"])
    foo, other = cluster.topics["foo"].topic_id, uuid.UUID(int=7)
    results = cluster.topics.delete(
        [("nosuch", ZERO_UUID), (None, other), ("bar", other), (None, ZERO_UUID)]
    )
    assert [(r.name, r.topic_id, r.error_code, r.error_message) for r in results] == [
        ("nosuch", ZERO_UUID, 3, "This server does not host this topic-partition."),
        (None, other, 100, "This server does not host this topic ID."),
        ("bar", other, 42, "You may not specify both topic name and topic id."),
        (None, ZERO_UUID, 42, "Neither topic name nor id were specified."),
    ]
    twice = cluster.topics.delete([("foo", ZERO_UUID), (None, foo), ("bar", ZERO_UUID)])
    assert [r.error_code for r in twice] == [42, 0]
    assert list(cluster.topics) == ["foo"]
    locked = simulated_cluster(
        1, topics=["foo:1:1"], broker_configs={"delete.topic.enable": "false"}
    )
    assert locked.topics.delete([("foo", ZERO_UUID)])[0].error_code == 73


# ---- add partitions ------------------------------------------------------------------------------


def test_partitions_are_added_at_the_end() -> None:
    cluster = Cluster(3, topics=["foo:2:2"])
    assert cluster.topics.add_partitions([("foo", 4, None)]) == (CreatePartitionsResult("foo"),)
    assert replicas(cluster, "foo") == replicas(Cluster(3, topics=["foo:4:2"]), "foo")
    cluster.topics.add_partitions([("foo", 5, [[3, 1]])])
    assert replicas(cluster, "foo")[4] == (3, 1)


@pytest.mark.parametrize(
    ("asked", "code", "text"),
    [
        (("nosuch", 3, None), 3, None),
        (("foo", 2, None), 37, "Topic already has 2 partition(s)."),
        (
            ("foo", 1, None),
            37,
            "The topic foo currently has 2 partition(s); 1 would not be an increase.",
        ),
        (
            ("foo", 4, [[1, 2]]),
            39,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (
            ("foo", 3, [[1]]),
            39,
            "The manual partition assignment includes a partition with 1 replica(s), but this is "
            "not consistent with previous partitions, which have 2 replica(s).",
        ),
        (
            ("foo", 20_000, None),
            44,
            "Excessively large number of additional partitions per request.",
        ),
    ],
)
def test_added_partitions_refused(asked, code, text):
    cluster = Cluster(3, topics=["foo:2:2"])
    assert cluster.topics.add_partitions([asked]) == (CreatePartitionsResult(asked[0], code, text),)
    assert len(cluster.topics["foo"].partitions) == 2


@pytest.mark.requirement("REL-60")
@pytest.mark.parametrize(("release", "codes"), [((4, 3), [0, 3, -1]), ((4, 4), [44, 44, 44])])
def test_more_partitions_than_a_request_may_add(release: Any, codes: list[int]) -> None:
    cluster = simulated_cluster(1, topics=["foo=1", "bar=1"], release=release)
    asked = [("foo", 3, None), ("nosuch", 3, None), ("bar", 10_001, None)]
    results = cluster.topics.add_partitions(asked, validate_only=True)
    assert [each.error_code for each in results] == codes
    assert [each.error_message is None for each in results] == [code != 44 for code in codes]
    lists = [[1]] * 3
    (result,) = cluster.topics.add_partitions([("foo", 20_000, lists)], validate_only=True)
    assert result.error_code == (44 if release == (4, 4) else 39)


def test_added_partitions_validate_only() -> None:
    cluster = Cluster(3, topics=["foo:2:2"])
    assert cluster.topics.add_partitions([("foo", 3, None)], validate_only=True)[0].error_code == 0
    assert len(cluster.topics["foo"].partitions) == 2
