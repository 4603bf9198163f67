"""The thin handlers: what the cluster says reaches the wire, at old versions and new."""

from typing import Any

import pytest

from kproto.error_codes import ErrorCode, message
from mockbroker import MockCluster
from mockbroker.apis import HANDLERS
from mockbroker.simulation.cluster import Cluster
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.support.requests import request_of

TOPIC, BROKER = 2, 4


@pytest.fixture
def broker() -> DirectBroker:
    return DirectBroker(
        Cluster(topics=["foo=1,2,3"]), apis={k: h.versions for k, h in HANDLERS.items()}
    )


def describe(
    broker: DirectBroker, kind: int, name: str, *names: str, version: int = 4, **flags: Any
):
    resource = {
        "resource_type": kind,
        "resource_name": name,
        "configuration_keys": list(names) or None,
    }
    body = request_of("DescribeConfigs", resources=[resource], **flags)
    (result,) = broker.ask(body, version).results
    return result


def alter(
    broker: DirectBroker, kind: int, name: str, *changes: tuple[str, int, str | None], **options
):
    resource = {
        "resource_type": kind,
        "resource_name": name,
        "configs": [{"name": n, "config_operation": o, "value": v} for n, o, v in changes],
    }
    body = request_of("IncrementalAlterConfigs", resources=[resource], **options)
    (result,) = broker.ask(body, 1).responses
    return result.error_code, result.error_message


# ---- configs -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("reassignment", "code"), [("kraft", 40), ("zookeeper", 3)])
def test_kraft_checks_a_value_before_it_looks_for_the_topic(reassignment: str, code: int) -> None:
    profile = "kafka-4.4" if reassignment == "kraft" else "kafka-3.9-zk"
    broker = DirectBroker(
        simulated_cluster(topics=["foo=1"], reassignment=reassignment), profile_name=profile
    )
    assert alter(broker, TOPIC, "nope", ("retention.ms", 0, "soon"))[0] == code
    assert alter(broker, TOPIC, "nope", ("retention.ms", 0, "1"))[0] == 3


@pytest.mark.requirement("REL-05")
@pytest.mark.parametrize(("release", "message"), [("kafka-2.6", None), ("kafka-2.7", "")])
def test_the_message_beside_described_configs_was_null_until_2_6(release, message):
    broker = DirectBroker(
        simulated_cluster(topics=["foo=1"], reassignment="zookeeper"), profile_name=release
    )
    found = describe(broker, TOPIC, "foo", "retention.ms", version=2)
    assert (found.error_code, found.error_message) == (0, message)


@pytest.mark.requirement("REL-06")
@pytest.mark.parametrize(
    ("release", "kind", "text"),
    [
        ("kafka-2.6", 3, "Unexpected resource type UNKNOWN for resource x"),
        ("kafka-2.7", 3, message(ErrorCode.INVALID_REQUEST)),
        ("kafka-3.9", 32, message(ErrorCode.INVALID_REQUEST)),
    ],
)
def test_an_unknown_resource_type_fails_the_whole_request(release, kind, text):
    broker = DirectBroker(MockCluster(1, profile=release).cluster, profile_name=release)
    rows = [
        {"resource_type": each, "resource_name": name}
        for each, name in ((BROKER, "1"), (kind, "x"))
    ]
    results = broker.ask("DescribeConfigs", 2, resources=rows).results
    assert [(each.resource_type, each.error_code, each.error_message) for each in results] == [
        (BROKER, 42, text),
        (0 if release == "kafka-2.6" else kind, 42, text),
    ]


@pytest.mark.parametrize("version", range(5))
def test_configs_of_a_topic(broker: DirectBroker, version: int) -> None:
    assert alter(broker, TOPIC, "foo", ("retention.ms", 0, "5")) == (0, None)
    result = describe(broker, TOPIC, "foo", "retention.ms", "segment.bytes", version=version)
    found = {row.name: row for row in result.configs}
    assert (found["retention.ms"].value, found["segment.bytes"].value) == ("5", "1073741824")
    sources = [found[name].config_source for name in ("retention.ms", "segment.bytes")]
    assert sources == ([1, 5] if version >= 1 else [-1, -1])
    assert not any(row.is_default for row in result.configs)
    types = {row.config_type for row in result.configs}
    assert types == ({5, 3} if version >= 3 else {0})


