"""The loggers of brokers (BROKER_LOGGER, KIP-412), as 2.4.1, 2.8.2, 3.2.3, 3.7.2, 4.4.0 answer."""

from typing import Any

import pytest

from mockbroker import Operations
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.support.requests import request_of

LOGGER = 8
SET, DELETE, APPEND, SUBTRACT = range(4)
NAME = "kafka.controller"
PREFIX = "Invalid config value for resource ConfigResource(type=BROKER_LOGGER, name='1'): "
SCALA, SORTED = "TRACE, ERROR, INFO, FATAL, DEBUG, WARN", "DEBUG, ERROR, FATAL, INFO, TRACE, WARN"
RELEASES = ((2, 4), (2, 8), (3, 2), (3, 7), (4, 4))
PROFILES = {
    (2, 3): "kafka-2.3", (2, 4): "kafka-2.4", (2, 8): "kafka-2.8-zk", (3, 2): "kafka-3.2",
    (3, 7): "kafka-3.7", (4, 0): "kafka-4.0", (4, 1): "kafka-4.1", (4, 4): "kafka-4.4",
}  # fmt: skip


def broker(release: tuple[int, int] = (4, 4)) -> DirectBroker:
    kind = "kraft" if release >= (3, 2) else "zookeeper"
    cluster = simulated_cluster(2, release=release, reassignment=kind)
    return DirectBroker(cluster, profile_name=PROFILES[release])


def described(of: DirectBroker, name: str = "1", keys: list[str] | None = None) -> Any:
    resource = {"resource_type": LOGGER, "resource_name": name, "configuration_keys": keys}
    return of.ask("DescribeConfigs", 2, resources=[resource]).results[0]


def level(of: DirectBroker, logger: str = NAME) -> str:
    (row,) = described(of, keys=[logger]).configs
    return str(row.value)


def alter(
    of: DirectBroker, *changes: tuple[str, int, str | None], name: str = "1", dry: bool = False
) -> tuple[int, str | None]:
    configs = [
        {"name": logger, "config_operation": how, "value": value} for logger, how, value in changes
    ]
    resource = {"resource_type": LOGGER, "resource_name": name, "configs": configs}
    request = request_of("IncrementalAlterConfigs", resources=[resource], validate_only=dry)
    (row,) = of.ask(request, 0).responses
    assert (row.resource_type, row.resource_name) == (LOGGER, name)
    return row.error_code, row.error_message


@pytest.mark.requirement("CONFIG-17")
@pytest.mark.parametrize("release", RELEASES)
def test_a_broker_describes_its_loggers(release: tuple[int, int]) -> None:
    of = broker(release)
    found = described(of)
    assert found.error_code == 0
    rows = {each.name: each for each in found.configs}
    assert (rows["root"].value, rows[NAME].value) == ("INFO", "TRACE")
    for row in rows.values():
        assert (row.read_only, row.config_source, row.is_sensitive) == (False, 6, False)
        assert (row.config_type, row.synonyms) == (0, [])
    for name, text in (
        ("", "Broker id must not be empty"),
        ("x", "Broker id must be an integer, but it is: x"),
        ("2", "Unexpected broker id, expected 1 but received 2"),
    ):
        refused = described(of, name)
        assert (refused.error_code, refused.error_message) == (42, text)


@pytest.mark.requirement("CONFIG-17", "CONFIG-19")
@pytest.mark.parametrize("release", [(4, 0), (4, 1)])
def test_the_class_that_serves_loggers_has_one(release: tuple[int, int]) -> None:
    of = broker(release)
    name = "org.apache.kafka.server.logger.LoggingController"
    listed = name in [each.name for each in described(of).configs]
    assert listed == (release >= (4, 1))
    code, _ = alter(of, (name, SET, "WARN"), ("org.apache.kafka", SET, "ERROR"))
    assert code == (0 if listed else 40)
    if listed:
        assert level(of, name) == "WARN"
        assert alter(of, (name, DELETE, None)) == (0, None)
        assert level(of, name) == "ERROR"


@pytest.mark.requirement("CONFIG-17")
def test_a_release_before_them_has_no_loggers() -> None:
    assert described(broker((2, 3))).error_code == 42


@pytest.mark.requirement("CONFIG-17", "CONFIG-19")
@pytest.mark.parametrize("release", RELEASES)
def test_levels_are_those_of_a_broker_until_it_stops(release: tuple[int, int]) -> None:
    of = broker(release)
    assert alter(of, (NAME, SET, "DEBUG"), dry=True) == (0, None)
    assert level(of) == "TRACE"
    assert alter(of, (NAME, SET, "DEBUG"), ("root", SET, "WARN")) == (0, None)
    assert (level(of), level(of, "root"), level(of, "kafka")) == ("DEBUG", "WARN", "INFO")
    assert of.cluster.loggers.level(2, NAME) == "TRACE"
    # Without a level of its own, a logger has that of the nearest one above it.
    assert alter(of, (NAME, DELETE, None)) == (0, None)
    assert level(of) == "INFO"
    assert alter(of, ("kafka", DELETE, None)) == (0, None)
    assert level(of) == level(of, "kafka") == "WARN"
    assert alter(of) == (0, None)
    operations = Operations(of.cluster)
    operations.stop_broker(1)
    operations.start_broker(1)
    assert level(of) == "TRACE"


