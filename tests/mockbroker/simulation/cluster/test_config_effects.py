"""Every config that ``effects`` declares changes something, and no other one is read.

A cluster is made twice, with the config and without it, and what its rules follow is compared. The
effect of a few shows only in a request or after some time; ``TESTED_IN`` names their own tests.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.configs.broker_facts import BROKER_FACTS
from mockbroker.simulation.configs.definitions import config_definitions
from mockbroker.simulation.configs.effects import EFFECTS, has_effect
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.groups.classic.classic_settings import group_settings
from mockbroker.simulation.groups.consumer.consumer_settings import consumer_settings
from mockbroker.simulation.groups.modern.group_times import group_times
from mockbroker.simulation.groups.share.share_settings import share_settings, share_times
from mockbroker.simulation.groups.streams.streams_settings import streams_settings
from mockbroker.simulation.log.log_settings import log_settings
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.transactions.transaction_settings import transaction_settings
from tests.mockbroker.simulated import simulated_cluster

ROOT: Final = Path(__file__).parents[4]
GROUP: Final = 32

OTHER: Final = {
    "broker.rack": "b",
    "compression.type": "gzip",
    "group.consumer.assignors": "range",
    "group.consumer.migration.policy": "disabled",
    "group.coordinator.rebalance.protocols": "classic",
    "group.consumer.max.size": "5",
    "group.streams.assignors": "another",
    "group.streams.max.size": "5",
    "group.streams.rack.aware.assignment.tags": "zone",
    "log.cleanup.policy": "compact",
    "log.dir": "/a",
    "log.dirs": "/a,/b",
    "log.message.format.version": "0.10.2",
    "log.message.timestamp.type": "LogAppendTime",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}
"""Values of configs whose values are neither numbers nor truths."""

TESTED_IN: Final = {
    "advertised.listeners": "listeners/test_listeners.py",
    "controller.listener.names": "listeners/test_three_clients.py",
    "inter.broker.listener.name": "listeners/test_listeners.py",
    "listener.security.protocol.map": "listeners/test_listeners.py",
    "listeners": "listeners/test_listeners.py",
    "process.roles": "listeners/test_three_clients.py",
    "sasl.enabled.mechanisms": "listeners/test_listeners.py",
    "security.inter.broker.protocol": "listeners/test_three_clients.py",
    "ssl.client.auth": "listeners/test_listeners.py",
    "ssl.enabled.protocols": "listeners/test_listeners.py",
    "ssl.key.password": "listeners/test_listeners.py",
    "ssl.keystore.certificate.chain": "listeners/test_listeners.py",
    "ssl.keystore.key": "listeners/test_listeners.py",
    "ssl.keystore.location": "listeners/test_listeners.py",
    "ssl.keystore.password": "listeners/test_listeners.py",
    "ssl.truststore.certificates": "listeners/test_listeners.py",
    "ssl.truststore.location": "listeners/test_listeners.py",
    "ssl.truststore.password": "listeners/test_listeners.py",
    "auto.create.topics.enable": "apis/test_metadata.py",
    "auto.leader.rebalance.enable": "simulation/cluster/test_automatic_changes.py",
    "connections.max.idle.ms": "serving/test_config_limits.py",
    "connections.max.reauth.ms": "simulation/security/test_reauthentication.py",
    "default.replication.factor": "simulation/cluster/test_topics.py",
    "delegation.token.expiry.check.interval.ms": "simulation/security/test_delegation_tokens.py",
    "delegation.token.expiry.time.ms": "simulation/security/test_delegation_tokens.py",
    "delegation.token.master.key": "simulation/security/test_delegation_tokens.py",
    "delegation.token.max.lifetime.ms": "simulation/security/test_delegation_tokens.py",
    "delegation.token.secret.key": "simulation/security/test_delegation_tokens.py",
    "delete.topic.enable": "simulation/cluster/test_topics.py",
    "follower.replication.throttled.rate": "simulation/cluster/test_configs.py",
    "leader.imbalance.check.interval.seconds": "simulation/cluster/test_automatic_changes.py",
    "leader.imbalance.per.broker.percentage": "simulation/cluster/test_automatic_changes.py",
    "leader.replication.throttled.rate": "simulation/reassignment/test_kip_236_new_cancel.py",
    "max.connections": "serving/test_config_limits.py",
    "max.connections.per.ip": "serving/test_config_limits.py",
    "max.connections.per.ip.overrides": "serving/test_config_limits.py",
    "num.partitions": "simulation/cluster/test_topics.py",
    "offset.metadata.max.bytes": "simulation/coordinators/test_offset_requests.py",
    "offsets.commit.timeout.ms": "simulation/coordinators/test_group_log.py",
    "offsets.retention.check.interval.ms": "simulation/coordinators/test_offset_store.py",
    "offsets.retention.minutes": "simulation/coordinators/test_offset_store.py",
    "producer.id.expiration.check.interval.ms": "simulation/log/test_idempotence.py",
    "producer.id.expiration.ms": "simulation/log/test_idempotence.py",
    "remote.log.storage.system.enable": "simulation/cluster/test_configs.py",
    "replica.lag.time.max.ms": "simulation/cluster/test_automatic_changes.py",
    "share.coordinator.snapshot.update.records.per.snapshot": "simulation/groups/"
    "test_share_state_log.py",
    "socket.request.max.bytes": "serving/test_config_limits.py",
    "telemetry.max.bytes": "simulation/clients/telemetry/test_requests.py",
    "unstable.api.versions.enable": "apis/test_producer_ids.py",
    "zookeeper.session.timeout.ms": "zookeeper/test_outages.py",
}
"""Below tests/mockbroker."""


def release_of(name: str) -> Release:
    """The newest line in which the config has an effect."""
    until = max(row[-1] for row in BROKER_FACTS if row[0] == name)
    lines = sorted({row[-2] for row in BROKER_FACTS} | {until})
    found = [Release(min(line, (4, 4))) for line in lines if line <= until]
    return next(each for each in reversed(found) if has_effect(name, each))


def other_value(name: str, release: Release) -> str:
    definition = config_definitions(release).broker[name]
    if name in OTHER:
        return OTHER[name]
    if definition.type == "BOOLEAN":
        return "false" if definition.default == "true" else "true"
    default = int(definition.default or 0)
    most = definition.maximum
    return str(default - 1 if default + 1 > (2**31 - 1 if most is None else most) else default + 1)


def rules_of(cluster: Cluster) -> Iterator[Any]:
    """Yield what the rules of a cluster follow."""
    configs = cluster.configs
    yield log_settings(configs, "foo")
    yield group_settings(configs, 1)
    yield consumer_settings(configs, 1)
    yield share_settings(configs, 1)
    yield share_times(configs, "g", 1)
    yield streams_settings(configs, "g", 1)
    yield [group_times(configs, kind, "g", 1) for kind in ("consumer", "share", "streams")]
    yield transaction_settings(configs)
    for kind in CoordinatorKind:
        if cluster.coordinators.exists(kind):
            yield cluster.coordinators.new_topic(kind)
    yield [(each.rack, each.log_dirs) for each in cluster.brokers.values()]
    yield (
        cluster.fetches.max_bytes,
        cluster.fetches.reader.selector,
        cluster.fetches.sessions(1).slots,
    )
    yield configs.unclean_election_enabled("foo")
    for name in configs.definitions.group:
        for value in ("0", "15000", "1000000000", "sticky", "a"):
            yield cluster.config_changes.alter_incrementally(
                [(GROUP, "g", [(name, 0, value)])], validate_only=True
            )


@cache
def default_rules(release: Release) -> list[Any]:
    return [*rules_of(simulated_cluster(4, topics=["foo:1:2"], release=release))]


@pytest.mark.parametrize("name", sorted(EFFECTS.keys() - TESTED_IN.keys()))
def test_a_config_with_an_effect_changes_what_rules_follow(name: str) -> None:
    release = release_of(name)
    given = {name: other_value(name, release)}
    cluster = simulated_cluster(4, topics=["foo:1:2"], release=release, broker_configs=given)
    assert [*rules_of(cluster)] != default_rules(release)
    assert cluster.configs.ineffective(release) == []


@pytest.mark.parametrize("name", sorted(TESTED_IN))
def test_a_config_with_a_test_of_its_own_is_named_there(name: str) -> None:
    assert name in EFFECTS
    assert name in (ROOT / "tests/mockbroker" / TESTED_IN[name]).read_text("utf-8")


@pytest.mark.slow
def test_a_config_that_a_module_names_has_an_effect() -> None:
    """Those that only bound later changes of a running broker have none."""
    known = {row[0] for row in BROKER_FACTS if "." in row[0]}
    data = {"broker_facts.py", "broker_limits.py", "definitions.py", "effects.py", "synonyms.py"}
    named = {
        node.value
        for path in (ROOT / "mockbroker").rglob("*.py")
        if path.name not in data
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in known
    }
    described = {"broker.id", "node.id", "sasl.jaas.config"}
    assert named - described <= EFFECTS.keys()