@pytest.mark.requirement("REL-07")
@pytest.mark.parametrize(("release", "told"), [("kafka-2.6", True), ("kafka-2.7", False)])
def test_version_0_told_of_defaults_while_brokers_filled_it_in(release: str, told: bool) -> None:
    broker = DirectBroker(Cluster(topics=["foo=1"]), profile_name=release)
    (segment,) = describe(broker, TOPIC, "foo", "segment.bytes", version=0).configs
    assert segment.is_default is told
    alter(broker, TOPIC, "foo", ("segment.bytes", 0, "2000000"))
    (segment,) = describe(broker, TOPIC, "foo", "segment.bytes", version=0).configs
    assert not segment.is_default


def test_synonyms_and_documentation_on_request_only(broker: DirectBroker) -> None:
    quiet = describe(broker, TOPIC, "foo", "retention.ms").configs[0]
    assert (quiet.synonyms, quiet.documentation) == ([], None)
    full = describe(broker, TOPIC, "foo", "segment.bytes", include_synonyms=True).configs[0]
    assert [s.name for s in full.synonyms] == ["log.segment.bytes"]
    validated = alter(broker, TOPIC, "foo", ("retention.ms", 0, "5"), validate_only=True)
    assert validated == (0, None)
    assert describe(broker, TOPIC, "foo", "retention.ms").configs[0].value != "5"


def test_a_brokers_configs_are_asked_of_that_broker(broker: DirectBroker) -> None:
    assert describe(broker, BROKER, "1").error_code == 0
    assert describe(broker, BROKER, "").error_code == 0
    wrong = describe(broker, BROKER, "2")
    assert (wrong.error_code, wrong.configs) == (42, [])
    assert wrong.error_message == (
        "Unexpected broker id, expected 1 or empty string, but received 2"
    )
    assert alter(broker, BROKER, "2", ("x", 0, "1")) == (
        42, "Unexpected broker id, expected 1, but received 2"
    )  # fmt: skip
    rate = ("leader.replication.throttled.rate", 0, "1000")
    assert alter(broker, BROKER, "1", rate) == (0, None)
    assert describe(broker, BROKER, "1", rate[0]).configs[0].value == "1000"


def test_configs_of_nothing(broker: DirectBroker) -> None:
    assert describe(broker, TOPIC, "nope").error_code == 3
    assert alter(broker, TOPIC, "nope", ("retention.ms", 0, "5"))[0] == 3


# ---- topics -------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(8))
def test_topics_come_and_go(broker: DirectBroker, version: int) -> None:
    body = request_of(
        "CreateTopics",
        topics=[
            {
                "name": "new",
                "num_partitions": -1,
                "replication_factor": -1,
                "assignments": [
                    {"partition_index": 1, "broker_ids": [2, 3]},
                    {"partition_index": 0, "broker_ids": [3, 1]},
                ],
                "configs": {"name": "retention.ms", "value": "7"},
            },
            {"name": "foo", "num_partitions": 1, "replication_factor": 1},
        ],
    )
    made, exists = broker.ask(body, version).topics
    assert (made.name, made.error_code, exists.error_code) == ("new", 0, 36)
    assert bool(exists.error_message) == (version >= 1)
    topic = broker.cluster.topics["new"]
    assert [p.replicas for p in topic.partitions] == [(3, 1), (2, 3)]
    if version >= 5:
        assert (made.num_partitions, made.replication_factor) == (2, 2)
        assert {c.name: c.value for c in made.configs}["retention.ms"] == "7"
    if version >= 7:
        assert made.topic_id == topic.topic_id

    by_name = min(version, 5)
    rows = broker.ask(
        "DeleteTopics", by_name, topic_names=["new", "nope"], timeout_ms=1000
    ).responses
    assert [(row.name, row.error_code) for row in rows] == [("new", 0), ("nope", 3)]
    assert set(broker.cluster.topics) == {"foo"}


def test_delete_by_id(broker: DirectBroker) -> None:
    topic_id = broker.cluster.topics["foo"].topic_id
    body = request_of("DeleteTopics", name=None, topic_id=topic_id, timeout_ms=1000)
    (row,) = broker.ask(body, 6).responses
    assert (row.name, row.topic_id, row.error_code) == ("foo", topic_id, 0)
    (row,) = broker.ask(body, 6).responses
    assert (row.topic_id, row.error_code) == (topic_id, 100)


