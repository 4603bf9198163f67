"""Configs that a release has and documents nowhere, or without an effect here: they are accepted
as by Kafka, and hidden until they are set. Kafka 4.4.0 answers in the same way."""

import pytest

from kproto.error_codes import ErrorCode
from mockbroker import MockCluster
from mockbroker.simulation.configs.definitions import config_definitions
from mockbroker.simulation.log.log_settings import log_settings
from mockbroker.simulation.operations import parse_operation
from mockbroker.simulation.releases.release import Release
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.wire import Wire, connect

SEGMENT = "internal.segment.bytes"
TOPIC, BROKER = 2, 4


async def create(wire: Wire, name: str, value: str | None = None):
    configs = [] if value is None else [{"name": SEGMENT, "value": value}]
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "configs": configs}
    return (await wire.ask("CreateTopics", 7, topics=[topic], timeout_ms=1000)).topics[0]


async def described(wire: Wire, kind: int, name: str, version: int = 4):
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
    answer = await wire.ask("DescribeConfigs", version, resources=[resource], include_synonyms=True)
    return {each.name: each for each in answer.results[0].configs}


async def alter(wire: Wire, kind: int, name: str, config: str, value: str | None, operation=0):
    change = {"name": config, "config_operation": operation, "value": value}
    resource = {"resource_type": kind, "resource_name": name, "configs": [change]}
    answer = await wire.ask("IncrementalAlterConfigs", 1, resources=[resource])
    return answer.responses[0].error_code, answer.responses[0].error_message


@pytest.mark.parametrize("profile", ["kafka-4.1", "kafka-4.3", "kafka-4.4"])
async def test_an_internal_config_of_topics_is_hidden_until_it_is_set(profile):
    async with MockCluster(profile=profile, brokers=1) as mock, connect(mock) as wire:
        plain, own = await create(wire, "plain"), await create(wire, "own", "5000")
        assert (plain.error_code, own.error_code) == (0, 0)
        assert SEGMENT not in {each.name for each in plain.configs}
        assert len(own.configs) == len(plain.configs) + 1
        (shown,) = [each for each in own.configs if each.name == SEGMENT]
        assert (shown.value, shown.config_source, shown.read_only) == ("5000", 1, False)
        assert SEGMENT not in await described(wire, TOPIC, "plain")
        found = (await described(wire, TOPIC, "own"))[SEGMENT]
        assert (found.value, found.config_source, found.config_type) == ("5000", 1, 3)
        assert [(s.name, s.value, s.source) for s in found.synonyms] == [(SEGMENT, "5000", 1)]
        assert await alter(wire, TOPIC, "plain", SEGMENT, "6000") == (0, None)
        assert (await described(wire, TOPIC, "plain"))[SEGMENT].value == "6000"
        assert await alter(wire, TOPIC, "plain", SEGMENT, None, 1) == (0, None)
        assert SEGMENT not in await described(wire, TOPIC, "plain")


@pytest.mark.parametrize("line", [(3, 0), (3, 5)])
def test_configs_of_tiered_storage_before_there_was_any_are_hidden(line):
    """By the classes of 3.0.2 to 3.5.2, which check nothing more."""
    cluster = simulated_cluster(brokers=1, topics=["foo:1:1"], release=line)
    name = "remote.storage.enable"
    change = [(TOPIC, "foo", [(name, 0, "true")])]

    shown = {each.name for each in cluster.configs.describe(TOPIC, "foo").configs}
    assert name not in shown
    assert cluster.config_changes.alter_incrementally(change)[0].error_code == 0
    shown = {each.name for each in cluster.configs.describe(TOPIC, "foo").configs}
    assert name in shown


async def test_its_value_has_a_type_and_no_least_value():
    async with MockCluster(brokers=1) as mock, connect(mock) as wire:
        wrong = await create(wire, "wrong", "x")
        assert wrong.error_code == ErrorCode.INVALID_CONFIG
        assert wrong.error_message == (
            f"Invalid value x for configuration {SEGMENT}: Not a number of type INT"
        )
        assert (await create(wire, "below", "-5")).error_code == 0


