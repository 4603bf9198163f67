"""What ZooKeeper's controllers of old releases answer otherwise than later ones, or KRaft's. Codes
and texts are those of 2.8.2; the bounds are those of the classes of 3.1 to 3.4."""

from typing import Any

import pytest

from mockbroker.profiles import profile
from mockbroker.simulation.state.results import NewTopic
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.support.requests import request_of

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
    topic = {
        "name": name,
        "num_partitions": 1,
        "replication_factor": 1,
        "configs": [{"name": key, "value": value} for key, value in configs],
    }
    (row,) = at.ask("CreateTopics", 5, topics=[topic], timeout_ms=1000).topics
    return row.error_code, row.error_message


def described(at: DirectBroker, kind: int, name: str) -> tuple[int, str | None]:
    row = {"resource_type": kind, "resource_name": name}
    (found,) = at.ask("DescribeConfigs", 3, resources=[row]).results
    return found.error_code, found.error_message


def altered(at: DirectBroker, *resources: tuple[int, str, list[Any]]) -> list[Any]:
    rows = [
        {
            "resource_type": kind,
            "resource_name": name,
            "configs": [
                {"name": key, "config_operation": how, "value": value}
                for key, how, value in configs
            ],
        }
        for kind, name, configs in resources
    ]
    answer = at.ask("IncrementalAlterConfigs", 1, resources=rows)
    return [(each.error_code, each.error_message) for each in answer.responses]


def replaced(at: DirectBroker, kind: int, name: str, *configs: tuple[str, str | None]) -> Any:
    row = {
        "resource_type": kind,
        "resource_name": name,
        "configs": [{"name": key, "value": value} for key, value in configs],
    }
    (found,) = at.ask("AlterConfigs", 1, resources=[row]).responses
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
    if name == "kafka-3.2":
        older = older.replace("topic name:", "Topic name:")
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
    assert created(at, "__cluster_metadata")[0] == (0 if older else 29)


@pytest.mark.requirement("REL-53")
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("kafka-3.8", (29, "Authorization failed.")),
        ("kafka-3.9", (42, "Creation of internal topic __cluster_metadata is prohibited.")),
    ],
)
def test_creation_of_the_metadata_topic_until_3_9(name: str, error: tuple[int, str]) -> None:
    at = broker(name)
    assert created(at, "__cluster_metadata") == error
    twice = (NewTopic("__cluster_metadata"), NewTopic("__cluster_metadata"))
    for each in at.cluster.topics.create(twice):
        assert each.error_code == 42
        assert each.error_message == (error[1] if name == "kafka-3.9" else "Duplicate topic name.")


@pytest.mark.requirement("CONFIG-24")
@pytest.mark.parametrize(("name", "older"), [("kafka-3.2-zk", True), ("kafka-3.3-zk", False)])
def test_zookeeper_reads_the_configs_of_a_topic_before_it_checks_the_name(name, older):
    def refused(topic: str, problem: str) -> list[Any]:
        prefix = f"Invalid config value for resource ConfigResource(type=TOPIC, name='{topic}'): "
        return [(42 if older else 40, prefix + problem)]

    def relative(topic: str, place: int) -> list[Any]:
        problem = f"relative paths not allowed @{place}"
        return refused(topic, f'Invalid path string "/config/topics/{topic}" caused by {problem}')

    at = broker(name)
    needless: list[Any] = [("retention.ms", SET, "1")]
    no_name = (42, "Default topic resources are not allowed.")
    assert altered(at, (TOPIC, "", needless)) == (
        refused("", "Path must not end with / character") if older else [no_name]
    )
    assert replaced(at, TOPIC, "", ("retention.ms", "1")) == (
        (3, "The topic '' does not exist.") if older else no_name
    )
    assert altered(at, (TOPIC, ".", needless)) == relative(".", 15)
    assert altered(at, (TOPIC, "a/..", needless)) == relative("a/..", 18)
    problem = 'Invalid path string "/config/topics/a//b" caused by empty node name specified @17'
    assert altered(at, (TOPIC, "a//b", needless)) == refused("a//b", problem)
    assert replaced(at, TOPIC, ".", ("retention.ms", "1")) == (3, "The topic '.' does not exist.")


def type_and_error(row: Any) -> tuple[int, int]:
    return row.resource_type, row.error_code


