"""Metadata and DescribeCluster: which topics are meant at which version, and what old ones hide."""

import uuid
from typing import Any

import pytest

from kproto.schema.model import ZERO_UUID
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.cluster_parts import Broker
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.support.requests import request_of

VERSIONS = range(14)


def named(*names: str | None, **fields: Any) -> Any:
    return request_of("Metadata", topics=[{"name": name} for name in names], **fields)


def asked(*, auto_create: bool = False) -> DirectBroker:
    cluster = simulated_cluster(
        [Broker(1, "one", 1001), Broker(2, "two", 1002, rack="b"), Broker(3, "three", 1003)],
        cluster_id="the-cluster",
        named_controller="leader",
        topics=["foo=1,2,3/3,2", "bar=2", "__consumer_offsets:1:1"],
        broker_configs={"auto.create.topics.enable": str(auto_create).lower()},
    )
    return DirectBroker(cluster)


@pytest.mark.parametrize("version", VERSIONS)
def test_all_none_or_some_topics(version: int) -> None:
    broker = asked()
    every = {"foo", "bar", "__consumer_offsets"}
    empty = {topic.name for topic in broker.ask("Metadata", version, topics=[]).topics}
    assert empty == (every if version == 0 else set())
    if version > 0:
        null = broker.ask("Metadata", version, topics=None).topics
        assert {topic.name for topic in null} == every
        assert [t.name for t in null if t.is_internal] == ["__consumer_offsets"]
    some = broker.ask(named("bar", "foo", "bar"), version).topics
    assert [(topic.name, topic.error_code) for topic in some] == [("bar", 0), ("foo", 0)]


@pytest.mark.parametrize("version", VERSIONS)
def test_brokers_and_controller(version: int) -> None:
    answer = asked().ask(named("foo"), version)
    assert [(b.node_id, b.host, b.port) for b in answer.brokers] == [
        (1, "one", 1001), (2, "two", 1002), (3, "three", 1003)
    ]  # fmt: skip
    assert [b.rack for b in answer.brokers] == ([None, "b", None] if version else [None] * 3)
    assert answer.controller_id == (1 if version else -1)
    assert answer.cluster_id == ("the-cluster" if version >= 2 else None)


@pytest.mark.parametrize("version", VERSIONS)
def test_unknown_and_illegal_names(version: int) -> None:
    answer = asked().ask(named("nope", "a b", "..", "x" * 250), version)
    assert [(t.name, t.error_code, t.partitions) for t in answer.topics] == [
        ("nope", 3, []), ("a b", 17, []), ("..", 17, []), ("x" * 250, 17, [])
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("version", "allowed"),
    # Before version 4 the client cannot say no.
    [(version, True) for version in VERSIONS] + [(version, False) for version in range(4, 14)],
)
@pytest.mark.parametrize("enabled", [True, False])
def test_auto_creation_needs_broker_and_client(version: int, enabled: bool, allowed: bool) -> None:
    broker = asked(auto_create=enabled)
    body = named("new", allow_auto_topic_creation=allowed)
    assert broker.ask(body, version).topics[0].error_code == 3
    again = broker.ask(body, version).topics[0]
    assert again.error_code == (0 if enabled and allowed else 3)
    assert len(again.partitions) == (1 if enabled and allowed else 0)


@pytest.mark.parametrize("version", [12, 13])
def test_topics_by_id(version: int) -> None:
    broker = asked()
    known, unknown = broker.cluster.topics["foo"].topic_id, uuid.uuid4()
    named = request_of("Metadata", name="", topic_id=known)
    assert [each.name for each in broker.ask(named, 12).topics] == ["foo"]
    answer = broker.ask(
        "Metadata", version, topics=[{"name": None, "topic_id": each} for each in (known, unknown)]
    )
    assert [(t.name, t.topic_id, t.error_code) for t in answer.topics] == [
        ("foo", known, 0), (None, unknown, 100)
    ]  # fmt: skip


@pytest.mark.parametrize("version", [12, 13])
def test_one_id_is_enough_to_ask_by_ids(version: int) -> None:
    """Kafka then ignores topics without an id, and lists each id once. Without any id it fails on
    a topic that has no name either."""
    broker = asked()
    known = broker.cluster.topics["foo"].topic_id
    named, nameless = {"name": "foo"}, {"name": None}
    topics = [named, {"name": None, "topic_id": known}, nameless, {"name": "x", "topic_id": known}]
    answer = broker.ask("Metadata", version, topics=topics)
    assert [(t.name, t.error_code) for t in answer.topics] == [("foo", 0)]
    failed = broker.ask("Metadata", version, topics=[named, nameless])
    assert [(t.name, t.error_code) for t in failed.topics] == [("foo", -1), ("", -1)]
    assert (failed.brokers, failed.controller_id, failed.cluster_id) == ([], -1, None)
    assert failed.error_code == (-1 if version >= 13 else 0)


@pytest.mark.parametrize("version", [10, 11])
def test_ids_are_refused_before_version_12(version: int) -> None:
    some_id = uuid.uuid4()
    answer = asked().ask("Metadata", version, name="foo", topic_id=some_id)
    assert [(t.name, t.topic_id, t.error_code) for t in answer.topics] == [("foo", some_id, 42)]
    assert (answer.brokers, answer.controller_id, answer.cluster_id) == ([], -1, None)
    assert asked().ask(named(None), version).topics[0].name == ""


