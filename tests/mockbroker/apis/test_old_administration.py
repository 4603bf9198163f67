"""What ZooKeeper's controllers of old releases answer otherwise than later ones, or KRaft's. Codes
and texts are those of 2.8.2; the bounds are those of the classes of 3.1 to 3.4."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.messages import (
    AlterConfigsRequest,
    CreateTopicsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
)
from kproto.messages import alter_configs_request as replace
from kproto.messages import create_topics_request as create
from kproto.messages import describe_configs_request as describe
from kproto.messages import incremental_alter_configs_request as alter
from mockbroker.profiles import profile
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster

TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND = 0, 1, 2


def broker(name: str) -> DirectBroker:
    found = profile(name)
    cluster = simulated_cluster(
        1, topics=["foo:1:1"], release=found.software, reassignment=found.reassignment
    )
    return DirectBroker(cluster, profile_name=name)


def created(
    at: DirectBroker, name: str, *configs: tuple[str, str | None]
) -> tuple[int, str | None]:
    topic = create.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    topic.configs = [create.CreatableTopicConfig(name=key, value=value) for key, value in configs]
    (row,) = at.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 5).topics
    return row.error_code, row.error_message


def described(at: DirectBroker, kind: int, name: str) -> tuple[int, str | None]:
    row = describe.DescribeConfigsResource(resource_type=kind, resource_name=name)
    (found,) = at.ask(DescribeConfigsRequest(resources=[row]), 3).results
    return found.error_code, found.error_message


def altered(at: DirectBroker, *resources: tuple[int, str, list[Any]]) -> list[Any]:
    rows = [
        alter.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[
                alter.AlterableConfig(name=key, config_operation=how, value=value)
                for key, how, value in configs
            ],
        )
        for kind, name, configs in resources
    ]
    answer = at.ask(IncrementalAlterConfigsRequest(resources=rows), 1)
    return [(each.error_code, each.error_message) for each in answer.responses]


def replaced(at: DirectBroker, kind: int, name: str, *configs: tuple[str, str | None]) -> Any:
    row = replace.AlterConfigsResource(resource_type=kind, resource_name=name)
    row.configs = [replace.AlterableConfig(name=key, value=value) for key, value in configs]
    (found,) = at.ask(AlterConfigsRequest(resources=[row]), 1).responses
    return found.error_code, found.error_message


@pytest.mark.requirement("REL-30")
@pytest.mark.parametrize("name", ["kafka-2.8-zk", "kafka-3.2", "kafka-3.3"])
@pytest.mark.parametrize(
    ("topic", "older"),
    [
        ("", "Topic name is illegal, it can't be empty"),
        ("..", 'Topic name cannot be "." or ".."'),
        (
            "a b",
            'Topic name "a b" is illegal, it contains a character other than ASCII alphanumerics, '
            "'.', '_' and '-'",
        ),
        (
            "l" * 250,
            "Topic name is illegal, it can't be longer than 249 characters, topic name: "
            + "l" * 250,
        ),
    ],
)
def test_invalid_topic_names_are_illegal_until_3_3(name: str, topic: str, older: str) -> None:
    at = broker(name)
    for code, text in (created(at, topic), described(at, TOPIC, topic)):
        assert code == 17
        assert text is not None
        assert text == older if name != "kafka-3.3" else text.startswith("Topic name is invalid: ")


@pytest.mark.requirement("REL-16", "REL-31")
@pytest.mark.parametrize(("name", "older"), [("kafka-3.2-zk", True), ("kafka-3.3-zk", False)])
def test_creation_in_zookeeper_until_3_3(name: str, older: bool) -> None:
    at = broker(name)
    nulls = "Null value not supported for topic configs"
    assert created(at, "bar", ("retention.ms", None)) == (
        (42, f"{nulls} : retention.ms") if older else (40, f"{nulls}: retention.ms")
    )
    assert created(at, "__cluster_metadata")[0] == (0 if older else 42)


@pytest.mark.requirement("REL-29")
@pytest.mark.parametrize(("name", "older"), [("kafka-3.1-zk", True), ("kafka-3.2-zk", False)])
def test_alterations_of_configs_in_zookeeper_until_3_2(name: str, older: bool) -> None:
    at = broker(name)
    once = [(TOPIC, "foo", [("retention.ms", SET, each)]) for each in ("5", "6")]
    assert altered(at, *once) == (
        [(0, None)] if older else [(42, "Each resource must appear at most once.")] * 2
    )
    assert at.cluster.configs.topic("foo", "retention.ms").value == ("6" if older else "604800000")
    whose = "Broker" if older else "Node"
    for each in ("x", "1 "):
        wrong = (42, f"{whose} id must be an integer, but it is: {each}")
        assert altered(at, (BROKER, each, [])) == [wrong]
        assert replaced(at, BROKER, each) == wrong
    unknown = "Unexpected resource type UNKNOWN" if older else "Unknown resource type 3"
    assert altered(at, (3, "x", [])) == [(42, unknown)]
    assert replaced(at, 3, "x") == (42, unknown)
    if older:
        text = "AlterConfigs is deprecated and does not support the resource type BROKER_LOGGER"
        assert replaced(at, LOGGER, "1") == (42, text)
    null = "SET:retention.ms" if older else "retention.ms"
    assert altered(at, (TOPIC, "foo", [("retention.ms", SET, None)])) == [
        (42, f"Null value not supported for : {null}")
    ]


@pytest.mark.requirement("REL-29")
@pytest.mark.parametrize(("name", "older"), [("kafka-3.1-zk", True), ("kafka-3.2-zk", False)])
def test_configs_are_replaced_plainly_in_zookeeper_until_3_2(name: str, older: bool) -> None:
    at = broker(name)
    twice = replaced(at, TOPIC, "foo", ("retention.ms", "7"), ("retention.ms", "8"))
    assert twice[0] == (0 if older else 42)
    assert at.cluster.configs.topic("foo", "retention.ms").value == ("8" if older else "604800000")
    null = replaced(at, TOPIC, "foo", ("retention.ms", None))
    assert null[0] == (-1 if older else 42)
    assert replaced(at, TOPIC, "", ("retention.ms", "1")) == (
        (3, "The topic '' does not exist.")
        if older
        else (42, "Default topic resources are not allowed.")
    )
    problem = "Invalid value x for configuration log.retention.ms: Not a number of type LONG"
    prefix = "Invalid config value for resource ConfigResource(type=BROKER, name='1'): "
    wrong = altered(at, (BROKER, "1", [("log.retention.ms", SET, "x")]))
    assert wrong == [(42, (prefix if older else "") + problem)]