@pytest.mark.requirement("REL-92")
def test_replaced_configs_are_read_into_a_map_until_2_5() -> None:
    def ask(at: DirectBroker, *rows: tuple[int, str | None]) -> Any:
        resources = [
            {"resource_type": kind, "resource_name": "foo", "name": "retention.ms", "value": value}
            for kind, value in rows
        ]
        answer = at.ask("AlterConfigs", 1, resources=resources)
        return answer and [type_and_error(each) for each in answer.responses]

    former, later = broker("kafka-2.5"), broker("kafka-2.6")
    assert ask(former, (TOPIC, "1"), (TOPIC, "2")) == [(TOPIC, 0)]
    assert former.cluster.configs.topic("foo", "retention.ms").value == "2"
    assert ask(later, (TOPIC, "1"), (TOPIC, "2")) == [(TOPIC, -1)] * 2
    assert ask(former, (16, "1"), (3, "1"), (TOPIC, "3")) == [(0, 42), (TOPIC, 42)]
    assert ask(later, (16, "1"), (TOPIC, "1")) == [(16, 42), (TOPIC, 42)]
    assert ask(later, (16, "1"), (3, "1")) == [(16, -1), (3, -1)]
    assert former.cluster.configs.topic("foo", "retention.ms").value == "2"
    assert ask(former, (TOPIC, None)) is None
    assert ask(later, (TOPIC, None)) == [(TOPIC, -1)]


@pytest.mark.requirement("REL-80")
def test_described_configs_are_read_into_a_map_until_2_6() -> None:
    def ask(at: DirectBroker, *rows: tuple[int, list[str] | None]) -> Any:
        resources = [
            {"resource_type": kind, "resource_name": "foo", "configuration_keys": keys}
            for kind, keys in rows
        ]
        return at.ask("DescribeConfigs", 2, resources=resources).results

    former, later = broker("kafka-2.6"), broker("kafka-2.7")
    twice = [(TOPIC, ["retention.ms"]), (TOPIC, ["segment.ms"])]
    (row,) = ask(former, *twice)
    assert [each.name for each in row.configs] == ["segment.ms"]
    assert len(ask(later, *twice)) == 2
    for at, kinds in ((former, (TOPIC, 0)), (later, (TOPIC, 3, 16))):
        rows = ask(at, (TOPIC, None), (3, None), (16, None))
        assert [type_and_error(each) for each in rows] == [(kind, 42) for kind in kinds]
    listed = [len(ask(at, (TOPIC, []))[0].configs) for at in (former, later)]
    assert listed == [0, len(ask(later, (TOPIC, None))[0].configs)]


@pytest.mark.requirement("REL-29")
@pytest.mark.parametrize(("name", "text"), [("kafka-2.5", "null"), ("kafka-2.6", None)])
def test_operations_without_a_meaning(name: str, text: str | None) -> None:
    at = broker(name)
    for kind, resource in ((TOPIC, "foo"), (BROKER, "")):
        unknown = altered(at, (kind, resource, [("cleanup.policy", 99, "x")]))
        assert unknown == [(-1, text)]
        missing = altered(at, (kind, resource, [("no.such", APPEND, "x")]))
        assert missing == [(-1, text and "key not found: no.such")]


@pytest.mark.requirement("REL-84")
@pytest.mark.parametrize("name", ["kafka-2.6", "kafka-2.7"])
def test_names_of_topics_with_configs_are_checked_until_2_6(name: str) -> None:
    older = name == "kafka-2.6"
    text = 'Topic name "a b" is illegal, it contains a character other than ASCII alphanumerics, '
    illegal = (17, f"{text}'.', '_' and '-'")
    unknown = (3, "The topic 'a b' does not exist.")
    at = broker(name)
    assert replaced(at, TOPIC, "a b") == (illegal if older else unknown)
    assert altered(at, (TOPIC, "a b", [])) == [illegal if older else unknown]


@pytest.mark.requirement("REL-81")
@pytest.mark.parametrize(
    ("name", "null", "first"), [("kafka-2.5", -1, 40), ("kafka-2.6", 42, 40), ("kafka-2.7", 42, 17)]
)
def test_configs_of_new_topics_are_checked_first_until_2_6(name, null, first):
    at = broker(name)
    code, text = created(at, "a b", ("retention.ms", None))
    assert (code, text is None) == (null, null == -1)
    assert created(at, "a b", ("retention.ms", "x"))[0] == first
    assert created(at, "foo", ("retention.ms", "x"))[0] == 36