@pytest.mark.parametrize("version", range(4))
def test_more_partitions(broker: DirectBroker, version: int) -> None:
    body = request_of(
        "CreatePartitions",
        timeout_ms=1000,
        topics=[
            {"name": "foo", "count": 2, "broker_ids": [3, 2, 1]},
            {"name": "nope", "count": 2, "assignments": None},
        ],
    )
    rows = broker.ask(body, version).results
    assert {row.name: row.error_code for row in rows} == {"foo": 0, "nope": 3}
    assert broker.cluster.topics.partition("foo", 1).replicas == (3, 2, 1)


# ---- log directories, producers, SASL -----------------------------------------------------------


@pytest.mark.parametrize("version", range(1, 6))
@pytest.mark.requirement("K240-14")
def test_log_dirs_hold_what_the_broker_replicates(version: int) -> None:
    broker = DirectBroker(
        Cluster(topics=["foo=1,2/2,3", "bar=3"]), apis={35: HANDLERS[35].versions}
    )
    expected = {1: {("foo", 0)}, 2: {("foo", 0), ("foo", 1)}, 3: {("foo", 1), ("bar", 0)}}
    for broker_id, held in expected.items():
        answer = broker.ask("DescribeLogDirs", version, topics=None, broker_id=broker_id)
        assert replicas(answer) == held
    some = request_of("DescribeLogDirs", topic="foo", partitions=[1])
    assert replicas(broker.ask(some, version, broker_id=2)) == {("foo", 1)}


def replicas(answer: Any) -> set[tuple[str, int]]:
    return {
        (topic.name, p.partition_index)
        for result in answer.results
        for topic in result.topics
        for p in topic.partitions
    }


def test_producers_of_a_partition_without_any(broker: DirectBroker) -> None:
    body = request_of(
        "DescribeProducers",
        topics=[
            {"name": "foo", "partition_indexes": [0, 5]},
            {"name": "nope", "partition_indexes": [0]},
        ],
    )
    seen = {}
    for broker_id in (1, 2):
        answer = broker.ask(body, 0, broker_id=broker_id)
        seen[broker_id] = [p.error_code for t in answer.topics for p in t.partitions]
        assert all(not p.active_producers for t in answer.topics for p in t.partitions)
    assert seen == {1: [0, 3, 3], 2: [0, 3, 3]}


def test_sasl_is_refused_where_there_is_none(broker: DirectBroker) -> None:
    assert broker.ask("SaslHandshake", 1, mechanism="PLAIN").error_code == 34
    assert broker.ask("SaslAuthenticate", 2, auth_bytes=b"").error_code == 34
    assert broker.ask("DescribeCluster", 0).error_code == 0


# ---- access rules -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(4))
def test_access_rules(broker: DirectBroker, version: int) -> None:
    rules = [
        {
            "resource_type": TOPIC,
            "resource_name": name,
            "resource_pattern_type": 3,
            "principal": principal,
            "host": "*",
            "operation": 3,
            "permission_type": 3,
        }
        for name, principal in [("foo", "User:a"), ("foo", "User:b"), ("bar", "User:a"), ("", "x")]
    ]
    created = broker.ask("CreateAcls", version, creations=rules).results
    assert [row.error_code == 0 for row in created] == [True, True, True, False]
    everything = request_of(
        "DescribeAcls",
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1 if version else 3,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    listed = {
        (resource.resource_name, acl.principal)
        for resource in broker.ask(everything, version).resources
        for acl in resource.acls
    }
    assert listed == {("foo", "User:a"), ("foo", "User:b"), ("bar", "User:a")}
    names = [r.resource_name for r in broker.ask(everything, version).resources]
    assert len(names) == len(set(names)) == 2
    body = request_of(
        "DeleteAcls",
        filters=[
            {
                "resource_type_filter": TOPIC,
                "resource_name_filter": "foo",
                "pattern_type_filter": 3,
                "principal_filter": principal,
                "host_filter": None,
                "operation": 1,
                "permission_type": 1,
            }
            for principal in ("User:a", "User:nobody")
        ],
    )
    results = broker.ask(body, version).filter_results
    removed = [[acl.principal for acl in result.matching_acls] for result in results]
    assert removed == [["User:a"], []]
    left = broker.ask(everything, version).resources
    assert {(r.resource_name, acl.principal) for r in left for acl in r.acls} == {
        ("foo", "User:b"), ("bar", "User:a")
    }  # fmt: skip
