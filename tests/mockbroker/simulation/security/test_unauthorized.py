"""Answers to callers who are allowed to use some of the topics, groups and configs of a request.

The layouts and texts are those that Kafka 4.4 was seen to answer (``tests/real`` compares them);
those of drafts are their pages'.
"""

import uuid
from typing import Any

import pytest

from kproto.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeProducersRequest,
    DescribeTopicPartitionsRequest,
    IncrementalAlterConfigsRequest,
    MetadataRequest,
)
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.security.authorizer import AclOperation, ResourceType
from mockbroker.simulation.state.results import AclBinding
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.security.enforced import (
    ALICE,
    UNKNOWN,
    allow,
    as_alice,
    ask,
    new_cluster,
    on_topic,
)
from tests.support.requests import request_of

NOT_COMPUTED = -(2**31)


@pytest.fixture
def cluster() -> Cluster:
    return new_cluster()


def test_topics_are_created_by_who_may(cluster: Cluster) -> None:
    asked = as_alice(cluster)
    plain = {"numPartitions": 1, "replicationFactor": 1, "assignments": [], "configs": []}

    def create(*names: str) -> list[tuple[Any, ...]]:
        topics = [{"name": name, **plain} for name in names]
        rows = ask(asked, CreateTopicsRequest, 7, topics=topics)["topics"]
        return [(row["name"], row["errorCode"], row["errorMessage"], row["numPartitions"],
                 row.get("topicConfigErrorCode")) for row in rows]  # fmt: skip

    refused = (29, "Authorization failed.", -1, None)
    duplicate = ("dup", 42, "Duplicate topic name.", -1, None)
    assert create("new", "foo", "a b", "dup", "dup") == [
        duplicate, ("new", *refused), ("foo", *refused), ("a b", *refused)]  # fmt: skip
    on_topic(cluster, AclOperation.CREATE, "new")
    # Its configs, and with them its size, are for who may describe those.
    assert create("new", "newer") == [("new", 0, None, -1, 29), ("newer", *refused)]
    allow(cluster, AclOperation.CREATE)
    on_topic(cluster, AclOperation.DESCRIBE_CONFIGS, "*")
    assert create("newer") == [("newer", 0, None, 1, None)]


def test_topics_are_deleted_by_who_may_and_named_to_who_may_describe(cluster: Cluster) -> None:
    asked = as_alice(cluster)
    ids = {name: topic.topic_id for name, topic in cluster.topics.items()}
    on_topic(cluster, AclOperation.DESCRIBE, "foo")
    text = "Topic authorization failed."
    assert ask(asked, DeleteTopicsRequest, 5, topicNames=["foo", "nosuch"], timeoutMs=1000)[
        "responses"
    ] == [{"name": name, "errorCode": 29, "errorMessage": text} for name in ("foo", "nosuch")]

    on_topic(cluster, AclOperation.DESCRIBE, "nosuch")
    missing = ask(asked, DeleteTopicsRequest, 5, topicNames=["nosuch"], timeoutMs=1000)["responses"]
    assert missing[0]["errorCode"] == 3

    def by_id(*wanted: uuid.UUID) -> list[tuple[str | None, int]]:
        request: Any = request_of(
            "DeleteTopics",
            topics=[{"name": None, "topic_id": each} for each in wanted],
            timeout_ms=1000,
        )
        rows = asked.ask(request, 6).responses
        return sorted(((row.name, row.error_code) for row in rows), key=lambda row: row[1])

    assert by_id(ids["foo"], ids["bar"], UNKNOWN) == [("foo", 29), (None, 29), (None, 100)]
    assert set(cluster.topics) == {"foo", "bar"}
    on_topic(cluster, AclOperation.DELETE, "foo")
    assert by_id(ids["foo"], ids["bar"]) == [("foo", 0), (None, 29)]
    allow(cluster, AclOperation.DELETE)
    assert by_id(ids["bar"]) == [("bar", 0)]