@pytest.mark.requirement("REL-86")
@pytest.mark.parametrize(("name", "older"), [("kafka-2.2", True), ("kafka-2.3", False)])
def test_topics_that_are_created_twice(name: str, older: bool) -> None:
    topics = [
        {"name": each, "num_partitions": 1, "replication_factor": 1}
        for each in ("a", "b", "a", "b", "c")
    ]
    at = broker(name)
    rows = at.ask("CreateTopics", 2, topics=topics, timeout_ms=1000).topics
    text = (
        "Create topics request from client `test` contains multiple entries for "
        "the following topics: a,b"
        if older
        else "Found multiple entries for this topic."
    )
    twice = [each for each in rows if each.name != "c"]
    assert len(twice) == (2 if older else 4)
    assert {(each.error_code, each.error_message) for each in twice} == {(42, text)}
    assert "c" in at.cluster.topics


@pytest.mark.requirement("REL-87")
@pytest.mark.parametrize(
    ("count", "factor", "former", "later"),
    [(-1, 1, 37, 0), (1, -1, 38, 0), (0, 0, 37, 37), (-1, 2, 37, 38), (1, 0, 38, 38)],
)
def test_counts_of_new_topics_have_defaults_since_2_4(count, factor, former, later):
    topic = {"name": "new", "num_partitions": count, "replication_factor": factor}
    request = request_of("CreateTopics", topics=[topic], timeout_ms=1000)
    codes = [
        broker(name).ask(request, 2).topics[0].error_code for name in ("kafka-2.3", "kafka-2.4")
    ]
    assert codes == [former, later]


@pytest.mark.requirement("REL-88")
@pytest.mark.parametrize(
    ("name", "code"), [("kafka-1.0", -1), ("kafka-2.0", -1), ("kafka-2.1", 40)]
)
def test_values_of_new_topics(name: str, code: int) -> None:
    text = "Invalid value x for configuration retention.ms: Not a number of type LONG"
    assert wrongly_created(broker(name), "retention.ms") == (code, text)
    assert wrongly_created(broker(name), "no.such") == (40, "Unknown topic config name: no.such")


def wrongly_created(at: DirectBroker, config: str) -> tuple[int, str | None]:
    topic = {
        "name": "new",
        "num_partitions": 1,
        "replication_factor": 1,
        "configs": {"name": config, "value": "x"},
    }
    (row,) = at.ask("CreateTopics", 2, topics=[topic], timeout_ms=1000).topics
    return row.error_code, row.error_message


@pytest.mark.requirement("REL-89")
@pytest.mark.parametrize(("name", "code"), [("kafka-1.1", 0), ("kafka-2.0", 3)])
def test_described_topics_exist_since_2_0(name: str, code: int) -> None:
    row = {"resource_type": TOPIC, "resource_name": "none", "configuration_keys": ["retention.ms"]}
    (found,) = broker(name).ask("DescribeConfigs", 0, resources=[row]).results
    assert (found.error_code, len(found.configs)) == (code, 0 if code else 1)


@pytest.mark.requirement("REL-90")
@pytest.mark.parametrize("name", ["kafka-0.11.0", "kafka-1.0"])
def test_other_brokers_were_named_by_id_before_1_1(name: str) -> None:
    row = {"resource_type": BROKER, "resource_name": "2"}
    (found,) = broker(name).ask("DescribeConfigs", 0, resources=[row]).results
    assert found.error_message == "Unexpected broker id, expected 1 or empty string, but received 2"