@pytest.mark.parametrize("version", VERSIONS)
def test_ids_are_given_from_version_10(version: int) -> None:
    broker = asked()
    answer = broker.ask(named("foo"), version)
    expected = broker.cluster.topics["foo"].topic_id if version >= 10 else ZERO_UUID
    assert answer.topics[0].topic_id == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_a_stopped_replica(version: int) -> None:
    broker = asked()
    Operations(broker.cluster).stop_broker(3)
    foo = broker.ask(named("foo"), version).topics[0]
    first, second = foo.partitions
    if version == 0:
        # Version 0 clients choke on ids that are not among the brokers.
        assert (first.error_code, first.replica_nodes, first.isr_nodes) == (9, [1, 2], [1, 2])
    else:
        assert (first.error_code, first.replica_nodes, first.isr_nodes) == (0, [1, 2, 3], [1, 2])
    assert first.offline_replicas == ([3] if version >= 5 else [])
    assert second.leader_id == 2
    assert second.leader_epoch == (1 if version >= 7 else -1)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_offline_partition(version: int) -> None:
    broker = asked()
    Operations(broker.cluster).stop_broker(2)
    (row,) = broker.ask(named("bar"), version).topics[0].partitions
    assert (row.error_code, row.leader_id) == (5, -1)


@pytest.mark.parametrize("version", [8, 9, 10, 11, 13])
def test_authorized_operations_on_request(version: int) -> None:
    body = named("foo", "nope", include_topic_authorized_operations=True)
    body.include_cluster_authorized_operations = version <= 10
    answer = asked().ask(body, version)
    assert [t.topic_authorized_operations for t in answer.topics] == [3576, 3576]
    assert answer.cluster_authorized_operations == (8096 if version <= 10 else -(2**31))
    silent = asked().ask(named("foo"), version)
    assert silent.topics[0].topic_authorized_operations == -(2**31)


@pytest.mark.requirement("REL-02")
@pytest.mark.parametrize(("profile", "unasked"), [("kafka-2.4", 0), ("kafka-2.5", -(2**31))])
@pytest.mark.parametrize("version", [8, 9])
def test_operations_that_are_not_asked_for_were_zero_until_2_4(profile, unasked, version):
    broker = DirectBroker(
        simulated_cluster(3, topics=["foo=1"], reassignment="zookeeper"), profile_name=profile
    )
    silent = broker.ask(named("foo", "nope"), version)
    assert [topic.topic_authorized_operations for topic in silent.topics] == [unasked] * 2
    assert silent.cluster_authorized_operations == unasked


@pytest.mark.requirement("REL-03")
@pytest.mark.parametrize(
    ("profile", "version", "code", "epoch"),
    [
        ("kafka-2.3", 8, 5, 1),
        ("kafka-2.4", 9, 72, -1),
        ("kafka-2.4", 5, 5, -1),
        ("kafka-2.5", 9, 72, -1),
        ("kafka-2.6", 9, 72, 1),
        ("kafka-2.7", 9, 5, 1),
    ],
)
def test_brokers_of_2_4_to_2_6_take_a_missing_leader_for_one_without_a_listener(
    profile: str, version: int, code: int, epoch: int
) -> None:
    cluster = simulated_cluster(3, topics=["foo=2"], reassignment="zookeeper")
    Operations(cluster).stop_broker(2)
    (topic,) = DirectBroker(cluster, profile_name=profile).ask(named("foo"), version).topics
    (partition,) = topic.partitions
    assert (partition.error_code, partition.leader_id) == (code, -1)
    assert partition.leader_epoch == (epoch if version >= 7 else -1)


# ---- DescribeCluster -------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1, 2])
def test_describe_cluster(version: int) -> None:
    broker = asked()
    Operations(broker.cluster).stop_broker(2)
    answer = broker.ask("DescribeCluster", version, include_cluster_authorized_operations=True)
    assert (answer.cluster_id, answer.controller_id) == ("the-cluster", 1)
    assert [(b.broker_id, b.host, b.is_fenced) for b in answer.brokers] == [
        (1, "one", False), (3, "three", False)
    ]  # fmt: skip
    assert answer.cluster_authorized_operations == 8096


def test_fenced_brokers_on_request() -> None:
    broker = asked()
    Operations(broker.cluster).stop_broker(2)
    answer = broker.ask("DescribeCluster", 2, include_fenced_brokers=True)
    assert [(b.broker_id, b.is_fenced) for b in answer.brokers] == [
        (1, False), (2, True), (3, False)
    ]  # fmt: skip


@pytest.mark.parametrize(("endpoint_type", "code"), [(1, 0), (2, 114), (0, 115), (3, 115)])
def test_endpoint_types(endpoint_type: int, code: int) -> None:
    answer = asked().ask("DescribeCluster", 1, endpoint_type=endpoint_type)
    assert answer.error_code == code
    assert bool(answer.brokers) == (code == 0)
    assert (answer.error_message is None) == (code == 0)