async def test_a_release_without_it_refuses_it():
    async with MockCluster(profile="kafka-4.0", brokers=1) as mock, connect(mock) as wire:
        refused = await create(wire, "foo", "5000")
        assert refused.error_code == ErrorCode.INVALID_CONFIG
        assert refused.error_message == f"Unknown topic config name: {SEGMENT}"


async def test_a_log_rolls_at_the_internal_size():
    """Below the least ``segment.bytes``, which is what it is for."""
    async with MockCluster(topics=["foo:1:1"], brokers=1) as mock:
        change = [(TOPIC, "foo", [(SEGMENT, 0, "500")])]
        assert [
            each.error_code for each in mock.cluster.config_changes.alter_incrementally(change)
        ] == [0]
        for _ in range(3):
            await mock.run_command(parse_operation('append foo-0 {"value": {"zeros": 300}}'))
        assert len(mock.cluster.logs.log(("foo", 0)).segments) == 3


def test_the_internal_size_is_effective_and_its_absence_is_not():
    cluster = simulated_cluster(brokers=1, topics=["foo:1:1"])
    assert log_settings(cluster.configs, "foo").segment_bytes == 1 << 30
    cluster.config_changes.alter_incrementally([(TOPIC, "foo", [(SEGMENT, 0, "500")])])
    assert log_settings(cluster.configs, "foo").segment_bytes == 500


async def test_internal_configs_of_brokers():
    async with MockCluster(profile="kafka-4.4", brokers=1) as mock, connect(mock) as wire:
        name = "unstable.feature.versions.enable"
        assert name not in await described(wire, BROKER, "1")
        assert await alter(wire, BROKER, "1", name, "true") == (
            ErrorCode.INVALID_REQUEST,
            f"Cannot update these configs dynamically: [{name}]",
        )
        offload = "group.consumer.assignor.offload.enable"
        assert offload not in await described(wire, BROKER, "1")
        assert (await alter(wire, BROKER, "1", offload, "maybe"))[0] == ErrorCode.INVALID_REQUEST
        assert await alter(wire, BROKER, "1", offload, "false") == (0, None)
        found = (await described(wire, BROKER, "1"))[offload]
        assert (found.value, found.config_source, found.config_type) == ("false", 2, 1)
        assert [(s.value, s.source) for s in found.synonyms] == [("false", 2), ("true", 5)]


async def test_a_properties_file_may_set_what_no_rule_here_reads(caplog):
    given = {
        "unstable.feature.versions.enable": "true",
        "log.cleaner.dedupe.buffer.size": "1048577",
    }
    mock = MockCluster(profile="kafka-4.3", brokers=1, broker_configs=given)
    async with mock, connect(mock) as wire:
        found = await described(wire, BROKER, "1")
        assert {name: found[name].value for name in given} == given
        assert {found[name].config_source for name in given} == {4}
        assert {name: found[name].config_type for name in given} == dict(
            zip(given, (1, 5), strict=True)
        )
        assert not any(found[name].is_sensitive for name in given)
        assert not mock.cluster.configs.unknown()
    assert [each.getMessage() for each in caplog.records if each.name == "mockbroker"] == [
        "these configs have no effect here: "
        "log.cleaner.dedupe.buffer.size, unstable.feature.versions.enable"
    ]


@pytest.mark.parametrize("line", [(2, 8), (3, 9), (4, 1), (4, 3), (4, 4)])
def test_each_release_has_hundreds_of_broker_configs_and_some_internal_ones(line):
    broker = config_definitions(Release(line)).broker
    assert len(broker) > 220
    internal = {name for name, each in broker.items() if each.internal}
    assert len(internal) > 10
    assert all(broker[name].only_set for name in internal)