def wrong(release: tuple[int, int], problem: str) -> tuple[int, str]:
    return (42, PREFIX + problem) if release < (3, 2) else (40, problem)


@pytest.mark.requirement("CONFIG-19", "CONFIG-20", "CONFIG-21")
@pytest.mark.parametrize("release", RELEASES)
def test_changes_that_are_refused(release: tuple[int, int]) -> None:
    of = broker(release)
    levels = SCALA if release < (3, 7) else SORTED

    def unsupported(value: str) -> tuple[int, str]:
        return wrong(
            release,
            f"Cannot set the log level of {NAME} to {value} as it is not a supported log level. "
            f"Valid log levels are {levels}",
        )

    for value in ("debug", "LOUD", "", " INFO ", "OFF", "ALL"):
        assert alter(of, (NAME, SET, value)) == unsupported(value)
    missing = wrong(release, "Logger no.such does not exist!")
    assert alter(of, ("no.such", SET, "LOUD")) == alter(of, ("no.such", DELETE, None)) == missing
    assert alter(of, (NAME, SET, "WARN"), ("no.such", SET, "INFO")) == missing
    assert alter(of, ("no.such", SET, "INFO"), (NAME, APPEND, "INFO")) == missing
    for how, verb in ((APPEND, "APPEND"), (SUBTRACT, "SUBTRACT")):
        text = f"{verb} operation is not allowed for the BROKER_LOGGER resource"
        assert alter(of, ("no.such", how, "INFO")) == (42, text)
    text = "Removing the log level of the root logger is not allowed"
    assert alter(of, ("root", DELETE, None)) == (42, text)
    named = release in ((3, 2), (4, 4))
    text = "Unknown operation type 4 is not allowed for the BROKER_LOGGER resource"
    assert alter(of, (NAME, 4, "INFO")) == ((42, text) if named else (-1, None))
    repeated = "Error due to duplicate config keys" + (f" : {NAME}" if release < (3, 2) else "")
    assert alter(of, (NAME, SET, "INFO"), (NAME, SET, "INFO")) == (42, repeated)
    null = "Null value not supported for : " + ("SET:" if release == (2, 8) else "") + NAME
    assert alter(of, (NAME, SET, None)) == (
        unsupported("null") if release == (2, 4) else (42, null)
    )
    assert level(of) == "TRACE"


@pytest.mark.requirement("CONFIG-18")
@pytest.mark.parametrize("release", RELEASES)
def test_loggers_of_another_broker_are_refused(release: tuple[int, int]) -> None:
    of = broker(release)
    kind = "Node" if release >= (3, 2) else "Broker"
    other = {
        (3, 7): "Unexpected node id. Expected 1, but received 1",
        (4, 4): "Unexpected node id. Expected 1, but received 2",
    }.get(release, "Unexpected broker id, expected 1, but received 2")
    assert alter(of, ("no.such", APPEND, "INFO"), name="2") == (42, other)
    for name in ("x", " 1", "1_0", "2147483648"):
        text = f"{kind} id must be an integer, but it is: {name}"
        assert alter(of, (NAME, SET, "INFO"), name=name) == (42, text)
    empty = (42, "Node id must be an integer, but it is: ")
    assert alter(of, (NAME, SET, "INFO"), name="") == (empty if kind == "Node" else (0, None))
    assert alter(of, (NAME, SET, "INFO"), name="01") == (0, None)


@pytest.mark.requirement("CONFIG-20")
@pytest.mark.parametrize("release", RELEASES)
def test_alter_configs_replaces_no_levels(release: tuple[int, int]) -> None:
    of = broker(release)
    configs = [{"name": NAME, "value": "INFO"}]
    resource = {"resource_type": LOGGER, "resource_name": "1", "configs": configs}
    (row,) = of.ask("AlterConfigs", 1, resources=[resource]).responses
    text = "Unknown resource type 8"
    if release < (3, 2):
        text = "AlterConfigs is deprecated and does not support the resource type BROKER_LOGGER"
    assert (row.error_code, row.error_message) == (42, text)
    if release < (3, 2):
        return
    resource["configs"] = [{"name": NAME, "value": None}]
    (row,) = of.ask("AlterConfigs", 1, resources=[resource]).responses
    assert row.error_message.startswith("Null value not supported for : "), "looked at first"
    resource["configs"] = configs * 2
    (row,) = of.ask("AlterConfigs", 1, resources=[resource]).responses
    assert row.error_message == "Error due to duplicate config keys"