def test_partitions_are_added_by_who_may_alter_the_topic(cluster: Cluster) -> None:
    asked = as_alice(cluster)
    on_topic(cluster, AclOperation.ALTER, "bar")
    topics = [{"name": name, "count": 3, "assignments": None} for name in ("foo", "bar", "x", "x")]
    rows = ask(asked, CreatePartitionsRequest, 3, topics=topics, timeoutMs=1000)["results"]
    assert {row["name"]: (row["errorCode"], row["errorMessage"]) for row in rows} == {
        "foo": (29, None),
        "bar": (0, None),
        "x": (42, "Duplicate topic name."),
    }
    assert len(cluster.topics["foo"].partitions) == 2
    assert len(cluster.topics["bar"].partitions) == 3


CONFIGS = [(2, "foo"), (4, "1"), (4, ""), (8, "1"), (16, "m"), (32, "g")]


def test_configs_are_described_to_who_may(cluster: Cluster) -> None:
    asked = as_alice(cluster)
    on_topic(cluster, AclOperation.ALTER_CONFIGS, "bar")
    resources = [
        {"resourceType": kind, "resourceName": name, "configurationKeys": ["retention.ms"]}
        for kind, name in [*CONFIGS, (2, "bar")]
    ]
    rows = ask(asked, DescribeConfigsRequest, 4, resources=resources)["results"]
    topic, cluster_, group = (f"{what} authorization failed." for what in
                              ("Topic", "Cluster", "Group"))  # fmt: skip
    assert [(r["resourceType"], r["errorCode"], r["errorMessage"]) for r in rows] == [
        (2, 0, ""), (2, 29, topic), (4, 31, cluster_), (4, 31, cluster_), (8, 31, cluster_),
        (16, 31, cluster_), (32, 30, group)]  # fmt: skip
    assert [len(row["configs"]) for row in rows] == [1, 0, 0, 0, 0, 0, 0]


def test_configs_are_changed_by_who_may(cluster: Cluster) -> None:
    asked = as_alice(cluster)
    on_topic(cluster, AclOperation.ALTER_CONFIGS, "bar")
    resources = [
        {
            "resourceType": kind,
            "resourceName": name,
            "configs": [{"name": "retention.ms", "configOperation": 0, "value": "5"}],
        }
        for kind, name in [*CONFIGS, (2, "bar")]
    ]
    rows = ask(asked, IncrementalAlterConfigsRequest, 1, resources=resources)["responses"]
    assert [(r["errorCode"], r["errorMessage"]) for r in rows] == [
        (29, "Topic authorization failed."), (31, None), (31, None), (31, None),
        (31, "Cluster authorization failed."), (30, "Group authorization failed."),
        (0, None)]  # fmt: skip
    assert cluster.configs.topic("foo", "retention.ms").value != "5"
    assert cluster.configs.topic("bar", "retention.ms").value == "5"


def named(*names: str) -> list[dict[str, Any]]:
    return [{"name": name} for name in names]


def test_metadata_hides_what_may_not_be_described(cluster: Cluster) -> None:
    asked = as_alice(cluster)
    on_topic(cluster, AclOperation.READ, "foo")
    on_topic(cluster, AclOperation.DESCRIBE, "nosuch")
    topics = ask(asked, MetadataRequest, 8, topics=named("foo", "bar", "nosuch"),
                 includeTopicAuthorizedOperations=True, allowAutoTopicCreation=False,
                 includeClusterAuthorizedOperations=True)  # fmt: skip
    assert {t["name"]: (t["errorCode"], len(t["partitions"]), t["topicAuthorizedOperations"])
            for t in topics["topics"]} == {
        "foo": (0, 2, 1 << 3 | 1 << 8),
        "bar": (29, 0, NOT_COMPUTED),
        "nosuch": (3, 0, 1 << 8),
    }  # fmt: skip
    assert topics["clusterAuthorizedOperations"] == 0
    for version, everything in ((0, []), (1, None), (12, None)):
        found = ask(asked, MetadataRequest, version, topics=everything)["topics"]
        assert [topic["name"] for topic in found] == ["foo"]
    ids = {name: topic.topic_id for name, topic in cluster.topics.items()}
    request: Any = request_of(
        "Metadata", topics=[{"name": None, "topic_id": each} for each in (*ids.values(), UNKNOWN)]
    )
    rows = asked.ask(request, 12).topics
    assert [(row.name, row.error_code) for row in rows] == [("foo", 0), (None, 29), (None, 100)]


