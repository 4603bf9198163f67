"""Which release has which ZooKeeper controller, and what each writes into znodes."""

from __future__ import annotations

import pytest

from mockbroker.machines import MACHINES
from mockbroker.machines.zookeeper import ERAS
from mockbroker.profiles import all_profiles, profile
from tests.mockbroker.machines.zookeeper_story import (
    FOO,
    PLAN,
    TOPIC,
    cluster_of,
    shape,
    submit,
)


@pytest.mark.requirement("K455-60")
def test_every_release_with_zookeeper_has_this_machine_in_its_era() -> None:
    names = {each.machine for each in ERAS}
    for each in all_profiles():
        if each.name.startswith("kafka"):
            assert (each.machine in names) == (each.mode == "zk"), each.name
    assert profile("kafka-2.3").machine == "zookeeper-0.10"
    assert profile("kafka-3.9-zk").machine == "zookeeper"
    assert names <= set(MACHINES)


@pytest.mark.requirement("K455-41")
@pytest.mark.parametrize(
    ("release", "topic", "broker", "controller"),
    [
        ("kafka-0.10.0", 1, 4, 1),
        ("kafka-2.3", 1, 4, 1),
        ("kafka-2.4", 2, 4, 1),
        ("kafka-2.6", 2, 4, 1),
        ("kafka-2.7", 2, 5, 1),
        ("kafka-2.8-zk", 3, 5, 1),
        ("kafka-3.3-zk", 3, 5, 1),
        ("kafka-3.4-zk", 3, 5, 2),
        ("kafka-3.9-zk", 3, 5, 2),
    ],
)
def test_the_versions_of_the_znodes(release: str, topic: int, broker: int, controller: int) -> None:
    cluster = cluster_of(machine=profile(release).machine)
    for path, version in ((TOPIC, topic), ("/brokers/ids/1", broker), ("/controller", controller)):
        assert f'"version":{version}' in cluster.znodes[path]
    assert ("adding_replicas" in cluster.znodes[TOPIC]) == (topic >= 2)
    assert ("topic_id" in cluster.znodes[TOPIC]) == (topic >= 3)


@pytest.mark.requirement("K455-60")
def test_before_2_4_the_plan_is_all_a_new_controller_has() -> None:
    cluster = cluster_of(machine=profile("kafka-2.3").machine)
    submit(cluster, {FOO: [4, 2]})
    assert cluster.znodes[TOPIC] == '{"version":1,"partitions":{"0":[4,2,1,3]}}'
    cluster.failover(2)
    cluster.join_isr(FOO, 4)
    assert shape(cluster)[:2] == ([4, 2], [2, 4])
    assert PLAN not in cluster.znodes
