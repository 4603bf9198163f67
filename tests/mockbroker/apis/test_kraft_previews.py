"""KRaft in 2.8 to 3.2, before it was ready: answers on both sides of each boundary."""

from typing import Any

import pytest

import kproto.messages.describe_configs_request as describe
from kproto.messages import (
    AlterClientQuotasRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DescribeProducersRequest,
    DescribeQuorumRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    OffsetCommitRequest,
)
from tests.mockbroker.apis.test_old_administration import altered, broker, replaced
from tests.mockbroker.broker import DirectBroker
from tests.support.requests import request_of

TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND = 0, 1, 2


def create(at: DirectBroker, *, validate_only: bool = False, **values: Any) -> Any:
    given = {"name": "new", "numPartitions": 1, "replicationFactor": 1, "assignments": []}
    body = {"topics": [{**given, "configs": [], **values}], "timeoutMs": 1000}
    request = CreateTopicsRequest.from_json({**body, "validateOnly": validate_only}, 7)
    return at.ask(request, 7).topics[0]


def error_of(row: Any) -> tuple[int, str | None]:
    return row.error_code, row.error_message


@pytest.mark.requirement("REL-98")
@pytest.mark.parametrize(("name", "code"), [("kafka-2.8", -1), ("kafka-3.0", 0)])
def test_the_quorum_is_described_since_3_0(name: str, code: int) -> None:
    topic = {"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}
    answer = broker(name).ask(DescribeQuorumRequest.from_json({"topics": [topic]}, 0), 0)
    assert (answer.error_code, len(answer.topics)) == (code, 1 + code)


@pytest.mark.requirement("REL-99")
@pytest.mark.parametrize(("name", "code"), [("kafka-3.0", 35), ("kafka-3.1", 84)])
def test_elections_since_3_1(name: str, code: int) -> None:
    body = {"electionType": 0, "topicPartitions": [{"topic": "foo", "partitions": [0]}]}
    request = ElectLeadersRequest.from_json({**body, "timeoutMs": 1000}, 2)
    for version in range(3):
        answer = broker(name).ask(request, version)
        (row,) = answer.replica_election_results[0].partition_result
        assert row.error_code == code
        assert answer.error_code == (35 if code == 35 and version else 0)
        if code == 35:
            text = "Not yet supported when using a Raft-based metadata quorum: ELECT_LEADERS"
            assert row.error_message == text
    assert broker("kafka-3.0-zk").ask(request, 2).error_code == 0


@pytest.mark.requirement("REL-100")
@pytest.mark.parametrize(("name", "older"), [("kafka-3.0", True), ("kafka-3.1", False)])
def test_validated_topics_until_3_1(name: str, older: bool) -> None:
    at = broker(name)
    assert create(at, validate_only=True).error_code == 0
    assert ("new" in at.cluster.topics) == older
    exists = "Topic with this name already exists." if older else "Topic 'foo' already exists."
    assert error_of(create(at, name="foo")) == (36, exists)
    factor = (
        "Replication factor was set to an invalid non-positive value."
        if older
        else "Replication factor must be larger than 0, or -1 to use the default value."
    )
    assert error_of(create(at, name="other", replicationFactor=0)) == (38, factor)


@pytest.mark.requirement("REL-100")
@pytest.mark.parametrize(("name", "count"), [("kafka-3.1", 3), ("kafka-3.2", 1)])
def test_validated_partitions_until_3_2(name: str, count: int) -> None:
    at = broker(name)
    body = {"topics": [{"name": "foo", "count": 3, "assignments": None}], "timeoutMs": 1000}
    request = CreatePartitionsRequest.from_json({**body, "validateOnly": True}, 2)
    assert at.ask(request, 2).results[0].error_code == 0
    assert len(at.cluster.topics["foo"].partitions) == count


@pytest.mark.requirement("REL-101")
@pytest.mark.parametrize(("name", "older"), [("kafka-3.2", True), ("kafka-3.3", False)])
def test_created_topics_until_3_3(name: str, older: bool) -> None:
    at = broker(name)
    row = create(at, name="a.b", numPartitions=2)
    assert (row.num_partitions, bool(row.configs)) == (2, not older)
    assert error_of(create(at, name="a_b")) == (
        (0, None) if older else (17, "Topic 'a_b' collides with existing topic: a.b")
    )
    assert create(broker("kafka-3.2-zk")).configs


@pytest.mark.requirement("REL-102")
@pytest.mark.parametrize(("name", "older"), [("kafka-2.8", True), ("kafka-3.0", False)])
def test_texts_about_replicas_until_3_0(name: str, older: bool) -> None:
    at = broker(name)

    def listed(*broker_ids: int) -> str:
        assignments = [{"partitionIndex": 0, "brokerIds": list(broker_ids)}]
        row = create(at, numPartitions=-1, replicationFactor=-1, assignments=assignments)
        assert row.error_code == 39
        return str(row.error_message)

    few = create(at, replicationFactor=2).error_message
    if older:
        usable = "there are only 1 usable brokers"
        assert few == f"Unable to replicate the partition 2 times: {usable}"
        at.cluster.brokers.stop(1)
        none = create(at).error_message
        assert none == f"Unable to replicate the partition 1 times: {usable.replace('1', '0')}"
        at.cluster.brokers.start(1)
        assignment = "The manual partition assignment"
        assert listed(9) == f"{assignment} contains node 9, but that node is not usable."
        assert listed(1, 1) == f"{assignment} specifies the same node id more than once."
    else:
        assert few.startswith("Unable to replicate the partition 2 time(s): ")
        assert listed(9).endswith("includes broker 9, but no such broker is registered.")
        assert listed(1, 1).endswith("includes the broker 1 more than once.")


@pytest.mark.requirement("REL-103")
def test_forwarded_configs_until_3_2() -> None:
    at, later = broker("kafka-3.1"), broker("kafka-3.2")
    one: list[Any] = [("retention.ms", SET, "1")]
    assert altered(at, (TOPIC, "none", one)) == [(0, None)]
    assert altered(later, (TOPIC, "none", one))[0][0] == 3
    assert replaced(at, TOPIC, "none", ("retention.ms", "2")) == (0, None)
    assert altered(at, (TOPIC, "a b", one)) == [(42, "Illegal topic name.")]
    assert altered(later, (TOPIC, "a b", one))[0][0] == 17
    not_a_list = "Can't APPEND to key {} because its type is not LIST."
    for kind, config in ((BROKER, "no.such"), (TOPIC, "retention.ms")):
        append = altered(at, (kind, "foo" if kind == TOPIC else "1", [(config, APPEND, "x")]))
        assert append == [(40, not_a_list.format(config))]
    assert altered(later, (BROKER, "1", [("no.such", APPEND, "x")])) == [(-1, None)]
    assert altered(at, (BROKER, "1", [("no.such", 9, "x")])) == [(-1, None)]
    assert altered(later, (BROKER, "1", [("no.such", 9, "x")]))[0][0] == 42
    for name, text in (
        ("x", "Illegal non-integral BROKER resource type name."),
        ("-1", "Illegal negative broker ID in BROKER resource."),
    ):
        assert altered(at, (BROKER, name, [])) == [(42, text)]
        assert replaced(at, BROKER, name) == (42, text)
    assert altered(at, (TOPIC, "foo", [("no.such", SET, "x")])) == [
        (40, "Unknown topic config name: no.such")
    ]


@pytest.mark.requirement("REL-103")
def test_configs_that_are_read_one_after_another() -> None:
    at = broker("kafka-3.1")
    twice: list[Any] = [("retention.ms", SET, "1"), ("retention.ms", SET, "2")]
    assert altered(at, (TOPIC, "foo", twice)) == [(0, None)]
    assert at.cluster.configs.topic("foo", "retention.ms").value == "2"
    assert replaced(at, TOPIC, "foo", ("retention.ms", None)) == (0, None)
    assert at.cluster.configs.topic("foo", "retention.ms").value == "604800000"
    static: list[Any] = [("broker.rack", SET, "r"), ("log.retention.ms", SET, "9000")]
    assert altered(at, (BROKER, "7", static), (BROKER, "1", static)) == [(0, None)] * 2
    assert at.cluster.configs.broker(1, "broker.rack").value is None
    assert at.cluster.configs.broker(1, "log.retention.ms").value == "9000"


@pytest.mark.requirement("REL-103")
@pytest.mark.parametrize(
    ("name", "repeated", "unknown", "logger"),
    [
        (
            "kafka-2.8",
            (0, None),
            (42, "Unsupported configuration resource type UNKNOWN."),
            "Unsupported configuration resource type BROKER_LOGGER ",
        ),
        (
            "kafka-3.0",
            (42, "Duplicate resource."),
            (35, "Unknown resource type 16."),
            "Unexpected resource type BROKER_LOGGER.",
        ),
    ],
)
def test_resources_of_forwarded_configs(name, repeated, unknown, logger):
    at = broker(name)
    values = [(TOPIC, "foo", [("retention.ms", SET, value)]) for value in ("1", "2", "3")]
    assert altered(at, *values) == [repeated]
    kept = "3" if name == "kafka-2.8" else "604800000"
    assert at.cluster.configs.topic("foo", "retention.ms").value == kept
    assert altered(at, (16, "x", [])) == [unknown]
    assert altered(at, (LOGGER, "1", [("root", SET, "INFO")])) == [(42, logger)]


@pytest.mark.requirement("REL-104")
@pytest.mark.parametrize(("name", "older"), [("kafka-3.0", True), ("kafka-3.1", False)])
def test_configs_of_any_name_until_3_1(name: str, older: bool) -> None:
    at = broker(name)
    configs = [{"name": "no.such", "value": "x"}]
    assert create(at, configs=configs).error_code == (0 if older else 40)
    assert create(at, name="b", configs=configs, numPartitions=0).error_code == (
        37 if older else 40
    )
    assert altered(at, (TOPIC, "foo", [("no.such", SET, "x")]))[0][0] == (0 if older else 40)
    row = describe.DescribeConfigsResource(resource_type=TOPIC, resource_name="foo")
    (found,) = at.ask("DescribeConfigs", 3, resources=[row]).results
    shown = [
        (each.value, each.is_sensitive, each.read_only, each.config_source)
        for each in found.configs
        if each.name == "no.such"
    ]
    assert shown == ([(None, True, False, 1)] if older else [])
    delete: list[Any] = [("retention.ms", DELETE, "1")]
    text = "A DELETE op was given with a non-null value."
    assert altered(at, (TOPIC, "foo", delete)) == [(42, text) if older else (0, None)]


@pytest.mark.requirement("DP-OFFSET-30")
@pytest.mark.parametrize(
    ("name", "code"), [("kafka-2.8", 0), ("kafka-3.0", 25), ("kafka-3.2", 25), ("kafka-3.3", 0)]
)
@pytest.mark.parametrize("named", [{"memberId": "x"}, {"memberId": "", "groupInstanceId": "i"}])
def test_simple_commits_of_members(name: str, code: int, named: dict[str, str]) -> None:
    at = broker(name)
    at.ask("FindCoordinator", 1, key="g")

    def commit(**values: str) -> int:
        partition = {"partitionIndex": 0, "committedOffset": 1, "committedLeaderEpoch": -1}
        partitions = [{**partition, "committedMetadata": ""}]
        topics = [{"name": "foo", "partitions": partitions}]
        body = {"groupId": "g", "generationIdOrMemberEpoch": -1, "topics": topics, **values}
        answer = at.ask(OffsetCommitRequest.from_json(body, 7), 7)
        return int(answer.topics[0].partitions[0].error_code)

    unnamed = {"memberId": "", "groupInstanceId": None}
    assert commit(**{**unnamed, **named}) == code  # type: ignore[arg-type]
    assert commit(**unnamed) == 0  # type: ignore[arg-type]
    assert commit(**{**unnamed, **named}) == code  # type: ignore[arg-type]


@pytest.mark.requirement("REL-105")
@pytest.mark.parametrize(("name", "code"), [("kafka-3.2", 7), ("kafka-3.3", 0)])
def test_reassignments_are_listed_in_time_until_3_3(name: str, code: int) -> None:
    topics = [{"name": "foo", "partitionIndexes": [0]}]
    for named, found in ((topics, code), (None, code), ([], 0)):
        body = {"timeoutMs": 0, "topics": named}
        answer = broker(name).ask(ListPartitionReassignmentsRequest.from_json(body, 0), 0)
        assert error_of(answer) == (found, None)


@pytest.mark.requirement("REL-108")
@pytest.mark.parametrize(("name", "older"), [("kafka-2.8", True), ("kafka-3.0", False)])
def test_wrong_quotas_until_3_0(name: str, older: bool) -> None:
    at = broker(name)

    def altered_quotas(*values: tuple[str, float], kind: str = "user") -> int:
        ops = [{"key": key, "value": value, "remove": False} for key, value in values]
        entity = [{"entityType": kind, "entityName": "127.0.0.1"}]
        body = {"entries": [{"entity": entity, "ops": ops}], "validateOnly": False}
        return int(at.ask(AlterClientQuotasRequest.from_json(body, 1), 1).entries[0].error_code)

    rate, wrong = ("producer_byte_rate", 1000.0), ("consumer_byte_rate", 0.5)
    assert altered_quotas(rate, ("x", 1.0), wrong) == (0 if older else 42)
    assert altered_quotas(("connection_creation_rate", 5.0), kind="ip") == 0
    expected = {(("user", "127.0.0.1"),): {"producer_byte_rate": 1000.0}}
    other = {(("ip", "127.0.0.1"),): {"connection_creation_rate": 5.0}}
    assert dict(at.cluster.state.quotas) == (expected if older else other)


@pytest.mark.requirement("REL-109")
def test_coordinators_without_requests() -> None:
    request = request_of("FindCoordinator", key="x", key_type=1)
    for name in ("kafka-2.8", "kafka-3.0"):
        at = broker(name)
        assert [at.ask(request, 1).error_code for _ in range(2)] == [15, 0]


@pytest.mark.requirement("REL-30")
def test_producers_of_topics_with_illegal_names() -> None:
    body = {"topics": [{"name": "a b", "partitionIndexes": [0]}]}
    request = DescribeProducersRequest.from_json(body, 0)
    for name, text in (
        ("kafka-3.2", 'Topic name "a b" is illegal'),
        ("kafka-3.3", "Topic name is"),
    ):
        (row,) = broker(name).ask(request, 0).topics[0].partitions
        assert row.error_message.startswith(text)


@pytest.mark.requirement("A-56")
@pytest.mark.parametrize("name", ["kafka-3.0", "kafka-4.4"])
def test_repeated_topics_are_not_looked_up(name: str) -> None:
    at = broker(name)
    for names, code in ((["foo", "foo"], 42), (["foo", "foo", "none"], 7)):
        rows = at.ask("DeleteTopics", 5, topic_names=names, timeout_ms=-1).responses
        assert {row.error_code for row in rows} == {code}