def test_metadata_creates_topics_for_who_may() -> None:
    cluster = simulated_cluster(3, broker_configs={"auto.create.topics.enable": "true"})
    asked = as_alice(cluster)
    for name in ("one", "two"):
        on_topic(cluster, AclOperation.DESCRIBE, name)
    on_topic(cluster, AclOperation.CREATE, "two")
    wanted = {"topics": named("one", "two"), "allowAutoTopicCreation": True}
    rows = ask(asked, MetadataRequest, 8, **wanted)["topics"]
    assert [(row["name"], row["errorCode"]) for row in rows] == [("one", 29), ("two", 3)]
    assert set(cluster.topics) == {"two"}


def test_describe_topic_partitions_hides_as_metadata_does(cluster: Cluster) -> None:
    asked = as_alice(cluster)
    on_topic(cluster, AclOperation.DESCRIBE, "foo")
    wanted = named("zoo", "foo", "bar")
    rows = ask(asked, DescribeTopicPartitionsRequest, 0, topics=wanted)["topics"]
    assert [(r["name"], r["errorCode"], r["topicAuthorizedOperations"]) for r in rows] == [
        ("foo", 0, 1 << 8), ("bar", 29, NOT_COMPUTED), ("zoo", 29, NOT_COMPUTED)]  # fmt: skip
    rows = ask(asked, DescribeTopicPartitionsRequest, 0, topics=[])["topics"]
    assert [row["name"] for row in rows] == ["foo"]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_clusters_operations_are_told_to_who_may_describe_it(cluster, version):
    def operations(asked: DirectBroker) -> int:
        answer = ask(
            asked, DescribeClusterRequest, version, includeClusterAuthorizedOperations=True
        )
        assert answer["errorCode"] == 0
        return int(answer["clusterAuthorizedOperations"])

    alice = as_alice(cluster)
    assert operations(alice) == 0
    # To create without to describe is not to be told.
    allow(cluster, AclOperation.CREATE)
    assert operations(alice) == 0
    allow(cluster, AclOperation.ALTER)
    assert operations(alice) == 1 << 5 | 1 << 7 | 1 << 8
    assert operations(DirectBroker(cluster)) == 8096  # as of Kafka 4.4, to one who may everything


def test_a_rule_about_the_cluster_names_it(cluster: Cluster) -> None:
    wrong = AclBinding(ResourceType.CLUSTER, "mine", 3, ALICE, "*", AclOperation.ALTER, 3)
    (result,) = cluster.acls.create([wrong])
    assert result.error_code == 42
    assert result.error_message == "The only valid name for the CLUSTER resource is kafka-cluster"


def test_producers_and_coordinators(cluster: Cluster) -> None:
    asked = as_alice(cluster)
    on_topic(cluster, AclOperation.READ, "bar")
    topics = [{"name": name, "partitionIndexes": [0]} for name in ("foo", "bar")]
    foo, bar = ask(asked, DescribeProducersRequest, 0, topics=topics)["topics"]
    assert foo["partitions"][0]["errorCode"] == 29
    assert foo["partitions"][0]["errorMessage"] == "Topic authorization failed."
    assert bar["partitions"][0]["errorCode"] != 29
    assert asked.ask("FindCoordinator", 0, key="g").error_code == 30
    for key_type, code, text in (
        (0, 30, ""),
        (1, 53, ""),
        (2, 31, "Cluster authorization failed."),
    ):
        request = request_of("FindCoordinator", key_type=key_type, coordinator_keys=["g"])
        (row,) = asked.ask(request, 6).coordinators
        assert (row.error_code, row.error_message) == (code, text)
    allow(cluster, AclOperation.DESCRIBE, "g", ResourceType.GROUP)
    assert asked.ask("FindCoordinator", 0, key="g").error_code == 15