@pytest.mark.requirement("REL-90")
@pytest.mark.parametrize(
    ("name", "resource", "other"),
    [
        ("kafka-1.1", "Resource(type={}, name='{}'}}", "Resource(type=BROKER, name='2'}.name"),
        ("kafka-2.0", "ConfigResource(type={}, name='{}')",
         "ConfigResource(type=BROKER, name='2').name"),
        ("kafka-2.3", "ConfigResource(type={}, name='{}')",
         "ConfigResource(type=BROKER, name='2').name"),
        ("kafka-2.4", "ConfigResource(type={}, name='{}')", "2"),
    ],
)  # fmt: skip
def test_how_texts_name_resources(name: str, resource: str, other: str) -> None:
    def wrong(kind: int, named: str, *configs: tuple[str, str | None]) -> Any:
        row = {
            "resource_type": kind,
            "resource_name": named,
            "configs": [{"name": key, "value": value} for key, value in configs],
        }
        (found,) = at.ask("AlterConfigs", 0, resources=[row]).responses
        return found.error_code, found.error_message

    at = broker(name)
    prefix = f"Invalid config value for resource {resource.format('TOPIC', 'foo')}: "
    text = "Invalid value x for configuration retention.ms: Not a number of type LONG"
    assert wrong(TOPIC, "foo", ("retention.ms", "x")) == (42, prefix + text)
    code, found = wrong(BROKER, "1", ("log.retention.ms", "x"))
    assert (code, resource.format("BROKER", "1") in found) == (42, True)
    assert wrong(BROKER, "2") == (42, f"Unexpected broker id, expected 1, but received {other}")
    row = {"resource_type": BROKER, "resource_name": "2"}
    (found,) = at.ask("DescribeConfigs", 0, resources=[row]).results
    text = f"Unexpected broker id, expected 1 or empty string, but received {other}"
    assert found.error_message == text


@pytest.mark.requirement("REL-91")
@pytest.mark.parametrize(("name", "older"), [("kafka-1.1", True), ("kafka-2.0", False)])
def test_types_of_resources_with_configs(name: str, older: bool) -> None:
    def ask(*kinds: int) -> list[Any]:
        rows = [{"resource_type": each, "resource_name": "x"} for each in kinds]
        described = [{"resource_type": each, "resource_name": "x"} for each in kinds]
        requests = (
            request_of("AlterConfigs", resources=rows),
            request_of("DescribeConfigs", resources=described),
        )
        return [at.ask(each, 0) for each in requests]

    at = broker(name)
    for kind, text in ((1, "ANY"), (3, "GROUP"), (5, "UNKNOWN")):
        named = kind if older and kind < 5 else 0
        text = text if older else "UNKNOWN"
        altered_, described_ = ask(kind)
        (row,) = altered_.responses
        assert (row.resource_type, row.error_message) == (named, f"Unexpected resource type {text}")
        (row,) = described_.results
        message = f"Unexpected resource type {text} for resource x"
        assert (row.resource_type, row.error_message) == (named, message)
    assert [each is None for each in ask(-1)] == [older] * 2


@pytest.mark.requirement("REL-82")
@pytest.mark.parametrize(
    ("name", "explained", "hashed"),
    [("kafka-2.4", True, True), ("kafka-2.5", True, False), ("kafka-2.6", False, False)],
)
def test_partitions_of_topics_without_a_name(name: str, explained: bool, hashed: bool) -> None:
    at = broker(name)

    def grown(*names: str) -> list[tuple[str, int, str | None]]:
        topics = [{"name": each, "count": 3, "assignments": None} for each in names]
        answer = at.ask("CreatePartitions", 1, topics=topics, timeout_ms=1000)
        return [(each.name, each.error_code, each.error_message) for each in answer.results]

    text = "Path must not end with / character" if explained else None
    # The topics before it have grown. The hash of no name is 0, so that it comes first.
    for names, count in ((("", "foo"), 1), (("foo", ""), 1 if hashed else 3)):
        assert grown(*names) == [(each, -1, text) for each in names]
        assert len(at.cluster.topics["foo"].partitions) == count
    codes = {each: code for each, code, _ in grown("foo", "", "")}
    assert codes == {"foo": 0 if hashed else 37, "": 42}


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


@pytest.mark.requirement("CONFIG-21")
@pytest.mark.parametrize(
    ("name", "prefix"),
    [("kafka-2.6", "SET:"), ("kafka-3.1-zk", "SET:"), ("kafka-3.2-zk", "")],
)
def test_how_null_values_of_configs_are_named(name: str, prefix: str) -> None:
    assert altered(broker(name), (TOPIC, "foo", [("retention.ms", SET, None)])) == [
        (42, f"Null value not supported for : {prefix}retention.ms")
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
    problem = "Invalid value x for configuration log.retention.ms: Not a number of type LONG"
    prefix = "Invalid config value for resource ConfigResource(type=BROKER, name='1'): "
    wrong = altered(at, (BROKER, "1", [("log.retention.ms", SET, "x")]))
    assert wrong == [(42, (prefix if older else "") + problem)]
